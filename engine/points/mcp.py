"""Point `mcp`: which MCP servers a run may have, when it is planned, when they are delivered and when they list tools.

No secret, command or description gets into the input: ids, names of secrets, digests, and what names look like.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field

from engine.documents.canonical import digest
from engine.documents.files import counted
from engine.facts.code.boundaries import Stated, stated
from engine.facts.net.urls import origin_facts
from engine.facts.run_request import MOST_SERVERS, McpServer, Wire
from engine.facts.text.content import steering_in
from engine.facts.text.instructions import Markers
from engine.facts.tools.definitions import Definition, Hints, UnreadableDefinitionError, listing_of
from engine.facts.tools.mcp_names import collisions, confusables, local_name, unambiguous
from engine.model import Digest, Limits, Model, Object, Word
from engine.points import GatherContext, Gathered, Point

_PLAIN = re.compile(r"[!-~]{1,128}")
_SECRET = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")

MOST_DEFINITIONS = 1_000
"""Tools of one server that are looked at; what lists more is refused."""


class ListedServer(McpServer):
    """An MCP server, and what it lists: the result of `tools/list`, or a list of definitions."""

    definitions: Object | Annotated[list[Any], Field(max_length=10_000)] | None = None


class McpRequest(Wire):
    """A request about MCP servers: when a run is planned, when they are delivered, or when their tools are listed.

    `relay` is the sandbox of the relay, a profile of policy/sandbox.yaml. Through it, and without a command of the
    request, a server of policy/mcp.yaml may be started. `backend` is where the run takes place.
    """

    phase: Literal["plan", "delivery", "list"]
    relay: Word | None = None
    backend: Word | None = None
    servers: Annotated[tuple[ListedServer, ...], Field(max_length=MOST_SERVERS)] = Field(
        validation_alias=AliasChoices("servers", "mcp_servers", "mcpServers")
    )


class UrlFacts(Model):
    """The address of a server: its origin only when it is canonical; the digest of its text."""

    canonical: bool
    origin: str | None = None
    digest: Digest


class ServerFacts(Model):
    """A server. `starts_process`: it names a command. `deliverable`: there is a command or an address to deliver.

    `unambiguous`: no local name with its id can be read as one of another server. `confusable`: another server
    of the request has the same id, or one that looks like it. `listing`: whether its definitions could be read.
    """

    id: str
    transport: str
    starts_process: bool
    deliverable: bool
    url_stated: bool
    url: UrlFacts | None = None
    secrets: tuple[str, ...]
    unambiguous: bool
    confusable: bool
    listing: Literal["none", "whole", "part", "unreadable"]


class ToolFacts(Model):
    """A listed tool by its local name. `remote` only where it is plain; a name in other letters is no key.

    `hidden` and `instructions` count what its definition has of both, see `engine.facts.text`.
    """

    id: str
    server: str
    remote: str | None = None
    definition: Digest
    hidden: int
    instructions: int
    hints: Hints
    collides: bool
    confusable: bool


class McpInput(Model):
    """What OPA sees of the servers and of the tools that they list."""

    phase: Literal["plan", "delivery", "list"]
    relay: Stated
    backend: Stated
    servers: tuple[ServerFacts, ...]
    tools: tuple[ToolFacts, ...]


class McpServerLimit(Model):
    """A server that may be delivered, at exactly this address, with exactly these secrets as headers."""

    name: str
    origin: str
    address: Digest
    secrets: tuple[str, ...]


class Package(Model):
    """The files of a server: a folder of this machine, and the digest of everything in it."""

    folder: str
    digest: Digest


class StartedServerLimit(Model):
    """A server that may be started with exactly this command and these files."""

    name: str
    command: tuple[str, ...]
    package: Package


class McpLimits(Limits):
    """What may be delivered or started, what is left out of the delivery, and which tools were admitted.

    `relay` is the profile of the sandbox in which the relay may run and servers may be started; empty: none.
    `client_methods` and `server_methods` are the methods that a proxy lets through from either side.
    """

    phase: Literal["plan", "delivery", "list"]
    relay: str
    servers: tuple[McpServerLimit, ...]
    started: tuple[StartedServerLimit, ...]
    skipped: tuple[str, ...]
    tools: tuple[str, ...]
    client_methods: tuple[str, ...]
    server_methods: tuple[str, ...]


def gather(request: McpRequest, context: GatherContext) -> Gathered:
    """Read addresses and definitions, and compare names with one another."""
    listed = [_listed(server) for server in request.servers]
    names = [server.name for server in request.servers]
    twins = [one or other for one, other in zip(collisions(names), confusables(names), strict=True)]
    made = McpInput(
        phase=request.phase,
        relay=stated(request.relay),
        backend=stated(request.backend),
        servers=tuple(
            _server(server, listing, twin)
            for server, (listing, _), twin in zip(request.servers, listed, twins, strict=True)
        ),
        tools=_tools(
            [(name, one) for name, (_, found) in zip(names, listed, strict=True) for one in found],
            context.lookups.markers,
        ),
    )
    return Gathered(made, f"{counted(len(made.servers), 'MCP server')}, {request.phase}")


def _listed(server: ListedServer) -> tuple[Literal["none", "whole", "part", "unreadable"], Sequence[Definition]]:
    if server.definitions is None:
        return "none", ()
    try:
        found, more = listing_of(server.definitions)
        for one in found[:MOST_DEFINITIONS]:
            one.digest()
    except UnreadableDefinitionError:
        return "unreadable", ()
    whole = not more and len(found) <= MOST_DEFINITIONS
    return "whole" if whole else "part", found[:MOST_DEFINITIONS]


def _server(server: ListedServer, listing: Literal["none", "whole", "part", "unreadable"], twin: bool) -> ServerFacts:  # noqa: FBT001
    found = origin_facts(server.url)
    url = UrlFacts(canonical=found.canonical, origin=found.origin, digest=digest(server.url.encode("utf-8")))
    return ServerFacts(
        id=server.name,
        transport=server.transport,
        starts_process="command" in server.model_fields_set and server.command != "",
        deliverable=bool(server.command if server.transport == "stdio" else server.url),
        url_stated=bool(server.url),
        url=url if server.url else None,
        secrets=tuple(
            name if _SECRET.fullmatch(name) else f"#{index}" for index, name in enumerate(sorted(server.env))
        ),
        unambiguous=unambiguous(server.name),
        confusable=twin,
        listing=listing,
    )


def _tools(found: Sequence[tuple[str, Definition]], markers: Markers) -> tuple[ToolFacts, ...]:
    local = [local_name(server, one.name) for server, one in found]
    looks = confusables([f"mcp_{server}__{one.name}" for server, one in found])
    steering = [steering_in(one.document(), markers) for _, one in found]
    return tuple(
        ToolFacts(
            id=name,
            server=server,
            remote=one.name if _PLAIN.fullmatch(one.name) else None,
            definition=one.digest(),
            hidden=hidden,
            instructions=instructions,
            hints=one.hints(),
            collides=collides,
            confusable=alike,
        )
        for (server, one), name, collides, alike, (hidden, instructions) in zip(
            found, local, collisions(local), looks, steering, strict=True
        )
    )


POINT = Point("mcp", McpRequest, McpInput, McpLimits, gather, secret=True)
