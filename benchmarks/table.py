"""The table for people, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.measure import Row

_HEADS = ("row", "what", "goal", "median", "min", "max", "")


def table(rows: Sequence[Row]) -> str:
    """One line per row under a head, columns aligned, numbers to the right."""
    lines = [_HEADS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADS))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join(_line(cells, widths) for cells in lines) + "\n"


def document(rows: Iterable[Row], machine: dict[str, Any]) -> str:
    """All rows with every value, and what they were measured on, as JSON."""
    listed = [
        {
            "row": row.name,
            "what": row.what,
            "unit": row.unit,
            "goal": row.goal,
            "least": row.least,
            "median": row.median,
            "min": min(row.values),
            "max": max(row.values),
            "verdict": row.verdict or None,
            "values": row.values,
        }
        for row in rows
    ]
    return json.dumps({"machine": machine, "rows": listed}, indent=1) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    goal = "" if row.goal is None else f"{'>=' if row.least else '<='} {row.goal:g}"
    unit = "" if row.unit == "x" else f" {row.unit}"
    numbers = (f"{value:.2f}{unit}" for value in (row.median, min(row.values), max(row.values)))
    return (row.name, row.what, goal, *numbers, row.verdict)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if column in {0, 1, len(_HEADS) - 1} else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
