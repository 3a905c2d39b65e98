"""The hooks of Claude's Agent SDK: what has no decision is withheld, whatever the command line asks in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import uuid4

import pytest

from engine.engine import Engine
from tests.frameworks.office import IMAGE, Tool, office
from tests.frameworks.test_gate import PERSON, decided, engine, gate_of

pytest.importorskip("claude_agent_sdk", reason="NOT TRIED, the SDK is not installed: install the extra")
pytestmark = pytest.mark.full

__all__ = ["engine"]

_WITHHELD = "the result is withheld: there is no decision on this call"


class Session:
    """What the command line asks of the hooks in one session."""

    def __init__(self, engine: Engine, approver: str | None, words: Sequence[bool], *, listens: bool = True) -> None:
        from admission_adapters.frameworks.claude_agent import ClaudeGate

        self.claude = ClaudeGate(gate_of(engine, approver))
        self.id, self._words = uuid4().hex, [*words]
        if listens:
            self._may = self.claude.can_use_tool(self._person)

    async def _person(self, *_: Any) -> bool:
        return self._words.pop(0)

    async def serve(self, *tools: Tool) -> None:
        from claude_agent_sdk import SdkMcpTool

        async def nothing(_: Any) -> dict[str, Any]:
            return {"content": []}

        await self.claude.server("office", [SdkMcpTool(one.name, one.description, {}, nothing) for one in tools])

    async def _hook(self, event: str, name: str, use: str, **more: Any) -> Any:
        given = {"tool_name": f"mcp__office__{name}", "tool_input": {"text": "x"}, "tool_use_id": use, **more}
        (matcher,) = self.claude.hooks[event]
        hook: Any = matcher.hooks[0]
        found = await hook({"session_id": self.id, **given}, use, None)
        return found.get("hookSpecificOutput", {})

    async def before(self, name: str, use: str) -> str:
        word: str = (await self._hook("PreToolUse", name, use))["permissionDecision"]
        return word

    async def after(self, name: str, use: str, shown: Any) -> Any:
        """What the model sees instead; None for what was shown."""
        return (await self._hook("PostToolUse", name, use, tool_response=shown)).get("updatedToolOutput")

    async def failed(self, name: str, use: str) -> None:
        assert await self._hook("PostToolUseFailure", name, use, error="no such file") == {}

    async def may(self, name: str, use: str) -> tuple[str, str]:
        class About:
            tool_use_id = use

        found = await self._may(f"mcp__office__{name}", {"text": "x"}, About())
        return found.behavior, getattr(found, "message", "")


def held(
    engine: Engine,
    do: Callable[[Session], Awaitable[None]],
    *,
    approver: str | None = None,
    words: Sequence[bool] = (),
) -> None:
    asyncio.run(_held(Session(engine, approver, words), do))


async def _held(session: Session, do: Callable[[Session], Awaitable[None]]) -> None:
    await session.serve(office()["news"], office()["ask"])
    await do(session)


def text(told: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": told}]


def test_a_decided_result_is_shown_unchanged_or_redacted(engine: Engine) -> None:
    async def do(session: Session) -> None:
        for use, told in (("1", "fine"), ("2", IMAGE)):
            assert await session.before("news", use) == "allow"
            seen = await session.after("news", use, text(told))
            assert seen == (None if told == "fine" else text("Done. ![x]([redacted])"))
        assert [outcome for _, outcome in decided(engine, session.id)] == ["allow"] * 4

    held(engine, do)


def test_an_undecided_result_is_withheld_in_its_own_shape(engine: Engine) -> None:
    async def do(session: Session) -> None:
        for shown, seen in (
            (text("secret"), text(_WITHHELD)),
            ({"type": "object", "a": ["secret", 7, None]}, {"type": "object", "a": [_WITHHELD, 7, None]}),
            ("secret", _WITHHELD),
        ):
            assert await session.after("news", "never-asked", shown) == seen
        assert await session.before("news", "1") == "allow"
        assert await session.after("news", "1", text("once")) is None
        assert await session.after("news", "1", text("twice")) == text(_WITHHELD)

    held(engine, do)


def test_a_tool_that_failed_is_recorded_and_its_late_result_withheld(engine: Engine) -> None:
    async def do(session: Session) -> None:
        await session.failed("news", "never-asked")
        assert await session.before("news", "1") == "allow"
        await session.failed("news", "1")
        assert await session.after("news", "1", text("late")) == text(_WITHHELD)
        assert ("tool_result", "allow") in decided(engine, session.id)

    held(engine, do)


def test_a_permission_answer_counts_once_and_only_for_a_decided_call(engine: Engine) -> None:
    async def do(session: Session) -> None:
        assert await session.may("news", "never-asked") == ("deny", _WITHHELD)
        assert await session.before("news", "1") == "allow"
        assert (await session.may("news", "1"))[0] == "allow"
        assert await session.before("ask", "2") == "ask"
        word, why = await session.may("ask", "2")
        assert (word, "did not approve" in why) == ("deny", True)
        assert await session.may("ask", "2") == ("deny", _WITHHELD)  # the question is over
        assert await session.before("ask", "3") == "ask"
        assert (await session.may("ask", "3"))[0] == "allow"
        assert await session.after("ask", "3", text("yes")) is None

    held(engine, do, approver=PERSON, words=[True, True, False, True, True])


def test_a_person_who_may_not_approve_lets_nothing_through(engine: Engine) -> None:
    async def do(session: Session) -> None:
        assert await session.before("ask", "1") == "ask"
        assert (await session.may("ask", "1"))[0] == "deny"
        assert await session.after("ask", "1", text("secret")) == text(_WITHHELD)

    held(engine, do, approver="agent", words=[True])


def test_a_pending_call_is_denied_if_its_approver_cannot_be_identified(engine: Engine) -> None:
    async def ask() -> None:
        session = Session(engine, PERSON, [], listens=False)
        await session.serve(office()["ask"])
        assert await session.before("ask", "1") == "deny"

    asyncio.run(ask())


def test_without_a_person_a_call_that_waits_is_denied(engine: Engine) -> None:
    async def do(session: Session) -> None:
        assert await session.before("ask", "1") == "deny"
        assert await session.before("wipe", "2") == "deny"

    held(engine, do)
