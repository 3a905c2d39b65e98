"""Point `memory`: whether an entry of an agent's memory may be written, read or forgotten.

The engine counts secrets, private data, hidden characters and instructions to a model in what is written, and looks up
who owns what is read. Of texts only digests and sizes get into the input. Row B44.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from engine.documents.canonical import digest
from engine.documents.files import Stated
from engine.facts.text.content import private_in, secrets_in, steering_in
from engine.facts.text.hidden import hidden_in
from engine.model import Caller, Digest, Limits, Line, Model, Named, Text, Word
from engine.points import GatherContext, Gathered, Point
from engine.secrets.patterns import find_credentials, find_private
from engine.state.rows import MemoryRow

if TYPE_CHECKING:
    from engine.state.store import Store

MOST = 1_000
"""Entries that one request reads at most, the newest first."""

Operation = Literal["write", "read", "forget"]


class EntryOrigin(Model):
    """Where an entry comes from: the kind, such as `user`, and a name, such as that of a tool or a file."""

    kind: Word
    name: Annotated[str, Field(min_length=1, max_length=1_000)]


class NewMemory(Model):
    """An entry to write. Its owner is the caller."""

    text: Text
    origin: EntryOrigin
    sensitivity: Word


class MemoryRequest(Model):
    """`entry` is what to write, `id` what to read or forget; without an id, all entries of the caller are read."""

    operation: Operation
    entry: NewMemory | None
    id: Line | None


class WrittenFacts(Model):
    """An entry to write, without its text. What is counted is in the text or in the name of its origin."""

    id: str
    origin: EntryOrigin
    sensitivity: str
    digest: Digest
    bytes: int
    secrets: int
    private: int
    hidden: int
    instructions: int


class MemoryInput(Model):
    """What OPA sees. The entries that are read or forgotten are in `memories`, which the engine's state fills."""

    operation: Operation
    written: tuple[WrittenFacts, ...]
    asked: tuple[Named, ...]


class StoredMemory(Model):
    """An entry that may be read or forgotten, with its exact content."""

    id: str
    digest: Digest


class MemoryLimits(Limits):
    """What may be done: write exactly this content, or read or forget exactly these entries."""

    operation: Operation
    owner: str
    written: tuple[Digest, ...]
    entries: tuple[StoredMemory, ...]


def gather(request: MemoryRequest, context: GatherContext) -> Gathered:
    """Look through the text of a new entry; the entries that are read come from the state."""
    written = () if request.entry is None else (_written(request.entry, context),)
    asked = () if request.id is None else (Named(id=request.id),)

    def known(store: Store, caller: Caller) -> Mapping[str, list[dict[str, Any]]]:
        if request.operation == "write":
            return {}
        if request.id is not None:
            found = store.memory(request.id)
            return {"memories": [] if found is None else [_stored(found)]}
        return {
            "memories": [_stored(row) for row in store.memories(caller.principal, MOST)] if caller.principal else []
        }

    return Gathered(
        MemoryInput(operation=request.operation, written=written, asked=asked),
        f"{request.operation} memory",
        stated=lambda _, field: _place(request.entry, field, context),
        state=known,
    )


def _written(entry: NewMemory, context: GatherContext) -> WrittenFacts:
    data, texts = entry.text.encode("utf-8"), [entry.text, entry.origin.name]
    hidden, instructions = steering_in(texts, context.lookups.markers)
    return WrittenFacts(
        id="0",
        origin=entry.origin,
        sensitivity=entry.sensitivity,
        digest=digest(data),
        bytes=len(data),
        secrets=secrets_in(texts, context.lookups.forms),
        private=private_in(texts),
        hidden=hidden,
        instructions=instructions,
    )


def _place(entry: NewMemory | None, field: str, context: GatherContext) -> Stated | None:
    """Where an entry has what was counted in it: lines of its text, or the name of its origin."""
    if entry is None or field not in _FOUND:
        return None
    starts = {found if isinstance(found, int) else found[0] for found in _FOUND[field](entry.text, context)}
    lines: list[int] = []
    line, at = 1, 0
    for start in sorted(starts):
        line, at = line + entry.text.count("\n", at, start), start
        lines += [] if line in lines[-1:] else [line]
    more = ", …" if len(lines) > _MOST_LINES else ""
    many = "\n" in entry.text
    named = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines[:_MOST_LINES]))}{more} of " if many else ""
    places = [f"in {named}the text"] if lines else []
    if next(iter(_FOUND[field](entry.origin.name, context)), None) is not None:
        places.append("in the name of the origin")
    return Stated(None, None, ", ".join(places) or None)


_MOST_LINES = 5
_FOUND: dict[str, Callable[[str, GatherContext], Iterable[int | tuple[int, int]]]] = {
    "secrets": lambda text, context: find_credentials(text, context.lookups.forms),
    "private": lambda text, _: find_private(text),
    "hidden": lambda text, _: hidden_in(text),
}
"""What is counted in an entry, and its spans in a text."""


def _stored(row: MemoryRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "owner": row.owner,
        "sensitivity": row.sensitivity,
        "origin": row.origin,
        "digest": f"sha256:{row.sha256}",
    }


POINT = Point("memory", MemoryRequest, MemoryInput, MemoryLimits, gather, secret=True)
