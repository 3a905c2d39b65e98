"""`engine policy waivers`: what each waiver let through, when it ends, and which do nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from engine.cli import options
from engine.cli.outputs import json_text
from engine.cli.policy.commands import built_policy
from engine.cli.record.commands import Since, existing_folder, tell_unreadable
from engine.documents.files import printable

if TYPE_CHECKING:
    from pathlib import Path

    from engine.policy_bundle.build import PolicyBundle
    from engine.record.model import DecisionRecord

_MOST_DECISIONS = 10

Key = tuple[str, str, str]
"""Point, code and id of a waiver."""


@dataclass(slots=True)
class Use:
    """Decisions of the record with a finding that a waiver covered; `decisions` are the last allows among them."""

    outcomes: Counter[str] = field(default_factory=Counter)
    dry_runs: int = 0
    first: str | None = None
    last: str | None = None
    decisions: list[str] = field(default_factory=list)


@options.sourced("state", *options.RULES, "values", "now")
def list_waivers(sources: options.Sources, since: Since = None, how: options.Output = "text") -> None:
    """List the waivers of the policy: what each one let through, by the record, when it ends, or why it does nothing.

    Exits with 0 whatever it reports; `engine policy lint` exits with 5 for waivers that do nothing.
    """
    built = built_policy(sources)
    now = sources.now or datetime.now(UTC)
    rows = _rows(built, _used(sources.state, since), int(now.timestamp()))
    typer.echo(json_text({"waivers": rows}) if how == "json" else _text(rows))


def _used(state: Path | None, since: str | None) -> dict[Key, Use]:
    """What recorded decisions say of waivers; empty without a record, unless one was named."""
    from engine.cli.waiting import Waiting
    from engine.errors import Location
    from engine.record.reader import Filter, entries

    found: dict[Key, Use] = {}
    if state is None and not options.state_folder(None).is_dir():
        return found
    with Waiting() as waiting:
        for entry in entries(existing_folder(state), Filter(since=since, waived=True)):
            if isinstance(entry, Location):
                tell_unreadable(entry)
            elif (body := entry.body).kind == "decision":
                for key in {(body.point, one.code, one.waiver) for one in body.findings if one.waiver is not None}:
                    _count(found.setdefault(key, Use()), body)
                waiting.tell(f"decisions read: {sum(use.outcomes.total() for use in found.values()):,}")
    return found


def _count(use: Use, body: DecisionRecord) -> None:
    if body.mode.value == "check":
        use.dry_runs += 1
        return
    use.outcomes[body.outcome.value] += 1
    use.first, use.last = use.first or body.time, body.time
    if body.outcome.value == "allow":
        use.decisions = [*use.decisions, body.decision_id][-_MOST_DECISIONS:]


def _rows(built: PolicyBundle, used: dict[Key, Use], now: int) -> list[dict[str, Any]]:
    rows = []
    for waiver in built.waivers:
        idle = built.idle(waiver, now)
        does_nothing = None if idle is None else idle.reason
        fields = {**asdict(waiver), "where": None if waiver.where is None else str(waiver.where)}
        rows.append(
            {**fields, "does_nothing": does_nothing, **_use(used.pop((waiver.point, waiver.code, waiver.id), Use()))}
        )
    gone = "it is no longer in the policy"
    for (point, code, id_), use in sorted(used.items()):
        rows.append({"point": point, "code": code, "id": id_, "does_nothing": gone, **_use(use)})
    return rows


def _use(use: Use) -> dict[str, Any]:
    return {
        "let_through": use.outcomes["allow"],
        "confirmed": use.outcomes["confirm"],
        "denied_otherwise": use.outcomes["deny"],
        "dry_runs": use.dry_runs,
        "first": use.first,
        "last": use.last,
        "last_decisions": use.decisions,
    }


def _text(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "no waivers"
    return "\n".join(line for row in rows for line in _waiver(row))


def _waiver(row: dict[str, Any]) -> list[str]:
    lines = [f"{row['id']}: `{row['code']}` at point `{row['point']}`"]
    if row["does_nothing"] is not None:
        lines.append(f"  does nothing: {row['does_nothing']}")
    if "until" in row:
        facts = "".join(f", {path} {value}" for path, value in row["facts"].items())
        lines.append(f"  for: subject {row['subject']}, principal {row['principal']}{facts}")
        lines.append(f"  from {row['starts']} until {row['until']} (UTC): {row['reason']}")
        lines.append(f"  owner {row['owner']}, approved by {row['approver']}")
    used = f"let through {_counted(row['let_through'], 'decision')}"
    if others := row["denied_otherwise"] + row["confirmed"]:
        used += f"; {others:,} more stopped by other findings"
    lines.append(f"  {used}; {_counted(row['dry_runs'], 'dry run')}")
    if row["last"] is not None:
        lines.append(f"  first {row['first']}, last {row['last']}")
    if row["last_decisions"]:
        lines.append(f"  last decisions: {', '.join(row['last_decisions'])}")
    if row.get("where") is not None:
        lines.append(f"  written in {row['where']}")
    return [printable(line, 2_000) for line in lines]


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
