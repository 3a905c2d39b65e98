"""The gate as a toolset of Pydantic AI: what runs elsewhere, arguments that are no JSON, and a tool that asks again."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from engine.engine import Engine
from tests.frameworks.office import SCHEMA
from tests.frameworks.test_gate import engine, gate_of

pytest.importorskip("pydantic_ai", reason="NOT TRIED, the package is not installed: install the extra")

__all__ = ["engine"]


def told(engine: Engine, toolset: Any, *calls: tuple[str, dict[str, Any]]) -> tuple[set[str], list[Any]]:
    """A conversation of these calls: the tools that the model was offered, and what it was told of each call."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    from admission_adapters.frameworks.pydantic_ai import GatedToolset

    offered, left = set[str](), [*calls]

    def model(_: Any, info: Any) -> ModelResponse:
        offered.update(tool.name for tool in info.function_tools)
        return ModelResponse(parts=[ToolCallPart(*left.pop(0)) if left else TextPart("done")])

    agent = Agent(FunctionModel(model), toolsets=[GatedToolset(toolset, gate_of(engine))])
    parts = [part for message in asyncio.run(agent.run("go")).all_messages() for part in message.parts]
    return offered, [part for part in parts if isinstance(part, ToolReturnPart | RetryPromptPart)]


def functions(**tools: Callable[..., Any]) -> Any:
    from pydantic_ai.toolsets import FunctionToolset

    found: Any = FunctionToolset(max_retries=3)
    for name, tool in tools.items():
        found.add_function(tool, name=name)
    return found


def test_an_external_or_unknown_tool_is_not_offered(engine: Engine) -> None:
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import CombinedToolset, ExternalToolset

    def news(text: str) -> str:
        return text

    elsewhere = ExternalToolset[Any]([ToolDefinition(name="orders", parameters_json_schema=SCHEMA)])
    offered, _ = told(engine, CombinedToolset([functions(news=news, nowhere=news), elsewhere]))
    assert offered == {"news"}  # no policy has the other one


def test_a_tool_gets_its_arguments_in_the_declared_types(engine: Engine) -> None:
    got: list[Any] = []

    def news(text: dt.date) -> str:
        got.append(text)
        return f"news of {text}"

    def orders(text: str) -> str:
        got.append(text)
        return text

    calls = (("news", {"text": "2026-01-02"}), ("orders", {"text": "2026-01-02"}))
    _, parts = told(engine, functions(news=news, orders=orders), *calls)
    assert got == [dt.date(2026, 1, 2), "2026-01-02"]
    assert parts[0].content == "news of 2026-01-02"


def test_a_tool_may_ask_the_model_to_try_again(engine: Engine) -> None:
    from pydantic_ai import ModelRetry

    def news(text: str) -> str:
        if text == "x":
            raise ModelRetry("write the name of a city")
        return f"news of {text}"

    _, (retry, done) = told(engine, functions(news=news), ("news", {"text": "x"}), ("news", {"text": "Rome"}))
    assert (retry.outcome, done.outcome == "retried", done.content) == ("retried", False, "news of Rome")
    assert "write the name of a city" in retry.content
