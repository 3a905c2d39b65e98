"""Records of admitted source bundles, and digests of blocks of their text, to recognize the text in other places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from functools import partial
from itertools import islice
from typing import Any

from engine.state.backend import Connection
from engine.state.part import Part, columns, sha256_text, text
from engine.state.rows import SourceRecordRow

_BATCH = 5_000
_MARKS = 500
_ALL = f"SELECT number, {columns(SourceRecordRow)} FROM source_records"  # noqa: S608


class SourceRecords(Part):
    """The part of the store for admitted records."""

    def add_source_record(self, new: SourceRecordRow, blocks: Iterable[int]) -> SourceRecordRow:
        """Store a record with the digests of its blocks; until all are stored, `source_record` does not return it.

        What is known of the same record is replaced, but for its blocks, which are those of the same content.
        """
        for name in ("source", "record", "kind"):
            text(name, getattr(new, name))
        sha256_text("sha256", new.sha256)

        def begin(connection: Connection) -> int:
            found = connection.execute(
                f"INSERT INTO source_records ({columns(SourceRecordRow)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
                " ON CONFLICT (source, record) DO UPDATE SET kind = excluded.kind, export = excluded.export,"
                " sensitive = excluded.sensitive, terms = excluded.terms RETURNING number",
                astuple(new),
            ).fetchone()
            return int(found[0])

        number = self._database.write(begin)
        for some in _batches(blocks, _BATCH):
            self._database.write(partial(_add, number, some))
        count = "SELECT count(*) FROM source_blocks WHERE record = source_records.number"
        self._change(f"UPDATE source_records SET complete = 1, blocks = ({count}) WHERE number = ?", number)  # noqa: S608
        return self.source_record(new.source, new.record) or new

    def source_record(self, source: str, record: str) -> SourceRecordRow | None:
        """The record of an admitted source bundle."""
        query = f"{_ALL} WHERE source = ? AND record = ? AND complete = 1"
        found = self._rows(_row, query, text("source", source), text("record", record))
        return found[0][1] if found else None

    def records_with(self, blocks: Sequence[int], limit: int) -> tuple[tuple[SourceRecordRow, int], ...]:
        """The records with any of these blocks, and with how many of them; at most `limit`."""
        counts: dict[int, int] = {}
        for some in _batches(blocks, _MARKS):
            query = (
                "SELECT record, count(*) FROM source_blocks"  # noqa: S608 (marks only)
                f" WHERE digest IN ({', '.join('?' * len(some))}) GROUP BY record"
            )
            for number, count in self._rows(lambda *row: row, query, *some):
                counts[number] = counts.get(number, 0) + count
        most = sorted(counts, key=lambda number: (-counts[number], number))[:limit]
        if not most:
            return ()
        rows = dict(self._rows(_row, f"{_ALL} WHERE number IN ({', '.join('?' * len(most))})", *most))
        return tuple((rows[number], counts[number]) for number in most)


def _batches(blocks: Iterable[int], size: int) -> Iterator[tuple[int, ...]]:
    left = iter(blocks)
    while some := tuple(islice(left, size)):
        yield some


def _add(number: int, blocks: Iterable[int], connection: Connection) -> None:
    rows = [(block, number) for block in blocks]
    connection.executemany("INSERT INTO source_blocks (digest, record) VALUES (?, ?) ON CONFLICT DO NOTHING", rows)


def _row(number: int, source: str, record: str, kind: str, sha256: str, *rest: Any) -> tuple[int, SourceRecordRow]:
    export, sensitive, terms, blocks = rest
    return number, SourceRecordRow(source, record, kind, sha256, export == 1, sensitive == 1, terms, blocks)
