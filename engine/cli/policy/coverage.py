"""`engine policy coverage`: gaps, unreachable rules, and rules that no decision used."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.outputs import json_text, print_text
from engine.cli.policy.commands import built_policy
from engine.cli.record.commands import Mode, Since, read_decisions, report_unreadable
from engine.documents.files import counted, printable

if TYPE_CHECKING:
    from engine.coverage import Gap, Usage
    from engine.policy_bundle.build import PolicyBundle


_BRIEF = {"point_never_asked", "requirement_never_found"}
"""Kinds of which there are many and that ask for little: one line each."""
_IN_VAIN = {"rule_shadowed", "rule_without_tool"}
"""Kinds that make it redundant to report that a rule was never used."""

_WIDTH = 110  # columns; a place is never broken, so that it can be opened


@options.sourced("state", *options.RULES, "values")
def coverage(
    sources: options.Sources,
    tools: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also check that each tool of this file (tools/list, JSON) has an entry."),
    ] = None,
    server: Annotated[str | None, typer.Option(metavar="ID", help="MCP server that lists these tools.")] = None,
    since: Since = None,
    mode: Mode = None,
    how: options.Output = "text",
) -> None:
    """Report tools and hosts without a rule, unreachable rules, and rules never used.

    Reads values and record, changes no decision, and exits with 0 whatever it reports.
    """
    from engine.cli.tools.requests import listed_names
    from engine.coverage import Kind, ToolValues, definition_gaps, record_gaps, usage, value_gaps
    from engine.record.reader import Filter

    built = built_policy(sources)
    read = ToolValues(built)
    gaps = list(value_gaps(read))
    if tools is not None:
        gaps += definition_gaps(read, listed_names(tools, server))
    criteria = Filter(since=since, mode=mode)
    used = read_decisions(sources.state, lambda folder, progress: usage(folder, criteria, progress))
    if used is not None and used.decisions:
        unused = {gap.subject for gap in gaps if gap.kind in _IN_VAIN}
        gaps += (gap for gap in record_gaps(read, used) if gap.kind != "rule_never_used" or gap.subject not in unused)
    order = list(Kind)
    gaps.sort(key=lambda gap: order.index(gap.kind))
    print_text(_json(built, gaps, used, since) if how == "json" else _text(built, gaps, used, since))
    for place in () if used is None else used.unreadable:
        report_unreadable(place)


def _text(built: PolicyBundle, gaps: list[Gap], used: Usage | None, since: str | None) -> str:
    lines = [f"policy {built.name}", f"  rules   {built.rules.revision}", f"  values  {built.values.revision}"]
    lines.append(f"  record  {_read(used, since)}")
    for kind, of_kind in groupby(gaps, key=lambda gap: gap.kind):
        found = list(of_kind)
        lines += ["", f"{kind.head}: {len(found)}"]
        lines += _briefly(found) if kind in _BRIEF else _fully(found)
    head = counted(len(gaps), "gap") if gaps else "no gap"
    lines += ["", f"{head}: none of this changes a decision; what no rule permits stays refused"]
    return "\n".join(lines)


def _read(used: Usage | None, since: str | None) -> str:
    after = "" if since is None else f" since {since}"
    if used is None:
        return "there is none yet"
    if not used.decisions:
        return f"no decision{after}"
    return f"{counted(used.decisions, 'decision')}, {used.first} to {used.last}"


def _fully(gaps: list[Gap]) -> list[str]:
    """Each gap with its place; those for one reason and with one remedy together."""
    together: dict[tuple[str, str], list[Gap]] = {}
    for gap in gaps:
        together.setdefault((gap.why, gap.remedy), []).append(gap)
    lines = []
    for (why, remedy), same in together.items():
        lines += [
            "",
            *(f"  {'' if gap.where is None else f'{gap.where}: '}{printable(gap.message, 400)}" for gap in same),
        ]
        lines += [*_wrapped("why", why), *_wrapped("what to do", remedy)]
    return lines


def _wrapped(name: str, text: str) -> list[str]:
    head = f"    {name:<12}"
    return textwrap.wrap(
        printable(text, 2_000),
        _WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _briefly(gaps: list[Gap]) -> list[str]:
    widest = max(len(gap.subject) for gap in gaps)
    return ["", *(f"  {gap.subject:<{widest}}  {gap.where or ''}".rstrip() for gap in gaps)]


def _json(built: PolicyBundle, gaps: list[Gap], used: Usage | None, since: str | None) -> str:
    record: dict[str, Any] | None = None
    if used is not None:
        record = {"decisions": used.decisions, "first": used.first, "last": used.last, "since": since}
        record["unreadable_lines"] = [str(place) for place in used.unreadable]
    policy = {"name": built.name, "rules": built.rules.revision, "values": built.values.revision}
    return json_text({"policy": policy, "record": record, "gaps": [asdict(gap) for gap in gaps]})
