"""The gate behind all frameworks: who may approve, what needs another approval, and which text a model gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from unittest import TestCase
from uuid import uuid4

import pytest

from admission_adapters.frameworks import gate as gates
from admission_adapters.frameworks.gate import AgentGate, GateReply
from engine.engine import Engine
from engine.flow import Context
from engine.model import Caller, Via
from engine.settings import Settings
from tests.command import lines
from tests.frameworks.office import IMAGE, INSTRUCTIONS, TOKEN, Tool, office, values

PERSON = "user:ana"
POINTS = frozenset({"administration", "tool_call", "tool_result", "tool_visibility"})


@pytest.fixture(scope="module")
def engine(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings, values=values(), points=POINTS) as running:
        yield running


def gate_of(engine: Engine, approver: str | None = None, run: str | None = None, **more: Any) -> AgentGate:
    context = Context(caller=Caller(via=Via.PROCESS, principal="agent"), run=run)
    return AgentGate(engine, context, policy="assistant", profile="coding", cwd="/work", approver=approver, **more)


def called(
    gate: AgentGate, tool: Tool, text: str = "x", make: Callable[..., Any] | None = None, **more: Any
) -> GateReply:
    call = {"name": tool.name, "arguments": {"text": text}}
    return gate.call(call, make or (lambda given: tool.run(**given)), tool.definition(), **more)


def resolved(engine: Engine, waiting: GateReply, act: str) -> None:
    """Grant or refuse an approval outside of the framework."""
    by = Context(caller=Caller(via=Via.PROCESS, principal=PERSON))
    assert engine.administer({"act": act, "id": waiting.result.approval, "reason": "a test"}, by).done is not None


def decided(engine: Engine, run: str) -> list[tuple[str, str]]:
    found = [line for line in lines(engine.settings.state) if line["kind"] == "decision" and line["run"] == run]
    return [(line["point"], line["outcome"]) for line in found]


def test_calls_belong_to_the_run_of_the_gate_or_of_the_conversation(engine: Engine) -> None:
    stated, conversation = uuid4().hex, uuid4().hex
    gate, clock = gate_of(engine, run=stated), office()["clock"]
    assert called(gate, clock).value == "clock: x"
    assert called(gate, clock, run=conversation).ok
    for run in (stated, conversation):
        assert decided(engine, run) == [("tool_call", "allow"), ("tool_result", "allow")]
    free = gate_of(engine)
    for name in ("news", "orders"):
        called(free, office()[name])
    assert "flow_not_admitted" in str(called(free, office()["post"]).value)  # all of it is one run
    assert called(gate_of(engine), office()["post"]).ok


def test_only_a_tool_with_a_unique_name_is_shown(engine: Engine) -> None:
    definitions = [tool.definition() for tool in office().values()]
    gate = gate_of(engine)
    shown = gate.visible_tools(definitions)
    assert {"clock", "news", "ask"} <= shown
    assert "poisoned" not in shown
    twice = [*definitions, office()["news"].definition()]
    assert gate.visible_tools(twice) == shown - {"news"}
    assert asyncio.run(gate.visible_tools_async([*definitions, {"description": "without a name"}])) == shown


def test_only_a_pending_call_with_an_approver_prompts_the_person(engine: Engine) -> None:
    def asks(approver: str | None, name: str) -> bool:
        tool = office()[name]
        call = {"name": name, "arguments": {"text": "x"}}
        gate = gate_of(engine, approver)
        assert asyncio.run(gate.asks_async(call, definition=tool.definition())) == gate.asks(call, tool.definition())
        return gate.asks(call, tool.definition())

    assert [asks(PERSON, name) for name in ("ask", "clock", "wipe")] == [True, False, False]
    assert asks(None, "ask") is False


def test_a_closed_engine_requests_no_approval_and_makes_no_call(settings: Settings) -> None:
    engine = Engine(settings, values=values(), points=POINTS)
    with engine:
        gate = gate_of(engine, PERSON)
    tool = office()["ask"]
    assert gate.asks({"name": "ask", "arguments": {"text": "x"}}, tool.definition()) is False
    assert not called(gate, tool).ok
    assert tool.ran == []
    with TestCase().assertLogs("admission_adapters") as logs:
        for _ in range(2):
            assert gate.visible_tools([tool.definition()]) == frozenset()
    assert [line.getMessage() for line in logs.records] == [
        "the agent is offered no tools: the record is closed; open a new engine"
    ]


def test_a_call_waits_for_the_person_and_is_made_once_it_is_approved(engine: Engine) -> None:
    gate, tool = gate_of(engine, PERSON), office()["ask"]
    first = called(gate, tool)
    assert (first.ok, first.waits, tool.ran) == (False, True, [])
    assert called(gate, tool).result.approval == first.result.approval  # the same approval is still waited for
    again = called(gate, tool, approved=True)
    assert (again.ok, again.value, again.waits, tool.ran) == (True, "ask: x", False, ["x"])
    assert called(gate, tool).waits  # an approval is for one call
    assert tool.ran == ["x"]


def test_an_approval_is_for_one_call_of_one_conversation(engine: Engine) -> None:
    gate, tool = gate_of(engine, PERSON), office()["ask"]
    assert called(gate, tool, "one").waits
    assert called(gate, tool, "one", run="other-run").waits
    assert called(gate, tool, "two", run="other-run").waits
    assert called(gate, tool, "one", approved=True).ok
    assert [called(gate, tool, text, run="other-run").ok for text in ("one", "two")] == [False, False]
    assert tool.ran == ["one"]


def test_an_approval_covers_only_the_reasons_shown_to_the_person(engine: Engine) -> None:
    gate, tools = gate_of(engine, PERSON), office()
    assert called(gate, tools["ask"], "told").waits
    for name in ("news", "orders"):
        assert called(gate, tools[name]).ok
    again = called(gate, tools["ask"], "told", approved=True)
    assert (again.waits, "flow_not_admitted" in again.result.metadata["codes"]) == (True, True)
    assert called(gate, tools["ask"], "told", approved=True).value == "ask: told"


def test_a_call_may_be_approved_before_it_is_made(engine: Engine) -> None:
    gate, tool = gate_of(engine, PERSON), office()["ask"]
    assert called(gate, tool, approved=True).value == "ask: x"
    assert called(gate, office()["clock"], approved=True).ok


def test_a_refused_call_is_decided_once_and_does_not_wait(engine: Engine) -> None:
    gate, wipe, run = gate_of(engine, PERSON), office()["wipe"], uuid4().hex
    for approved in (False, True):
        told = called(gate, wipe, approved=approved, run=run)
        assert (told.ok, told.waits, told.result.status) == (False, False, "refused")
    assert wipe.ran == []
    assert decided(engine, run) == [("tool_call", "deny")] * 2


def test_an_approval_without_an_approver_has_no_effect(engine: Engine) -> None:
    gate, tool = gate_of(engine), office()["ask"]
    for _ in range(2):
        told = called(gate, tool, approved=True)
        assert (told.ok, told.waits, tool.ran) == (False, False, [])
    assert "engine approvals grant" in told.value


def test_a_person_who_may_not_approve_here_approves_nothing(engine: Engine) -> None:
    gate, tool = gate_of(engine, "agent"), office()["ask"]  # the one who asks
    assert not called(gate, tool, approved=True).ok
    assert not called(gate, tool, approved=True).ok
    assert tool.ran == []


def test_an_approval_that_was_granted_outside_of_the_framework_lets_the_call_through(engine: Engine) -> None:
    gate, tool = gate_of(engine), office()["ask"]
    waiting = called(gate, tool)
    resolved(engine, waiting, "grant_approval")
    assert called(gate, tool).value == "ask: x"
    assert tool.ran == ["x"]


def test_a_refused_approval_is_requested_again(engine: Engine) -> None:
    gate, tool = gate_of(engine), office()["ask"]
    waiting = called(gate, tool)
    resolved(engine, waiting, "refuse_approval")
    again = called(gate, tool)
    assert (again.ok, tool.ran) == (False, [])
    assert again.result.approval not in {None, waiting.result.approval}


def test_the_oldest_of_too_many_pending_calls_is_dropped(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "_WAITING", 2)
    gate, tool = gate_of(engine), office()["ask"]
    waiting = {text: called(gate, tool, text) for text in ("one", "two", "three")}
    for told in waiting.values():
        resolved(engine, told, "grant_approval")
    assert [called(gate, tool, text).ok for text in ("three", "two", "one")] == [True, True, False]
    assert tool.ran == ["three", "two"]


def test_a_pending_result_stays_hidden_until_approved_outside_the_framework(engine: Engine) -> None:
    gate, tool = gate_of(engine, PERSON), office()["orders_of_a_page"]
    told = called(gate, tool)
    assert (told.ok, told.waits, tool.ran) == (False, False, ["x"])
    for approved in (True, False):  # who approves has not seen it
        again = called(gate, tool, approved=approved)
        assert (again.ok, again.waits, tool.ran) == (False, False, ["x"])
        assert INSTRUCTIONS not in str(again.value)
    resolved(engine, told, "grant_approval")
    assert called(gate, tool).value == INSTRUCTIONS
    assert tool.ran == ["x"]


def test_a_result_keeps_its_type_and_is_changed_only_by_redaction(engine: Engine) -> None:
    gate, clock = gate_of(engine), office()["clock"]
    whole = {"at": [1, 2]}
    assert called(gate, clock, make=lambda _: whole).value is whole
    assert called(gate, clock, make=lambda _: {"at": TOKEN}).value == {"at": "[redacted]"}
    assert called(gate, clock, make=lambda _: ["x", TOKEN]).value == ["x", "[redacted]"]
    assert called(gate, clock, make=lambda _: f"a {TOKEN}").value == "a [redacted]"
    assert called(gate, clock, make=lambda _: IMAGE).value == "Done. ![x]([redacted])"
    assert called(gate, clock, make=lambda _: json.dumps({"at": TOKEN})).value == json.dumps({"at": "[redacted]"})


def test_what_an_iterator_gave_is_returned_and_not_its_empty_rest(engine: Engine) -> None:
    async def later() -> AsyncIterator[str]:
        for piece in ("1", "2"):
            yield piece

    gate, clock = gate_of(engine), office()["clock"]
    assert called(gate, clock, make=lambda _: iter("12")).value == "12"
    assert called(gate, clock, make=lambda _: later()).value == "12"
    assert called(gate, clock, make=lambda _: iter([1, {"a": 2}])).value == [1, {"a": 2}]


def test_a_result_without_a_json_form_becomes_an_error(engine: Engine) -> None:
    told = called(gate_of(engine), office()["clock"], make=lambda _: object())
    assert (told.ok, told.result.status, type(told.value)) == (False, "error", str)


def test_a_result_that_is_too_long_is_cut(engine: Engine) -> None:
    gate, clock = gate_of(engine), office()["clock"]
    long = "x " * 2_000_000
    told = called(gate, clock, make=lambda _: long)
    assert told.value != long
    assert len(str(told.value)) < len(long)


def test_only_listed_exceptions_propagate_and_others_become_results(engine: Engine) -> None:
    def fails(error: Exception) -> Callable[..., Any]:
        def make(_: Any) -> Any:
            raise error

        return make

    gate, clock = gate_of(engine), office()["clock"]
    with pytest.raises(KeyError):
        called(gate, clock, make=fails(KeyError("k")), passing=(KeyError,))
    told = called(gate, clock, make=fails(ValueError("c4nary at /srv/x")), passing=(KeyError,))
    assert (told.ok, told.waits) == (False, False)
    assert "c4nary" not in str(told.value)


def test_async_calls_return_results_and_propagate_listed_exceptions(engine: Engine) -> None:
    gate, clock = gate_of(engine), office()["clock"]
    call = {"name": "clock", "arguments": {"text": "x"}}

    async def calling(make: Callable[[dict[str, Any]], Any]) -> GateReply:
        return await gate.call_async(call, make, definition=clock.definition(), passing=(KeyError,))

    async def make(given: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        return clock.run(**given)

    async def passing(_: Any) -> str:
        raise KeyError

    assert asyncio.run(calling(make)).value == "clock: x"
    with pytest.raises(KeyError):
        asyncio.run(calling(passing))
