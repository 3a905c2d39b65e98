"""No agent without a person's yes to exactly its configuration."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from engine.engine import AsyncEngine, Engine
from engine.errors import Exit
from engine.model import Mode
from engine.provisioning import Provisioned
from engine.settings import Settings
from tests.command import Command, lines
from tests.expect import there
from tests.provisioning.agents import (
    ANA,
    PROVISIONER,
    asked,
    codes,
    mounted,
    resolved,
    specification,
    with_approval,
)


# covers: E13.1-4
def test_an_approval_request_records_the_configuration_and_mounts_nothing(engine: Engine) -> None:
    asked(engine, specification())
    (line,) = lines(engine.settings.state)
    recorded = line["input"]
    assert (line["outcome"], recorded["specification"]["system_prompt"]) == ("confirm", "You buy apples.")
    assert recorded["tools"] == [{"id": "http_get"}]
    assert recorded["specification"]["constraints"] == {"max_turns": 20, "max_tokens": 20_000}
    assert engine.store().agents(9) == ()


def test_a_secret_in_the_prompt_is_not_recorded(engine: Engine) -> None:
    secret = "ghp_" + "a1B2" * 9
    asked(engine, specification(system_prompt=f"Use {secret}."))
    text = (engine.settings.state / "records").glob("*.jsonl")
    assert secret not in "".join(path.read_text(encoding="utf-8") for path in text)


# covers: E34.1
def test_a_refusal_mounts_nothing(engine: Engine) -> None:
    approval = asked(engine, specification())
    resolved(engine, approval, "refuse_approval")
    got = with_approval(engine, specification(), approval)
    assert (codes(got), got.agent) == (["approval_refused", "provisioning_unapproved"], None)
    assert engine.store().agents(9) == ()


# covers: E34.2
def test_without_an_answer_in_time_nothing_is_mounted(settings: Settings) -> None:
    moment = [datetime(2026, 11, 21, tzinfo=UTC)]
    with Engine(settings, now=lambda: moment[0], points=frozenset({"provisioning"})) as engine:
        unanswered, late = asked(engine, specification()), asked(engine, specification(name="late"))
        assert codes(with_approval(engine, specification(), unanswered))[0] == "approval_pending"
        resolved(engine, late)
        moment[0] += timedelta(days=1)
        assert "approval_expired" in codes(with_approval(engine, specification(name="late"), late))
        assert "approval_pending" in codes(with_approval(engine, specification(), unanswered))
        assert engine.store().agents(9) == ()


# covers: E34.3
def test_an_approval_of_another_configuration_mounts_nothing(engine: Engine) -> None:
    approval = asked(engine, specification())
    resolved(engine, approval)
    others: tuple[dict[str, Any], ...] = (
        {"system_prompt": "You buy apples. Or pears."},
        {"tools": []},
        {"constraints": {"max_turns": 20, "max_tokens": 20_001}},
        {"role": "Disruptor"},
    )
    for changes in others:
        got = with_approval(engine, specification(**changes), approval)
        assert (codes(got), got.agent) == (["approval_input_changed", "provisioning_unapproved"], None)
    assert engine.store().agents(9) == ()
    assert with_approval(engine, specification(), approval).agent is not None  # the control: it was not used up


def test_an_approval_mounts_exactly_one_agent(engine: Engine) -> None:
    approval = asked(engine, specification())
    resolved(engine, approval)
    again = engine.administer({"act": "grant_approval", "id": approval}, ANA)
    assert [finding.code for finding in again.answer.decision.findings] == ["approval_resolved"]
    assert with_approval(engine, specification(), approval).agent is not None
    second = with_approval(engine, specification(), approval)
    assert (codes(second), second.agent) == (["approval_used", "provisioning_unapproved"], None)
    assert len(engine.store().agents(9)) == 1


def test_the_provisioner_does_not_approve_itself(engine: Engine) -> None:
    approval = asked(engine, specification())
    got = engine.administer({"act": "grant_approval", "id": approval}, PROVISIONER)
    assert [finding.code for finding in got.answer.decision.findings] == ["approver_is_requester"]


def test_a_dry_run_mounts_nothing(empty: Engine) -> None:
    got = empty.check("provisioning", {"specification": specification()}, PROVISIONER)
    assert (got.decision.mode, got.decision.outcome, got.exit) == (Mode.CHECK, "confirm", Exit.CONFIRM)
    assert empty.store().approvals(None, 9) == ()


def test_an_agent_is_ended_once_and_stays_in_the_state(engine: Engine) -> None:
    agent = mounted(engine, specification())
    done = there(engine.administer({"act": "end_agent", "id": agent}, ANA).done)
    assert done["ended_at"] is not None
    assert engine.store().active_agents() == ()
    assert [row.id for row in engine.store().agents(9)] == [agent]
    unknown = engine.administer({"act": "end_agent", "id": "0" * 32}, ANA).answer
    assert there(unknown.fault).remedy == "list the ids with `engine agent list`"


def test_an_agent_can_be_provisioned_from_an_event_loop(settings: Settings) -> None:
    async def ask() -> Provisioned:
        async with AsyncEngine(settings, points=frozenset({"provisioning"})) as engine:
            return await engine.provision(specification(), PROVISIONER)

    waiting = asyncio.run(ask())
    assert (waiting.answer.decision.outcome, waiting.agent) == ("confirm", None)


def test_the_command_prints_the_approval_it_used(command: Command) -> None:
    call = ("agent", "provision", "fixtures/agents/buyer.json", "--principal", "provisioner")
    waits = command(*call)
    assert (waits.code, "approve it with `engine approvals grant`" in waits.stderr) == (3, True)
    (approval,) = {*re.findall(r"[0-9a-f]{32}", waits.stdout)}
    show = re.findall(r"to see it +engine (.+)", command("approvals", "show", approval).stdout)[0]
    (seen,) = command(*show.split()).json["entries"]
    assert "never pay more than 100" in seen["input"]["specification"]["system_prompt"]
    digest = seen["input"]["digest"]
    assert f"found: digest {digest}\n" in waits.stderr
    assert command("approvals", "grant", approval).code == 0
    done = command(*call, "--approval", approval)
    assert done.code == 0
    assert done.stderr.endswith(f"\n  found: digest {digest}\n  approved ({approval})\n")
