"""Waivers by the record: what each one let through, and which do nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engine.coverage.record_gaps import decisions
from engine.errors import Location
from engine.policy_bundle.build import PolicyBundle
from engine.record.model import DecisionRecord
from engine.record.reader import Filter

_MOST_DECISIONS = 10

Key = tuple[str, str, str]
"""Point, code and id of a waiver."""


@dataclass(slots=True)
class WaiverUse:
    """Decisions of the record with a finding that a waiver covered; `decisions` are the last allows among them."""

    outcomes: Counter[str] = field(default_factory=Counter)
    dry_runs: int = 0
    first: str | None = None
    last: str | None = None
    decisions: list[str] = field(default_factory=list)


@dataclass(slots=True)
class WaiversUsed:
    """What the record says of each waiver, and the first of its lines that cannot be read."""

    uses: dict[Key, WaiverUse] = field(default_factory=dict)
    unreadable: list[Location] = field(default_factory=list)


def waivers_used(state: Path, since: str | None, progress: Callable[[int], None]) -> WaiversUsed:
    """What recorded decisions say of waivers; `progress` gets the number of those read. Raises RecordError."""
    found = WaiversUsed()
    for read, body in enumerate(decisions(state, Filter(since=since, waived=True), found.unreadable), start=1):
        for key in {(body.point, one.code, one.waiver) for one in body.findings if one.waiver is not None}:
            _count(found.uses.setdefault(key, WaiverUse()), body)
        progress(read)
    return found


def _count(use: WaiverUse, body: DecisionRecord) -> None:
    if body.mode.value == "check":
        use.dry_runs += 1
        return
    use.outcomes[body.outcome.value] += 1
    use.first, use.last = use.first or body.time, body.time
    if body.outcome.value == "allow":
        use.decisions = [*use.decisions, body.decision_id][-_MOST_DECISIONS:]


def waiver_rows(policy: PolicyBundle, used: WaiversUsed, now: int) -> list[dict[str, Any]]:
    """Every waiver of a policy at a time, in seconds since 1970 UTC, as JSON; then those that only the record has."""
    rows, uses = [], dict(used.uses)
    for waiver in policy.waivers:
        idle = policy.idle(waiver, now)
        usage = {
            "where": None if waiver.where is None else str(waiver.where),
            "does_nothing": None if idle is None else idle.reason,
            "remedy": None if idle is None else idle.remedy,
        }
        use = uses.pop((waiver.point, waiver.code, waiver.id), WaiverUse())
        rows.append({**asdict(waiver), **usage, **_document(use)})
    gone = {"does_nothing": "it is no longer in the policy", "remedy": None}
    for (point, code, id_), use in sorted(uses.items()):
        rows.append({"point": point, "code": code, "id": id_, **gone, **_document(use)})
    return rows


def _document(use: WaiverUse) -> dict[str, Any]:
    return {
        "let_through": use.outcomes["allow"],
        "confirmed": use.outcomes["confirm"],
        "denied_otherwise": use.outcomes["deny"],
        "dry_runs": use.dry_runs,
        "first": use.first,
        "last": use.last,
        "last_decisions": use.decisions,
    }
