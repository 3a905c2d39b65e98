"""`engine memory`: entries of agents' memory, each written, read and forgotten only after a decision."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import options
from engine.cli.inputs import text_of
from engine.cli.outputs import json_text, print_text
from engine.documents.files import printable
from engine.state.rows import MemoryRow
from engine.times import row_document, time_text

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.flow import Context
    from engine.memory import Memory

app = typer.Typer()

_BYTES = 1 << 24
"""Maximum size of a file with an entry; the policy admits less."""

_LINE_CHARACTERS = 80
"""Characters of an entry in a list."""

Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the entry, as printed by `list`.", callback=options.text)]


@app.command("put")
@options.sourced(*options.DECIDING, "state", *options.SERVED)
def put(
    sources: options.Sources,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Entry as text; - reads standard input.")],
    origin: Annotated[str, options.words(metavar="KIND", help="Kind of its origin, a row of policy/memory.yaml.")],
    origin_name: Annotated[
        str, options.words(metavar="NAME", help="Name of its origin, such as that of a tool or session.")
    ],
    sensitivity: Annotated[str, options.words(metavar="WORD", help="Its sensitivity, a row of policy/memory.yaml.")],
    how: options.Output = "text",
) -> None:
    """Write an entry for its owner, the principal, and print its id.

    An entry of an untrusted origin needs the approval of a person: the first run exits with 3 and prints the id
    of an approval; once that is granted, repeat the command with --approval.
    """
    from engine.memory import NewEntry

    new = NewEntry(text_of(path, _BYTES, "entry"), origin, origin_name, sensitivity)
    _perform(sources, how, lambda engine, context: engine.remember(new, context), lambda row: row.id)


@app.command("get")
@options.sourced("principal", "state", *options.SERVED)
def get(sources: options.Sources, id_: Id, how: options.Output = "text") -> None:
    """Print the text of an entry; only its owner reads it."""
    _perform(sources, how, lambda engine, context: engine.recall(id_, context), lambda row: row.text.removesuffix("\n"))


@app.command("list")
@options.sourced("principal", "state", *options.SERVED)
def list_entries(sources: options.Sources, how: options.Output = "text") -> None:
    """List the entries of the principal, newest first, at most 1,000."""
    _perform(sources, how, lambda engine, context: engine.recall(None, context), _line, none="no entries")


@app.command("forget")
@options.sourced("principal", "state", *options.SERVED)
def forget(sources: options.Sources, id_: Id, how: options.Output = "text") -> None:
    """Remove an entry; only its owner may."""
    _perform(sources, how, lambda engine, context: engine.forget(id_, context), lambda row: f"forgotten: {row.id}")


def _perform(
    sources: options.Sources,
    how: str,
    ask: Callable[[Engine, Context], Memory],
    line_of: Callable[[MemoryRow], str],
    none: str = "",
) -> None:
    """Ask, and print the entries, `none` or the findings; the exit code is that of the decision."""
    with sources.engine("memory") as engine:
        options.report_lowered(engine, "memory")
        got = ask(engine, sources.context())
    if got.answer.fault is not None:
        raise got.answer.fault
    decision = got.answer.decision
    if how == "json":
        entries = [row_document(row) for row in got.entries]
        print_text(json_text({"entries": entries, "decision": decision.model_dump(mode="json")}))
        raise typer.Exit(got.exit)
    from engine.cli.formats.show import approval_lines, print_findings

    print_findings(got.answer, engine.policy)
    lines = [printable(line, _BYTES) for row in got.entries for line in line_of(row).split("\n")]
    if decision.approval is not None and decision.approval.state == "requested":
        lines = [f"waiting for approval {decision.approval.id}: nothing is stored before it is granted"]
        lines += approval_lines(decision)
    if none and not lines and not decision.findings:
        lines = [none]
    print_text("".join(f"{line}\n" for line in lines))
    raise typer.Exit(got.exit)


def _line(row: MemoryRow) -> str:
    text = printable(" ".join(row.text.split()), _LINE_CHARACTERS)
    return f"{row.id}  {time_text(row.created_at)}  {row.sensitivity}  {row.origin}  {text}"
