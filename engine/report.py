"""A decision told to a person: each finding with the place it speaks of, its rule and its policy rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.errors import Exit, Location
from engine.model import Decision, Finding


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One value that a rule read: its path such as `licenses.licenses.MIT`, and where it stands.

    `where` is None when the policy has no such row; `value` is then None too.
    """

    path: str
    value: Any
    where: Location | None


@dataclass(frozen=True, slots=True)
class Explained:
    """A finding, the place in the request, the requirement's place, labels and policy rows."""

    finding: Finding
    where: Location | None
    rule: Location | None
    labels: tuple[tuple[str, str], ...]
    rows: tuple[PolicyRow, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What one request got. `subjects` are all things decided about, such as every record."""

    path: str
    title: str
    decision: Decision
    explained: tuple[Explained, ...]
    subjects: tuple[str, ...]
    exit: Exit
