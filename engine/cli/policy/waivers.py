"""`engine policy waivers`: what each waiver let through, when it ends, and which do nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from engine.cli import options
from engine.cli.outputs import json_text, print_text
from engine.cli.policy.commands import built_policy
from engine.cli.record.commands import Since, read_decisions, report_unreadable
from engine.documents.files import counted, printable


@options.sourced("state", *options.RULES, "values", "now")
def list_waivers(sources: options.Sources, since: Since = None, how: options.Output = "text") -> None:
    """List the waivers of the policy: the decisions that each let through, its last day, or why it does nothing.

    Exits with 0 whatever it reports; `engine policy lint` exits with 5 for waivers that do nothing.
    """
    from engine.coverage.waivers import WaiversUsed, waiver_rows, waivers_used

    built = built_policy(sources)
    now = sources.now or datetime.now(UTC)
    used = (
        read_decisions(sources.state, lambda folder, progress: waivers_used(folder, since, progress)) or WaiversUsed()
    )
    for place in used.unreadable:
        report_unreadable(place)
    rows = waiver_rows(built, used, int(now.timestamp()))
    text = "\n".join(line for row in rows for line in _waiver(row)) or "no waivers"
    print_text(json_text({"waivers": rows}) if how == "json" else text)


def _waiver(row: dict[str, Any]) -> list[str]:
    lines = [f"{row['id']}: `{row['code']}` at point `{row['point']}`"]
    if row["does_nothing"] is not None:
        lines.append(f"  does nothing: {row['does_nothing']}")
    if "until" in row:
        facts = "".join(f", {path} {value}" for path, value in row["facts"].items())
        lines.append(f"  for: subject {row['subject']}, principal {row['principal']}{facts}")
        lines.append(f"  from {row['starts']} until {row['until']} (UTC): {row['reason']}")
        lines.append(f"  owner {row['owner']}, approved by {row['approver']}")
    used = f"let through {counted(row['let_through'], 'decision')}"
    if others := row["denied_otherwise"] + row["confirmed"]:
        used += f"; {others:,} more stopped by other findings"
    lines.append(f"  {used}; {counted(row['dry_runs'], 'dry run')}")
    if row["last"] is not None:
        lines.append(f"  first {row['first']}, last {row['last']}")
    if row["last_decisions"]:
        lines.append(f"  last decisions: {', '.join(row['last_decisions'])}")
    if row.get("where") is not None:
        lines.append(f"  written in {row['where']}")
    return [printable(line, 2_000) for line in lines]
