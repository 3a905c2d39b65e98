"""`engine fetch URL…`: material over HTTPS into a new source bundle, each step decided and recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import options
from engine.cli.formats import answers_text
from engine.cli.outputs import json_text, print_text
from engine.cli.waiting import Waiting
from engine.documents.files import counted, printable

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.fetching import Fetched


@options.sourced(*options.CALLER, "state", *options.SERVED)
def fetch(
    sources: options.Sources,
    urls: Annotated[list[str], typer.Argument(metavar="URL", help="Addresses; more than one only by policy.")],
    into: Annotated[Path, typer.Option("--into", metavar="DIR", help="New folder for the source bundle.")],
    license_: Annotated[
        str | None, typer.Option("--license", metavar="SPDX", help="License label of the content, such as CC-BY-4.0.")
    ] = None,
    hosts: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="NAME", help="Exact host to connect to; enables the fetch; repeatable."),
    ] = None,
    alias: Annotated[
        str | None, typer.Option(metavar="NAME", help="Public name of the origin (default: the name of DIR).")
    ] = None,
    max_requests: Annotated[int, typer.Option(min=0, metavar="N", help="Requests that the run may make.")] = 1,
    ca_file: options.CaFile = None,
    how: options.Output = "text",
) -> None:
    """Fetch material over HTTPS into a new source bundle; then run `engine check` on it.

    Nothing is fetched unless the host is named with --host and listed in policy/networks.yaml. No redirect is followed
    and no proxy used. If any address is refused, or any transfer fails, there is no folder.
    """
    from engine.fetching import FetchOrder

    stated = tuple(options.text(url) or "" for url in urls)
    order = FetchOrder(stated, into, license_, tuple(hosts or ()), alias, max_requests)
    waiting = Waiting()
    progress = waiting.counting("fetching", lambda address, of: f"fetching {address}/{of}")
    with sources.engine("network", "network_response", progress=progress, ca_file=ca_file) as engine:
        options.report_lowered(engine, "network")
        options.report_lowered(engine, "network_response")
        with waiting:
            done = engine.fetch(order, sources.context())
        if done.fault is not None and how == "text":
            raise done.fault
        text = _people(engine, done, order.urls) if how == "text" else json_text(_document(done))
    print_text(text)
    raise typer.Exit(done.exit)


def _document(done: Fetched) -> dict[str, object]:
    return {
        "folder": None if done.folder is None else str(done.folder),
        "fault": None if done.fault is None else done.fault.code,
        "decisions": [one.decision.model_dump(mode="json") for one in done.answers],
    }


def _people(engine: Engine, done: Fetched, urls: tuple[str, ...]) -> str:
    """What was fetched and what is next, or what was refused and why."""
    if done.folder is not None:
        path = printable(str(done.folder))
        return (
            f"{path}: {counted(len(urls), 'record')} fetched\n"
            f"next: complete the lines of {path}/bundle.yaml that begin with `#`, then run `engine check {path}`\n"
        )
    number = sum(one.decision.point == "network" for one in done.answers)
    name = f"address {number} of {len(urls)}" if len(urls) > 1 else "address"
    return answers_text(engine, name, done.answers[-1:], done.exit) + "nothing was written\n"
