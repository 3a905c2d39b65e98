"""Answers of one OPA that equal cases share: OPA decides every distinct case once, and every request keeps its record.

Two requests are equal cases if no rule can distinguish their inputs; see engine/opa/projection.py. What a point reads
is found in a thread of its own once the point was asked often enough to pay for that. Until then, and if it cannot be
found, every request is asked. One in `CHECKED` shared answers is asked all the same, and the first difference ends
sharing. Only answers are kept, never errors, and only as long as this OPA serves this policy.
"""

from __future__ import annotations

import json
import tarfile
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Any, Final

from engine.binaries import Binary
from engine.documents.canonical import canonical
from engine.errors import DecideError
from engine.opa.command import OpaCommand
from engine.opa.packed import SIGNATURES, VALUES_DATA, of_points, unpacked
from engine.opa.plan import Plan
from engine.opa.plan_values import UnknownError
from engine.opa.projection import Projection
from engine.opa.reply import Reply
from engine.opa.server import Served

ONE: Final = "decision"
WORTH: Final = 128
"""Requests at one point after which it pays to find out what it reads: a quarter to half a second of one core."""

CHECKED: Final = 100
KEY_BYTES: Final = 4 << 10
"""The largest canonical input that is kept."""

LARGE: Final = 2 * KEY_BYTES
"""Bytes above which an input does not start the search for what its point reads: its answer would not be kept."""

Request = tuple[Mapping[str, Any], str]
"""An input, and the id of the decision that is taken on it."""

Answered = Reply | Exception
"""The answer to one request, or the error in place of it."""

Question = tuple[str, dict[str, Any]]
"""A rule of OPA, and its input."""


@dataclass(slots=True)
class Split:
    """The inputs of a batch that OPA is asked, and for each request the one whose answer it gets.

    `known` are answers given before; `checked` are asked although their answer is known.
    """

    requests: Sequence[Request]
    asked: list[int] = field(default_factory=list)
    leaders: dict[int, int] = field(default_factory=dict)
    known: dict[int, Reply] = field(default_factory=dict)
    checked: dict[int, int | Reply] = field(default_factory=dict)
    keys: dict[int, bytes] = field(default_factory=dict)


Asking = Callable[[Sequence[Mapping[str, Any]]], Question]
"""The question about several inputs."""

Replies = Generator[list[Question], Sequence[Answered], list[Answered]]
"""Yields the questions, if there are any, and expects an answer to each, or the error for all of them."""


def answers(shared: SharedAnswers | None, requests: Sequence[Request], ask: Asking, most: int) -> Replies:
    """The answer to each request, of which OPA is asked every distinct case, in questions about `most` inputs at most.

    `ask` words a question. An error is that of everything in its question.
    """
    while True:
        split = shared.split(requests) if shared is not None else Split(requests, [*range(len(requests))])
        pieces = _pieces(split.asked, most)
        replies: list[Answered] = []
        if pieces:
            questions = [ask([requests[index][0] for index in piece]) for piece in pieces]
            try:
                found = yield questions
            except Exception as error:  # noqa: BLE001  (each request decides what it means)
                found = [error] * len(pieces)
            for (rule, _), piece, reply in zip(questions, pieces, found, strict=True):
                replies += [reply] if rule == ONE else _each(reply, len(piece))
        joined = shared.joined(split, replies) if shared is not None else replies
        if joined is not None:
            return joined


def _pieces(indexes: list[int], most: int) -> list[list[int]]:
    """As few pieces as can be, of about the same size: OPA answers them side by side."""
    size = ceil(len(indexes) / ceil(len(indexes) / most)) if indexes else most
    return [indexes[at : at + size] for at in range(0, len(indexes), size)]


def one(items: Sequence[Mapping[str, Any]]) -> Question:
    """The question about one input."""
    return ONE, dict(items[0])


def many(items: Sequence[Mapping[str, Any]]) -> Question:
    """The question about several inputs."""
    return "decisions", {"items": items}


def _each(reply: Answered, count: int) -> list[Answered]:
    """The answers one by one: exactly as many as requested, or the error for each."""
    if isinstance(reply, Exception):
        return [reply] * count
    results = reply.result if reply.defined else None
    if isinstance(results, list) and len(results) == count:
        return [Reply({"result": result}) for result in results]
    malformed = DecideError(
        "OPA did not return every item of a batch",
        remedy="report it to the policy owner; nothing is allowed until it is fixed",
        code="engine.answer_malformed",
    )
    return [malformed] * count


class SharedAnswers:
    """The answers of one OPA by canonical input. Safe to share between threads."""

    def __init__(
        self, kept: int, find: Callable[[str], Projection | None], on_difference: Callable[[str], None] = lambda _: None
    ) -> None:
        """Keep so many answers, those that were used last.

        `find` returns what a point reads, None if that is unknown; `on_difference` is called with a point.
        """
        self._most = kept
        self._find = find
        self._on_difference = on_difference
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self._projections: dict[str, Projection | None] = {}
        self._kept: OrderedDict[bytes, Reply] = OrderedDict()
        self._shared = 0
        self._ended = False

    def finds(self, point: str) -> bool:
        """Whether it is known what this point reads."""
        return self._projections.get(point) is not None and not self._ended

    def forget(self) -> None:
        """Drop all answers; what points read stays known."""
        with self._lock:
            self._kept.clear()

    def split(self, requests: Sequence[Request]) -> Split:
        """Which of these to ask, and who shares whose answer."""
        split = Split(requests)
        first: dict[bytes, int] = {}
        keys = [self._key(document) if decision_id else None for document, decision_id in requests]
        with self._lock:
            for index, key in enumerate(keys):
                if key is None:
                    split.asked.append(index)
                    continue
                known = first.get(key, self._kept.get(key))
                due = known is not None and self._counted()
                if isinstance(known, Reply):
                    self._kept.move_to_end(key)
                if known is None:
                    first[key] = index
                    split.keys[index] = key
                if known is None or due:
                    split.asked.append(index)
                if due and known is not None:
                    split.checked[index] = known
                elif isinstance(known, Reply):
                    split.known[index] = known
                elif known is not None:
                    split.leaders[index] = known
        return split

    def joined(self, split: Split, replies: Sequence[Answered]) -> list[Answered] | None:
        """The answer to each request of a split, from those to what was asked; None if all have to be asked again."""
        answers: list[Answered | None] = [None] * len(split.requests)
        for index, reply in zip(split.asked, replies, strict=True):
            answers[index] = reply
        for index, known in split.checked.items():
            other = answers[known] if isinstance(known, int) else known
            mine = answers[index]
            if (
                isinstance(mine, Reply)
                and isinstance(other, Reply)
                and mine.body.get("result") != other.body.get("result")
            ):
                self._end(str(split.requests[index][0].get("point")))
                return None
        for index, key in split.keys.items():
            fresh = answers[index]
            if isinstance(fresh, Reply) and _decided(fresh):
                self._keep(key, replace(fresh, source=split.requests[index][1]))
        for index, leader in split.leaders.items():
            found = answers[leader]
            answers[index] = replace(found, source=split.requests[leader][1]) if isinstance(found, Reply) else found
        for index, reply in split.known.items():
            answers[index] = reply
        return [one for one in answers if one is not None]

    def _key(self, document: Mapping[str, Any]) -> bytes | None:
        """The canonical input as bytes; None if this request is asked on its own."""
        point = document.get("point")
        if self._ended or not isinstance(point, str):
            return None
        projection = self._projections.get(point)
        with suppress(ValueError, TypeError, RecursionError):
            if projection is None:
                if len(canonical(document)) <= LARGE:
                    self._notice(point)
                return None
            found = projection.canonical(document)
            if found is not None and len(key := canonical(found)) <= KEY_BYTES:
                return key
        return None

    def _notice(self, point: str) -> None:
        with self._lock:
            self._requests[point] += 1
            if self._requests[point] != WORTH:
                return
        with suppress(RuntimeError):  # no more threads: everything is asked
            threading.Thread(target=self._learn, args=(point,), name="opa-reads", daemon=True).start()

    def _learn(self, point: str) -> None:
        with suppress(Exception):  # whatever went wrong, every request is asked
            self._projections[point] = self._find(point)

    def _counted(self) -> bool:
        """Count one more shared answer; whether it is one of those to check."""
        self._shared += 1
        return self._shared % CHECKED == 0

    def _keep(self, key: bytes, reply: Reply) -> None:
        with self._lock:
            self._kept[key] = reply
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def _end(self, point: str) -> None:
        self._ended = True
        self.forget()
        self._on_difference(point)


def reads(binary: Binary, served: Served, folder: Path, point: str) -> Projection:
    """What one point of this policy reads. Raises as `plan` does, and UnknownError."""
    return projection(plan(binary, served, folder / f"plan-{point}", [point]), point)


def projection(found: Plan, point: str) -> Projection:
    """What a point reads by a plan that has it. Raises UnknownError, or KeyError for a point that it lacks."""
    return Projection(found.reads(_entry(point), {("point",): point}))


def plan(binary: Binary, served: Served, folder: Path, points: Collection[str]) -> Plan:
    """OPA's plan of these points of a policy. Raises UnknownError, EngineError, OSError, ValueError.

    Without the rules of other points, which OPA plans too: with all, it is eighteen times as large for one point, and
    other threads wait a quarter of a second while it is read. `folder` is made and filled, and must be private.
    """
    rules, values = (unpacked(archive.read_bytes(), archive.name) for archive in (served.rules, served.values))
    for name, content in of_points(rules, points).items():
        if name != SIGNATURES:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    entries = [f"--entrypoint={_entry(point)}" for point in points]
    finished = OpaCommand(binary.path).run(
        "build", "--target=plan", *entries, "--output=plan.tar.gz", "--bundle", ".", cwd=folder
    )
    if finished.code != 0:
        raise UnknownError("OPA made no plan")
    with tarfile.open(folder / "plan.tar.gz") as tar:
        found = tar.extractfile("/plan.json")
        if found is None:
            raise UnknownError("OPA's plan is no file")
        return Plan(json.load(found), {"policy": json.loads(values[VALUES_DATA])})


def _entry(point: str) -> str:
    return f"admission/compiled/{point}/decision"


def _decided(reply: Reply) -> bool:
    return reply.defined and isinstance(reply.result, dict) and "outcome" in reply.result
