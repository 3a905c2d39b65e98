"""A corpus whose rows meet every outcome: admitted, refused for several reasons, and unreadable ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from engine.ray.columns import Columns, Decided

NOW = 1_795_219_200  # 2026-11-21T00:00:00Z
LICENSES = ("CC-BY-4.0", "MIT", "CC-BY-NC-4.0", "LicenseRef-nobody-knows", " ")
COLUMNS = Columns(
    license="license",
    origin="origin",
    sha256="sha256",
    license_decision=Decided(decision="decision", sha256="sha256", decided_at="decided_at"),
    purpose="train",
    export_license="CC-BY-4.0",
)
COLUMNS_YAML = """\
license: license
origin: origin
sha256: sha256
license_decision: {decision: decision, sha256: sha256, decided_at: decided_at}
purpose: train
export_license: CC-BY-4.0
"""


def row(number: int) -> dict[str, Any]:
    content = f"row {number}"
    return {
        "id": number,
        "text": content,
        "license": LICENSES[number % len(LICENSES)],
        "origin": f"site-{number % 7}",
        "sha256": sha256(content.encode()).hexdigest(),
        "decision": None if number % 11 == 0 else "accepted",
        "decided_at": "2026-11-03T10:00:00Z",
    }


def rows(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [row(number) for number in range(first, first + count)]


def request(one: dict[str, Any]) -> dict[str, Any]:
    """The request of a row, written out by hand."""
    decided = {"sha256": one["sha256"], "decision": one["decision"], "decided_at": one["decided_at"]}
    return {
        "purpose": "train",
        "export_license": "CC-BY-4.0",
        "license": one["license"],
        "sha256": one["sha256"],
        "decisions": [] if one["decision"] is None else [decided],
    }


def write_parquet(path: Path, some: list[dict[str, Any]], row_group: int) -> Path:
    parquet.write_table(pa.Table.from_pylist(some), path, row_group_size=row_group)
    return path


def write_lines(path: Path, some: list[dict[str, Any]], *, broken: tuple[int, ...] = ()) -> Path:
    """One object per line; lines with a number of `broken`, from 1, are cut off in the middle."""

    def line(number: int, one: dict[str, Any]) -> str:
        text = json.dumps(one)
        return text[: len(text) // 2] if number in broken else text

    path.write_text("".join(f"{line(number, one)}\n" for number, one in enumerate(some, 1)), encoding="utf-8")
    return path


def decisions(run: Path) -> Iterator[dict[str, Any]]:
    """Every decision in the segments of a run, in no order."""
    for path in sorted(run.glob("segments/*/records/decisions.*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)
