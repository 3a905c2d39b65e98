"""Decisions, events and clocks that the tests of the record share; everything volatile is fixed here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.model import Decision, Finding, Level, Mode, Outcome, Revisions
from engine.record.chain import Position, parse
from engine.record.layout import DECISIONS
from engine.record.log import RecordLog
from engine.record.model import DecisionRecord, ResultRecord
from engine.record.retention import Retained, RetentionOrder
from engine.record.source_events import EventName, Hashes, SourceEvent
from engine.record.storage import Storage

TIME = "2026-11-21T00:00:00.000000Z"
DIGEST = "sha256:" + "c" * 64
VERSIONS = {"engine": "0.1.0", "opa": "1.22.2"}


def clock() -> datetime:
    return datetime(2026, 11, 21, tzinfo=UTC)


def taken(number: int, outcome: Outcome = Outcome.DENY, mode: Mode = Mode.CHECK) -> Decision:
    finding = Finding(
        code="license_unknown",
        level=Level.DENY,
        requirement="words that no record holds",
        subject=f"records/contacts-{number}",
        remedy="more words",
    )
    return Decision(
        decision_id=f"{number:032x}",
        point="source",
        mode=mode,
        outcome=outcome,
        findings=() if outcome is Outcome.ALLOW else (finding,),
        limits=None,
        policy=Revisions(rules="sha256:" + "a" * 64, values="sha256:" + "b" * 64),
        input_digest=DIGEST,
    )


def decision(number: int, document: dict[str, Any] | None = None, **changes: Any) -> DecisionRecord:
    return DecisionRecord.of(
        taken(number, **changes),
        time=TIME,
        document={"point": "source", "bundle": {"id": f"contacts-{number}"}} if document is None else document,
        versions=VERSIONS,
        durations={"gather": 1200, "decide": 3400},
    )


def result(number: int) -> ResultRecord:
    return ResultRecord(time=TIME, decision_id=f"{number:032x}", status="done", facts={"files": 3}, duration=5600)


def event(number: int = 1, **changes: Any) -> SourceEvent:
    facts: dict[str, Any] = {
        "event": EventName.SOURCE_CHECKED,
        "source_id": f"contacts-{number}",
        "source_kind": "fixture",
        "policy_outcome": Outcome.DENY,
        "origin_alias": "acme-contacts",
        "hashes": Hashes(declared="d" * 64, computed="d" * 64),
        "license_outcome": "license_unknown",
        "rejection_causes": ("license_unknown",),
    }
    return SourceEvent(**(facts | changes))


class NoState:
    """A state that remembers nothing and has no orders."""

    def record_heads(self) -> Mapping[int, Mapping[str, Position]]:
        return {}

    def remember_head(self, chain: int, installation: str, end: Position) -> None:
        pass

    def leave_order(self, chain: int, order: RetentionOrder) -> None:
        raise NotImplementedError

    def orders(self, _: int) -> tuple[RetentionOrder, ...]:
        return ()

    def carried_out(self, chain: int, decision_id: str, removed: Retained | None) -> None:
        raise NotImplementedError

    def outcomes(self, decision_id: str) -> dict[int, Retained | None]:
        raise NotImplementedError


def open_log(where: Path | Storage, lock_seconds: float = 1.0, **how: Any) -> RecordLog:
    """The record of a state folder or on a disk; `how` as for `RecordLog.open`."""
    storage = where if isinstance(where, Storage) else Storage(where)
    return RecordLog.open(storage, lock_seconds=lock_seconds, clock=clock, **how)


def order(
    keep_days: int, now: datetime, id_: str = "d-1", principal: str = "user:lee", reason: str | None = "disk full"
) -> RetentionOrder:
    """An order to remove old lines."""
    return RetentionOrder(id_, keep_days, int(now.timestamp()), principal, reason)


def numbers(state: Path) -> list[int]:
    """The decisions in the first segment, by their numbers."""
    bodies = [parse(line).body for line in (state / DECISIONS).read_bytes().splitlines()]
    return [int(body.decision_id, 16) for body in bodies if isinstance(body, DecisionRecord)]


def write(state: Path, count: int, first: int = 1) -> None:
    """Append `count` decisions; every third has two source events, every fifth a result."""
    with open_log(state) as log:
        for number in range(first, first + count):
            log.append(decision(number), (event(number), event(number + 1)) if number % 3 == 0 else ())
            if number % 5 == 0:
                log.append(result(number))
