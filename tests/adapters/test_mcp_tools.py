"""Tools of MCP servers behind the gate: named locally, decided on, and never thrown into the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from admission_adapters.tools.gate import ToolGate
from admission_adapters.tools.registry import UncuratedToolRegistry
from engine.cases.run import Runner
from engine.facts.tools.mcp_names import local_name
from tests.adapters.gates import AGENT, raising, shapes
from tests.tool_rows import reading

SEARCH = local_name("docs", "search")
ENTRY = reading(query="text") | {
    "side_effects": ["read", "network"],
    "environments": ["workspace"],
    "definition": "none",
}
VALUES: dict[str, Any] = {
    "tools": {
        "tools": {f"+{SEARCH}": ENTRY},
        "rulesets": {"workspace": {"allow": [{"id": "docs", "tools": ["mcp_docs__*"]}]}},
    }
}


class McpError(Exception):
    """As a client of MCP raises it: by what the server says."""


class Session:
    """A session with a server that fails in one way first, and answers after that."""

    def __init__(self, fail: Callable[[], Any]) -> None:
        self._fails = [fail]

    def call_tool(self, query: str) -> str:
        if self._fails:
            return str(self._fails.pop()())
        return f"found {query}"


FAILURES = {
    "protocol": raising(McpError(-32000, "canary-from-the-server")),
    "connection": raising(ConnectionResetError("canary-from-the-server")),
    "time": raising(TimeoutError()),
    "group": raising(ExceptionGroup("canary-from-the-server", [McpError("canary-from-the-server")])),
    "exit": raising(SystemExit(3)),
    "recursion": raising(RecursionError()),
}


# covers: B38.1
@pytest.mark.parametrize("name", FAILURES)
def test_an_exception_in_an_mcp_tool_gives_an_error_result_and_the_run_goes_on(name: str, runner: Runner) -> None:
    registry, session = UncuratedToolRegistry(), Session(FAILURES[name])
    registry.add(SEARCH, session.call_tool, {"name": SEARCH, "input_schema": {"type": "object"}})
    gate = ToolGate(runner.engine(VALUES), registry, AGENT, policy="assistant", profile="coding", cwd="/work")
    call = shapes(SEARCH, {"query": "tea"})["mcp"]
    failed, after = gate.call(call), gate.call(call)
    assert failed.status == "error"
    assert "canary" not in repr(failed)
    assert (after.status, after.content) == ("ok", "found tea")  # the control: the same call is allowed, and works


# covers: B37
def test_a_tool_of_a_server_is_called_by_its_local_name_only(runner: Runner) -> None:
    registry = UncuratedToolRegistry()
    registry.add(SEARCH, Session(lambda: "found").call_tool, {"name": SEARCH})
    gate = ToolGate(runner.engine(VALUES), registry, AGENT, policy="assistant", profile="coding", cwd="/work")
    assert gate.call(shapes("search", {"query": "tea"})["mcp"]).status == "refused"
    assert gate.call(shapes(SEARCH, {"query": "tea"})["mcp"]).status == "ok"
