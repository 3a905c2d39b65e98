"""Reads the record for display and export, segment by segment, without verifying the chains.

Chains are merged by time, a line of each in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from engine.documents.canonical import canonical
from engine.errors import Location, RecordError
from engine.record.chain import Entry, LineError, parse
from engine.record.chains import chain_folders, chain_path
from engine.record.layout import RECORDS, segment_file, segment_numbers
from engine.record.lines import Lines, backwards
from engine.record.storage import Storage, readable

T = TypeVar("T")

_TIME = b'"time":"'
_TIME_WITHIN = 512
_TIME_LENGTH = 27
_EQUAL = ("kind", "point", "outcome", "mode", "principal", "run", "trace", "request_id")
"""Fields of a filter that a matching line has with the same value."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Selects entries; None selects all. `decision_id` may be its first characters.

    A line without such a field does not match. `since` and `until` are times as in the record: the first that
    matches, and the first after it that does not; `code` is the code of any finding. `waived` selects decisions with
    a finding that a waiver covered, `episodes` those whose input names one of these.
    """

    decision_id: str | None = None
    point: str | None = None
    outcome: str | None = None
    mode: str | None = None
    since: str | None = None
    until: str | None = None
    code: str | None = None
    principal: str | None = None
    run: str | None = None
    trace: str | None = None
    request_id: str | None = None
    waived: bool = False
    kind: str | None = None
    episodes: tuple[str, ...] = ()

    def admits(self, entry: Entry) -> bool:
        """Whether the entry matches."""
        body = entry.body
        if not (self.since or "") <= body.time < (self.until or "~"):
            return False
        if self.decision_id is not None and not getattr(body, "decision_id", "").startswith(self.decision_id):
            return False
        if self.code is not None and self.code not in {finding.code for finding in getattr(body, "findings", ())}:
            return False
        if self.waived and all(finding.waiver is None for finding in getattr(body, "findings", ())):
            return False
        if self.episodes and (getattr(body, "input", None) or {}).get("episode") not in self.episodes:
            return False
        return all(getattr(self, name) in (None, getattr(body, name, None)) for name in _EQUAL)

    def hints(self) -> tuple[bytes, ...]:
        """Bytes that a matching line contains: parsing JSON costs ten times as much as searching it."""
        stated = {name: value for name in _EQUAL if (value := getattr(self, name)) is not None}
        hints = [b'"%b":%b' % (name.encode(), _json(value)) for name, value in stated.items()]
        if self.decision_id is not None:
            hints.append(b'"decision_id":' + _json(self.decision_id)[:-1])
        if self.code is not None:
            hints.append(b'"code":' + _json(self.code))
        if self.waived:
            hints.append(b'"waiver":"')
        if self.episodes:
            hints.append(b'"episode":' + (_json(self.episodes[0]) if len(self.episodes) == 1 else b'"'))
        return tuple(hints)

    def may_fit(self, line: bytes, hints: tuple[bytes, ...]) -> bool:
        """Whether the line may match."""
        for hint in hints:
            if hint not in line:
                return False
        return self.since is None or (line_time(line) or "~") >= self.since


def line_time(line: bytes) -> str | None:
    """The time of a line of the record without parsing its JSON; None if it has none.

    After `time` come at most a trace id and versions, which have a closed form.
    """
    at = line.rfind(_TIME, -_TIME_WITHIN)
    begin = at + len(_TIME)
    return line[begin : begin + _TIME_LENGTH].decode("ascii", "replace") if at >= 0 else None


@dataclass(frozen=True, slots=True)
class Selection:
    """The last matching entries, oldest first; the number of all matching ones; the invalid lines."""

    entries: tuple[Entry, ...]
    matching: int
    unreadable: tuple[Location, ...]


End = tuple[int, int]
"""A segment, and the size of its part that is not yet read."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a segment, its position and the number of its chain; read from the end it has `start`, no number."""

    data: bytes
    file: str
    number: int
    chain: int
    start: End = (0, 0)

    @property
    def where(self) -> Location:
        """The segment, relative to the state folder, and the line counted from 1."""
        return Location(self.file, self.number)


def select(state: Path, filter_: Filter, limit: int) -> Selection:
    """The last `limit` matching entries. Raises RecordError if a file cannot be read."""
    everything = filter_ == Filter()  # then only the last lines are parsed
    last: deque[Line | Entry] = deque(maxlen=limit)
    unreadable: deque[Location] = deque(maxlen=None if everything else 100)
    count = 0
    for found in lines(state) if everything else entries(state, filter_):
        if isinstance(found, Location):
            unreadable.append(found)
        else:
            count += 1
            last.append(found)
    read = [_read(item) if isinstance(item, Line) else item for item in last]
    unreadable += [item for item in read if isinstance(item, Location)]
    there = tuple(item for item in read if isinstance(item, Entry))
    return Selection(there, count - len(read) + len(there), tuple(unreadable))


def entries(state: Path, filter_: Filter) -> Iterator[Entry | Location]:
    """Every matching entry, oldest first, and the location of every invalid line."""
    hints = filter_.hints()

    def matching(chain: int, folder: Path) -> Iterator[Entry | Location]:
        for line in _lines(chain, folder):
            if isinstance(line, Location):
                yield line
            elif filter_.may_fit(line.data, hints):
                found = _read(line)
                if isinstance(found, Location) or filter_.admits(found):
                    yield found

    return _merged(matching(*chain) for chain in chain_folders(state).items())


def newest(state: Path, filter_: Filter) -> Iterator[Entry]:
    """Every matching entry, newest first, as far as lines can be read. Raises RecordError."""
    hints = filter_.hints()
    chains = chain_folders(state).items()
    for _, line in newest_lines(backwards_in(*chain) for chain in chains):
        found = _read(line) if filter_.may_fit(line.data, hints) else None
        if isinstance(found, Entry) and filter_.admits(found):
            yield found


def lines(state: Path) -> Iterator[Line | Location]:
    """Every raw line of the record, oldest first; the location of one that is too long."""
    return _merged(_lines(*chain) for chain in chain_folders(state).items())


def _lines(chain: int, folder: Path) -> Iterator[Line | Location]:
    with readable(folder):
        for file in map(segment_file, segments(folder)):
            number, name = 0, chain_path(chain) + file
            with (folder / file).open("rb") as opened:
                try:
                    for number, data in enumerate(Lines(opened), start=1):
                        yield Line(data, name, number, chain)
                except LineError:
                    yield Location(name, number + 1)


def backwards_in(chain: int, folder: Path, end: End | None = None) -> Iterator[Line]:
    """The lines of a chain before `end`, the last first. Raises RecordError."""
    with readable(folder):
        for segment in reversed(segments(folder)):
            if end is not None and segment > end[0]:
                continue
            file = segment_file(segment)
            name, size = chain_path(chain) + file, end[1] if end is not None and segment == end[0] else None
            with (folder / file).open("rb") as opened:
                try:
                    for start, data in backwards(opened, size):
                        yield Line(data, name, 0, chain, (segment, start))
                except LineError as error:
                    raise RecordError(
                        f"the record cannot be read: {error}", remedy="run `engine record verify`", where=Location(name)
                    ) from error


def newest_lines(chains: Iterable[Iterator[Line]]) -> Iterator[tuple[str, Line]]:
    """Lines that each chain has from its end, the newest first, with a time that never grows."""
    return merge(*(_timed(chain, min, "~") for chain in chains), key=itemgetter(0), reverse=True)


def _merged(chains: Iterable[Iterator[T]]) -> Iterator[T]:
    """What the chains have, in order of time; what has no time comes with its neighbor in the chain."""
    first, *others = chains
    if not others:
        return first
    return map(itemgetter(1), merge(*(_timed(chain, max, "") for chain in (first, *others)), key=itemgetter(0)))


def _timed(chain: Iterator[T], further: Callable[[str, str], str], time: str) -> Iterator[tuple[str, T]]:
    """Each item with a time that never goes back, even if the clock did."""
    for item in chain:
        if isinstance(item, Line):
            time = further(time, line_time(item.data) or time)
        elif isinstance(item, Entry):
            time = further(time, item.body.time)
        yield time, item


def segments(folder: Path) -> list[int]:
    """The segments of a chain, sorted. May raise OSError."""
    return segment_numbers(Storage(folder).names(RECORDS))


def _read(line: Line) -> Entry | Location:
    try:
        return parse(line.data, line.chain)
    except LineError:
        return line.where


def _json(value: str) -> bytes:
    return canonical(value.encode("utf-8", "replace").decode("utf-8"))
