"""The rows of a unit in batches, and the files of those that are admitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

from engine.documents.canonical import canonical
from engine.documents.validation import object_in
from engine.errors import GatherError, Location
from engine.model import Decision
from engine.ray.columns import PROVENANCE, Columns
from engine.ray.packages import package
from engine.ray.units import Unit, opened, whole_lines

BATCH, BATCH_BYTES = 1_024, 64 << 20
"""Rows that are decided together and recorded with one write, and about how long those of a Parquet file may be."""

_GROUP_BYTES = 64 << 20
"""Admitted rows that make a row group."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows: the request of each, or the error from reading it; its file and row; and the rows themselves."""

    requests: list[dict[str, Any] | GatherError]
    places: list[str]
    rows: Any


def batches(unit: Unit, columns: Columns) -> Iterator[Batch]:
    """The rows of a unit. Raises GatherError if its file is not the one that was planned."""
    with opened(unit.path, unit.version) as (file, _):
        yield from (_lines(file, unit, columns) if unit.part is None else _table(file, unit, columns))


def writer(unit: Unit, file: BinaryIO, segment: str) -> _JsonLines | _Parquet:
    """What writes admitted rows of batches, by their index, with their provenance in the format of their source."""
    if unit.part is None:
        return _JsonLines(file, segment)
    with opened(unit.path, unit.version) as (source, _):
        return _Parquet(file, package("pyarrow.parquet").ParquetFile(source).schema_arrow, segment)


def provenance(decision: Decision, segment: str) -> dict[str, str | None]:
    """Which decision admitted a row, by which policy, and the segment that records it."""
    policy = decision.policy
    revisions = (None, None) if policy is None else (policy.rules, policy.values)
    return dict(zip(PROVENANCE, (decision.decision_id, *revisions, segment), strict=True))


def _table(file: BinaryIO, unit: Unit, columns: Columns) -> Iterator[Batch]:
    first, place = unit.first, unit.place
    parquet = package("pyarrow.parquet").ParquetFile(file)
    group = parquet.metadata.row_group(unit.part)
    size = min(BATCH, max(group.num_rows * BATCH_BYTES // max(group.total_byte_size, 1), 1))
    for rows in parquet.iter_batches(batch_size=size, row_groups=[unit.part]):
        yield of_table(rows, columns, place, first)
        first += rows.num_rows


def of_table(rows: Any, columns: Columns, path: str, first: int) -> Batch:
    """The requests of the rows of a table or record batch; `first` is the number of its first row."""
    places = [f"{path}:{first + index}" for index in range(rows.num_rows)]
    read = zip(read_rows(rows.select(list(columns.needed)), places), places, strict=True)
    return Batch([row if isinstance(row, GatherError) else columns.request(row, at) for row, at in read], places, rows)


def read_rows(rows: Any, places: Sequence[str]) -> list[dict[str, Any] | GatherError]:
    """The rows of a table or record batch; an error in place of one with a value that Python has none for."""
    try:
        read: list[dict[str, Any] | GatherError] = rows.to_pylist()
    except (ValueError, ArithmeticError):
        if rows.num_rows == 1:
            file, _, number = places[0].rpartition(":")
            remedy = "write text in UTF-8, and times before the year 10000"
            where = Location(file, int(number))
            return [GatherError("the row has a value that cannot be read", remedy=remedy, where=where)]
        return [one for at in range(rows.num_rows) for one in read_rows(rows.slice(at, 1), places[at : at + 1])]
    return read


def _lines(file: BinaryIO, unit: Unit, columns: Columns) -> Iterator[Batch]:
    file.seek(unit.start)
    place = unit.place
    numbered = enumerate(whole_lines(file, unit.path, unit.end - unit.start), unit.first)
    written = ((number, line) for number, line in numbered if line.strip())
    while some := list(islice(written, BATCH)):
        places = [f"{place}:{number}" for number, _ in some]
        requests = [_request(line, columns, place) for (_, line), place in zip(some, places, strict=True)]
        yield Batch(requests, places, [line for _, line in some])


def _request(line: bytes, columns: Columns, place: str) -> dict[str, Any] | GatherError:
    path, _, number = place.rpartition(":")
    where = Location(path, int(number))
    row = object_in(line, "line", "write one JSON object per line", where)
    if isinstance(row, GatherError):
        return row
    if taken := [name for name in PROVENANCE if name in row]:
        return GatherError(f"the line has `{taken[0]}`, which admitted rows get", remedy="rename it", where=where)
    return columns.request(row, place)


class _JsonLines:
    """The line as it was, with the provenance as its last fields."""

    def __init__(self, file: BinaryIO, segment: str) -> None:
        self._file, self._segment = file, segment

    def add(self, batch: Batch, admitted: Sequence[tuple[int, Decision]]) -> None:
        for index, decision in admitted:
            line = batch.rows[index].rstrip()[:-1]
            self._file.write(line + b"," + canonical(provenance(decision, self._segment))[1:] + b"\n")

    def close(self) -> None:
        self._file.flush()


class _Parquet:
    """The columns of the source, then those of the provenance."""

    def __init__(self, file: BinaryIO, schema: Any, segment: str) -> None:
        self._pa = pa = package("pyarrow")
        for name in PROVENANCE:
            schema = schema.append(pa.field(name, pa.string()))
        self._schema, self._segment = schema, segment
        self._group: list[Any] = []
        self._writer = package("pyarrow.parquet").ParquetWriter(file, schema)

    def add(self, batch: Batch, admitted: Sequence[tuple[int, Decision]]) -> None:
        if not admitted:
            return
        pa = self._pa
        kept = pa.concat_batches([batch.rows.slice(index, 1) for index, _ in admitted])  # `take` knows fewer types
        stated = [provenance(decision, self._segment) for _, decision in admitted]
        added = [pa.array([one[name] for one in stated], pa.string()) for name in PROVENANCE]
        self._group.append(pa.record_batch([*kept.columns, *added], schema=self._schema))
        if sum(rows.nbytes for rows in self._group) >= _GROUP_BYTES:
            self._write()

    def close(self) -> None:
        self._write()
        self._writer.close()

    def _write(self) -> None:
        if self._group:
            self._writer.write_table(self._pa.Table.from_batches(self._group))
            self._group.clear()
