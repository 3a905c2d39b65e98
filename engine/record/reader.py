"""Reads the record for people and exports, segment by segment, without checking the chain."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.canonical import canonical
from engine.errors import Location, RecordError
from engine.record.chain import Entry, LineError, parse
from engine.record.layout import RECORDS, segment_file, segment_numbers
from engine.record.lines import Lines, backwards

_TIME = b'"time":"'
_TIME_WITHIN = 512
_TIME_LENGTH = 27


@dataclass(frozen=True, slots=True)
class Filter:
    """What to show; None shows all. `decision_id` may be its first characters.

    A line that has no such field does not fit. `since` is a time as in the record, the first that fits;
    `code` is the code of any finding.
    """

    decision_id: str | None = None
    point: str | None = None
    outcome: str | None = None
    mode: str | None = None
    since: str | None = None
    code: str | None = None
    principal: str | None = None
    trace: str | None = None
    request_id: str | None = None

    def admits(self, entry: Entry) -> bool:
        """Whether to show this entry."""
        body = entry.body
        if self.since is not None and body.time < self.since:
            return False
        if self.decision_id is not None and not getattr(body, "decision_id", "").startswith(self.decision_id):
            return False
        if self.code is not None and self.code not in {one.code for one in getattr(body, "findings", ())}:
            return False
        names = ("point", "outcome", "mode", "principal", "trace", "request_id")
        return all(getattr(self, name) in (None, getattr(body, name, None)) for name in names)

    def hints(self) -> tuple[bytes, ...]:
        """What a line that fits has in it: reading JSON costs ten times as much as searching it."""
        whole = {name: getattr(self, name) for name in ("point", "outcome", "mode", "principal", "trace", "request_id")}
        hints = [b'"%b":%b' % (name.encode(), _json(value)) for name, value in whole.items() if value is not None]
        if self.decision_id is not None:
            hints.append(b'"decision_id":' + _json(self.decision_id)[:-1])
        if self.code is not None:
            hints.append(b'"code":' + _json(self.code))
        return tuple(hints)

    def may_fit(self, line: bytes, hints: tuple[bytes, ...]) -> bool:
        """Whether the line is worth reading."""
        for hint in hints:
            if hint not in line:
                return False
        return self.since is None or (line_time(line) or "~") >= self.since


def line_time(line: bytes) -> str | None:
    """The time of a line of the record without reading its JSON; None where it has none.

    After `time` come at most a trace id and versions, which have a closed form.
    """
    at = line.rfind(_TIME, -_TIME_WITHIN)
    begin = at + len(_TIME)
    return line[begin : begin + _TIME_LENGTH].decode("ascii", "replace") if at >= 0 else None


@dataclass(frozen=True, slots=True)
class Selection:
    """The last entries that fit, oldest first; how many fit in all; the lines that are no records."""

    entries: tuple[Entry, ...]
    fitting: int
    unreadable: tuple[Location, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a segment and where it stands."""

    data: bytes
    file: str
    number: int

    @property
    def where(self) -> Location:
        """The segment, relative to the state folder, and the line counted from 1."""
        return Location(self.file, self.number)


def select(state: Path, wanted: Filter, limit: int) -> Selection:
    """The last `limit` entries that fit. Raises RecordError where a file cannot be read."""
    if wanted == Filter():
        return _last(state, limit)
    last: deque[Entry] = deque(maxlen=limit)
    unreadable: deque[Location] = deque(maxlen=100)
    fitting = 0
    for found in entries(state, wanted):
        if isinstance(found, Location):
            unreadable.append(found)
        else:
            fitting += 1
            last.append(found)
    return Selection(tuple(last), fitting, tuple(unreadable))


def entries(state: Path, wanted: Filter) -> Iterator[Entry | Location]:
    """Every entry that fits, oldest first, and the place of every line looked at that is no record."""
    hints = wanted.hints()
    for line in lines(state):
        if isinstance(line, Location):
            yield line
        elif wanted.may_fit(line.data, hints):
            found = _read(line)
            if isinstance(found, Location) or wanted.admits(found):
                yield found


def newest(state: Path, wanted: Filter) -> Iterator[Entry]:
    """Every entry that fits, newest first, as far as lines can be read. Raises RecordError."""
    hints = wanted.hints()
    with _readable(state):
        for file in reversed(_segments(state)):
            with (state / file).open("rb") as opened:
                try:
                    for data in backwards(opened):
                        found = _read(Line(data, file, 0)) if wanted.may_fit(data, hints) else None
                        if isinstance(found, Entry) and wanted.admits(found):
                            yield found
                except LineError as error:
                    raise RecordError(
                        f"the record cannot be read: {error}", remedy="run `engine record verify`", where=Location(file)
                    ) from error


def lines(state: Path) -> Iterator[Line | Location]:
    """Every line of the record as it is; the place of what is too long to be one."""
    with _readable(state):
        for file in _segments(state):
            number = 0
            with (state / file).open("rb") as opened:
                try:
                    for number, data in enumerate(Lines(opened), start=1):
                        yield Line(data, file, number)
                except LineError:
                    yield Location(file, number + 1)


def _segments(state: Path) -> list[str]:
    folder = state / RECORDS
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    return [segment_file(segment) for segment in segment_numbers(names)]


@contextmanager
def _readable(state: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        raise RecordError(
            f"the record cannot be read: {reason}",
            remedy="check the state folder and its permissions",
            where=Location(str(error.filename or state)),
        ) from error


def _last(state: Path, limit: int) -> Selection:
    last: deque[Line] = deque(maxlen=limit)
    unreadable: list[Location] = []
    count = 0
    for line in lines(state):
        if isinstance(line, Location):
            unreadable.append(line)
        else:
            count += 1
            last.append(line)
    found = [_read(line) for line in last]
    unreadable += [one for one in found if isinstance(one, Location)]
    there = tuple(one for one in found if isinstance(one, Entry))
    return Selection(there, count - len(found) + len(there), tuple(unreadable))


def _read(line: Line) -> Entry | Location:
    try:
        return parse(line.data)
    except LineError:
        return line.where


def _json(value: str) -> bytes:
    return canonical(value.encode("utf-8", "replace").decode("utf-8"))
