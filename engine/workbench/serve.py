"""A running workbench: one socket of this machine, the table of its pages, and its end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from functools import partial

from engine.api.connection import Connection, sweep
from engine.api.listeners import bind, serve
from engine.api.messages import Access as Openness
from engine.api.messages import Operation, Routes
from engine.api.peers import network_peer
from engine.workbench import (
    approvals,
    code_runs,
    decisions,
    episodes,
    forms,
    machine,
    policy,
    preview,
    releases,
    runs,
)
from engine.workbench.access import Access
from engine.workbench.app import Handler, Workbench, asset, log_in, log_out, operation, show_login
from engine.workbench.desk import Desk
from engine.workbench.pages import ASSETS, moved

_LOOPBACK = "127.0.0.1"
_PAUSE_SECONDS = 0.01


def run(desk: Desk, port: int, announce: Callable[[str], None]) -> None:
    """Serve the pages until SIGTERM or SIGINT. `announce` is called with each new link. Raises GatherError."""
    asyncio.run(_run(desk, port, announce))


async def _run(desk: Desk, port: int, announce: Callable[[str], None]) -> None:
    loop, stop, connections = asyncio.get_running_loop(), asyncio.Event(), set[Connection]()
    bound = bind(_LOOPBACK, port)
    access = Access(bound.getsockname()[1])
    workbench = Workbench(desk, access, routes(), announce)
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    server = await serve(partial(Connection, workbench, loop, network_peer, connections), bound, None)
    sweeping = loop.create_task(sweep(workbench, connections))
    try:
        announce(access.link)
        await stop.wait()
        workbench.stopping = True
        server.close()
        for connection in tuple(connections):
            connection.stop()
        end = loop.time() + workbench.limits.stop_seconds
        while (connections or workbench.active) and loop.time() < end:  # noqa: ASYNC110  (once, at the end)
            await asyncio.sleep(_PAUSE_SECONDS)
    finally:
        sweeping.cancel()
        for connection in tuple(connections):
            connection.cut()
        bound.close()


def routes() -> Routes:
    """Every page by path and method."""
    pages: dict[str, Handler] = {
        "/": lambda _: moved("/decisions"),
        "/decisions": decisions.listed,
        "/decisions/{id}": decisions.one,
        "/runs": runs.listed,
        "/runs/{id}": code_runs.one,
        "/runs/{id}/file": code_runs.file,
        "/episodes/{id}": episodes.one,
        "/episodes/{id}/transcript": episodes.transcript,
        "/policy": policy.points,
        "/policy/{id}": policy.point,
        "/licenses": policy.licenses,
        "/tools": policy.tools,
        "/coverage": policy.coverage,
        "/values": preview.listed,
        "/edit": preview.editor,
        "/form": forms.form,
        "/previews/{id}": preview.page,
        "/approvals": approvals.listed,
        "/approvals/{id}": approvals.one,
        "/machine": machine.page,
        "/waivers": policy.waivers,
        "/shadow": preview.shadow,
        "/releases": releases.listed,
        "/releases/{id}": releases.one,
    }
    actions: dict[str, Handler] = {
        "/decisions/{id}": decisions.tried,
        "/edit": preview.preview,
        "/form": forms.sent,
        "/lint": preview.lint,
        "/previews/{id}": preview.saved,
        "/approvals/{id}": approvals.resolved,
        "/machine": machine.verified,
        "/releases": releases.built,
        "/releases/{id}": releases.acted,
    }
    public = partial(Operation, access=Openness.OPEN)
    table = {
        "/login": {"GET": public("login", show_login), "POST": public("login", log_in)},
        "/logout": {"POST": public("logout", log_out)},
        **{f"/static/{name}": {"GET": public("asset", asset)} for name in ASSETS},
    }
    for method, handlers in (("GET", pages), ("POST", actions)):
        for path, handler in handlers.items():
            table.setdefault(path, {})[method] = operation(path, handler)
    return table
