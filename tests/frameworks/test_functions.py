"""Plain functions behind the gate: what a framework reads of them, and what a call of one returns."""

from __future__ import annotations

import asyncio
import inspect
import json
import pickle
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, get_type_hints

import pytest
from pydantic import Field, SecretStr

from admission_adapters.frameworks.functions import gated
from admission_adapters.tools.result import NOT_APPROVED
from engine.engine import Engine
from engine.errors import WorkError
from engine.settings import Settings
from tests.frameworks.office import INSTRUCTIONS, TOKEN, values
from tests.frameworks.test_gate import PERSON, POINTS, gate_of
from tests.tool_rows import reading

ran: list[Any] = []
"""The arguments of each call that was made."""


@pytest.fixture(scope="module")
def engine(module_settings: Settings) -> Iterator[Engine]:
    plan = reading(room="text", day="text", kind="text", guests="text")
    allow = [{"id": "office", "tools": ["news", "orders", "post", "plan", "picture"]}]
    more = (f"tools.tools.plan={json.dumps(plan)}", f"tools.rulesets.workspace.allow={json.dumps(allow)}")
    with Engine(module_settings, values=(*values(), *more), points=POINTS) as running:
        yield running


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


class _Context:
    """What a framework fills in."""


def news(text: str) -> str:
    """Read what the public has written about a word."""
    ran.append(text)
    return f"news: {text}"


async def orders(text: str) -> dict[str, str]:
    """Read the orders of a customer."""
    await asyncio.sleep(0)
    ran.append(text)
    return {"text": text}


def ask(text: str) -> str:
    """Ask a colleague."""
    ran.append(text)
    return f"ask: {text}"


def wipe(text: str) -> str:
    """Delete everything."""
    raise AssertionError(text)


def unlisted(text: str) -> str:
    """Do something that no entry states."""
    raise AssertionError(text)


def plan(
    context: _Context,
    room: Annotated[int, Field(description="its number")],
    day: date,
    kind: Literal["talk", "lunch"] = "talk",
    guests: list[str] = None,  # type: ignore[assignment]  # noqa: RUF013  (as many write it)
) -> list[Any]:
    """Plan a day."""
    ran.append((context, room, day, kind, guests))
    return [room, day, kind]


def test_a_function_gets_what_was_decided_on(engine: Engine) -> None:
    def news(text: SecretStr) -> str:
        ran.append(text.get_secret_value())
        return "news"

    (told,) = gated(gate_of(engine), [news])
    assert told(text=SecretStr("soup")) == "news"
    assert ran == ["**********"]


def test_a_function_keeps_what_frameworks_read_and_is_hidden_without_an_entry(engine: Engine) -> None:
    told, later = gated(gate_of(engine), [news, unlisted, orders])
    assert (told.__name__, told.__doc__, get_type_hints(told)) == ("news", news.__doc__, get_type_hints(news))
    assert str(inspect.signature(told)) == "(text: str) -> str"  # a type, not its name
    assert [inspect.iscoroutinefunction(one) for one in (told, later)] == [False, True]
    assert told("soup") == told(text="soup") == "news: soup"
    assert asyncio.run(later(text="soup")) == {"text": "soup"}


def test_no_function_without_a_gate_can_be_got_from_one_behind_it(engine: Engine) -> None:
    (told,) = gated(gate_of(engine), [wipe])
    assert inspect.unwrap(told) is told
    assert "raise AssertionError" not in inspect.getsource(told)  # what some frameworks store
    with pytest.raises((AttributeError, pickle.PicklingError), match="local object"):
        pickle.dumps(told)
    assert "<locals>" in told.__qualname__  # others store this name


def test_a_refused_call_returns_the_reason_and_does_not_run(engine: Engine) -> None:
    (told,) = gated(gate_of(engine), [wipe])
    assert "denied_by_rule" in told(text="x")


def test_a_call_that_waits_is_made_once_the_person_approves_it(engine: Engine) -> None:
    asked: list[Any] = []

    def person(name: str, arguments: dict[str, Any]) -> bool:
        asked.append((name, arguments))
        return bool(arguments["text"] == "yes")

    (told,) = gated(gate_of(engine, PERSON), [ask], person=person)
    assert [told(text="no"), told(text="yes")] == [NOT_APPROVED, "ask: yes"]
    assert (asked, ran) == ([("ask", {"text": "no"}), ("ask", {"text": "yes"})], ["yes"])
    for gate in (gate_of(engine), gate_of(engine, PERSON)):
        (told,) = gated(gate, [ask], person=person if gate.approver is None else None)
        assert "engine approvals grant" in told(text="yes")
    assert len(asked) == 2


def test_an_async_function_asks_on_its_loop(engine: Engine) -> None:
    async def calling(person: Any) -> tuple[Any, ...]:
        async def ask(text: str) -> str:
            await asyncio.sleep(0)
            return f"ask: {text}"

        (told,) = gated(gate_of(engine, PERSON), [ask], person=person)
        return await told(text="yes"), await told(text="no")

    async def later(_: str, arguments: dict[str, Any]) -> bool:
        await asyncio.sleep(0)
        return bool(arguments["text"] == "yes")

    for person in (later, lambda _, arguments: arguments["text"] == "yes"):
        assert asyncio.run(calling(person)) == ("ask: yes", NOT_APPROVED)


def test_the_decision_is_on_json_and_the_function_gets_the_values_of_the_framework(engine: Engine) -> None:
    context = _Context()
    (told,) = gated(gate_of(engine), [plan], injected=["context"])
    assert told(context, 4, date(2026, 11, 29), guests=None) == [4, "2026-11-29", "talk"]
    assert told(context=context, room=4, day=date(2026, 11, 29), guests=["ana"]) == [4, "2026-11-29", "talk"]
    assert ran == [(context, 4, date(2026, 11, 29), "talk", guests) for guests in (None, ["ana"])]
    assert "arguments_unfit" in told(context=context, room=4)
    assert "arguments_unfit" in told(context=context, room="four", day=date(2026, 11, 29))
    assert "request_invalid" in told(context=context, room=object(), day=date(2026, 11, 29))
    assert len(ran) == 2
    with pytest.raises(WorkError, match="`plan` have no JSON Schema"):
        gated(gate_of(engine), [plan])


@dataclass
class _Page:
    text: str


def test_a_result_is_returned_in_the_form_that_was_decided_on(engine: Engine) -> None:
    async def pieces() -> AsyncIterator[str]:
        for piece in ("a", "b"):
            yield piece

    def returning(value: Any) -> Any:
        def picture(text: str) -> Any:
            """Read a page."""
            ran.append(text)
            return value

        (told,) = gated(gate_of(engine), [picture])
        return told(text="x")

    assert returning(_Page("soup")) == {"text": "soup"}
    assert [returning(iter("ab")), returning(pieces())] == ["ab", "ab"]
    assert returning(_Page(f"a {TOKEN}")) == {"text": "a [redacted]"}
    assert "instructions_in_result" in returning(INSTRUCTIONS)
    assert "has no form as text" in returning(object())


def test_what_a_function_raises_is_returned_as_text(engine: Engine) -> None:
    def news(text: str) -> str:
        """Read what the public has written about a word."""
        raise ValueError(text)

    (told,) = gated(gate_of(engine), [news])
    assert told(text="c4nary") == "the tool failed with ValueError"
