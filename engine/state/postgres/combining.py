"""Runs a statement for the items of several threads at once: a row that all of them write is locked and synced once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from engine.errors import StateError
from engine.state.postgres.faults import OneFaultError

Item = TypeVar("Item")
ResultT = TypeVar("ResultT")

_UNKNOWN = object()
"""The result of an item until there is one: a leader may be interrupted, as by Ctrl-C."""


class _Job:
    """An item, its outcome, and the lock that its thread waits for."""

    __slots__ = ("done", "error", "item", "result", "turn")

    def __init__(self, item: Any) -> None:
        self.item = item
        self.result: Any = _UNKNOWN
        self.error: Exception | None = None
        self.done = False
        self.turn = threading.Lock()
        self.turn.acquire()


class Combined(Generic[Item, ResultT]):
    """Called by many threads: one of them runs what has gathered, the others wait, then one of these runs the next."""

    def __init__(self, run: Callable[[Sequence[Item]], Sequence[ResultT]], most: int) -> None:
        """`run` returns one result for each of at most `most` items. After OneFaultError it has done nothing."""
        self._run, self._most = run, most
        self._guard = threading.Lock()
        self._waiting: list[_Job] = []
        self._leader: _Job | None = None

    def __call__(self, item: Item) -> ResultT:
        """The result for this item. Raises what `run` raises."""
        job = _Job(item)
        try:
            with self._guard:
                self._waiting.append(job)
                leads = self._leader is None
                if leads:
                    self._leader = job
            if not leads:
                job.turn.acquire()
        except BaseException:  # interrupted, as by Ctrl-C
            self._leave(job)
            raise
        if not job.done:
            self._lead()
        if job.error is not None:
            raise job.error
        if job.result is _UNKNOWN:
            raise StateError("a write to the state was interrupted", remedy="repeat the request")
        result: ResultT = job.result
        return result

    def _leave(self, job: _Job) -> None:
        """Wait no more. If the turn to lead had come, it is the next one's."""
        with self._guard:
            if job in self._waiting:
                self._waiting.remove(job)
            if self._leader is job:
                self._choose()

    def _choose(self) -> None:
        """Let the first that waits lead; the guard is held."""
        self._leader = self._waiting[0] if self._waiting else None
        if self._leader is not None:
            self._leader.turn.release()

    def _lead(self) -> None:
        with self._guard:
            jobs, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        try:
            self._perform(jobs)
        finally:
            with self._guard:
                self._choose()
            for job in jobs:
                job.done = True
                job.turn.release()

    def _perform(self, jobs: Sequence[_Job]) -> None:
        try:
            for job, result in zip(jobs, self._run([job.item for job in jobs]), strict=True):
                job.result = result
        except OneFaultError as error:
            if len(jobs) == 1:
                jobs[0].error = error
            for job in jobs if len(jobs) > 1 else ():  # it may be the fault of one of them
                self._perform([job])
        except Exception as error:  # noqa: BLE001  (every waiting caller gets it)
            for job in jobs:
                job.error = error
