"""Records of admitted source bundles, and digests of blocks of their text, to recognize the text in other places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from functools import partial
from itertools import islice

from engine.state.backend import Connection
from engine.state.checks import demand_storable, text
from engine.state.part import Part, columns, made
from engine.state.rows import SourceRecordRow

_BATCH = 5_000
_MARKS = 500
_COLUMNS = columns(SourceRecordRow)


class SourceRecords(Part):
    """The part of the store for admitted records."""

    def add_source_record(self, new: SourceRecordRow, blocks: Iterable[int]) -> SourceRecordRow:
        """Store a record with the digests of its blocks; until all are stored, `source_record` does not return it.

        What is known of the same record is replaced, but for its blocks, which are those of the same content.
        """
        demand_storable(new)

        def begin(connection: Connection) -> int:
            found = connection.execute(
                f"INSERT INTO source_records ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
                " ON CONFLICT (source, record) DO UPDATE SET kind = excluded.kind, export = excluded.export,"
                " sensitive = excluded.sensitive, terms = excluded.terms RETURNING number",
                astuple(new),
            ).fetchone()
            return int(found[0])

        number = self._database.write(begin)
        for some in _batches(blocks, _BATCH):
            self._database.write(partial(_add, number, some))
        self._change("UPDATE source_records SET complete = 1 WHERE number = ?", number)
        return self.source_record(new.source, new.record) or new

    def source_record(self, source: str, record: str) -> SourceRecordRow | None:
        """The record of an admitted source bundle."""
        query = f"SELECT {_COLUMNS} FROM source_records WHERE source = ? AND record = ? AND complete = 1"  # noqa: S608
        return self._row(SourceRecordRow, query, text("source", source), text("record", record))

    def blocks_in(self, records: Iterable[tuple[str, str]], blocks: Iterable[int]) -> frozenset[int]:
        """Those of the blocks that one of these records has, each named by its source and its id."""
        query = "SELECT number FROM source_records WHERE source = ? AND record = ?"
        numbers = [number for named in records for (number,) in self._found(query, *named)]
        found: set[int] = set()
        for some in _batches(dict.fromkeys(blocks) if numbers else (), _MARKS):
            query = (
                "SELECT digest FROM source_blocks"  # noqa: S608 (marks only)
                f" WHERE digest IN ({_marks(some)}) AND record IN ({_marks(numbers)})"
            )
            found.update(digest for (digest,) in self._found(query, *some, *numbers))
        return frozenset(found)

    def records_with(
        self, blocks: Sequence[int], apart: Sequence[int], limit: int
    ) -> tuple[tuple[SourceRecordRow, int, int], ...]:
        """The records with any of these blocks, and with how many of them and of those in `apart`; at most `limit`.

        `apart` are some of the blocks. Records that are not for export come first, then those with most of `apart`.
        """
        counts = self._counts(blocks)
        others = counts if len(apart) == len(blocks) else self._counts(apart)
        most = sorted(counts, key=lambda one: (one[1], -others.get(one, 0), one))[:limit]
        if not most:
            return ()
        query = f"SELECT number, {_COLUMNS} FROM source_records WHERE number IN ({_marks(most)})"  # noqa: S608
        rows = {number: made(SourceRecordRow, *row) for number, *row in self._found(query, *(one[0] for one in most))}
        return tuple((rows[one[0]], counts[one], others.get(one, 0)) for one in most)

    def _counts(self, blocks: Iterable[int]) -> dict[tuple[int, bool], int]:
        """How many of these blocks each record has, by its number and whether it is for export."""
        counts: dict[tuple[int, bool], int] = {}
        for some in _batches(dict.fromkeys(blocks), _MARKS):
            query = (
                "SELECT number, export, count(*)"  # noqa: S608 (marks only)
                " FROM source_blocks JOIN source_records ON number = source_blocks.record"
                f" WHERE digest IN ({_marks(some)}) GROUP BY number, export"
            )
            for number, export, count in self._found(query, *some):
                counts[number, bool(export)] = counts.get((number, bool(export)), 0) + count
        return counts


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _batches(blocks: Iterable[int], size: int) -> Iterator[tuple[int, ...]]:
    left = iter(blocks)
    while some := tuple(islice(left, size)):
        yield some


def _add(number: int, blocks: Iterable[int], connection: Connection) -> None:
    rows = [(block, number) for block in blocks]
    insert = "INSERT INTO source_blocks (digest, record) VALUES (?, ?) ON CONFLICT DO NOTHING"
    new = connection.executemany(insert, rows).rowcount  # the blocks of a record cannot be counted by an index
    connection.execute("UPDATE source_records SET blocks = blocks + ? WHERE number = ?", (new, number))
