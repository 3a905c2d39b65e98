"""What a harness is given of MCP servers: those over HTTP that were admitted, with their secrets as headers.

A server that is started by a command is never delivered, whatever a permit says (D13, D35). Secrets go into
headers and nowhere else: no result, no line of a log and no error has one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from adapters.runner_errors import McpUnsupportedError
from engine.errors import WorkError
from engine.model import Limits, Permit, Result

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_VALUE = re.compile(r"[!-~](?:[ -~]{0,8190}[!-~])?")


class Secret(Protocol):
    """A text that shows itself only when asked."""

    def get_secret_value(self) -> str:
        """The text."""
        ...


class Server(Protocol):
    """A server as it came in a request: `env` are its secrets by name."""

    @property
    def name(self) -> str:
        """Its id."""
        ...

    @property
    def transport(self) -> str:
        """`http` or `stdio`."""
        ...

    @property
    def command(self) -> str:
        """What would be started."""
        ...

    @property
    def url(self) -> str:
        """Where it is."""
        ...

    @property
    def env(self) -> Mapping[str, Secret]:
        """Resolved secrets."""
        ...


class ServerGrant(Protocol):
    """A server that a permit names."""

    @property
    def name(self) -> str:
        """Its id."""
        ...

    @property
    def address(self) -> str:
        """`sha256:` and hex of its URL."""
        ...

    @property
    def secrets(self) -> Sequence[str]:
        """The names of exactly those secrets that it is given."""
        ...


@runtime_checkable
class McpGrant(Protocol):
    """What delivery reads of the limits of point `mcp`."""

    @property
    def phase(self) -> str:
        """When it was asked about."""
        ...

    @property
    def servers(self) -> Sequence[ServerGrant]:
        """What may be delivered."""
        ...

    @property
    def skipped(self) -> Sequence[str]:
        """What there is nothing to deliver of."""
        ...


@dataclass(frozen=True, slots=True)
class Delivered:
    """One server as a harness takes it."""

    name: str
    url: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)

    def wire(self) -> dict[str, Any]:
        """The entry of the harness's list of servers; it holds secrets."""
        headers = [{"name": name, "value": value} for name, value in self.headers]
        return {"type": "http", "name": self.name, "url": self.url, "headers": headers}


def deliver(
    permit: Permit, input_digest: str, limits: type[Limits], servers: Sequence[Server], log: Callable[[str], None]
) -> tuple[Result, tuple[Delivered, ...]]:
    """Make the entries of the servers that the permit names; `log` is told the names of those left out.

    `limits` is the limits type of point `mcp`. Raises WorkError: `engine.permit_missing`;
    `MCP_UNSUPPORTED_MESSAGE` for a server with a command; `engine.mcp_server_changed` for one that is not what
    was decided on; `engine.mcp_secret_unusable` for a secret that no header can hold.
    """
    grant = permit.demand("mcp", input_digest, limits)
    if not isinstance(grant, McpGrant) or grant.phase != "delivery":
        raise WorkError(
            "this permit delivers no MCP server",
            remedy="ask the engine about the servers at the moment they are delivered",
            code="engine.permit_missing",
        )
    granted, skipped = {one.name: one for one in grant.servers}, set(grant.skipped)
    delivered = []
    for server in servers:
        if server.command:
            raise McpUnsupportedError(f"servers/{server.name}")
        if server.transport != "http" or not server.url:
            if server.name not in skipped:
                raise _changed(server.name)
            log(f"MCP server `{server.name}` is left out: there is nothing to deliver of it")
            continue
        delivered.append(_entry(server, granted.get(server.name)))
    if len(delivered) != len(granted):
        raise _changed("")
    facts = {"servers": [one.name for one in delivered], "skipped": sorted(skipped)}
    return Result("delivered", facts), tuple(delivered)


def _entry(server: Server, grant: ServerGrant | None) -> Delivered:
    address = "sha256:" + hashlib.sha256(server.url.encode("utf-8")).hexdigest()
    if grant is None or grant.address != address or sorted(grant.secrets) != sorted(server.env):
        raise _changed(server.name)
    headers = tuple((name, secret.get_secret_value()) for name, secret in sorted(server.env.items()))
    for name, value in headers:
        if _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            raise WorkError(
                f"a secret of MCP server `{server.name}` cannot stand in a header",
                remedy="give it a plain name, and a value of printable ASCII without line ends",
                code="engine.mcp_secret_unusable",
            )
    return Delivered(server.name, server.url, headers)


def _changed(name: str) -> WorkError:
    return WorkError(
        f"MCP server `{name}` is not the one that was decided on" if name else "an MCP server is missing",
        remedy="deliver exactly the servers that were asked about",
        code="engine.mcp_server_changed",
    )
