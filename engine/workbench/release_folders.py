"""What the workbench reads of a release in its folder: its parts, its problems, and what it says that it changes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from engine.documents.canonical import canonical, digest
from engine.documents.files import read_bytes
from engine.errors import GatherError, PolicyError, Problem
from engine.model import Digest, Model
from engine.opa.packed import SIGNATURES
from engine.policy_bundle.difference import PolicyDifference
from engine.policy_bundle.release_folder import CHANGES, STATEMENT, Contents, Statement, read

_STATEMENT_BYTES = 64 << 10


class _Recorded(Model):
    decisions: int
    first: str | None
    last: str | None
    unreadable_lines: list[str]


class _Undecided(Model):
    point: str
    reason: str
    decisions: int


class _Uncounted(Model):
    point: str
    budget: str
    decisions: int


class _Summary(Model):
    record: _Recorded
    changed: bool
    counts: dict[str, int]
    points: list[dict[str, str | int]]
    not_decided: list[_Undecided]
    not_counted: list[_Uncounted]


class _After(Model):
    sequence: int
    digest: Digest


class Changes(Model):
    """`changes.json` of a release, as `engine.releasing` writes it."""

    after: _After | None
    difference: PolicyDifference | None
    replay: _Summary | None


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of a release. `contents` is None if it is not a release that can be read; then there are problems."""

    path: Path
    contents: Contents | None
    problems: tuple[Problem, ...] = ()

    @property
    def statement(self) -> Statement:
        """What it states; only of a release that can be read."""
        if self.contents is None:
            raise PolicyError(self.problems)
        return self.contents.statement

    @property
    def sequence(self) -> int:
        """Its number; 0 if it cannot be read."""
        return 0 if self.contents is None else self.contents.statement.sequence

    @property
    def seen(self) -> str:
        """Stands for everything in it."""
        files = {} if self.contents is None else self.contents.files
        return digest(canonical({name: digest(data) for name, data in files.items()}))

    @property
    def signed(self) -> bool:
        """Whether there is a signature; whose it is, only the public key shows."""
        return self.contents is not None and SIGNATURES in self.contents.files

    @property
    def changes(self) -> Changes | None:
        """What it changes; None if that is not in the form of this engine."""
        try:
            return Changes.model_validate_json(b"" if self.contents is None else self.contents.files[CHANGES])
        except ValidationError:
            return None


def folder_at(path: Path) -> Folder:
    """The release in a folder, read or not."""
    try:
        return Folder(path, read(path))
    except PolicyError as error:
        return Folder(path, None, error.problems)


def number_at(path: Path) -> int:
    """What a release states as its number, to order it; 0 if that cannot be read."""
    try:
        return Statement.model_validate_json(read_bytes(path / STATEMENT, _STATEMENT_BYTES)).sequence
    except (GatherError, ValidationError):
        return 0
