"""Facts about the path of a skill file as a model asked for it: its text only, no disk.

A path is canonical when it has one reading: relative, plain parts, no `.` or `..`, no backslash, no percent
escape that somebody else might undo, and no character that is invisible or turns into another one.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

LONGEST = 1_024
"""Characters of a canonical path; skills have a folder and a file name."""

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class PathFacts:
    """What a path says. `segments` counts its parts, `folder` is the first of several, `name` the last.

    Of a path that is not canonical only `absolute` and `dotdot` are known.
    """

    canonical: bool
    absolute: bool
    dotdot: bool
    text: str | None = None
    segments: int | None = None
    folder: str | None = None
    name: str | None = None


def path_facts(text: str) -> PathFacts:
    """The facts of a path as it was asked for. Never raises."""
    absolute = text.startswith(("/", "\\", "~")) or _DRIVE.match(text) is not None
    parts = text.split("/")
    dotdot = ".." in re.split(r"[/\\]", text)
    plain = (
        len(text) <= LONGEST
        and text.isprintable()
        and "\\" not in text
        and _ESCAPE.search(text) is None
        and unicodedata.normalize("NFKC", text) == text
        and not any(part in {"", ".", ".."} or part != part.strip() for part in parts)
    )
    if absolute or not plain:
        return PathFacts(canonical=False, absolute=absolute, dotdot=dotdot)
    folder = parts[0] if len(parts) > 1 else None
    return PathFacts(
        canonical=True,
        absolute=False,
        dotdot=False,
        text=text,
        segments=len(parts),
        folder=folder,
        name=parts[-1],
    )
