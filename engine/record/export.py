"""Exports the record as CloudEvents 1.0 (JSON lines) and as CSV.

An export is a copy for reading; the record itself is what `engine record verify` checks. Each chain is a
separate source.

CSV has one row per decision. A cell that begins with `=`, `+`, `-` or `@`, also in full width, gets an apostrophe in
front, because spreadsheets would run it as a formula; control characters become `?`, since terminals would run them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from engine.documents.canonical import canonical
from engine.documents.files import printable
from engine.errors import Location
from engine.record.chain import Entry, plain_json
from engine.record.chains import chain_folder
from engine.record.checkpoint import read_identity
from engine.record.layout import BrokenError
from engine.record.model import DecisionRecord
from engine.record.reader import Filter, entries
from engine.record.storage import Storage

COLUMNS = (
    *("chain", "seq", "time", "decision_id", "point", "mode", "outcome", "codes", "levels", "subjects"),
    *("principal", "run", "request_id", "trace", "approval", "input_digest", "rules", "values", "engine", "opa"),
    *("gather_microseconds", "decide_microseconds", "redactions", "shared_from", "act", "act_id", "reason"),
)
"""Columns of CSV, in order; several codes, levels, subjects or redactions in a cell are separated by a space.

The last three are those of decisions at point `administration`.
"""

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def cloudevents(state: Path, filter_: Filter) -> Iterator[str | Location]:
    """One structured event per line of the record, and the location of each invalid line. Raises RecordError."""
    sources: dict[int, str] = {}
    for found in entries(state, filter_):
        if isinstance(found, Location):
            yield found
        else:
            source = sources.get(found.chain) or sources.setdefault(found.chain, _source(state, found.chain))
            yield canonical(cloudevent(found, source)).decode("utf-8") + "\n"


def csv_rows(state: Path, filter_: Filter) -> Iterator[str | Location]:
    """The header and one row per decision, and the location of each invalid line. Raises RecordError."""
    yield _row(COLUMNS)
    for found in entries(state, filter_):
        if isinstance(found, Location):
            yield found
        elif isinstance(found.body, DecisionRecord):
            yield _row(_cells(found, found.body))


def cloudevent(entry: Entry, source: str) -> dict[str, Any]:
    """A record as a CloudEvents 1.0 structured event; `id` is unique within `source`, and so globally."""
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


def _source(state: Path, chain: int) -> str:
    try:
        identity = read_identity(Storage(chain_folder(state, chain)))
    except (BrokenError, OSError):
        identity = None
    return f"urn:admission-engine:{'unknown' if identity is None else identity.installation}"


def _cells(entry: Entry, body: DecisionRecord) -> list[Any]:
    policy, findings = body.policy, body.findings
    act = body.input if body.point == "administration" and body.input is not None else {}
    return [
        *(entry.chain, entry.seq, body.time, body.decision_id, body.point, body.mode.value, body.outcome.value),
        " ".join(finding.code for finding in findings),
        " ".join(finding.level.value for finding in findings),
        " ".join(finding.subject or "" for finding in findings).strip(" "),
        *(body.principal, body.run, body.request_id, body.trace, body.approval, body.input_digest),
        *((None, None) if policy is None else (policy.rules, policy.values)),
        *(body.versions.engine, body.versions.opa, body.durations.gather, body.durations.decide),
        " ".join(body.redactions),
        *(body.shared_from, act.get("act"), act.get("id"), act.get("reason")),
    ]


def _row(cells: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow([_harmless(cell) for cell in cells])
    return text.getvalue()


def _harmless(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    text = printable(cell, len(cell))
    return f"'{text}" if text.startswith(_FORMULA) else text
