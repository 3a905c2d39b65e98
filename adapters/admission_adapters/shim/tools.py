"""The first adapter: the tools of a registry behind their gate, in this process.

It offers what its gate shows and calls what its gate calls, so each call is decided on at point `tool_call` and runs
under that permit. It discovers nothing, connects nowhere and reads no credential (A46-A52).
"""

from __future__ import annotations

from typing import Any, Protocol

from admission_adapters.tools.path import Listed
from admission_adapters.tools.request import tool_name
from admission_adapters.tools.result import ToolResult

LIST, CALL = "tools/list", "tools/call"
"""The operations of MCP that it has."""


class Gate(Protocol):
    """What is used of a `ToolGate`."""

    def listed(self) -> Listed:
        """The definitions that may be shown, or the codes of a refusal."""

    def call(self, call: Any, approval: str | None = None) -> ToolResult:
        """Make a call, if it is allowed."""


class ToolAdapter:
    """Answers envelopes by a gate. `tools` are those of the manifest: others of the gate are not listed."""

    def __init__(self, gate: Gate, tools: frozenset[str]) -> None:
        self._gate = gate
        self._tools = tools

    def handle(self, envelope: dict[str, Any]) -> dict[str, Any]:
        """The result envelope of an admitted request."""
        result = {name: envelope[name] for name in ("format", "manifest", "operation", "tool")}
        result |= {"request": envelope["id"], "status": "ok", "code": None, "approval": None}
        if envelope["operation"] == LIST:
            listed = self._gate.listed()
            if listed.codes:
                result |= {"status": "refused", "code": listed.codes[0]}
            return result | {"content": [one for one in listed.definitions if tool_name(one) in self._tools]}
        call = {"name": envelope["tool"], "arguments": envelope["arguments"]}
        done = self._gate.call(call, envelope["approval"])
        return result | {
            "status": done.status,
            "content": done.text,
            "code": done.code,
            "approval": done.approval,
        }
