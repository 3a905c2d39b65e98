"""Decisions for people: outcome, subject, reason, policy row and remedy.

Subjects with the same findings are grouped and long lists are cut, always with the number
of omitted items; `--explain` lists each subject, and the rule, labels, revisions
and limits.
"""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import typer

from engine.cli.formats import Context
from engine.cli.formats.show import DRY_RUN, WHOLE, Kind, by_subject, claim, clean, kind, modes
from engine.documents.files import counted
from engine.errors import Exit, Location
from engine.facts.text.nearest import did_you_mean
from engine.policy_bundle.catalogue import PolicyRow
from engine.reports.explain import Explained, Report

_MOST_NAMES = 20  # subjects without findings
_MOST_SUBJECTS = 10  # subjects, places and policy rows of findings shown together
_MOST_FOUND = 3  # what was found, of subjects shown together
_MOST_BLOCKS = 50  # groups of subjects of one report, and findings of one group
_MOST_VALUE = 400
_NARROWEST = 40  # columns; for less, lines are longer than requested

_COLORS = {
    Kind.ALLOW: typer.colors.GREEN,
    Kind.CONFIRM: typer.colors.YELLOW,
    Kind.DENY: typer.colors.RED,
}
_UNDECIDED = {
    Kind.UNREADABLE: "the input cannot be read",
    Kind.INVALID: "the request does not fit its point",
    Kind.POLICY: "the policy cannot be used",
    Kind.FAULT: "the engine failed",
}
_LEVELS = {"deny": typer.colors.RED, "confirm": typer.colors.YELLOW, "warn": typer.colors.YELLOW}
_MEANING = {
    Exit.ALLOW: "all are allowed",
    Exit.DENY: "at least one is denied",
    Exit.UNREADABLE: "at least one cannot be read or is invalid",
    Exit.CONFIRM: "at least one needs a person's approval",
    Exit.FAILED_CLOSED: "the engine failed closed; what it could not decide is not allowed",
    Exit.POLICY_INVALID: "the policy is invalid; nothing is allowed",
    Exit.REPLAY_CHANGED: "at least one outcome changed",
}
_NO_SPACE = "\0"
"""Stands for a space that no line is broken at; `clean` leaves none in any text."""


def render(reports: Iterable[Report], context: Context) -> str:
    """Lines of at most `context.width` columns, except where a path is longer."""
    lines = [line for report in reports for line in (*_report(report, context), "")]
    if "check" in modes(reports):
        lines.append(DRY_RUN)
    lines += _wrap(_summary(reports, context), 0, context)
    return "".join(f"{_inert(line.replace(_NO_SPACE, ' ').rstrip())}\n" for line in lines)


def _summary(reports: Iterable[Report], context: Context) -> str:
    counts = Counter(kind(report) for report in reports)
    outcomes = ", ".join(f"{counts[name]:,} {name.value}" for name in Kind if counts[name])
    code = context.exit
    return f"{counts.total():,} checked: {outcomes or 'none'}; exit {int(code)}: {_MEANING[code]}"


def _report(report: Report, context: Context) -> Iterator[str]:
    answer = kind(report)
    yield from _headline(report, answer, context)
    if answer.undecided:
        yield from _wrap(f"not decided by any rule: {_UNDECIDED[answer]}; nothing is allowed", 2, context)
    subjects = by_subject(report)
    blocks = _blocks(subjects, context)
    listed = blocks if context.explain else blocks[:_MOST_BLOCKS]
    approval = report.decision.approval
    approved = approval.id if approval is not None and approval.state == "used" else None
    for block in listed:
        yield from _block(block, approved, context)
    if left := sum(map(len, blocks[len(listed) :])):
        yield from _wrap(f"… and {left:,} more subjects with other findings; --explain shows all", 2, context)
    yield from _without(report, answer, subjects, context)
    if context.explain:
        yield from _decision(report, context)


def _headline(report: Report, answer: Kind, context: Context) -> Iterator[str]:
    word = report.decision.outcome.value.upper()
    if answer.undecided:
        word += f" ({answer.value})"
    title = clean(report.title)
    lines = _wrap(f"{_keep(word)} {_keep(report.path)}" + (f" ({title})" if title else ""), 0, context)
    yield _painted(_keep(word), _COLORS.get(answer, typer.colors.MAGENTA), context) + lines[0].removeprefix(_keep(word))
    yield from lines[1:]


_Block: TypeAlias = "dict[str | None, list[Explained]]"
"""Subjects with the same findings."""


def _blocks(subjects: dict[str | None, list[Explained]], context: Context) -> list[_Block]:
    blocks: dict[Any, _Block] = {}
    for subject, unsorted in subjects.items():
        if unsorted:
            items = sorted(unsorted, key=_identity)
            alone = subject if context.explain else subject is None
            blocks.setdefault((alone, *map(_identity, items)), {})[subject] = items
    return list(blocks.values())


def _identity(item: Explained) -> tuple[str, str, str, str, str]:
    finding = item.finding
    return (finding.code, finding.level.value, finding.requirement, finding.remedy, finding.waiver or "")


def _block(block: _Block, approved: str | None, context: Context) -> Iterator[str]:
    names = [WHOLE if subject is None else _keep(subject) for subject in block]
    yield from _wrap(_listed(names, _MOST_SUBJECTS), 2, context)
    columns = list(zip(*block.values(), strict=True))  # each is one finding as it is at each subject
    listed = columns if context.explain else columns[:_MOST_BLOCKS]
    for column in listed:
        yield from _finding(column, approved, context)
    if left := len(columns) - len(listed):
        yield from _wrap(f"… and {counted(left, 'more finding')}; --explain shows all", 4, context)


def _finding(column: Sequence[Explained], approved: str | None, context: Context) -> Iterator[str]:
    first = column[0]
    level = first.finding.level.value
    yield f"    {_painted(level, _LEVELS[level], context)} {clean(first.finding.code)}"
    yield from _wrap(claim(first), 6, context)
    there = list(dict.fromkeys(clean(item.found) for item in column if item.found))
    for found in there if context.explain else there[:_MOST_FOUND]:
        yield from _wrap(f"found: {found}", 6, context)
    if not context.explain and len(there) > _MOST_FOUND:
        yield f"      … and {len(there) - _MOST_FOUND:,} more that were found; --explain shows all"
    if places := _places(column):
        yield from _wrap(f"at: {places}", 6, context)
    if approved is not None and level == "confirm" and first.finding.waiver is None:
        yield from _wrap(f"approved ({clean(approved)})", 6, context)
    else:
        yield from _wrap(f"fix: {clean(first.finding.remedy)}", 6, context)
    rows = list(dict.fromkeys(_row(row, context) for item in column for row in item.rows))
    most = len(rows) if context.explain else _MOST_SUBJECTS
    for row in rows[:most]:
        yield from _wrap(f"policy: {row}", 6, context)
    if rows[most:]:
        yield f"      … and {len(rows) - most:,} more policy rows"
    if context.explain:
        if first.rule is not None:
            yield from _wrap(f"rule: {_place(first.rule)}", 6, context)
        if first.labels:
            labels = "; ".join(f"{clean(name)} {clean(value)}" for name, value in first.labels)
            yield from _wrap(f"labels: {labels}", 6, context)


def _row(row: PolicyRow, context: Context) -> str:
    if row.where is None:
        suggestion = f"; {clean(did_you_mean(row.nearest))}" if row.nearest else ""
        return f"{_keep(row.path)}: no row{suggestion}"
    value = clean(json.dumps(row.value, ensure_ascii=False, default=str))
    if len(value) > _MOST_VALUE and not context.explain:
        value = f"{value[:_MOST_VALUE]}…"
    return f"{_keep(row.path)} = {value} ({_place(row.where)})"


def _without(
    report: Report, answer: Kind, subjects: dict[str | None, list[Explained]], context: Context
) -> Iterator[str]:
    names = [_keep(subject) for subject, items in subjects.items() if subject is not None and not items]
    if names:
        word = "not decided" if answer.undecided else "without findings"
        of = f"{len(names):,} of {len(report.subjects):,}"
        yield from _wrap(f"{of} {word}: {_listed(names, _MOST_NAMES)}", 2, context)


def _decision(report: Report, context: Context) -> Iterator[str]:
    decision = report.decision
    facts = {
        "decision": f"{decision.decision_id} (point {decision.point}, mode {decision.mode.value})",
        "rules": "none" if decision.policy is None else decision.policy.rules,
        "values": "none" if decision.policy is None else decision.policy.values,
        "input": decision.input_digest or "none",
        "limits": "none" if decision.limits is None else "",
    }
    for name, value in facts.items():
        yield from _wrap(f"{name}: {clean(value)}", 2, context)
    if decision.limits is not None:
        for name, value in decision.limits.model_dump(mode="json").items():
            yield from _wrap(f"{clean(name)}: {_limit(value)}", 4, context)


def _limit(value: Any) -> str:
    if not isinstance(value, list):
        return clean(json.dumps(value, ensure_ascii=False))
    items = (clean(json.dumps(item, ensure_ascii=False)) for item in value[:_MOST_SUBJECTS])
    return _listed(list(items), _MOST_SUBJECTS, len(value)) or "none"


def _listed(names: list[str], most: int, of: int | None = None) -> str:
    """The first names and how many more there are; `of` is the true number when some are not here."""
    left = (of or len(names)) - min(len(names), most)
    return ", ".join(names[:most]) + (f" … and {left:,} more" if left else "")


def _place(where: Location) -> str:
    place = where.file if where.line is None else f"{where.file}:{where.line}"
    return _keep(place) + (f" ({_keep(where.field)})" if where.field is not None else "")


def _places(column: Sequence[Explained]) -> str:
    """Where one finding is; of several subjects the files with their lines, as `bundle.yaml:3, 12, 40`."""
    wheres = [item.where for item in column if item.where is not None]
    if len(wheres) == 1:
        return _place(wheres[0])
    spots = list(dict.fromkeys((where.file, where.line) for where in wheres))
    lines: dict[str, list[str]] = {}
    for file, line in spots[:_MOST_SUBJECTS]:
        lines.setdefault(file, []).extend([] if line is None else [str(line)])
    places = "; ".join(_keep(file) + (f":{', '.join(numbers)}" if numbers else "") for file, numbers in lines.items())
    left = len(spots) - _MOST_SUBJECTS
    return f"{places} … and {left:,} more" if left > 0 else places


def _keep(text: str) -> str:
    return clean(text).replace(" ", _NO_SPACE)


def _painted(word: str, color: str, context: Context) -> str:
    return typer.style(word, fg=color, bold=True) if context.color else word


def _wrap(text: str, indent: int, context: Context) -> list[str]:
    if indent + len(text) <= context.width:
        return [" " * indent + text]
    return textwrap.wrap(
        text,
        max(context.width, _NARROWEST),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _inert(line: str) -> str:
    """A line that a GitHub log does not interpret as a command, which it would after any indent."""
    start = line.lstrip()
    return line.replace("::", ":\\:", 1) if start.startswith("::") else line
