"""Agents of tests: a registry of real callables behind a gate, and what the record says of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

from admission_adapters.tools.registry import UncuratedToolRegistry
from engine.flow import Context
from engine.model import Caller, Via
from engine.settings import Settings
from tests.command import lines

AGENT = Context(caller=Caller(via=Via.PROCESS, principal="agent"), run="run-1")
OPTIONS: dict[str, Any] = {"policy": "assistant", "profile": "coding", "cwd": "/work"}

READ = "contacts_list"
"""A tool that the shipped policy lets an assistant call with any `search`; it declares the effect `read`."""

ASK = "contacts_add"
"""A tool for which the shipped policy asks a person."""


def registry(**tools: Callable[..., Any]) -> UncuratedToolRegistry:
    """These callables, each with a definition that takes any arguments."""
    found = UncuratedToolRegistry()
    for name, tool in tools.items():
        found.add(name, tool, {"name": name, "description": f"the tool {name}", "input_schema": {"type": "object"}})
    return found


def reading(search: str = "jane") -> dict[str, Any]:
    """A call of READ, in our own shape."""
    return {"name": READ, "arguments": {"search": search}}


def adding(name: str = "jane") -> dict[str, Any]:
    """A call of ASK."""
    return {"name": ASK, "arguments": {"name": name, "email": "nobody"}}


def shapes(name: str, arguments: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """One call in its usual form."""
    text = json.dumps(arguments)
    return {
        "own": {"name": name, "arguments": arguments},
        "openai": {"id": "call_1", "type": "function", "function": {"name": name, "arguments": text}},
        "responses": {"type": "function_call", "call_id": "call_1", "name": name, "arguments": text},
        "anthropic": {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments},
        "mcp": {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        },
        "langchain": {"type": "tool_call", "id": "call_1", "name": name, "args": arguments},
        "gemini": {"functionCall": {"name": name, "args": arguments}},
        "gemini_sdk": {"function_call": {"name": name, "args": arguments}},
        "bedrock": {"toolUse": {"toolUseId": "call_1", "name": name, "input": arguments}},
    }


def results(settings: Settings, point: str = "tool_call") -> list[dict[str, Any]]:
    """Of every decision at this point in the record, what its work came to; {} where nothing ran."""
    every = lines(settings.state)
    done = {line["decision_id"]: line for line in every if line["kind"] == "result"}
    return [
        done.get(line["decision_id"], {}) for line in every if line["kind"] == "decision" and line["point"] == point
    ]


def last(settings: Settings, point: str = "tool_call") -> dict[str, Any]:
    """The newest decision at this point."""
    return [line for line in lines(settings.state) if line["kind"] == "decision" and line["point"] == point][-1]


def deep(levels: int) -> Any:
    """Lists in each other."""
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


def raising(error: BaseException) -> Callable[[], NoReturn]:
    """A tool that does nothing else."""

    def tool() -> NoReturn:
        raise error

    return tool
