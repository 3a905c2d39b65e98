"""Effects that a request path yields, and the runners that perform them: blocking, async, batched.

A path is a generator that yields what it needs (`Ask`, `Append`, `Call`) and is sent what came of it,
or has thrown into it what went wrong. So there is one path for callers that block, for an event loop,
and for many requests side by side, whose questions to OPA become one.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from engine import steps
from engine.model import Pace
from engine.opa.reply import Reply
from engine.opa.sharing import Answered, Asking, Question, Replies, answers, many, one

if TYPE_CHECKING:
    from engine.policy_bundle.serving import Opa
    from engine.record.standing import Log

T = TypeVar("T")

BATCH_ITEMS = 128
"""Inputs in one question to OPA: its answer is one piece, and others wait for the connection."""

WAVE = 2 * BATCH_ITEMS
"""Paths that begin together: OPA answers about them while the next ones begin and the ones before are recorded."""

SLOW_CALLS = 8
"""Files, and apart from them source bundles, read at the same time; they wait for disks."""

HEAVY_CALLS = 1
"""Large requests that are read at the same time; reading is CPU-bound, so more would only slow the event loop."""

SIDE_BY_SIDE = 4
"""Concurrent batch queries to OPA, which evaluates each on one core."""

_PIECE = WAVE // SIDE_BY_SIDE
"""Inputs in one of the questions about a wave."""


@dataclass(frozen=True, slots=True)
class Ask:
    """OPA's decision on one input; results in a Reply. Without the id of a decision, the answer is not shared."""

    opa: Opa
    document: dict[str, Any]
    decision_id: str = ""


@dataclass(frozen=True, slots=True)
class Append:
    """One line of the record and the source events it covers; durable when it returns."""

    log: Log
    body: Any
    events: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is too slow for an event loop."""

    run: Callable[[], Any]
    pace: Pace = Pace.SHORT


@dataclass(frozen=True, slots=True)
class Work:
    """Approved work. It may take minutes and may itself request decisions, so it never uses a slot of theirs."""

    run: Callable[[], Any]


Step = Ask | Append | Call | Work
Steps = Generator[Step, Any, T]
_Batch = Sequence[tuple[int, Ask]]
_Question = tuple["Opa", _Batch]


def run(path: Steps[T]) -> T:
    """Take one path to its end, blocking."""
    return steps.run(path, _perform)


async def run_async(path: Steps[T]) -> T:
    """Take one path to its end from an event loop, which is never blocked."""
    return await steps.run_async(path, _perform_async)


def run_all(paths: Sequence[Steps[T]]) -> list[T]:
    """Run many paths concurrently, blocking; their queries go to OPA in batches, each while other paths go on."""
    walk = _Walk(paths)
    pending: list[tuple[_Batch, Future[list[Answered]]]] = []
    with ThreadPoolExecutor(1, thread_name_prefix="engine-opa") as beside:
        while walk.begin(WAVE) or pending or walk.waits:
            answered = [(batch, replies.result()) for batch, replies in pending]  # the next questions share them
            questions, others = _sorted(walk.take(), len(paths))
            if walk.left or answered or others:
                pending = [(batch, beside.submit(_replies, opa, batch, _PIECE)) for opa, batch in questions]
            else:  # nothing else goes on
                pending, answered = [], [(batch, _replies(opa, batch, BATCH_ITEMS)) for opa, batch in questions]
            for batch, replies in answered:
                walk.advance(batch, replies)
            _perform_all(walk, others)
    return walk.results


async def run_all_async(paths: Sequence[Steps[T]]) -> list[T]:
    """`run_all` from an event loop, which others get after each step; what the paths append is synced together."""
    walk = _Walk(paths)
    for index in range(len(paths)):
        walk.resume(index, None)
        await asyncio.sleep(0)
    while waiting := walk.take():
        questions, others = _sorted(waiting, BATCH_ITEMS)
        replies = await asyncio.gather(*(_ask_async(opa, batch, many) for opa, batch in questions))
        done: list[Any] = await asyncio.gather(*(_perform_async(step) for _, step in others), return_exceptions=True)
        waited: list[Sequence[tuple[int, Step]]] = [*(batch for _, batch in questions), others]
        outcomes_of: list[list[Any]] = [*replies, done]
        for batch, outcomes in zip(waited, outcomes_of, strict=True):
            for (index, _), outcome in zip(batch, outcomes, strict=True):
                walk.resume(index, outcome)
                await asyncio.sleep(0)
    return walk.results


def _replies(opa: Opa, batch: _Batch, most: int) -> list[Answered]:
    """OPA's answers to a batch, in questions about so many inputs at most."""
    return steps.run(_answers(opa, batch, many, most), partial(_ask, opa))


def _perform_all(walk: _Walk, waited: Sequence[tuple[int, Step]]) -> None:
    """Perform steps one by one, but lines of the record together; each path goes on."""
    lines: dict[int, tuple[Log, list[tuple[int, Append]]]] = {}
    for index, step in waited:
        if isinstance(step, Append):
            lines.setdefault(id(step.log), (step.log, []))[1].append((index, step))
            continue
        try:
            outcome = _perform(step)
        except Exception as error:  # noqa: BLE001
            outcome = error
        walk.advance([(index, step)], [outcome])
    for log, appended in lines.values():
        try:
            outcomes: list[Any] = list(log.append_many([(step.body, step.events) for _, step in appended]))
        except Exception as error:  # noqa: BLE001
            outcomes = [error] * len(appended)
        walk.advance(appended, outcomes)


def _ask(opa: Opa, questions: Sequence[Question]) -> list[Answered]:
    """OPA's answers to some questions, asked side by side; an error in place of the answer that it is about."""

    def ask(question: Question) -> Answered:
        try:
            return opa.ask(*question)
        except Exception as error:  # noqa: BLE001  (each request decides what it means)
            return error

    if len(questions) == 1:
        return [ask(questions[0])]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return list(pool.map(ask, questions))


async def _ask_async(opa: Opa, batch: _Batch, word: Asking) -> list[Answered]:
    """OPA's answers to a batch that is one question at most."""

    async def ask(questions: Sequence[Question]) -> list[Answered]:
        return [await opa.ask_async(*question) for question in questions]

    return await steps.run_async(_answers(opa, batch, word), ask)


def _answers(opa: Opa, batch: _Batch, word: Asking, most: int = BATCH_ITEMS) -> Replies:
    return answers(opa.shared, [(step.document, step.decision_id) for _, step in batch], word, most)


def _only(answered: list[Answered]) -> Reply:
    if isinstance(answered[0], Exception):
        raise answered[0]
    return answered[0]


def _perform(step: Step) -> Any:
    if isinstance(step, Ask):
        return _only(steps.run(_answers(step.opa, [(0, step)], one), partial(_ask, step.opa)))
    if isinstance(step, Append):
        return step.log.append(step.body, step.events)
    return step.run()


async def _perform_async(step: Step) -> Any:
    if isinstance(step, Ask):
        return _only(await _ask_async(step.opa, [(0, step)], one))
    if isinstance(step, Append):
        return await step.log.append_async(step.body, step.events)
    if isinstance(step, Work):
        return await ended(steps.own_thread(step.run))
    return await off_loop(step.run, step.pace)


async def off_loop(run: Callable[[], T], pace: Pace) -> T:
    """The result of `run` on a thread for calls of this pace; waits for the thread even if cancelled."""
    return await ended(asyncio.get_running_loop().run_in_executor(_threads(pace), run))


async def ended(thread: asyncio.Future[T]) -> T:
    """The result of a thread. Waits even if cancelled: the thread cannot be stopped and still uses its resources."""
    while True:
        try:
            return await asyncio.shield(thread)
        except asyncio.CancelledError:
            if thread.done():  # with a result, or with this
                return thread.result()


@cache
def _threads(pace: Pace) -> ThreadPoolExecutor | None:
    """The threads for calls of a pace; None for those of the event loop."""
    if pace is Pace.SHORT:
        return None
    count = HEAVY_CALLS if pace is Pace.HEAVY else SLOW_CALLS
    return ThreadPoolExecutor(count, thread_name_prefix=f"engine-{pace.value}")


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage collection while many paths go on to their next step.

    They wait for nothing, make many objects and no cycles, and each collection would look at all of these again.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Walk:
    """Many paths: not begun, waiting for one step each, or at their end."""

    def __init__(self, paths: Sequence[Steps[Any]]) -> None:
        self._paths = paths
        self._begun = 0
        self.results: list[Any] = [None] * len(paths)
        self.waits: list[tuple[int, Step]] = []
        """Steps that paths wait for, and that no thread has taken."""

    @property
    def left(self) -> int:
        """How many paths have not begun."""
        return len(self._paths) - self._begun

    def begin(self, most: int) -> bool:
        """Begin so many paths; returns whether there were any."""
        fresh = [(index, None) for index in range(len(self._paths))[self._begun : self._begun + most]]
        self._begun += len(fresh)
        self.advance(fresh, [None] * len(fresh))
        return bool(fresh)

    def take(self) -> list[tuple[int, Step]]:
        """Remove and return the steps that paths wait for, in the order of the paths; the caller resumes each path."""
        taken, self.waits = sorted(self.waits, key=lambda item: item[0]), []
        return taken

    def advance(self, waited: Sequence[tuple[int, Any]], outcomes: Sequence[Any]) -> None:
        with _no_collection():
            for (index, _), outcome in zip(waited, outcomes, strict=True):
                self.resume(index, outcome)

    def resume(self, index: int, outcome: Any) -> None:
        path = self._paths[index]
        try:
            step = path.throw(outcome) if isinstance(outcome, BaseException) else path.send(outcome)
        except StopIteration as end:
            self.results[index] = end.value
        else:
            self.waits.append((index, step))


def _sorted(waiting: list[tuple[int, Step]], most: int) -> tuple[list[_Question], list[tuple[int, Step]]]:
    """What is asked by the OPA that it is asked of, in pieces of at most this size; and everything else."""
    questions: dict[int, tuple[Opa, list[tuple[int, Ask]]]] = {}
    others: list[tuple[int, Step]] = []
    for index, step in waiting:
        if isinstance(step, Ask):
            questions.setdefault(id(step.opa), (step.opa, []))[1].append((index, step))
        else:
            others.append((index, step))
    pieces: list[_Question] = [
        (opa, batch[start : start + most]) for opa, batch in questions.values() for start in range(0, len(batch), most)
    ]
    return pieces, others
