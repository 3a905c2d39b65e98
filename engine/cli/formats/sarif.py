"""Decisions as SARIF 2.1.0, for code scanning: one run, one result per finding.

A deny is an error, a confirm a warning, a warning a note. What the engine could not decide is an error
too, and the invocation then says that the run was not successful, with a notification for each. Allowed
requests have no result, because GitHub takes every result for an alert; `properties.outcomes` has them all.

Sources: section numbers are those of the OASIS standard; what GitHub takes and shows is described at
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from engine.cli.formats import Context
from engine.cli.formats.show import DRY_RUN, WHOLE, Kind, claim, clean, encodable, kind, modes, relative, there
from engine.documents.files import counted
from engine.errors import Exit, Location

if TYPE_CHECKING:
    from engine.reports.explain import Explained, Report

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_MOST_RESULTS = 25_000
"""GitHub refuses a run with more results."""
_LONGEST = 500
"""Characters of a description; GitHub shows 1,024, and writing out braces and brackets doubles them."""
_LEVELS = {"deny": "error", "confirm": "warning", "warn": "note"}
_ORDER = list(_LEVELS.values())
_PROPERTIES = {"decision_id", "point", "mode", "outcome", "policy", "input_digest"}
_DECISION = "decision."
"""Prefix of the SARIF rules for outcomes; a requirement's code has no dot."""


def render(reports: Iterable[Report], context: Context) -> str:
    """A SARIF log. The text is ASCII."""
    rules = _rules(reports, context)
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    results = [result for report in reports for result in _results(report, index, context)]
    if left := max(len(results) - _MOST_RESULTS, 0):
        results = sorted(results, key=lambda result: _ORDER.index(result["level"]))[:_MOST_RESULTS]
    driver = {"name": "admission-engine", "version": context.version, "semanticVersion": context.version}
    run = {
        "tool": {"driver": {**driver, **_address("informationUri", context.docs), "rules": rules}},
        "invocations": [_invocation(reports, left, context)],
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {
            "modes": modes(reports),
            "outcomes": [{"path": encodable(one.path), "outcome": kind(one).value} for one in reports],
        },
    }
    return log(run)


def log(run: dict[str, Any]) -> str:
    """The document of one run."""
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rules(reports: Iterable[Report], context: Context) -> list[dict[str, Any]]:
    """One rule per code, sorted."""
    texts_of: dict[str, dict[str, Explained]] = {}
    for report in reports:
        for item in report.explained:
            texts_of.setdefault(item.finding.code, {}).setdefault(claim(item), item)
    rules = {code: _rule(texts, context) for code, texts in texts_of.items()}
    mute = [_outcome_rule(kind(report)) for report in reports if _is_mute(report)]
    return [rule for _, rule in sorted({**rules, **{rule["id"]: rule for rule in mute}}.items())]


def _rule(texts: dict[str, Explained], context: Context) -> dict[str, Any]:
    """The rule of a code, in the words of its first finding; what differs between findings is left to them."""
    item = next(iter(texts.values()))
    finding, code = item.finding, clean(item.finding.code)
    required = claim(item) if len(texts) == 1 else f"findings with the code {code}"
    page = f"{context.docs}#{item.home}-{finding.code}" if context.docs and item.home else None
    text = "\n\n".join(filter(None, (required, clean(item.description or ""), f"fix: {clean(finding.remedy)}")))
    words = re.split(r"\W+|_", finding.code)
    labels = {encodable(name): encodable(value) for name, value in item.labels}
    return {
        "id": finding.code,
        "name": "".join(map(str.capitalize, words)),
        "shortDescription": message(required[:_LONGEST]),
        "fullDescription": message(". ".join(filter(None, (required, clean(item.description or ""))))[:_LONGEST]),
        "help": {**message(text), "markdown": _markdown(text, page)},
        **_address("helpUri", page),
        "defaultConfiguration": {"level": _LEVELS[finding.level.value]},
        "properties": {"tags": ["admission"], **({"labels": labels} if labels else {})},
    }


def _address(name: str, page: str | None) -> dict[str, str]:
    return {} if page is None else {name: page}


def _is_mute(report: Report) -> bool:
    """Whether it is no allow and has no finding that says so."""
    return not report.explained and kind(report) is not Kind.ALLOW


def _outcome_rule(outcome: Kind) -> dict[str, Any]:
    description, text = f"the decision on the whole request: {outcome.value}", "repeat the request with --format json"
    return {
        "id": f"{_DECISION}{outcome.value.replace(' ', '_')}",
        "name": f"Decision{outcome.value.title().replace(' ', '')}",
        "shortDescription": message(description),
        "fullDescription": message(description),
        "help": {**message(text), "markdown": _markdown(text, None)},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["admission"]},
    }


def _results(report: Report, index: dict[str, int], context: Context) -> Iterator[dict[str, Any]]:
    common = {"properties": report.decision.model_dump(mode="json", include=_PROPERTIES)}
    seen: Counter[str] = Counter()
    for item in report.explained:
        finding = item.finding
        subject = WHOLE if finding.subject is None else clean(finding.subject)
        found = there(item)
        parts = (f"{subject}: {claim(item)}", f"found: {found}" if found else None, f"fix: {clean(finding.remedy)}")
        yield {
            "ruleId": finding.code,
            "ruleIndex": index[finding.code],
            "level": _LEVELS[finding.level.value],
            "message": message(". ".join(filter(None, parts))),
            "locations": [_location(report, item.where, finding.subject, context)],
            "partialFingerprints": _fingerprint(report, finding.code, subject, seen, context),
            **_suppressed(finding.waiver),
            **common,
        }
    if _is_mute(report):
        answer = kind(report)
        rule = _outcome_rule(answer)["id"]
        note = f" ({DRY_RUN})" if report.decision.mode.value == "check" else ""
        yield {
            "ruleId": rule,
            "ruleIndex": index[rule],
            "level": "error",
            "message": message(f"{clean(report.title or report.path)}: {answer.value}{note}"),
            "locations": [_location(report, None, None, context)],
            "partialFingerprints": _fingerprint(report, rule, WHOLE, seen, context),
            **common,
        }


def _suppressed(waiver: str | None) -> dict[str, Any]:
    """A waived finding as code scanning knows it."""
    if waiver is None:
        return {}
    return {"suppressions": [{"kind": "external", "status": "accepted", "justification": f"waived by {clean(waiver)}"}]}


def _fingerprint(report: Report, code: str, subject: str, seen: Counter[str], context: Context) -> dict[str, str]:
    """The same for the same finding in later runs, wherever its line has moved; the name is GitHub's."""
    text = "\0".join((relative(report.path, context.base), code, subject))
    found = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    seen[found] += 1
    return {"primaryLocationLineHash": f"{found}:{seen[found]}"}


def _location(report: Report, where: Location | None, subject: str | None, context: Context) -> dict[str, Any]:
    file = report.path if where is None else where.file
    location = place(file, None if where is None else where.line, context.base)
    if subject is not None:
        name = clean(subject)
        location["logicalLocations"] = [{"name": name.rsplit("/", 1)[-1], "fullyQualifiedName": name}]
    return location


def place(file: str, line: int | None, base: str) -> dict[str, Any]:
    """A location: a relative reference, or a `file:` URI for an absolute path that is not below `base`."""
    named = relative(file, base)
    quoted = quote(named.encode("utf-8", "surrogateescape"), safe="/")
    uri = f"file://{quoted}" if PurePosixPath(named).is_absolute() else quoted
    region = {"startLine": line or 1}  # GitHub shows nothing without a line
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}


def _invocation(reports: Iterable[Report], left: int, context: Context) -> dict[str, Any]:
    broken = [item for report in reports if kind(report).undecided for item in report.explained]
    failed = broken or context.exit not in {Exit.ALLOW, Exit.CONFIRM, Exit.DENY}
    notifications = [
        _notification("error", item.finding.code, f"{claim(item)}. fix: {clean(item.finding.remedy)}")
        for item in broken
    ]
    if left:
        notifications.append(
            _notification("warning", "results", f"{counted(left, 'more finding')}; --format json has all")
        )
    invocation: dict[str, Any] = {"executionSuccessful": not failed, "exitCode": int(context.exit)}
    return {**invocation, "toolExecutionNotifications": notifications} if notifications else invocation


def _notification(level: str, identity: str, text: str) -> dict[str, Any]:
    return {"level": level, "descriptor": {"id": identity}, "message": message(text)}


def message(text: str) -> dict[str, str]:
    """A message in which brackets are no links and braces no placeholders (sections 3.11.5, 3.11.6)."""
    for char, literal in (("{", "{{"), ("}", "}}"), ("[", "\\["), ("]", "\\]")):
        text = text.replace(char, literal)
    return {"text": text}


def _markdown(text: str, page: str | None) -> str:
    """The same words in Markdown, which takes none of their characters for its own, and the page about them."""
    escaped = "".join(f"\\{char}" if char in _MARKED else char for char in text)
    return f"{escaped}\n\n[More]({page})" if page else escaped


_MARKED = frozenset("\\`*_{}[]<>()#+!|~&")
