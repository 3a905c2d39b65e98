"""Point `skill_file`: whether a file of a skill may be read, and how much of it.

A path is canonical when it has one reading: relative, plain parts, no `.` or `..`, no backslash, no percent
escape that another program might decode, and no character that is invisible or normalizes to another one.
It is walked from the skill's own folder and the file opened once; what is decided on is what is read.
"""

from __future__ import annotations

import os
import re
import unicodedata
from contextlib import ExitStack, closing
from typing import Annotated, Literal

from pydantic import Field

from engine.documents.canonical import digest
from engine.facts.archives.walking import Target, find, open_folder
from engine.model import Digest, Limits, Model, Pace
from engine.points import GatherContext, Gathered, Point

Text = Annotated[str, Field(min_length=1, max_length=4_096)]
"""A path, with at most as many characters as Linux accepts bytes."""

LONGEST = 1_024
"""Characters of a canonical path; skills have a folder and a file name."""

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_DRIVE = re.compile(r"[A-Za-z]:")


class SkillFileRequest(Model):
    """A request to read the file `path` of the skill in the folder `skill`; `path` is as requested by the model."""

    skill: Text
    path: Annotated[str, Field(max_length=4_096)]


class PathFacts(Model):
    """The facts of a path. `segments` counts its parts, `folder` is the first of several, `name` the last.

    Of a path that is not canonical only `absolute` and `dotdot` are known.
    """

    canonical: bool
    absolute: bool
    dotdot: bool
    text: str | None = None
    segments: int | None = None
    folder: str | None = None
    name: str | None = None


class SkillFacts(Model):
    """The skill by the name of its folder; `digest` is of the folder's path, so that equal names differ."""

    name: str
    digest: Digest


class RealFacts(Model):
    """Where the file is when every link is resolved, relative to the skill's folder."""

    segments: int
    folder: str | None = None
    name: str


class FileFacts(Model):
    """What is at the path. `names` counts the names (hard links) of a file; a link may not lead out."""

    link: Literal["none", "inside", "escape"]
    found: bool
    kind: Literal["file", "folder", "fifo", "device", "socket"] | None = None
    bytes: int | None = None
    names: int | None = None
    real: RealFacts | None = None


class SkillFileInput(Model):
    """What OPA sees; `file` is absent if the path is ambiguous; then nothing was looked up."""

    skill: SkillFacts
    path: PathFacts
    file: FileFacts | None = None


class SkillFileLimits(Limits):
    """Which file of the skill may be read, and at most how many bytes of it."""

    path: str
    max_bytes: int


def gather(request: SkillFileRequest, context: GatherContext) -> Gathered:
    """Look for the file and open it. Raises GatherError when the skill's folder cannot be opened."""
    stated_path = path_facts(request.path)
    with closing(open_folder(request.skill, context.root)) as folder, ExitStack() as opened:
        found = None if stated_path.text is None else find(folder, stated_path.text)
        file = None if found is None or found.file is None else opened.enter_context(found.file)
        name = _text(folder.real).rpartition("/")[2]
        gathered = SkillFileInput(
            skill=SkillFacts(name=name, digest=digest(os.fsencode(folder.real))),
            path=stated_path,
            file=None if found is None else _file(found),
        )
        close = opened.pop_all().close  # by the receiver of the facts
    return Gathered(gathered, f"a file of the skill {name}", opened=file, close=close)


def path_facts(text: str) -> PathFacts:
    """The facts of a path as requested. Never raises."""
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
    return PathFacts(canonical=True, absolute=False, dotdot=False, text=text, **_real(text).model_dump())


def _file(found: Target) -> FileFacts:
    if found.escapes:
        return FileFacts(link="escape", found=False)
    return FileFacts(
        link="inside" if found.linked else "none",
        found=found.kind is not None,
        kind=found.kind,
        bytes=found.bytes,
        names=found.names,
        real=None if found.real is None else _real(_text(found.real)),
    )


def _real(path: str) -> RealFacts:
    parts = path.split("/")
    return RealFacts(segments=len(parts), folder=parts[0] if len(parts) > 1 else None, name=parts[-1])


def _text(name: str) -> str:
    """A name from the disk as text; bytes that are not UTF-8 become replacement characters."""
    return os.fsencode(name).decode("utf-8", "replace")


POINT = Point("skill_file", SkillFileRequest, SkillFileInput, SkillFileLimits, gather, pace=Pace.SLOW)
