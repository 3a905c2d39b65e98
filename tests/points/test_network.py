"""No hostile address or host passes point `network`, and no request for either point can claim what is measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.cases.run import Runner
from engine.drive import run
from engine.flow import Context, answer
from engine.model import Mode, Outcome
from engine.points.network import POINT
from engine.record.source_events import EventName
from tests.facts.test_urls import BAD, GOOD
from tests.points.test_media import ALLOWED, BLOCKED

HOST = "data.example.org"


def asked(runner: Runner, url: str, addresses: tuple[str, ...], hosts: tuple[str, ...] = (HOST,)) -> Any:
    """The decision on one address, as a dry run."""
    engine = runner.engine({})
    assert engine.services is not None
    context = replace(engine.services.gather_context, addresses=lambda _: addresses)
    request = {
        "id": "a",
        "alias": "a",
        "urls": [url],
        "license": "MIT",
        "network": {"enabled": True, "allowed_hosts": list(hosts), "budget": {"max_requests": 1}},
    }
    services = replace(engine.services, gather_context=context)
    return run(answer(POINT, request, Mode.CHECK, services, Context())).decision


# covers: H06.1-3
def test_every_address_that_is_not_public_is_refused_and_every_public_one_is_not(runner: Runner) -> None:
    decision = asked(runner, f"https://{HOST}/", BLOCKED + ALLOWED)
    refused = [finding.subject.removeprefix("addresses/") for finding in decision.findings]
    assert {finding.code for finding in decision.findings} == {"address_not_public"}
    assert sorted(refused) == sorted(BLOCKED)
    assert asked(runner, f"https://{HOST}/", ALLOWED).outcome is Outcome.ALLOW


# covers: A32, A33
def test_every_non_canonical_url_is_refused(runner: Runner) -> None:
    assert len(BAD) >= 75
    wide = (HOST, "evil.example.org", "example.org")
    passed = [url for url in BAD if asked(runner, url, ALLOWED[:1], wide).outcome is not Outcome.DENY]
    assert passed == []
    assert asked(runner, next(iter(GOOD)), ALLOWED[:1], wide).outcome is not Outcome.DENY  # the control


# covers: A40
@pytest.mark.parametrize("mode", [Mode.CHECK, Mode.ENFORCE])
def test_only_an_enforced_decision_emits_events(mode: Mode, runner: Runner) -> None:
    engine = runner.engine({})
    assert engine.services is not None
    request = {"id": "a", "alias": "a", "urls": [], "network": {"budget": {"max_requests": 0}}}
    got = run(answer(POINT, request, mode, engine.services, Context()))
    assert got.gathered is not None
    assert POINT.events is not None
    assert engine.policy is not None
    found = [one.event for one in POINT.events(got.gathered, got.decision, engine.policy.catalogue)]
    assert found == ([] if mode is Mode.CHECK else [EventName.FETCH_ATTEMPT, EventName.FETCH_REJECTED])
