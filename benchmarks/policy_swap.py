"""P16: the policy is changed under load. The slowest half second from then on, divided by an ordinary one.

Each round activates values that no round had before: by turns they refuse the workload and allow it
again, so that an answer shows which values it was really given from, whatever revision it names.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median, quantiles

from benchmarks.bare import post as ask
from benchmarks.licenses import read_licenses
from benchmarks.measure import Bench, NotMeasuredError, Row, interleaved
from benchmarks.served_engine import ServedEngine, engine_served
from benchmarks.timed_load import Answer, asking
from benchmarks.workload import LICENSES, workload
from engine.cli.administration.control import post

_CONNECTIONS = 32
_GOAL = 3.0
_WINDOW_SECONDS = 0.5
_AFTER_SECONDS = 1.5
_OUTCOMES = ("allow", "deny")
"""What policies by turns decide, the first being the one that is started with."""
_OK = 200


@dataclass(frozen=True, slots=True)
class Swap:
    """One activation, in seconds of the monotonic clock, and what its two policies decide."""

    begun: float
    acknowledged: float
    before: tuple[str, str]
    after: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Found:
    """One round: p99 windows, and answers that should not be."""

    swapping: float
    ordinary: float
    quiet: float
    wrong: int
    failed: int


def rows(bench: Bench) -> Iterator[Row]:
    """The ratio, the same without a swap for comparison, and the answers that must not be."""
    work = workload(bench)
    folder = bench.folder("p16")
    (folder / "request.json").write_bytes(work.request_body)
    policy = folder / "policy"
    shutil.copytree(bench.policy.sources.policy, policy)
    turns = count(1)
    with engine_served(bench, "p16/engine", work, options=("--policy", str(policy))) as served:
        decision = json.loads(ask(served.url, work.request_body))
        serving = [decision["policy"]["values"]]
        parts = (lambda: _swap(bench, served, policy, next(turns), serving),)
        found = [one for (one,) in interleaved(parts, bench.rounds, partial(bench.report_round, "P16"))]
    what = f"policy swap under {_CONNECTIONS} connections"
    yield Row("P16", f"{what}, worst p99 window ÷ ordinary", _GOAL, tuple(one.swapping / one.ordinary for one in found))
    yield Row("P16", "  the same without a swap", None, tuple(one.quiet / one.ordinary for one in found))
    yield Row("P16", f"{what}, answers from a wrong revision", 0.0, tuple(float(one.wrong) for one in found), "")
    yield Row("P16", f"{what}, failed answers", 0.0, tuple(float(one.failed) for one in found), "")


def judged(answers: Sequence[Answer], swap: Swap) -> Found:
    """What one round shows. Raises NotMeasuredError if there were too few answers."""
    wrong = sum(not _right(one, swap) for one in answers if one.status == _OK)
    failed = sum(one.status != _OK for one in answers)
    before = _windows(answers, swap.begun, -1)[:-1]  # in the first ones connections are made
    after = _windows(answers, swap.begun, 1)
    if not before or not after:
        raise NotMeasuredError("too few answers to show the effect of a swap")
    return Found(max(after), median(before), max(before), wrong, failed)


def _right(answer: Answer, swap: Swap) -> bool:
    """From a policy that was served between question and answer, and decided as that policy decides."""
    served = set()
    if answer.sent <= swap.acknowledged:
        served.add(swap.before)
    if answer.received >= swap.begun:
        served.add(swap.after)
    return (answer.values, answer.outcome) in served


def _windows(answers: Sequence[Answer], start: float, direction: int) -> list[float]:
    """p99 of each whole window from `start`, forward or backward in time, by when an answer came."""
    windows: dict[int, list[float]] = {}
    for one in answers:
        if (distance := (one.received - start) * direction) >= 0:
            windows.setdefault(int(distance / _WINDOW_SECONDS), []).append(one.seconds)
    whole = [windows[index] for index in sorted(windows)][:-1]
    return [quantiles(window, n=100)[-1] for window in whole if len(window) > 1]


def _swap(bench: Bench, served: ServedEngine, policy: Path, turn: int, serving: list[str]) -> Found:
    _write(policy, turn)
    with asking(bench, served.url, bench.scratch / "p16" / "request.json", _CONNECTIONS) as load:
        time.sleep(bench.seconds)
        begun = time.monotonic()
        reply = post(served.state, "/v1/policy/activate")
        acknowledged = time.monotonic()
        time.sleep(_AFTER_SECONDS)
        answers = load.stop()
    if reply.status != _OK:
        raise NotMeasuredError(f"the policy was not activated: {reply.document}")
    old, new = serving[-1], reply.document["values"]
    serving.append(new)
    outcomes = (_OUTCOMES[(turn - 1) % 2], _OUTCOMES[turn % 2])
    return judged(answers, Swap(begun, acknowledged, (old, outcomes[0]), (new, outcomes[1])))


def _write(policy: Path, turn: int) -> None:
    """The values of this turn: a license of its own, and those of the workload refused by turns."""
    path = policy / "licenses.yaml"
    written = read_licenses(path)
    table = written["licenses"]
    table[f"LicenseRef-bench-{turn}"] = table["MIT"]
    for key in LICENSES:
        table[key] = {**table[key], "decision": "refuse" if turn % 2 else "admit"}
    path.write_text(json.dumps(written), encoding="utf-8")
