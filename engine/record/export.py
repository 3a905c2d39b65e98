"""The record in the words of other tools: CloudEvents 1.0 as JSON lines, and CSV for spreadsheets.

An export is a copy for reading; the record itself is what `engine record verify` checks.

CSV has one row a decision. A cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return gets an
apostrophe in front, because spreadsheets would run it as a formula.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from engine.canonical import canonical
from engine.errors import Location
from engine.record.chain import Entry, plain_json
from engine.record.checkpoint import read_identity
from engine.record.layout import BrokenError
from engine.record.model import DecisionRecord
from engine.record.reader import Filter, entries
from engine.record.storage import DiskStorage

COLUMNS = (
    *("seq", "time", "decision_id", "point", "mode", "outcome", "codes", "levels", "subjects", "principal", "run"),
    *("request_id", "trace", "approval", "input_digest", "rules", "values", "engine", "opa"),
    *("gather_microseconds", "decide_microseconds", "redactions"),
)
"""Columns of CSV, in order; several codes, levels, subjects or redactions in a cell are separated by a space."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cloudevents(state: Path, wanted: Filter) -> Iterator[str | Location]:
    """One structured event a line of the record, and the place of each line that is none. Raises RecordError."""
    source = _source(state)
    for found in entries(state, wanted):
        yield found if isinstance(found, Location) else _text(canonical(cloudevent(found, source)))


def csv_rows(state: Path, wanted: Filter) -> Iterator[str | Location]:
    """The head and one row a decision, and the place of each line that is no record. Raises RecordError."""
    yield _row(COLUMNS)
    for found in entries(state, wanted):
        if isinstance(found, Location):
            yield found
        elif isinstance(found.body, DecisionRecord):
            yield _row(_cells(found.seq, found.body))


def cloudevent(entry: Entry, source: str) -> dict[str, Any]:
    """A record as a CloudEvents 1.0 structured event; `id` is unique within `source`, so it is in the world."""
    body = entry.body
    event = {
        "specversion": "1.0",
        "type": f"admission.{body.kind}",
        "source": source,
        "id": f"{source.rpartition(':')[2]}-{entry.seq}",
        "time": body.time,
        "datacontenttype": "application/json",
        "data": plain_json(entry),
    }
    subject = getattr(body, "decision_id", None)
    return event | ({"subject": subject} if subject else {})


def _source(state: Path) -> str:
    try:
        identity = read_identity(DiskStorage(state))
    except (BrokenError, OSError):
        identity = None
    return f"urn:admission-engine:{'unknown' if identity is None else identity.installation}"


def _cells(seq: int, body: DecisionRecord) -> list[Any]:
    policy, findings = body.policy, body.findings
    return [
        *(seq, body.time, body.decision_id, body.point, body.mode.value, body.outcome.value),
        " ".join(one.code for one in findings),
        " ".join(one.level.value for one in findings),
        " ".join(one.subject or "" for one in findings).strip(" "),
        *(body.principal, body.run, body.request_id, body.trace, body.approval, body.input_digest),
        *((None, None) if policy is None else (policy.rules, policy.values)),
        *(body.versions.engine, body.versions.opa, body.durations.gather, body.durations.decide),
        " ".join(body.redactions),
    ]


def _row(cells: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow([_harmless(cell) for cell in cells])
    return text.getvalue()


def _harmless(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _text(data: bytes) -> str:
    return data.decode("utf-8") + "\n"
