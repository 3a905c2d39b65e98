"""`admit` and `seal`: decisions as columns of a `ray.data.Dataset`, and the record of them."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.documents.validation import object_in
from engine.engine import Engine
from engine.errors import EngineError, GatherError
from engine.flow import Context
from engine.ray.cluster import demand_processors, failures, pool
from engine.ray.columns import ADDED, POINT, Columns, demand_columns
from engine.ray.corpus import demand_stateless
from engine.ray.packages import package
from engine.ray.policy import SentPolicy
from engine.ray.rows import Batch, of_table, read_rows
from engine.ray.worker import Counts, Job, OpaLostError, Worker, worker_faults
from engine.record.bulk import Manifest, RunRecord, name_of, signer
from engine.record.model import DecisionRecord, utc_now
from engine.settings import Settings
from engine.times import timestamp

REQUEST = "request"
"""The column with the request of a row as JSON text, where no columns are named."""
_ROW = "row"
"""With the number of a row in its batch, the request id of its decision."""


def admit(  # noqa: PLR0913  (each is named)
    dataset: Any,
    *,
    record: Path | str,
    point: str = POINT,
    columns: Columns | None = None,
    settings: Settings | None = None,
    workers: int = 1,
    batch_size: int = 1_024,
    context: Context = Context(),  # noqa: B008  (frozen)
    now: int | None = None,
) -> Any:
    """Add `outcome`, `codes`, `decision_id` and `segment` to a dataset of distinct rows; nothing is filtered.

    The decisions are dry runs, recorded below the folder `record` in a segment for each batch before they are in a
    column. With `columns` the rows are decided on at point `license`, otherwise the column `request` has requests at
    `point` as JSON. The policy is that of `settings`. Call `seal` with what comes out. Raises EngineError before
    anything starts; afterwards Ray raises its own errors, with the words of the worker.
    """
    if not package("ray").is_initialized():
        raise GatherError("Ray is not connected", remedy="call ray.init(…) first")
    if columns is not None and point != POINT:
        remedy = f"leave out `columns`, and put requests as JSON into the column `{REQUEST}`"
        raise GatherError(f"columns make requests at point `{POINT}` only", remedy=remedy)
    demand_processors(workers)
    needed = (REQUEST,) if columns is None else columns.needed
    demand_columns(dataset.schema().names, needed, ADDED, "this dataset")
    run = RunRecord(Path(record).absolute())
    run.prepare()
    with Engine(settings or Settings(), control=False, points=frozenset({point})) as engine:
        demand_stateless(engine, point, context)
        policy = SentPolicy.of(engine)
    job = Job(str(run.folder), point, columns, policy, context, now)
    how = {"batch_size": batch_size, "batch_format": "pyarrow", "zero_copy_batch": True}
    return pool(dataset, DatasetWorker, workers, fn_constructor_kwargs={"job": job}, **how)


def seal(admitted: Any, *, record: Path | str, settings: Settings | None = None) -> Manifest:
    """Join the segments of all rows under a manifest that the record key of `settings` signs.

    `admitted` is what `admit` returned, best materialized. Segments that no row has are moved to `left/`. Raises
    RecordError if a segment is missing, or has other rows than the dataset.
    """
    counts: Counter[str] = Counter()
    with failures():
        for batch in admitted.select_columns(["segment"]).iter_batches(batch_size=None):
            counts.update(str(name) for name in batch["segment"])
    run = RunRecord(Path(record).absolute())
    with run.alone():
        run.sweep()
        return run.join(counts, signer((settings or Settings()).state, new=True), timestamp(utc_now()))


class DatasetWorker(Worker):
    """Decides a batch of rows, which is one unit: named by the digest of its requests."""

    def __call__(self, table: Any) -> Any:
        """For Ray: the table with its decisions."""
        with worker_faults():
            some = self._batch(table)
            requests = [str(one) if isinstance(one, GatherError) else one for one in some.requests]
            revisions = self.job.policy.revisions.model_dump(mode="json")
            name = name_of(
                {"requests": requests, "point": self.job.point, "policy": revisions, "asked": self.job.conditions}
            )
            if self.record.whole(name) is None:
                self._decide(name, some)
            return _with(table, self._rows(name), name)

    def _batch(self, table: Any) -> Batch:
        if self.job.columns is not None:
            return of_table(table, self.job.columns, _ROW, 1)
        places = [f"{_ROW}:{number}" for number in range(1, table.num_rows + 1)]
        rows = read_rows(table.select([REQUEST]), places)
        return Batch([row if isinstance(row, GatherError) else _request(row[REQUEST]) for row in rows], places, None)

    def _decide(self, name: str, some: Batch) -> None:
        for last in self.attempts():
            counts = Counts()
            with suppress(OpaLostError), self.record.draft(name) as draft:
                counts.add(some.places, self.decided(draft, some, last=last))
                draft.publish(self.unit(name, "a batch of a dataset", counts))
                return

    def _rows(self, name: str) -> list[DecisionRecord]:
        """The decisions of a segment by the rows that they name: the record has those first that need no OPA."""
        return sorted(self.record.decisions(name), key=lambda one: int((one.request_id or "").rpartition(":")[2]))


def _with(table: Any, rows: list[DecisionRecord], segment: str) -> Any:
    pa = package("pyarrow")
    if len(rows) != table.num_rows:
        raise EngineError(
            "the segment of a batch has other rows", remedy="give the rows ids, so that they are distinct"
        )
    text = pa.string()
    table = table.append_column("outcome", pa.array([row.outcome.value for row in rows], text))
    codes = [sorted({finding.code for finding in row.findings}) for row in rows]
    table = table.append_column("codes", pa.array(codes, pa.list_(text)))
    table = table.append_column("decision_id", pa.array([row.decision_id for row in rows], text))
    return table.append_column("segment", pa.array([segment] * len(rows), text))


def _request(text: Any) -> dict[str, Any] | GatherError:
    return object_in(text if isinstance(text, str) else "null", "request", "write one JSON object")
