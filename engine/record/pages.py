"""Reads decisions page by page, the newest first, at a bounded cost.

A page ends with enough decisions or enough bytes looked through; its cursor says where each chain goes on. Lines
that are written later do not belong to the pages that follow it.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import GatherError
from engine.record.chain import Entry, LineError, parse
from engine.record.chains import MOST_CHAINS, chain_folders
from engine.record.layout import segment_file
from engine.record.model import DecisionRecord
from engine.record.reader import End, Filter, Line, backwards_in, newest_lines, segments
from engine.record.storage import readable


@dataclass(frozen=True, slots=True)
class Page:
    """Matching decisions, the newest first, and the cursor of the next page; None at the end of the record."""

    entries: tuple[Entry, ...]
    next: str | None
    bytes: int
    """Looked through."""


def read_page(state: Path, filter_: Filter, most: int, most_bytes: int, cursor: str | None) -> Page:
    """At most `most` decisions. Raises RecordError; GatherError for a cursor that is not ours."""
    folders = chain_folders(state)
    ends = _ends(folders) if cursor is None else {one: end for one, end in _decoded(cursor).items() if one in folders}
    found: list[Entry] = []
    hints, read = filter_.hints(), 0
    for time, line in newest_lines([backwards_in(chain, folders[chain], end) for chain, end in ends.items()]):
        if filter_.since is not None and time < filter_.since:
            return Page(tuple(found), None, read)
        if len(found) == most or read >= most_bytes:
            return Page(tuple(found), _encoded(ends), read)
        read += len(line.data) + 1
        ends[line.chain] = line.start
        entry = _decision(line) if filter_.may_fit(line.data, hints) else None
        if entry is not None and filter_.admits(entry):
            found.append(entry)
    return Page(tuple(found), None, read)


def _decision(line: Line) -> Entry | None:
    """The decision of a line; None for another kind of line, and for one that `record verify` would report."""
    try:
        entry = parse(line.data, line.chain)
    except LineError:
        return None
    return entry if isinstance(entry.body, DecisionRecord) else None


def _ends(folders: Mapping[int, Path]) -> dict[int, End]:
    """Where each chain ends now."""
    found: dict[int, End] = {}
    for chain, folder in folders.items():
        with readable(folder):
            for segment in segments(folder)[-1:]:
                found[chain] = segment, (folder / segment_file(segment)).stat().st_size
    return found


def _encoded(ends: Mapping[int, End]) -> str:
    text = json.dumps([[chain, *end] for chain, end in ends.items()], separators=(",", ":"))
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(cursor: str) -> dict[int, End]:
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
