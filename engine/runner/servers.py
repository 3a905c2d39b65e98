"""The relay of a run, and its MCP servers: each is started in a sandbox of its own, and called through the gate.

mcp: delivery ─> sandbox ─> the server: tools/list ─> mcp: list ─> each call: tool_call, tool_result
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from admission_adapters.runner.mcp_server import McpServerTalk, package_files
from admission_adapters.runner.relay import Relay
from admission_adapters.runner.run import Grant
from admission_adapters.sandbox.command import Command
from admission_adapters.sandbox.model import Dialogue
from engine.errors import EngineError
from engine.facts.run_request import McpServer, Tool
from engine.facts.tools.definitions import definition_of
from engine.facts.tools.mcp_names import local_name
from engine.points.mcp import McpLimits, StartedServerLimit
from engine.runner.asking import Decisions
from engine.work import Executor

_Execute = Callable[[Command], Executor]


def relay_of(
    decisions: Decisions,
    profile: str,
    tools: Sequence[Mapping[str, Any]],
    called: Callable[[Any, Any], tuple[str, bool]],
) -> Relay:
    """The relay for a harness in the sandbox of this profile. Raises StoppedError or WorkError."""
    permit, _ = decisions.demand("mcp", {"phase": "delivery", "relay": profile, "servers": []})
    return Relay(Grant(permit, permit.input_digest), profile, tools, called)


def relayed(task: Mapping[str, Any]) -> dict[str, Any]:
    """The task of a harness that takes its tools from the relay."""
    return {**task, "tools": [], "mcp_servers": [Relay.entry()]}


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of a server, under its local name, and what calls it."""

    tool: Tool
    call: Callable[..., Any]


class Talk(Dialogue, Protocol):
    """The talk with a server, which ends when `over` is set. `begun` is set once it runs, or never will."""

    begun: threading.Event
    over: threading.Event


class Servers:
    """The started servers of one run. Close it at the end."""

    def __init__(self, decisions: Decisions, profile: str, execute: _Execute) -> None:
        """`execute` makes the executor of point `sandbox` for a command."""
        self._decisions, self._profile, self._execute = decisions, profile, execute
        self._running: list[tuple[Talk, threading.Thread]] = []

    def start(self, servers: Sequence[McpServer]) -> list[ServerTool]:
        """Start the servers, and return the tools that they list. Raises StoppedError or WorkError."""
        if not servers:
            return []
        facts = [_server_facts(server) for server in servers]
        permit, _ = self._decisions.demand("mcp", {"phase": "delivery", "relay": self._profile, "servers": facts})
        limits = permit.demand("mcp", permit.input_digest, McpLimits)
        found = []
        for server, one in zip(servers, limits.started, strict=True):
            talk = McpServerTalk()
            failed = self._begin(one, talk)
            try:
                listing = talk.listing()
            except EngineError:
                self.close()
                if failed:
                    raise failed[0] from None
                raise
            request = {**_server_facts(server), "definitions": listing}
            self._decisions.demand("mcp", {"phase": "list", "relay": self._profile, "servers": [request]})
            found += [_tool(server.name, stated, talk) for stated in listing["tools"]]
        return found

    def begin(self, server: McpServer, talk: Talk) -> McpLimits:
        """Start one server, with a talk of the caller's own. Raises StoppedError or WorkError."""
        request = {"phase": "delivery", "relay": self._profile, "servers": [_server_facts(server)]}
        permit, _ = self._decisions.demand("mcp", request)
        limits = permit.demand("mcp", permit.input_digest, McpLimits)
        (one,) = limits.started
        failed = self._begin(one, talk)
        talk.begun.wait()
        if failed:
            raise failed[0]
        return limits

    def close(self) -> None:
        """End the servers; returns when they are dead."""
        for talk, _ in self._running:
            talk.over.set()
        for _, thread in self._running:
            thread.join()

    def _begin(self, one: StartedServerLimit, talk: Talk) -> list[Exception]:
        """Start a server in a thread of its own; what ends it is appended to the list."""
        files = package_files(Path(one.package.folder), one.package.digest)
        command = Command(one.command, dialogue=talk, cancel=talk.over, files=files)
        request = {"profile": self._profile, "command": list(one.command)}
        failed: list[Exception] = []

        def live() -> None:
            try:
                self._decisions.demand("sandbox", request, self._execute(command))
            except Exception as error:  # noqa: BLE001  (raised again by who started it)
                failed.append(error)
            finally:
                talk.end()

        thread = threading.Thread(target=live, name="engine-mcp-server", daemon=True)
        self._running.append((talk, thread))
        thread.start()
        return failed


def _server_facts(server: McpServer) -> dict[str, Any]:
    """What a decision is asked on; of secrets, their names."""
    return {"name": server.name, "transport": server.transport, "env": dict.fromkeys(server.env, "")}


def _tool(server: str, stated: Any, talk: McpServerTalk) -> ServerTool:
    found = definition_of(stated)
    schema = dict(found.input_schema or {})
    tool = Tool(name=local_name(server, found.name), kind="gateway", description=found.description, input_schema=schema)
    return ServerTool(tool, lambda **arguments: talk.call(found.name, arguments))
