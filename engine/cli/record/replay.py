"""`engine record replay`: what a candidate policy would have decided otherwise."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from engine.cli import options
from engine.cli.outputs import json_text, table, write
from engine.cli.policy.commands import built_policy
from engine.cli.record.commands import Since, existing_folder, tell_unreadable, verified
from engine.cli.record.verification import verification_text
from engine.cli.waiting import Waiting
from engine.documents.files import printable
from engine.errors import Exit, GatherError

if TYPE_CHECKING:
    from pathlib import Path

    from engine.policy_bundle.build import PolicyBundle
    from engine.replay.run import Group, Replay

_MOST_SAMPLE = 1_000_000
_MOST_SUBJECTS, _MOST_VALUES, _MOST_EXAMPLES = 20, 20, 10
_MOST_SHOWN = 5
_VALUE = 300
_BAR = 20


@options.sourced("state", *options.RULES, "values")
def replay_record(
    sources: options.Sources,
    since: Since = None,
    point: Annotated[
        str | None, typer.Option(help="Filter by decision point, such as source.", **options.POINT)
    ] = None,
    principal: Annotated[str | None, typer.Option(metavar="NAME", help="Filter by caller.")] = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, max=_MOST_SAMPLE, metavar="N", help="Replay N of the decisions, the same ones every time."),
    ] = None,
    broken: Annotated[
        bool, typer.Option("--broken", help="Replay the readable lines of a record that is broken.")
    ] = False,
    how: Annotated[
        Literal["text", "json", "html"], typer.Option("--format", help="Output format; html is one page to send on.")
    ] = "text",
) -> None:
    """Decide recorded inputs again by a candidate policy, and report what it would have decided otherwise.

    The candidate is the policy of these options, built as `engine policy build` does. Nothing is enforced or recorded.
    Exits with 6 if an outcome changed, or what an allow permits; with 5 if the candidate has problems, and with 4 if
    the record is broken.
    """
    from engine.record.reader import Filter
    from engine.replay.candidate import opened
    from engine.replay.run import replay

    folder = existing_folder(sources.state)
    policy = built_policy(sources)
    lines = require_intact(folder, broken=broken)
    with (
        opened(policy, sources.settings().opa, None if point is None else frozenset({point})) as candidate,
        Waiting() as waiting,
    ):
        wanted = Filter(since=since, point=point, principal=principal)
        found = replay(folder, wanted, candidate, sample, lambda done, read: waiting.tell(_bar(done, read, lines)))
    for place in found.unreadable:
        tell_unreadable(place)
    if not found.decisions:
        raise GatherError("no recorded decision matches", remedy="widen --since, --point or --principal")
    document = replay_document(found, policy)
    if how == "html":
        from engine.cli.record.replay_page import page

        text = page(document)
    else:
        text = json_text(document) if how == "json" else _text(document)
    write([(text + "\n", None)])
    raise typer.Exit(Exit.REPLAY_CHANGED if found.changed else Exit.ALLOW)


def require_intact(folder: Path, *, broken: bool = False) -> int:
    """Verify the record and return the number of its lines. With `broken`, only report where it is broken.

    A torn tail breaks nothing: no answer depended on it.
    """
    found = verified(folder)
    if not all(chain.ok or chain.repairable for chain in found.values()):
        typer.echo(verification_text(found), err=True)
        if not broken:
            typer.echo("nothing was replayed; --broken replays the readable lines", err=True)
            raise typer.Exit(Exit.FAILED_CLOSED)
    return sum(chain.removed + chain.records for chain in found.values())


def _bar(done: int, read: int, lines: int) -> str:
    part = min(read / max(lines, 1), 1.0)
    return f"[{'#' * round(part * _BAR):<{_BAR}}] {part:4.0%}  decisions replayed: {done:,}"


def replay_document(found: Replay, policy: PolicyBundle) -> dict[str, Any]:
    """A replay for programs, and what texts and pages are made from."""
    from engine.replay.comparing import Change
    from engine.replay.run import UNCHANGED, UNDECIDED

    kinds = [UNCHANGED, *(change.value for change in Change), UNDECIDED]
    groups = sorted(
        found.groups.values(), key=lambda one: (list(Change).index(one.change), -one.decisions, one.point, one.code)
    )
    return {
        "policy": {"name": policy.name, "rules": policy.rules.revision, "values": policy.values.revision},
        "record": {
            "decisions": found.decisions,
            "first": found.first,
            "last": found.last,
            "unreadable_lines": [str(place) for place in found.unreadable],
        },
        "changed": found.changed,
        "counts": {kind: found.count(kind) for kind in kinds},
        "points": [
            {"point": point, **{kind: counted[kind] for kind in kinds}}
            for point, counted in sorted(found.points.items())
        ],
        "changes": [_group(one) for one in groups],
        "not_decided": [
            {"point": point, "reason": reason, "decisions": count}
            for (point, reason), count in sorted(found.undecided.items())
        ],
    }


def _group(one: Group) -> dict[str, Any]:
    return {
        "change": one.change.value,
        "point": one.point,
        "code": one.code,
        "before": one.before,
        "after": one.after,
        "decisions": one.decisions,
        "required": None if one.words is None else one.words.title,
        "fix": None if one.words is None else one.words.remedy,
        "rule": None if one.where is None else str(one.where),
        "values": [
            {"path": row.path, "value": row.value, "where": None if row.where is None else str(row.where)}
            for row in list(one.values.values())[:_MOST_VALUES]
        ],
        "subjects": [
            {"subject": subject, "times": times} for subject, times in one.subjects.most_common(_MOST_SUBJECTS)
        ],
        "more_subjects": max(len(one.subjects) - _MOST_SUBJECTS, 0),
        "examples": one.examples[:_MOST_EXAMPLES],
    }


def words(kind: str) -> str:
    """A kind of change for people."""
    return kind.replace("_", " ")


def what(change: dict[str, Any]) -> str:
    """What became of a finding, or of a field of the limits, in words."""
    before, after = change["before"], change["after"]
    if change["change"] == "other_limits":
        return f"limits.{change['code']}"
    if before is not None and after is not None:
        return f"{change['code']}: {before} before, {after} now"
    return f"{change['code']}: {f'{after} now' if before is None else f'{before} before, not found now'}"


def _text(document: dict[str, Any]) -> str:
    policy, record = document["policy"], document["record"]
    lines = [
        f"{record['decisions']:,} recorded decisions, {record['first']} to {record['last']}",
        f"  policy  {printable(policy['name'])}",
        f"  rules   {policy['rules']}",
        f"  values  {policy['values']}",
        "",
    ]
    kinds = [kind for kind, count in document["counts"].items() if count]
    cells = [[one["point"], *(f"{one[kind]:,}" for kind in kinds)] for one in document["points"]]
    cells += [["all", *(f"{document['counts'][kind]:,}" for kind in kinds)]] if len(cells) > 1 else []
    lines.append(table(["POINT", *(words(kind).upper() for kind in kinds)], cells))
    told = ""
    for change in document["changes"]:
        if change["change"] != told:
            told = change["change"]
            lines += ["", words(told)]
        lines += _change(change)
    if document["not_decided"]:
        lines += ["", "not decided"]
        lines += [
            f"  {one['point']}: {one['reason']} ({_counted(one['decisions'])})" for one in document["not_decided"]
        ]
    return "\n".join(lines)


def _change(change: dict[str, Any]) -> list[str]:
    lines = [f"  {change['point']} {what(change)} ({_counted(change['decisions'])})"]
    if change["required"] is not None:
        lines.append(f"    required: {printable(change['required'], 1_000)}")
    elif change["change"] != "other_limits":
        lines.append("    the candidate has no requirement with this code")
    if change["rule"] is not None:
        lines.append(f"    rule: {printable(change['rule'])}")
    lines += [f"    value: {value_text(row)}" for row in change["values"][:_MOST_SHOWN]]
    lines += _more(len(change["values"]) - _MOST_SHOWN, "value")
    named = [f"{printable(one['subject'], 500)} ({one['times']:,})" for one in change["subjects"][:_MOST_SHOWN]]
    more = len(change["subjects"]) - len(named) + change["more_subjects"]
    title = "before and now" if change["change"] == "other_limits" else "subjects"
    lines.append(f"    {title}: {', '.join(named)}{f' and {more:,} more' if more else ''}")
    lines.append(f"    such as: {', '.join(map(printable, change['examples'][:_MOST_SHOWN]))}")
    return lines


def value_text(row: dict[str, Any]) -> str:
    """A value of the policy with its place."""
    if row["where"] is None:
        return f"{printable(row['path'])} is no row of the policy"
    value = printable(json.dumps(row["value"], ensure_ascii=False), _VALUE)
    return f"{printable(row['path'])} = {value} ({printable(row['where'])})"


def _more(count: int, what: str) -> list[str]:
    return [f"    … and {count:,} more {what}{'' if count == 1 else 's'}"] if count > 0 else []


def _counted(count: int) -> str:
    return f"{count:,} decision{'' if count == 1 else 's'}"
