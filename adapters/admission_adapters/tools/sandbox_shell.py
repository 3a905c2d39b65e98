"""The tool `sandbox_shell`: one command in the sandbox, each of its connections decided by the engine.

    tool = SandboxShell(engine, context, hosts=("packages.example.org",))
    tool.register(registry)

The gate decides on each call at `tool_call`, the run is decided on at `sandbox`, and each connection at `network`. The
command finds an empty folder of its own and the programs of /usr; nothing of it stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from admission_adapters.cuts import printed
from admission_adapters.interfaces import Answer, Decides
from admission_adapters.tools.effects import record_side_effect
from admission_adapters.tools.registering import Registered, object_schema, refusal

DEFINITION: dict[str, Any] = {
    "name": "sandbox_shell",
    "description": "Run one bash command in an empty private folder. Only allowed hosts can be reached, over https.",
    "input_schema": object_schema({"command": {"type": "string"}}, "command"),
}
SIDE_EFFECTS = ("execute", "network")
_MOST_CONNECTIONS = 50
"""Connections that a result names."""


class Connection(Protocol):
    """One connection of a command: where it led, and the outcome, or the codes and the approval of its refusal."""

    url: str | None
    outcome: str
    codes: Sequence[str]
    approval: str | None


class Ran(Protocol):
    """What came of a command; `ended` is None if it did not run."""

    answer: Answer
    ended: Any
    connections: Sequence[Connection]
    files: Mapping[str, bytes]
    not_kept: Mapping[str, str]


class RunsShell(Decides[Any], Protocol):
    """What is used of an `Engine` or an `AsyncEngine`."""

    def run_shell(self, text: str, *, hosts: Any = ..., folder: Any = ..., profile: str, context: Any) -> Any:
        """Run a command in the sandbox, as far as the policy permits it."""


class SandboxShell(Registered):
    """The tool of one agent; threads may share it."""

    def __init__(self, engine: RunsShell, context: Any, *, hosts: Sequence[str] = (), profile: str = "shell") -> None:
        """`hosts` are the exact hosts that its commands may ask for; without any they have no network.

        `context` is the engine's Context: the caller and its run. `profile` is one of policy/sandbox.yaml.
        """
        super().__init__(engine, context, DEFINITION, SIDE_EFFECTS)
        self._engine, self._hosts, self._profile = engine, tuple(hosts), profile

    def sandbox_shell(self, command: str) -> dict[str, Any]:
        """Run one command. Raises ToolValidationError with the code of the refusal, or the fault of the engine."""
        record_side_effect("execute", id="command", target=command)
        if self._hosts:
            record_side_effect("network", id="connections", target=",".join(self._hosts))
        ran: Ran = self._engine.run_shell(command, hosts=self._hosts, profile=self._profile, context=self._context)
        if ran.ended is None or ran.answer.fault is not None:
            raise refusal(ran.answer)
        return {
            **command_report(ran.ended),
            "connections": [
                {"to": one.url, "outcome": one.outcome, "codes": list(one.codes)}
                | ({"approval": one.approval} if one.approval else {})
                for one in ran.connections[:_MOST_CONNECTIONS]
            ],
        }


def command_report(ended: Any) -> dict[str, Any]:
    """How a command ended and what it printed, as a model sees it."""
    return {
        "status": str(ended.status),
        "exit_code": ended.exit_code,
        "stdout": printed(ended.stdout, ended.stdout_bytes),
        "stderr": printed(ended.stderr, ended.stderr_bytes),
    }
