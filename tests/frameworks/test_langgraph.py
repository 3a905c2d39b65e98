"""Calls of LangGraph: the conversation, the messages of an output, and what of them is put in place of what was."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from engine.engine import Engine
from tests.frameworks.office import TOKEN, office
from tests.frameworks.test_gate import decided, engine, gate_of

pytest.importorskip("langchain", reason="NOT TRIED, the package is not installed: install the extra")
pytestmark = pytest.mark.full

__all__ = ["engine"]


@dataclass
class Request:
    """A call as LangGraph asks for it; `override` gives another one."""

    tool_call: dict[str, Any]
    tool: Any = None
    thread: Any = None
    runtime: Any = field(init=False)

    def __post_init__(self) -> None:
        stated = {} if self.thread is None else {"configurable": {"thread_id": self.thread}}
        self.runtime = SimpleNamespace(config=stated)

    def override(self, **changes: Any) -> Request:
        return Request(**{"tool_call": self.tool_call, "tool": self.tool, "thread": self.thread, **changes})


def asked(engine: Engine, output: Any, name: str = "clock", thread: Any = None, gate: Any = None) -> Any:
    """The answer to one call whose tool gives this output."""
    from langchain_core.tools import StructuredTool

    from admission_adapters.frameworks.langgraph import GateMiddleware
    from tests.frameworks.office import SCHEMA

    tool = office().get(name)
    made = tool and StructuredTool(name=name, description=tool.description, args_schema=SCHEMA, func=tool.run)
    request = Request({"name": name, "args": {"text": "x"}, "id": "c-1"}, made, thread)
    return GateMiddleware(gate or gate_of(engine)).wrap_tool_call(request, lambda _: output)


def message(text: Any) -> Any:
    from langchain_core.messages import ToolMessage

    return ToolMessage(text, tool_call_id="c-1", name="clock")


def command(*messages: Any, **more: Any) -> Any:
    from langgraph.types import Command

    return Command(update={"messages": [*messages], **more})


def test_a_call_of_an_unknown_tool_is_refused(engine: Engine) -> None:
    answer = asked(engine, message("found"), "nothing")
    assert (answer.status, answer.tool_call_id) == ("error", "c-1")
    assert "refused" in answer.content


def test_the_thread_id_is_the_run_or_else_that_of_the_gate(engine: Engine) -> None:
    asked(engine, message("found"), thread=71)
    assert decided(engine, "71")
    gate = gate_of(engine, run="of-the-gate")
    asked(engine, message("found"), gate=gate)
    assert decided(engine, "of-the-gate")
    assert not decided(engine, "None")


def test_an_output_without_redactions_is_returned_unchanged(engine: Engine) -> None:
    for output in (message("found"), command(message("found"), at=1), command(message("a"), message("b"))):
        assert asked(engine, output) is output


def test_text_redacted_from_a_message_is_redacted_in_the_output(engine: Engine) -> None:
    one = asked(engine, message(f"a {TOKEN}"))
    assert (one.content, one.tool_call_id, one.status) == ("a [redacted]", "c-1", "success")
    whole = asked(engine, command(message(f"a {TOKEN}"), at=1))
    assert ([each.content for each in whole.update["messages"]], whole.update["at"]) == (["a [redacted]"], 1)
    several = asked(engine, command(message("fine"), "no message", message(f"b {TOKEN}")))
    first, kept, last = several.update["messages"]
    assert (first.content, kept, last.content) == ("fine", "no message", "b [redacted]")


@pytest.mark.parametrize("update", ["text", [("messages", [])], {"messages": "text"}])
def test_an_output_whose_messages_cannot_be_found_is_withheld(update: Any, engine: Engine) -> None:
    from langgraph.types import Command

    answer = asked(engine, Command(update=update))
    assert answer.status == "error"
    assert "text" not in answer.content


def test_an_output_without_any_message_is_given_back(engine: Engine) -> None:
    from langgraph.types import Command

    outputs: list[Any] = [Command(update=None), Command(update={"at": 1})]
    for output in outputs:
        assert asked(engine, output) is output
