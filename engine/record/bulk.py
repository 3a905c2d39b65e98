"""The record of a bulk run: a segment for each unit of work, and the signed manifest that joins them.

run/
├── manifest.json       signed; written last, once every unit is there exactly once
├── segments/
│   └── 3f1c…/          the record of one unit, named by the digest of what the unit is
│       ├── unit.json   what the unit is, and what was decided in it
│       └── …           a chain, with the files of layout.py
├── rows/               the admitted rows of each unit
└── left/               segments that are damaged or of no unit, moved here

A segment is written under another name and renamed when it is durable. So a unit that two workers decided is
recorded once, and one that no worker finished not at all.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from engine.documents.canonical import canonical
from engine.documents.files import counted
from engine.errors import Location, RecordError
from engine.model import Count, Model, Revisions, Sha256
from engine.record.chain import Entry
from engine.record.checkpoint import Identity, Signed, parsed, read_identity, signed_statement
from engine.record.layout import INSTALLATION, Break, BreakKind, BrokenError, broken_file
from engine.record.lines import measured
from engine.record.log import RecordLog, broken_error
from engine.record.model import DecisionRecord
from engine.record.reader import Filter, entries
from engine.record.storage import LockHeldError, Storage, make_folder, readable, sync_folder, write_file
from engine.record.verify import verify

MANIFEST, SEGMENTS, ROWS, LEFT = "manifest.json", "segments", "rows", "left"
_SUFFIXES = (".parquet", ".jsonl")
"""Of files of admitted rows."""

_LOCK = "lock"
_LOCK_SECONDS = 5.0
"""For an engine that opens the same state for the first time."""
UNIT = "unit.json"
_DRAFT = "."
_MANIFEST_BYTES = 256 << 20
"""The longest manifest: some 400,000 units."""


class AdmittedRows(Model):
    """The file of a unit's admitted rows, relative to the run."""

    file: Annotated[str, Field(pattern=r"^rows/[0-9a-f]{64}\.(parquet|jsonl)$")]
    rows: Count
    sha256: Sha256


class Unit(Model):
    """One unit of work: where it is from, by what it was decided, its decisions by outcome and code, its rows.

    `first` has, for each code, the row where it occurred first, why, and what to do.
    """

    unit: Sha256
    source: str
    point: str
    policy: Revisions
    records: Count
    outcomes: dict[str, Count]
    codes: dict[str, Count]
    first: dict[str, str]
    admitted: AdmittedRows | None = None


class Segment(Model):
    """A unit, with the end of its chain."""

    unit: Unit
    installation: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    head: Sha256


class Manifest(Signed):
    """All segments of a run by the names of their units, each once; signed with the key of the engine's record."""

    format: Literal[1]
    point: str
    policy: Revisions
    segments: Annotated[tuple[Segment, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if any(one.unit.unit >= after.unit.unit for one, after in pairwise(self.segments)):
            raise ValueError("a unit occurs twice, or the units are not in order")
        if any((one.unit.point, one.unit.policy) != (self.point, self.policy) for one in self.segments):
            raise ValueError("a unit was decided at another point, or by another policy")
        return self

    @property
    def outcomes(self) -> Counter[str]:
        """Decisions by outcome."""
        return sum((Counter(one.unit.outcomes) for one in self.segments), Counter())

    @property
    def codes(self) -> Counter[str]:
        """Decisions with a finding of each code."""
        return sum((Counter(one.unit.codes) for one in self.segments), Counter())

    @property
    def first(self) -> dict[str, str]:
        """The first row of one unit with each code."""
        return {code: row for one in reversed(self.segments) for code, row in one.unit.first.items()}


class Draft:
    """A segment on its way: `log` records its decisions, `publish` gives it its name."""

    def __init__(self, run: Path, unit: str) -> None:
        self._segments, self._unit = run / SEGMENTS, unit
        self._folder = self._segments / f"{_DRAFT}{unit}.{secrets.token_hex(8)}"
        self.log = RecordLog.open(Storage(self._folder), lock_seconds=0.0)

    def publish(self, unit: Unit) -> bool:
        """Make the segment durable and name it; False if another worker was faster. Raises RecordError, OSError."""
        self.log.close()
        write_file(Storage(self._folder), UNIT, canonical(unit.model_dump(mode="json")))
        try:
            self._folder.rename(self._segments / self._unit)
        except OSError:
            if (self._segments / self._unit).is_dir():
                return False
            raise
        sync_folder(self._segments)
        return True

    def discard(self) -> None:
        """Remove what was not published."""
        with suppress(RecordError):
            self.log.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class RunRecord:
    """The record of a run below a folder, which every worker reaches. Raises RecordError or OSError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(self) -> None:
        """Make the folders."""
        for name in (SEGMENTS, ROWS, LEFT):
            make_folder(self.folder / name)

    def sweep(self) -> None:
        """Remove the manifest of an earlier run, and drafts of workers that died. No worker may be at work."""
        (self.folder / MANIFEST).unlink(missing_ok=True)
        for draft in [*(self.folder / SEGMENTS).glob(f"{_DRAFT}*"), *(self.folder / ROWS).glob(f"{_DRAFT}*")]:
            shutil.rmtree(draft) if draft.is_dir() else draft.unlink()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other runs from this folder during the block. Raises RecordError."""
        storage = Storage(self.folder)
        try:
            storage.lock(_LOCK, 0.0)
            yield
        except LockHeldError:
            raise RecordError(
                "another run uses this folder",
                remedy="wait for it, or name another folder",
                where=Location(str(self.folder)),
                code="engine.record_locked",
            ) from None
        finally:
            storage.close()

    @contextmanager
    def draft(self, unit: str) -> Iterator[Draft]:
        """A new segment for the unit, which is gone after the block unless it was published."""
        draft = Draft(self.folder, unit)
        try:
            yield draft
        finally:
            draft.discard()

    def find(self, unit: str) -> Segment | None:
        """The verified segment of a unit; None if there is none. Raises BrokenError."""
        folder = self.folder / SEGMENTS / unit
        return _segment(folder)[0] if folder.is_dir() else None

    def whole(self, unit: str) -> Segment | None:
        """`find`, with its admitted rows; one that is damaged or lacks them is moved aside."""
        try:
            found = self.find(unit)
            if found is not None:
                self.require_rows(found.unit)
        except BrokenError:
            self.move_aside(unit)
            return None
        return found

    def require_rows(self, unit: Unit) -> None:
        """Raise BrokenError unless the admitted rows of a unit are as they were written."""
        if unit.admitted is None:
            return
        path = self.folder / unit.admitted.file
        if not path.is_file():
            raise broken_file(unit.admitted.file, BreakKind.MISSING_SEGMENT, "a file", "none")
        with path.open("rb") as file:
            found = measured(file)[-1]
        if found != unit.admitted.sha256:
            raise broken_file(unit.admitted.file, BreakKind.CHECKPOINT_MISMATCH, unit.admitted.sha256, found)

    def move_aside(self, name: str) -> None:
        """Keep a segment that does not count, and its rows, below `left/`."""
        tag = secrets.token_hex(4)
        for path in (self.folder / SEGMENTS / name, *(self.folder / ROWS / f"{name}{suffix}" for suffix in _SUFFIXES)):
            with suppress(FileNotFoundError):
                path.rename(self.folder / LEFT / f"{path.name}.{tag}")

    def join(self, planned: Mapping[str, int], by: Identity, time: str) -> Manifest:
        """Write the manifest of exactly these units, given with the number of their rows. Raises RecordError."""
        segments = [self._demand(unit, count) for unit, count in sorted(planned.items())]
        for name in Storage(self.folder).names(SEGMENTS):
            if name not in planned and not name.startswith(_DRAFT):
                self.move_aside(name)
        units = [one.unit for one in segments]
        made = {(one.point, one.policy.rules, one.policy.values) for one in units}
        if len(made) != 1:
            found = "has no rows" if not made else "was decided by several policies"
            remedy = "decide all of it in one run, into a new folder"
            raise RecordError(f"the run {found}", remedy=remedy, where=Location(str(self.folder)))
        fields = {"format": 1, "point": units[0].point, "policy": units[0].policy.model_dump(mode="json")}
        fields["segments"] = [one.model_dump(mode="json") for one in segments]
        written = signed_statement(fields, by, time)
        write_file(Storage(self.folder), MANIFEST, written)
        return parsed(written, MANIFEST, Manifest, by)

    def decisions(self, unit: str) -> Iterator[DecisionRecord]:
        """The decisions of a segment in their order. Raises RecordError."""
        for found in entries(self.folder / SEGMENTS / unit, Filter()):
            if not isinstance(found, Entry) or not isinstance(found.body, DecisionRecord):
                where = Location(f"{self.folder}/{SEGMENTS}/{unit}")
                remedy = "run `engine record verify --bulk DIR`"
                raise RecordError("this segment has lines that are not decisions", remedy=remedy, where=where)
            yield found.body

    def _demand(self, unit: str, count: int) -> Segment:
        try:
            segment = self.find(unit)
            if segment is not None:
                self.require_rows(segment.unit)
        except BrokenError as problem:
            raise broken_error(problem, str(self.folder)) from None
        where = Location(f"{self.folder}/{SEGMENTS}/{unit}")
        again = "start the run again with the same folder: units that are whole are not decided again"
        if segment is None:
            raise RecordError("no worker recorded this unit", remedy=again, where=where)
        if segment.unit.records != count:
            found = f"the unit has {counted(count, 'row')}, and {segment.unit.records} decisions are recorded"
            raise RecordError(found, remedy=again, where=where)
        return segment


@dataclass(frozen=True, slots=True)
class RunVerification:
    """The result of verifying a run as a whole; at most one break per file, the first of each."""

    breaks: tuple[Break, ...]
    segments: int = 0
    records: int = 0
    size: int = 0
    manifest: Manifest | None = None

    @property
    def ok(self) -> bool:
        """Whether the record is intact and whole."""
        return not self.breaks


def verify_run(folder: Path, by: Identity) -> RunVerification:
    """Verify the manifest, every segment and all admitted rows. Raises RecordError if they cannot be read at all."""
    with readable(folder):
        try:
            manifest = _manifest(folder, by)
        except BrokenError as problem:
            return RunVerification((problem.broken,))
        run, breaks, records, size = RunRecord(folder), list[Break](), 0, 0
        named = {segment.unit.unit: segment for segment in manifest.segments}
        for unit, segment in named.items():
            try:
                found, length = _segment(folder / SEGMENTS / unit)
                if found != segment:
                    file, expected, there = f"{SEGMENTS}/{unit}/{UNIT}", segment.head, found.head
                    raise broken_file(file, BreakKind.CHECKPOINT_MISMATCH, expected, there)
                run.require_rows(segment.unit)
            except BrokenError as problem:
                breaks.append(problem.broken)
            else:
                records, size = records + found.unit.records, size + length
        rows = {one.unit.admitted.file.partition("/")[2] for one in named.values() if one.unit.admitted is not None}
        for place, known in ((SEGMENTS, named.keys()), (ROWS, rows)):
            for name in sorted(set(Storage(folder).names(place)) - known):
                breaks.append(
                    broken_file(f"{place}/{name}", BreakKind.UNKNOWN_SEGMENT, "no such file", "a file").broken
                )
        return RunVerification(tuple(breaks), len(named), records, size, manifest)


def signer(state: Path, *, new: bool = False) -> Identity:
    """The key of the record below a state folder, which signs manifests. Raises RecordError.

    With `new`, the record is created if there is none.
    """
    storage = Storage(state)
    try:
        with readable(state):
            found = read_identity(storage)
            if found is None and new:
                with RecordLog.open(storage, lock_seconds=_LOCK_SECONDS) as log:
                    return log.opened.identity
    except BrokenError as problem:
        raise broken_error(problem, str(state)) from None
    if found is None:
        remedy = "name the state folder of the engine that ran it: `--state`"
        raise RecordError("this state folder has signed no run", remedy=remedy, where=Location(str(state)))
    return found


def _manifest(folder: Path, by: Identity) -> Manifest:
    path = folder / MANIFEST
    if not path.is_file():
        raise broken_file(MANIFEST, BreakKind.MANIFEST_MISSING, "a manifest", "none")
    with path.open("rb") as file:
        return parsed(file.read(_MANIFEST_BYTES), MANIFEST, Manifest, by)


def _segment(folder: Path) -> tuple[Segment, int]:
    """A segment, and the bytes of its lines. Raises BrokenError with the place below the run."""
    place = f"{SEGMENTS}/{folder.name}"
    if not folder.is_dir():
        raise broken_file(place, BreakKind.MISSING_SEGMENT, "a segment", "none")
    found = verify(folder)
    for broken in found.breaks:
        raise BrokenError(replace(broken, file=f"{place}/{broken.file}"))
    identity = read_identity(Storage(folder))
    if identity is None:
        raise broken_file(f"{place}/{INSTALLATION}", BreakKind.INSTALLATION_MISSING, "an installation", "none")
    try:
        unit = Unit.model_validate_json((folder / UNIT).read_bytes())
    except (FileNotFoundError, ValidationError):
        raise broken_file(f"{place}/{UNIT}", BreakKind.BAD_KEYS, "a unit of work", "none") from None
    if (unit.unit, unit.records) != (folder.name, found.records):
        expected, there = f"{folder.name} with {counted(found.records, 'record')}", f"{unit.unit} with {unit.records}"
        raise broken_file(f"{place}/{UNIT}", BreakKind.SEQ_GAP, expected, there)
    return Segment(unit=unit, installation=identity.installation, head=found.head or identity.genesis), found.size


def name_of(parts: object) -> str:
    """The name of a unit: the digest of everything that it is."""
    return sha256(canonical(parts)).hexdigest()


def durable(path: Path) -> None:
    """Make a file durable, and the names in its folder."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    sync_folder(path.parent)
