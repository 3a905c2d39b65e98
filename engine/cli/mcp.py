"""`engine mcp`: the gate of this engine in front of an MCP server."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import options
from engine.cli.terminal import notice
from engine.cli.tools import requests as asked
from engine.errors import GatherError

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.runner.asking import Decisions
    from engine.runner.proxy import Place, ProxiedServer

app = typer.Typer()
_POINTS = ("administration", "mcp", "sandbox", "tool_call", "tool_result", "tool_visibility")


@app.command("proxy")
@options.sourced(*options.CALLER, "state", *options.SERVED, "values")
def proxy(
    sources: options.Sources,
    server: Annotated[str, typer.Argument(metavar="SERVER", help="Id of the server in policy/mcp.yaml.")],
    url: Annotated[
        str, typer.Option(metavar="URL", help="Address of a server over HTTP; without it, the server is started.")
    ] = "",
    secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VARIABLE", help="Secret header of a server over HTTP, and the variable that has it."
        ),
    ] = None,
    sandbox: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Sandbox profile of a started server (default: the first of mcp.yaml)."),
    ] = None,
    tool_policy: asked.ToolPolicy = None,
    profile: asked.Profile = None,
    cwd: asked.WorkingFolder = None,
    approver: Annotated[
        str | None,
        options.words(metavar="NAME", help="Person at the client who is asked to approve there (default: none)."),
    ] = None,
) -> None:
    """Serve one MCP client on standard input and output, in front of one server of policy/mcp.yaml.

    A started server runs in a sandbox. Its tools are listed as they were reviewed, and each call and each result is
    decided on. Exits with 0 when the client or the server has ended; prints the findings if the server is refused.
    """
    from admission_adapters.tools.path import CallContext
    from engine.runner.asking import Decisions
    from engine.runner.proxy import Place, ProxiedServer

    context = replace(sources, run=sources.run or uuid.uuid4().hex).context()
    with sources.engine(*_POINTS, follow=True) as engine:
        place = Place(url=url, secrets=_secrets(secret or [])) if url else Place(sandbox or _first(engine))
        calls = CallContext(tool_policy, profile, cwd)
        decisions = Decisions(engine.opened, context)
        try:
            _serve(engine, ProxiedServer(decisions, server, place, calls, approver), decisions, place)
        finally:
            if sources.run is None:
                engine.opened.store().end_run(context.run or "")


def _serve(engine: Engine, gate: ProxiedServer, decisions: Decisions, place: Place) -> None:
    """Pump until one side has ended; a refusal goes to standard error, and the command ends."""
    from admission_adapters.shim.upstream import SandboxedTalk, serve_http, serve_started
    from engine.cli.adapter import accepted
    from engine.runner.asking import StoppedError
    from engine.runner.harnesses import Harnesses
    from engine.runner.servers import Servers

    harnesses = Harnesses(engine.executors.machine().backend, {})
    servers = Servers(decisions, place.sandbox or "", partial(harnesses.server, decisions.services))

    def start(talk: SandboxedTalk) -> None:
        gate.started(servers, talk)

    try:
        if place.url:
            found = gate.delivered(notice)
            serve_http(gate, found.url, dict(found.headers), notice)
        else:
            serve_started(gate, start, servers.close, notice)
    except StoppedError as stopped:
        accepted(engine, stopped.answer, "the MCP server")


def _first(engine: Engine) -> str:
    """The first profile in which servers may be started."""
    found = None if engine.policy is None else engine.policy.row(("mcp", "sandboxes")).value
    if not found:
        raise GatherError(
            "no sandbox may start an MCP server", remedy="list a profile under `sandboxes` in policy/mcp.yaml"
        )
    return str(found[0])


def _secrets(stated: list[str]) -> dict[str, str]:
    """The secrets by name, from variables. Raises GatherError."""
    from admission_adapters.llm_provider import VARIABLES

    found = {}
    for one in stated:
        name, _, variable = one.partition("=")
        if variable in VARIABLES:
            raise GatherError(
                f"`{variable}` is a variable of the remote model, whose key goes nowhere else",
                remedy="give the server a secret of its own under another name",
            )
        if not name or not variable or variable not in os.environ:
            raise GatherError(f"the secret `{name}` names no variable that is set", remedy="use NAME=VARIABLE")
        found[name] = os.environ[variable]
    return found
