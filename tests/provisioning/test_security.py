"""The security test plan for provisioning: SEC-01 to SEC-04 and SEC-08."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from admission_adapters.sandbox.model import Status
from engine.api.problems import status_of
from engine.engine import Engine
from engine.episodes.result import EpisodeError, MaxAgentsExceededError
from engine.provisioning import Provisioned
from tests.adapters.sandbox.programs import bounds, ran
from tests.command import lines
from tests.expect import there
from tests.facilities import needs
from tests.provisioning.agents import PROVISIONER, asked, codes, mounted, resolved, specification, with_approval

CODE = "const { execSync } = require('child_process'); console.log(execSync('echo started').toString())"


def recorded(engine: Engine, got: Provisioned) -> dict[str, Any]:
    """The recorded decision."""
    own = got.answer.decision.decision_id
    return next(line for line in lines(engine.settings.state) if line["decision_id"] == own)


# covers: E16.1, E07.1
@pytest.mark.security("SEC-01", "ACE")
def test_sec_01_a_valid_specification_is_mounted_once_a_person_approved_it(engine: Engine) -> None:
    agent = mounted(engine, specification())
    (row,) = engine.store().active_agents()
    assert (row.id, row.name, row.role, row.requester) == (agent, "buyer_2", "Actor", "provisioner")
    assert json.loads(row.specification) == json.loads(specification())


# covers: E17.1
@pytest.mark.security("SEC-02", "ACE")
def test_sec_02_code_in_a_prompt_is_text_that_a_person_is_shown(empty: Engine) -> None:
    waiting = empty.provision(specification(system_prompt=CODE), PROVISIONER)
    assert codes(waiting) == ["code_in_prompt", "provisioning_unapproved"]
    assert recorded(empty, waiting)["input"]["specification"]["system_prompt"] == CODE


# covers: E17.2-3
@needs("bubblewrap", "node")
@pytest.mark.security("SEC-02", "ACE")
def test_sec_02_a_prompt_that_was_evaluated_would_throw_in_the_sandbox() -> None:
    within = bounds(processes=16, memory_bytes=512 << 20)
    ended = ran(CODE, within=within, language="javascript")
    assert (ended.status, ended.exit_code) == (Status.RUNTIME_ERROR, 1)
    assert b"Error" in ended.stderr
    assert b"started" not in ended.stdout
    assert ran("console.log('started')", within=within, language="javascript").stdout == b"started\n"  # the control


def test_a_field_that_does_not_fit_says_what_it_must_be(empty: Engine) -> None:
    text = specification(name="Code Reviewer", system_prompt=" ", constraints={"max_turns": 20.5, "max_tokens": 20_000})
    got = empty.provision(text, PROVISIONER)
    assert "provisioning_field_invalid" in codes(got)
    assert there(got.answer.gathered).notes == {
        "problems/name": "must be letters, digits, `_` and `-`, first a letter, at most 64 characters",
        "problems/system_prompt": "must not be blank",
        "problems/constraints.max_turns": "must be a whole number without a decimal point",
    }


@pytest.mark.parametrize(
    ("value", "note"),
    [
        ("9007199254740993", "the text has an integer beyond 2^53: quote it if it is text"),
        ("NaN", "the text has a number that is not finite: use a finite number"),
    ],
)
def test_json_that_readers_disagree_on_says_what_is_wrong(value: str, note: str, empty: Engine) -> None:
    got = empty.provision(specification().replace("20000", value), PROVISIONER)
    assert codes(got) == ["provisioning_not_json"]
    assert there(got.answer.gathered).notes == {"": note}


def test_the_error_names_what_stops_the_agent_and_no_warning(empty: Engine) -> None:
    unknown_role = there(empty.provision(specification(role="Boss", system_prompt=CODE), PROVISIONER).error)
    waiting = there(empty.provision(specification(system_prompt=CODE), PROVISIONER).error)
    assert (unknown_role.code, waiting.code) == ("role_not_admitted", "provisioning_unapproved")


# covers: E18.1-2
@pytest.mark.security("SEC-03", "ACE")
@pytest.mark.parametrize("text", ["function() { return 1; }", "() => ({})", "__import__('os')", "", "[]"])
def test_sec_03_a_function_instead_of_json_is_rejected_and_recorded(text: str, empty: Engine) -> None:
    got = empty.provision(text, PROVISIONER)
    assert (codes(got), got.agent, empty.store().agents(9)) == (["provisioning_not_json"], None, ())
    with pytest.raises(EpisodeError) as raised:
        got.raise_for_error()
    assert raised.value.code == "provisioning_not_json"
    line = recorded(empty, got)
    assert (line["point"], line["outcome"], line["principal"]) == ("provisioning", "deny", "provisioner")
    assert [one["code"] for one in line["findings"]] == ["provisioning_not_json"]


class _Canary:
    """An object that pollution of all objects would change."""


# covers: E19.1-4
@pytest.mark.security("SEC-04", "ACE")
@pytest.mark.parametrize(
    "text",
    [
        '{"__proto__": {"isAdmin": true}}',
        specification(__proto__={"isAdmin": True}),
        specification(__class__={"isAdmin": True}),
        specification(__dict__={"isAdmin": True}),
        specification(constraints={"max_turns": 1, "max_tokens": 1, "__class__": "dict"}),
        specification()[:-1] + ', "role": "Judge"}',
    ],
    ids=["proto_alone", "proto", "class", "dict", "in_constraints", "twice"],
)
def test_sec_04_an_unknown_or_repeated_key_is_rejected_and_changes_no_object(text: str, empty: Engine) -> None:
    canary, before = _Canary(), (dict(vars(_Canary)), dir(object), dir(dict))
    got = empty.provision(text, PROVISIONER)
    assert "unknown_key" in codes(got)
    assert (got.answer.decision.outcome, got.agent, empty.store().agents(9)) == ("deny", None, ())
    assert (dict(vars(_Canary)), dir(object), dir(dict)) == before
    seen: tuple[object, ...] = (canary, got, {}, got.answer.gathered)
    assert not any(hasattr(one, "isAdmin") for one in seen)


# covers: E23.1-2
@pytest.mark.security("SEC-08", "DoS")
def test_sec_08_the_fourth_agent_is_rejected_and_three_stay(engine: Engine) -> None:
    three = [mounted(engine, specification(name=f"agent_{number}")) for number in range(3)]
    fourth = engine.provision(specification(name="agent_3"), PROVISIONER)
    assert (fourth.answer.decision.outcome, fourth.agent) == ("deny", None)
    with pytest.raises(MaxAgentsExceededError):
        fourth.raise_for_error()
    assert [row.id for row in engine.store().active_agents()] == three
    engine.administer({"act": "end_agent", "id": three[0]}, PROVISIONER)
    assert mounted(engine, specification(name="agent_3")) is not None  # there is room again


# covers: E23.1-2
@pytest.mark.security("SEC-08", "DoS")
def test_sec_08_agents_that_are_mounted_at_once_do_not_pass_the_maximum(engine: Engine) -> None:
    texts = [specification(name=f"agent_{number}") for number in range(8)]
    approvals = [asked(engine, text) for text in texts]
    for one in approvals:
        resolved(engine, one)

    def mount(number: int) -> Any:
        return with_approval(engine, texts[number], approvals[number])

    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(mount, range(8)))
    mounted_ones = {one.agent for one in got if one.agent is not None}
    assert {row.id for row in engine.store().active_agents()} == mounted_ones
    assert len(mounted_ones) == 3
    errors = [there(one.error) for one in got if one.agent is None]
    assert {(one.code, status_of(one)[0]) for one in errors} == {("MaxAgentsExceededError", 409)}
