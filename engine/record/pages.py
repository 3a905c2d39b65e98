"""Reads decisions page by page, the newest first, at a bounded cost.

A page ends with enough decisions or enough bytes looked through; its cursor says where each chain goes on. Lines
that are written later do not belong to the pages that follow it.
"""

from __future__ import annotations

import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from pathlib import Path
from typing import BinaryIO

from engine.errors import GatherError, RecordError
from engine.record.chain import Entry, LineError, parse
from engine.record.chains import MOST_CHAINS, chain_folders
from engine.record.layout import RECORDS, segment_file, segment_numbers
from engine.record.lines import backwards
from engine.record.model import DecisionRecord
from engine.record.reader import Filter, line_time
from engine.record.storage import Storage, readable

_BACK = 1 << 16
_End = tuple[int, int]
"""A segment, and the size of its part that is not yet read."""


@dataclass(frozen=True, slots=True)
class Page:
    """Matching decisions, the newest first, and the cursor of the next page; None at the end of the record."""

    entries: tuple[Entry, ...]
    next: str | None
    bytes: int
    """Looked through."""


@dataclass(frozen=True, slots=True)
class _Line:
    time: str
    data: bytes
    chain: int
    start: _End


def read_page(state: Path, filter_: Filter, most: int, most_bytes: int, cursor: str | None) -> Page:
    """At most `most` decisions. Raises RecordError; GatherError for a cursor that is not ours."""
    folders = chain_folders(state)
    ends = _ends(folders) if cursor is None else {one: end for one, end in _decoded(cursor).items() if one in folders}
    found: list[Entry] = []
    hints, read = filter_.hints(), 0
    for line in merge(*(_chain(n, folders[n], end) for n, end in ends.items()), key=_time, reverse=True):
        if filter_.since is not None and line.time < filter_.since:
            return Page(tuple(found), None, read)
        if len(found) == most or read >= most_bytes:
            return Page(tuple(found), _encoded(ends), read)
        read += len(line.data) + 1
        ends[line.chain] = line.start
        entry = _decision(line) if filter_.may_fit(line.data, hints) else None
        if entry is not None and filter_.admits(entry):
            found.append(entry)
    return Page(tuple(found), None, read)


def _time(line: _Line) -> str:
    return line.time


def _decision(line: _Line) -> Entry | None:
    """The decision of a line; None for another kind of line, and for one that `record verify` would report."""
    try:
        entry = parse(line.data, line.chain)
    except LineError:
        return None
    return entry if isinstance(entry.body, DecisionRecord) else None


def _ends(folders: Mapping[int, Path]) -> dict[int, _End]:
    """Where each chain ends now: behind its last whole line."""
    found: dict[int, _End] = {}
    for chain, folder in folders.items():
        for segment in _segments(folder)[-1:]:
            with readable(folder), (folder / segment_file(segment)).open("rb") as file:
                found[chain] = (segment, _whole(file))
    return found


def _chain(chain: int, folder: Path, end: _End) -> Iterator[_Line]:
    """The lines of a chain before `end`, the last first, with a time that never grows, whatever the clock did."""
    last, size = end
    time = "~"
    with readable(folder):
        for segment in reversed([one for one in _segments(folder) if one <= last]):
            with (folder / segment_file(segment)).open("rb") as file:
                at = _whole(file, size if segment == last else None)
                for data in _backwards(file, at):
                    at -= len(data) + 1
                    time = min(time, line_time(data) or time)
                    yield _Line(time, data, chain, (segment, at))


def _backwards(file: BinaryIO, end: int) -> Iterator[bytes]:
    try:
        yield from backwards(file, end)
    except LineError as error:
        raise RecordError(f"the record cannot be read: {error}", remedy="run `engine record verify`") from error


def _whole(file: BinaryIO, most: int | None = None) -> int:
    """The size of a segment, or of its part of at most this size, up to the last newline."""
    size = file.seek(0, os.SEEK_END)
    end = size if most is None else min(size, most)
    while end:
        begin = max(0, end - _BACK)
        file.seek(begin)
        at = file.read(end - begin).rfind(b"\n")
        if at >= 0:
            return begin + at + 1
        end = begin
    return 0


def _segments(folder: Path) -> list[int]:
    with readable(folder):
        return segment_numbers(Storage(folder).names(RECORDS))


def _encoded(ends: Mapping[int, _End]) -> str:
    text = json.dumps([[chain, *end] for chain, end in ends.items()], separators=(",", ":"))
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(cursor: str) -> dict[int, _End]:
    """Where to go on. Any numbers are harmless: a line that is not whole is not read as one."""
    try:
        rows = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        found = {chain: (segment, size) for chain, segment, size in rows}
        valid = len(found) <= MOST_CHAINS and all(
            type(number) is int and 0 <= number < 1 << 53 for chain, end in found.items() for number in (chain, *end)
        )
    except (ValueError, TypeError, RecursionError):
        valid = False
    if not valid:
        raise GatherError(
            "the cursor was not issued by this engine",
            remedy="send `next` of the previous page, or no cursor",
            code="engine.query_invalid",
        )
    return found
