"""What a row is and how one is measured: interleaved rounds, the first discarded, the median reported.

Times of a shared machine are worth little; two things measured in turn, A B A B, suffer alike, so
their ratio is worth something. Each round gives one ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TypeVar

from engine.binaries import Binary
from engine.policy_bundle.build import PolicyBundle

T = TypeVar("T")

TOLERANCE = 0.10
"""A median that misses its goal by up to a tenth still passes: runs of one tree differ by about that."""
FEWEST = 5
"""Rounds that count, at least: with fewer the median is no better than one measurement."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: `goal` is the upper or lower bound for the median, None if none is set."""

    name: str
    what: str
    goal: float | None
    values: tuple[float, ...] = field(repr=False)
    unit: str = "x"
    least: bool = False

    @property
    def median(self) -> float:
        """The middle of all rounds that count."""
        return median(self.values)

    @property
    def verdict(self) -> str:
        """`pass`, `falls short`, or nothing where no goal is set."""
        if self.goal is None:
            return ""
        if self.least:
            return "pass" if self.median >= self.goal * (1 - TOLERANCE) else "falls short"
        return "pass" if self.median <= self.goal * (1 + TOLERANCE) else "falls short"


class NotMeasuredError(Exception):
    """A row cannot be measured here, or what was to be measured did not do what it should."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What every row needs: a scratch folder, OPA, the policy as shipped, rounds, a voice.

    `cache` holds built policies for every engine of this run. `asked` names the rows wanted: rows that
    come out of one measurement need not all be taken. `seconds` is how long one part of a round under
    load takes.
    """

    root: Path
    scratch: Path
    cache: Path
    binary: Binary
    policy: PolicyBundle
    rounds: int
    report: Callable[[str], None]
    asked: frozenset[str]
    seconds: float = 3.0

    def folder(self, name: str) -> Path:
        """A new empty folder."""
        folder = self.scratch / name
        folder.mkdir(parents=True)
        return folder

    @property
    def archives(self) -> tuple[Path, Path]:
        """The policy as OPA is given it: rules and values."""
        return self.policy.rules.path, self.policy.values.path

    def report_round(self, what: str, done: int, of: int) -> None:
        """Report which round of how many is in progress."""
        self.report(f"{what}: round {done} of {of}")


def interleaved(
    parts: Sequence[Callable[[], T]], rounds: int, on_round: Callable[[int, int], None] = lambda *_: None
) -> list[tuple[T, ...]]:
    """One result of each part for each round that counts; every round runs the parts in turn.

    `on_round` gets the number of the round and of all of them, the discarded first one included.
    """
    results = []
    for number in range(rounds + 1):
        on_round(number + 1, rounds + 1)
        results.append(tuple(part() for part in parts))
    return results[1:]


def ratios(
    over: Callable[[], float],
    under: Callable[[], float],
    times: int,
    rounds: int,
    on_round: Callable[[int, int], None] = lambda *_: None,
) -> tuple[float, ...]:
    """One ratio for each round that counts: `times` pairs in turn, the medians of both sides divided."""

    def ratio() -> float:
        pairs = [(over(), under()) for _ in range(times)]
        return median(pair[0] for pair in pairs) / median(pair[1] for pair in pairs)

    return tuple(value for (value,) in interleaved((ratio,), rounds, on_round))
