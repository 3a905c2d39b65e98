"""Definitions of tools for a person who reviews them: every text that is pinned, and what changed since another list.

Nothing of it drives a terminal or hides: characters that nobody sees are named, secrets are redacted, and what is left
out is counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from engine.documents.files import counted
from engine.facts.text.hidden import hidden_in
from engine.facts.tools.definitions import Definition
from engine.secrets.patterns import find_secrets
from engine.secrets.redaction import is_secret_name, merged

LINES = 200
"""Lines of one definition that are shown, of its changes too."""

WIDTH = 200
"""Characters of a line; a longer one goes on in the next."""

_PLACE = 200
"""Characters of the place of a text."""

State = Literal["pinned", "changed", "new", "not listed"]


@dataclass(frozen=True, slots=True)
class ComparedDefinition:
    """A definition: the lines of its texts, each with its place, and of these what changed since the pinned one.

    `changes` is empty where the pinned definition is not known.
    """

    tool: str
    state: State
    texts: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """For a person: what changed if that is known; of what is pinned the description; else everything."""
        yield f"  {self.tool}: {self.state}"
        known = self.changes or self.texts
        yield from (f"    {line}" for line in known if self.state != "pinned" or line.startswith("description"))


def compared(
    found: Sequence[Definition], pinned: Mapping[str, str], earlier: Sequence[Definition]
) -> Iterator[ComparedDefinition]:
    """Each listed definition against the digest that is pinned for its name; then pinned names that are not listed.

    The pinned definition is known where `earlier` has it.
    """
    known = {(one.name, one.digest()): one for one in earlier}
    for one in found:
        digest, texts = pinned.get(one.name), _texts(one)
        old = None if digest is None else known.get((one.name, digest))
        state: State = "new" if digest is None else "pinned" if digest == one.digest() else "changed"
        changes = _changes(_texts(old), texts) if old is not None and state == "changed" else ()
        yield ComparedDefinition(_name(one.name), state, _bounded(_placed(texts)), _bounded(changes))
    yield from (
        ComparedDefinition(_name(name), "not listed") for name in sorted(pinned.keys() - {one.name for one in found})
    )


_Texts = Mapping[str, Sequence[str]]
"""The lines of each text, by its place in the definition."""


def _changes(old: _Texts, new: _Texts) -> Iterator[str]:
    """Lines that are gone (`- `) and new (`+ `), text by text."""
    changed = [place for place in {**old, **new} if old.get(place) != new.get(place)]
    for place in changed:
        gone, come = old.get(place, ()), new.get(place, ())
        same = set(gone) & set(come) if set(gone) != set(come) else set()  # else only their order changed
        for mark, lines in (("-", gone), ("+", come)):
            yield from (f"{mark} {place}: {line}" for line in lines if line not in same)
    if not changed:
        yield f"it changed only in what is not shown: secrets, or names longer than {_PLACE} characters"


def _texts(one: Definition) -> _Texts:
    found: dict[str, list[str]] = {}
    content = {name: part for name, part in one.document().items() if name != "name"}
    for place, text in _leaves(content, "", ""):
        found.setdefault(place, []).extend(_wrapped(text))
    return found


def _leaves(value: Any, place: str, name: str) -> Iterator[tuple[str, str]]:
    """Each text below a place, as it may be shown; documents are as deep as their readers permit."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{place}.{_name(key)}"[-_PLACE:] if place else _name(key), key)
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{place}.{index}"[-_PLACE:], name)
    else:
        yield place, visible(value if isinstance(value, str) else json.dumps(value), name)


def _name(text: str) -> str:
    return visible(text).replace("\n", "<U+000A>")[:_PLACE]


def _wrapped(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield from (line[at : at + WIDTH] for at in range(0, max(len(line), 1), WIDTH))


def _placed(texts: _Texts) -> Iterator[str]:
    for place, (first, *more) in texts.items():
        yield f"{place}: {first}"
        yield from (f"{place} | {line}" for line in more)


def _bounded(lines: Iterable[str]) -> tuple[str, ...]:
    listed = tuple(lines)
    more = len(listed) - LINES
    return listed if more <= 0 else (*listed[:LINES], f"… ({counted(more, 'more line')})")


def visible(text: str, name: str = "") -> str:
    """The text without secrets, and with each character named that nobody sees: `<U+200B>`. Line feeds stay.

    `name` is the key that it is under. What is hidden inside of a secret goes with it.
    """
    unseen = set(hidden_in(text))
    gone = merged(find_secrets(text))
    if text and is_secret_name(name):
        gone = [(0, len(text))]
    pieces, at = [], 0
    for start, end in [*gone, (len(text), len(text))]:
        pieces += [_character_text(text[i], hidden=i in unseen) for i in range(at, start)]
        pieces += ["[redacted]"] if start < end else []
        at = end
    return "".join(pieces)


def _character_text(letter: str, *, hidden: bool) -> str:
    visible = letter == "\n" or (letter.isprintable() and not hidden)
    return letter if visible else f"<U+{ord(letter):04X}>"
