"""A worker: one process of Ray with an engine of its own, which decides whole units of work.

Ray calls a unit again when its worker was lost, and all other calls of the same block with it. So a unit whose
segment is whole is never decided twice: the first one to name its segment has recorded it.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import re
import secrets
import shutil
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import file_digest
from pathlib import Path
from typing import Any, NoReturn

from engine.documents.canonical import canonical, digest
from engine.documents.files import printable
from engine.drive import BATCH_ITEMS
from engine.engine import Engine
from engine.errors import DecideError, EngineError, Exit, RecordError, StateError
from engine.flow import Context
from engine.model import Decision, Mode, Outcome, is_reserved
from engine.opa.server import fresh_folder
from engine.ray.columns import Columns
from engine.ray.policy import SentPolicy
from engine.ray.rows import Batch, batches, writer
from engine.ray.units import PARQUET, Unit
from engine.record.bulk import ROWS, AdmittedRows, Draft, RunRecord, durable
from engine.record.bulk import Unit as RecordedUnit
from engine.secrets.redaction import redact

_ATTEMPTS = 3
"""How often a unit is decided while OPA dies under it; the answers of the last one stand."""

_POLL_SECONDS = 0.05
_LONGEST = 300
_FAULT = re.compile(r"\[fault ([A-Za-z0-9_=-]+)\]")


@dataclass(frozen=True, slots=True)
class Job:
    """What every worker is given: where to record, what to decide by which policy, for whom, at what time.

    `columns` is None if the rows are requests themselves. `now` is the time to decide at, in seconds since 1970 UTC.
    If it is None, workers decide by the clock, and `day` is the date (UTC) on which the run began.
    """

    folder: str
    point: str
    columns: Columns | None
    policy: SentPolicy
    context: Context
    now: int | None = None
    day: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())

    @property
    def conditions(self) -> str:
        """The digest of what decisions depend on beside rows and policy: a unit of another caller or day is another."""
        return digest(
            canonical(
                {
                    "columns": None if self.columns is None else self.columns.digest,
                    "caller": self.context.caller.model_dump(mode="json"),
                    "run": self.context.run,
                    "time": self.day if self.now is None else self.now,
                }
            )
        )


class OpaLostError(Exception):
    """OPA died or did not answer while a unit was decided."""


class Worker:
    """Decides units. Raises WorkerFault only, which Ray passes on as text."""

    def __init__(self, job: Job) -> None:
        gc.set_threshold(200_000, 20, 20)  # rows make many objects and no cycles; this process does nothing else
        self.job = job
        self.record = RunRecord(Path(job.folder))
        self._stack = ExitStack()
        atexit.register(self._stack.close)
        with worker_faults():
            try:
                self._engine = self._opened(job)
            except BaseException:
                self.close()
                raise

    def _opened(self, job: Job) -> Engine:
        """An engine in a private folder that serves the policy of the job. Raises EngineError, OSError."""
        folder, lock = fresh_folder()
        self._stack.callback(os.close, lock)
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        now = None if job.now is None else datetime.fromtimestamp(job.now, UTC)
        settings = job.policy.unpack(folder)
        points = frozenset({job.point})
        engine = Engine(settings, now=lambda: now or datetime.now(UTC), control=False, points=points)
        self._stack.enter_context(engine)
        engine.services = replace(engine.opened, store=_no_state)
        policy = engine.policy
        if policy is None:
            raise getattr(engine.opa, "fault", None) or job.policy.refused()
        if policy.revisions != job.policy.revisions:
            raise job.policy.refused()
        return engine

    def close(self) -> None:
        """End OPA and remove the private folder."""
        atexit.unregister(self._stack.close)
        self._stack.close()

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()

    def attempts(self) -> Iterator[bool]:
        """Whether the answers of an attempt stand even if OPA was lost; waits for OPA before each but the first."""
        for number in range(_ATTEMPTS):
            if number:
                self._await_opa()
            yield number == _ATTEMPTS - 1

    def decided(self, draft: Draft, some: Batch, *, last: bool) -> list[Decision]:
        """Decide a batch into a draft. Raises OpaLostError, or the EngineError that kept it from being recorded.

        With `last`, one question at a time is asked, so that an input that ends OPA takes no others with it.
        """
        contexts = [replace(self.job.context, request_id=place) for place in some.places]
        size = BATCH_ITEMS if last else max(len(some.requests), 1)
        decisions: list[Decision] = []
        for start in range(0, len(some.requests), size):
            part = slice(start, start + size)
            with self._engine.recording(draft.log):
                answers = self._engine.decide_many(self.job.point, some.requests[part], contexts[part], Mode.CHECK)
            for one in answers:
                if one.fault is not None and one.fault.code in _NOT_OF_A_ROW:
                    raise one.fault
            if any(one.fault is not None and one.fault.code == "policy_unavailable" for one in answers):
                if not last:
                    raise OpaLostError
                self._await_opa()
            decisions += [one.decision for one in answers]
        return decisions

    def unit(self, name: str, source: str, counts: Counts) -> RecordedUnit:
        """What is stated of a unit that was decided."""
        return RecordedUnit(
            unit=name,
            source=source,
            point=self.job.point,
            policy=self.job.policy.revisions,
            records=counts.outcomes.total(),
            outcomes=dict(counts.outcomes),
            codes=dict(counts.codes),
            first=counts.first,
        )

    def _await_opa(self) -> None:
        deadline = time.monotonic() + self._engine.settings.opa.start_seconds
        while not self._engine.status().opa:
            if time.monotonic() > deadline:
                raise DecideError(
                    "OPA does not start again on this node",
                    remedy="run `engine doctor` there, and start the run again: whole units are not decided again",
                    code="policy_unavailable",
                )
            time.sleep(_POLL_SECONDS)


class CorpusWorker(Worker):
    """Decides units of files; `unit` by `unit`, each into a segment and a file of admitted rows."""

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """For Ray: one unit as JSON in the column `unit`, and its name; returns the names that are whole now."""
        with worker_faults():
            for name, text in zip(batch["name"], batch["unit"], strict=True):
                if self.record.whole(name) is None:
                    self._decide(name, Unit(**json.loads(text)))
            return {"name": batch["name"]}

    def _decide(self, name: str, unit: Unit) -> None:
        for last in self.attempts():
            with suppress(OpaLostError), self.record.draft(name) as draft, _drafted_rows(self.record, name) as rows:
                with rows.open("xb") as file:
                    recorded = self._recorded(draft, name, unit, file, last=last)
                suffix = PARQUET if unit.part is not None else ".jsonl"
                durable(rows)
                with rows.open("rb") as file:
                    sha256 = file_digest(file, "sha256").hexdigest()
                admitted = AdmittedRows(
                    file=f"{ROWS}/{name}{suffix}", rows=recorded.outcomes.get("allow", 0), sha256=sha256
                )
                if draft.publish(recorded.model_copy(update={"admitted": admitted})):
                    rows.rename(self.record.folder / admitted.file)
                return

    def _recorded(self, draft: Draft, name: str, unit: Unit, file: Any, *, last: bool) -> RecordedUnit:
        if self.job.columns is None:
            raise EngineError("a corpus is read by columns", remedy="name them")
        counts = Counts()
        with closing(writer(unit, file, name)) as out:
            for some in batches(unit, self.job.columns):
                decisions = self.decided(draft, some, last=last)
                admitted = [(index, one) for index, one in enumerate(decisions) if one.outcome is Outcome.ALLOW]
                out.add(some, admitted)
                counts.add(some.places, decisions)
        return self.unit(name, unit.source, counts)


@dataclass(slots=True)
class Counts:
    """Decisions by outcome and by code, which counts once a decision; the first row with each code."""

    outcomes: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, places: Iterable[str], decisions: Iterable[Decision]) -> None:
        """Count the decisions on the rows at these places."""
        for place, one in zip(places, decisions, strict=True):
            self.outcomes[one.outcome.value] += 1
            self.codes.update({finding.code for finding in one.findings})
            for finding in one.findings:
                if finding.code not in self.first:
                    why = finding.requirement.removeprefix(f"{place}: ")
                    why = why if is_reserved(finding.code) else f"required: {why}"
                    self.first[finding.code] = printable(redact(f"{place}: {why}; {finding.remedy}")[0], _LONGEST)


@contextmanager
def _drafted_rows(record: RunRecord, name: str) -> Iterator[Path]:
    path = record.folder / ROWS / f".{name}.{secrets.token_hex(8)}"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


_NOT_OF_A_ROW = frozenset({RecordError.code, StateError.code, "engine.internal", "policy_stale"})
"""Faults that say nothing about a request: its decision would be another one on a worker without them."""


def _no_state() -> NoReturn:
    raise StateError(
        "a decision at this point depends on the engine's state, which workers do not have",
        remedy="decide with one engine, by `decide_many` or `decide_each`",
    )


class WorkerFault(Exception):  # noqa: N818  (Ray shows its name)
    """A refusal or fault of a worker; Ray passes on its text alone, so it contains all of it."""

    @classmethod
    def of(cls, error: EngineError) -> WorkerFault:
        """The fault for an error: words for people, and the whole for the driver."""
        fields = {"message": error.one_line(), "remedy": error.remedy, "code": error.code, "exit": int(error.exit)}
        packed = urlsafe_b64encode(json.dumps(fields).encode()).decode()
        return cls(f"{error.one_line()}; {error.remedy} [fault {packed}]")


@contextmanager
def worker_faults() -> Iterator[None]:
    """Turn the errors of the block into a WorkerFault."""
    try:
        yield
    except EngineError as error:
        raise WorkerFault.of(error) from None
    except OSError as error:
        lost = EngineError(
            f"a worker cannot read or write: {error}",
            remedy="check that every node reaches the folder of the run, and has free disk space",
            code="engine.record_unavailable",
        )
        raise WorkerFault.of(lost) from None


def fault_in(text: str) -> EngineError | None:
    """The fault that a worker stated somewhere in an error of Ray."""
    found = _FAULT.search(text)
    if found is None:
        return None
    fields = json.loads(urlsafe_b64decode(found[1]))
    error = EngineError(fields["message"], remedy=fields["remedy"], code=fields["code"])
    error.exit = Exit(fields["exit"])
    return error
