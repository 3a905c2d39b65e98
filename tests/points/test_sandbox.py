"""What point `sandbox` sees of a request and of this machine, and what its permit says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from admission_adapters.sandbox.command import digest_of as digest_at_the_hand
from engine.cases.run import Runner
from engine.facts.code.boundaries import BOUNDARIES
from engine.model import Boundary, Probe, SandboxFacts
from engine.points import GatherContext
from engine.points.sandbox import SandboxInput, SandboxLimits, SandboxRequest, digest_of, gather
from engine.policy_bundle.lookups import Lookups
from tests.conftest import case
from tests.expect import of

ZERO = "sha256:" + "0" * 64
HELD = Boundary(backend="bubblewrap", boundary="files", kind="kernel", enforced=True, evidence=ZERO)
TRIED = Probe(id="bubblewrap", subject=ZERO, machine=ZERO, probed_at=0, authentic=True)


def facts(**request: Any) -> SandboxInput:
    asked: list[tuple[str, int | None]] = []

    def found(backend: str, seconds: int | None) -> SandboxFacts:
        asked.append((backend, seconds))
        return SandboxFacts((HELD,), (TRIED,))

    world = GatherContext(
        clock=lambda: 7,
        boundaries=tuple,
        sandbox_facts=found,
        backend_of=lambda profile, *_: {"standard": "bubblewrap"}.get(profile or ""),
        lookups=Lookups(probe_seconds=60),
    )
    text = json.dumps({"profile": "standard", **request})
    gathered = of(SandboxInput, gather(SandboxRequest.model_validate_json(text), world).input)
    assert asked == [("bubblewrap", 60)]
    return gathered


# covers: H05
def test_boundary_facts_come_only_from_the_machine() -> None:
    found = facts(declared=["network"])
    assert (found.boundaries, found.probes) == ((HELD,), (TRIED,))
    for stated in ("boundaries", "probes", "required", "now"):
        with pytest.raises(ValidationError):
            facts(**{stated: []})


# covers: D19
def test_every_boundary_is_required_regardless_of_the_declaration() -> None:
    for declared in ([], ["network", "network"]):
        assert tuple(one.id for one in facts(declared=declared).required.boundaries) == BOUNDARIES
    assert [one.id for one in facts(declared=["cpu", "cpu"]).declared] == ["cpu"]


# covers: B11
def test_only_the_name_and_digest_of_a_command_are_visible() -> None:
    words = ("cat", "quokka.txt", "--quokka")
    found = facts(command=words)
    assert "quokka" not in found.model_dump_json()
    assert found.command.model_dump() == {
        "stated": True, "text": False, "executable": "cat", "words": 3, "digest": digest_of(words),
    }  # fmt: skip
    assert facts().command.model_dump(exclude_none=True) == {"stated": False, "text": False}


# covers: B11
@pytest.mark.parametrize("words", [("cat",), ("cat", ""), ("cat", "a b", "é", "\n")])
def test_executor_and_point_compute_the_same_command_digest(words: tuple[str, ...]) -> None:
    assert digest_at_the_hand(words) == digest_of(words)
    assert digest_of(("cat", "a", "b")) != digest_of(("cat", "ab"))


# covers: B11
@pytest.mark.parametrize(
    "command",
    ["cat x", [], [1], [None], ["cat", "nul\0"], {"cat": 1}, ["cat", "x" * 70_000], ["cat", *["x" * 60_000] * 3]],
)
def test_a_command_is_an_array_of_arguments(command: Any) -> None:
    with pytest.raises(ValidationError):
        facts(command=command)


# covers: A84.1
@pytest.mark.parametrize(
    "tighten",
    [{"wall_seconds": 0}, {"wall_seconds": "2"}, {"wall_seconds": True}, {"processes": 0}, {"patience": 1}, [], 1],
)
def test_an_invalid_limit_is_refused(tighten: Any) -> None:
    with pytest.raises(ValidationError):
        facts(tighten=tighten)


# covers: C81 H05.3
def test_the_permit_names_every_boundary_and_the_record_has_the_proof(runner: Runner) -> None:
    file = case("sandbox", "proven")
    answer = runner.answer(file)
    assert answer.document is not None
    limits = of(SandboxLimits, answer.decision.limits)
    assert limits.boundaries() == frozenset(BOUNDARIES)
    assert limits.on_backend() == limits.backend == "bubblewrap"
    assert (limits.network, limits.required["network"], limits.isolation) == ("none", ("kernel",), "restricted_process")
    assert (limits.wall_seconds, limits.memory_bytes, limits.artifact_files) == (2.5, 134_217_728, 0)
    recorded = runner._record(file, answer.decision.decision_id)["input"]
    assert recorded["boundaries"] == [one.model_dump(exclude_none=True) for one in file.case.world.boundaries or ()]
    assert recorded["probes"] == [one.model_dump() for one in file.case.world.probes]


# covers: C81.1
def test_the_record_shows_a_missing_network_enforcement(runner: Runner) -> None:
    file = case("sandbox", "declared_network_not_enforced")
    record = runner._record(file, runner.answer(file).decision.decision_id)
    assert record["outcome"] == "deny"
    assert [one["enforced"] for one in record["input"]["boundaries"] if one["boundary"] == "network"] == [False]
    assert {one["subject"] for one in record["findings"]} == {"boundaries/network", "declared/network"}


# covers: E33.1 H05
def test_a_missing_probe_is_reported_with_a_remedy(runner: Runner) -> None:
    (finding,) = runner.answer(case("sandbox", "nothing_probed")).decision.findings
    assert "engine doctor --sandbox" in finding.remedy


# covers: H05
def test_the_probe_age_does_not_change_the_input_digest(runner: Runner) -> None:
    digests = {
        runner.answer(case("sandbox", name)).decision.input_digest for name in ("probe_stale", "probe_of_a_day_ago")
    }
    assert len(digests) == 1
