"""A replay of the record, for people: as text, or as one HTML page."""

from __future__ import annotations

import json
from typing import Any

from engine.cli.outputs import table
from engine.documents.files import counted, printable

_MOST_SHOWN = 5
_VALUE = 300


def words(kind: str) -> str:
    """A kind of change for people."""
    return kind.replace("_", " ")


def change_text(change: dict[str, Any]) -> str:
    """What became of a finding, or of a field of the limits, in words."""
    before, after = change["before"], change["after"]
    if change["change"] == "other_limits":
        return f"limits.{change['code']}"
    if before is not None and after is not None:
        return f"{change['code']}: {before} before, {after} now"
    return f"{change['code']}: {f'{after} now' if before is None else f'{before} before, not found now'}"


def replay_page(document: dict[str, Any], title: str) -> str:
    """A replay as a page, of which every text is escaped."""
    from engine.workbench.pages import rendered

    return rendered(
        "replay_page.html", document=document, title=title, words=words, change_text=change_text, value_text=value_text
    )


def replay_text(document: dict[str, Any]) -> str:
    """A replay for people."""
    policy, record = document["policy"], document["record"]
    lines = [
        f"{counted(record['decisions'], 'recorded decision')}, {record['first']} to {record['last']}",
        *([] if policy["name"] is None else [f"  policy  {printable(policy['name'])}"]),
        f"  rules   {policy['rules']}",
        f"  values  {policy['values']}",
        "",
    ]
    kinds = [kind for kind, count in document["counts"].items() if count]
    cells = [[one["point"], *(f"{one[kind]:,}" for kind in kinds)] for one in document["points"]]
    cells += [["all", *(f"{document['counts'][kind]:,}" for kind in kinds)]] if len(cells) > 1 else []
    lines.append(table(["POINT", *(words(kind).upper() for kind in kinds)], cells))
    heading = ""
    for change in document["changes"]:
        if change["change"] != heading:
            heading = change["change"]
            lines += ["", words(heading)]
        lines += _change(change, known=policy["name"] is not None)
    if document["not_decided"]:
        lines += ["", "not decided"]
        lines += [
            f"  {one['point']}: {one['reason']} ({counted(one['decisions'], 'decision')})"
            for one in document["not_decided"]
        ]
    lines += [
        f"{one['point']}: the budget {one['budget']} was not counted then, so it is taken as unused"
        f" ({counted(one['decisions'], 'decision')})"
        for one in document["not_counted"]
    ]
    return "\n".join(lines)


def _change(change: dict[str, Any], *, known: bool) -> list[str]:
    """One change; `known` where the policy of the candidate is at hand."""
    lines = [f"  {change['point']} {change_text(change)} ({counted(change['decisions'], 'decision')})"]
    if change["required"] is not None:
        lines.append(f"    required: {printable(change['required'], 1_000)}")
    elif known and change["change"] != "other_limits":
        lines.append("    the candidate has no requirement with this code")
    if change["rule"] is not None:
        lines.append(f"    rule: {printable(change['rule'])}")
    lines += [f"    value: {value_text(row)}" for row in change["values"][:_MOST_SHOWN]]
    if (left := len(change["values"]) - _MOST_SHOWN) > 0:
        lines.append(f"    … and {counted(left, 'more value')}")
    named = [f"{printable(one['subject'], 500)} ({one['times']:,})" for one in change["subjects"][:_MOST_SHOWN]]
    more = len(change["subjects"]) - len(named) + change["more_subjects"]
    title = "before and now" if change["change"] == "other_limits" else "subjects"
    lines.append(f"    {title}: {', '.join(named)}{f' and {more:,} more' if more else ''}")
    lines.append(f"    such as: {', '.join(map(printable, change['examples'][:_MOST_SHOWN]))}")
    return lines


def value_text(row: dict[str, Any]) -> str:
    """A value of the policy with its place."""
    if row["where"] is None:
        return f"{printable(row['path'])} is not a row of the policy"
    value = printable(json.dumps(row["value"], ensure_ascii=False), _VALUE)
    return f"{printable(row['path'])} = {value} ({printable(row['where'])})"
