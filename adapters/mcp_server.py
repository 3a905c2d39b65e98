"""The processes of MCP servers: there are none, and every call refuses (D13).

A server that is started by a command would run on this machine, outside of every sandbox. Servers over HTTP
need no process here: `adapters.mcp_delivery`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from adapters.runner_errors import McpUnsupportedError


class McpServerProcess:
    """Stands where a server's process would. Every call raises McpUnsupportedError, whoever asks."""

    def __init__(self, name: str) -> None:
        self._name = name

    def start(self, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        self._refuse()

    def list_tools(self, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        self._refuse()

    def call_tool(self, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        self._refuse()

    def stop(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: nothing was started."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise McpUnsupportedError(f"servers/{self._name}")
