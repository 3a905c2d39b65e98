"""Point `skill_file`: whether a file of a skill may be read, and how much of it.

The path is walked from the skill's own folder and the file opened once; what is decided on is what is read.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from pydantic import Field

from engine.canonical import digest
from engine.facts.skill_paths import path_facts
from engine.facts.walking import Found, find, open_folder
from engine.model import Digest, Limits, Model, Pace
from engine.points import Gathered, Input, Point, World

Text = Annotated[str, Field(min_length=1, max_length=4_096)]
"""A path, of at most as many characters as Linux takes bytes."""


class SkillFileRequest(Model):
    """Ask to read the file `path` of the skill in the folder `skill`; `path` is what the model asked for."""

    skill: Text
    path: Annotated[str, Field(max_length=4_096)]


class SkillFacts(Model):
    """The skill by the name of its folder; `digest` is of the folder's path, so that equal names differ."""

    name: str
    digest: Digest


class PathFacts(Model):
    """What the path says; nothing of its text is here unless it is canonical."""

    canonical: bool
    absolute: bool
    dotdot: bool
    text: str | None = None
    segments: int | None = None
    folder: str | None = None
    name: str | None = None


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


class SkillFileInput(Input):
    """What OPA sees; `file` is absent when the path has no one reading, because then nothing was looked for."""

    skill: SkillFacts
    path: PathFacts
    file: FileFacts | None = None


class SkillFileLimits(Limits):
    """Which file of the skill may be read, and at most how many bytes of it."""

    path: str
    max_bytes: int


@dataclass(slots=True)
class OpenedFile:
    """The file that was decided on, still open for the hand that reads it."""

    descriptor: int

    def close(self) -> None:
        """Let go of the file; once."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def gather(request: SkillFileRequest, world: World) -> Gathered:
    """Look for the file and open it. Raises GatherError when the skill's folder cannot be opened."""
    folder = open_folder(request.skill, world.root)
    asked = path_facts(request.path)
    with ExitStack() as stack:
        stack.callback(folder.close)
        found = None if asked.text is None else find(folder, asked.text)
        opened = None
        if found is not None and found.descriptor is not None:
            opened = OpenedFile(found.descriptor)
            stack.callback(opened.close)
        name = _text(folder.real).rpartition("/")[2]
        gathered = SkillFileInput(
            point="skill_file",
            now=world.clock(),
            skill=SkillFacts(name=name, digest=digest(os.fsencode(folder.real))),
            path=PathFacts(**asdict(asked)),
            file=None if found is None else _file(found),
        )
        stack.pop_all()
    folder.close()
    return Gathered(gathered, f"a file of the skill {name}", opened=opened)


def _file(found: Found) -> FileFacts:
    if found.escapes:
        return FileFacts(link="escape", found=False)
    return FileFacts(
        link="inside" if found.linked else "none",
        found=found.kind is not None,
        kind=found.kind,
        bytes=found.bytes,
        names=found.names,
        real=None if found.real is None else _real(found.real),
    )


def _real(path: str) -> RealFacts:
    parts = _text(path).split("/")
    return RealFacts(segments=len(parts), folder=parts[0] if len(parts) > 1 else None, name=parts[-1])


def _text(name: str) -> str:
    """A name from the disk as text; bytes that are not UTF-8 become replacement characters."""
    return os.fsencode(name).decode("utf-8", "replace")


POINT = Point("skill_file", SkillFileRequest, SkillFileInput, SkillFileLimits, gather, pace=Pace.SLOW)
