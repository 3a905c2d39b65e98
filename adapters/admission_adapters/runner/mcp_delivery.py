"""The MCP servers that a harness receives: admitted HTTP servers, with their secrets as headers.

A server that is started by a command is never delivered, even with a permit (D13, D35). Secrets go into
headers and nowhere else: no result, no line of a log and no error has one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, runtime_checkable

from admission_adapters.digests import digest
from admission_adapters.grants import granted
from admission_adapters.runner.errors import McpUnsupportedError
from admission_adapters.runner.sealed import Secret
from engine.errors import PermitMissingError, WorkError
from engine.model import Permit, Result

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_VALUE = re.compile(r"[!-~](?:[ -~]{0,8190}[!-~])?")


class Server(Protocol):
    """A server of a request: `env` are its secrets by name."""

    @property
    def name(self) -> str:
        """Its id."""

    @property
    def transport(self) -> str:
        """`http` or `stdio`."""

    @property
    def command(self) -> str:
        """The command that would start it."""

    @property
    def url(self) -> str:
        """Its address."""

    @property
    def env(self) -> Mapping[str, Secret]:
        """Resolved secrets."""


class ServerGrant(Protocol):
    """A server that a permit names."""

    name: str  # its id
    address: str  # `sha256:` and hex of its URL
    secrets: Sequence[str]  # the names of exactly those secrets that it receives


@runtime_checkable
class McpGrant(Protocol):
    """What delivery reads of the limits of point `mcp`."""

    phase: str  # the phase of the request
    servers: Sequence[ServerGrant]  # what may be delivered
    skipped: Sequence[str]  # servers without anything to deliver


@dataclass(frozen=True, slots=True)
class Delivered:
    """One server in the form that a harness accepts."""

    name: str
    url: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)

    def wire(self) -> dict[str, Any]:
        """The entry for the harness's list of servers; contains secrets."""
        headers = [{"name": name, "value": value} for name, value in self.headers]
        return {"type": "http", "name": self.name, "url": self.url, "headers": headers}


def deliver(
    permit: Permit, input_digest: str, servers: Sequence[Server], log: Callable[[str], None]
) -> tuple[Result, tuple[Delivered, ...]]:
    """The entries of the servers that the permit names; `log` receives the names of omitted servers.

    Raises WorkError: `engine.permit_missing`; `MCP_UNSUPPORTED_MESSAGE` for a server with a command;
    `engine.mcp_server_changed` for one that differs from what was decided on; `engine.mcp_secret_unusable` for a
    secret that a header cannot contain.
    """
    grant = granted(permit, "mcp", input_digest, McpGrant)
    if grant.phase != "delivery":
        raise PermitMissingError(
            "this permit delivers no MCP server", remedy="request the decision when the servers are delivered"
        )
    admitted, skipped = {server.name: server for server in grant.servers}, set(grant.skipped)
    delivered = []
    for server in servers:
        if server.command:
            raise McpUnsupportedError(f"servers/{server.name}")
        if server.name in skipped:
            why = "its loopback is that of another machine" if server.url else "it has nothing to deliver"
            log(f"MCP server `{server.name}` is left out: {why}")
            continue
        if server.transport != "http" or not server.url:
            raise _changed(server.name)
        delivered.append(_entry(server, admitted.get(server.name)))
    if len(delivered) != len(admitted):
        raise _changed("")
    facts = {"servers": [server.name for server in delivered], "skipped": sorted(skipped)}
    return Result("delivered", facts), tuple(delivered)


def _entry(server: Server, grant: ServerGrant | None) -> Delivered:
    address = digest(server.url.encode("utf-8"))
    if grant is None or grant.address != address or sorted(grant.secrets) != sorted(server.env):
        raise _changed(server.name)
    headers = tuple((name, secret.get_secret_value()) for name, secret in sorted(server.env.items()))
    for name, value in headers:
        if _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            raise WorkError(
                f"a secret of MCP server `{server.name}` cannot be sent in a header",
                remedy="use a plain name, and a value of printable ASCII without line breaks",
                code="engine.mcp_secret_unusable",
            )
    return Delivered(server.name, server.url, headers)


def _changed(name: str) -> WorkError:
    return WorkError(
        f"MCP server `{name}` is not the one that was decided on" if name else "an MCP server is missing",
        remedy="deliver exactly the servers that the decision covers",
        code="engine.mcp_server_changed",
    )


class McpServerProcess:
    """Takes the place of a server process, which would run outside of every sandbox: every call is refused (D13)."""

    def __init__(self, name: str) -> None:
        self._name = name

    def start(self, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        raise McpUnsupportedError(f"servers/{self._name}")

    list_tools = call_tool = stop = start
