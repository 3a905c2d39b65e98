"""Answer to report: where each finding points, which rule made it, which policy rows that rule read.

Explaining decides nothing: the rows are the ones that the requirement says it reads (`custom.reads`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.errors import Location
from engine.flow import Answer
from engine.model import Finding
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.notes import parts
from engine.report import Explained, Report

_MOST_ROWS = 8


def report(path: str, answer: Answer, policy: PolicyBundle | None) -> Report:
    """The report of one answer on what stands at `path`."""
    gathered = answer.gathered
    document = {} if gathered is None else gathered.input.model_dump(mode="json", exclude_none=True)
    places = {} if gathered is None else gathered.places
    items = _items(document)
    explained = tuple(
        _explained(finding, answer, _Asked(items.get(finding.subject, document), document), places, policy)
        for finding in answer.decision.findings
    )
    subjects = () if gathered is None else tuple(dict.fromkeys(gathered.subjects))
    title = "could not be read" if gathered is None else gathered.title
    return Report(path, title, answer.decision, explained, subjects, answer.exit)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a rule was asked about: an item of a list, and the whole input, in which it may look too."""

    item: Any
    document: dict[str, Any]

    def field(self, path: str) -> Any:
        """The field at a dotted path of the item, else of the input."""
        found = _field(self.item, path)
        return _field(self.document, path) if found is None else found


def _explained(
    finding: Finding, answer: Answer, asked: _Asked, places: dict[str | None, Location], policy: PolicyBundle | None
) -> Explained:
    where = places.get(finding.subject, places.get(None))
    if answer.fault is not None and answer.fault.where is not None:
        where = answer.fault.where
    requirement = None if policy is None else policy.catalogue.requirement(answer.decision.point, finding.code)
    if requirement is None or policy is None:
        return Explained(finding, where, None, (), ())
    rows = tuple(policy.row(row) for template in requirement.reads for row in _expand(template, asked, policy))
    return Explained(
        finding,
        where,
        policy.where(requirement.file, requirement.line),
        tuple(sorted(requirement.labels.items())),
        rows[:_MOST_ROWS],
    )


def _items(document: dict[str, Any]) -> dict[str | None, Any]:
    """Every item that a finding may have as its subject: `<list>/<id>`, or `<list>/#<index>`."""
    found: dict[str | None, Any] = {}
    for parent in (document, *(value for value in document.values() if isinstance(value, dict))):
        for name, value in parent.items():
            if isinstance(value, list):
                for index, item in enumerate(value):
                    identity = item.get("id") if isinstance(item, dict) else None
                    found[f"{name}/{identity if isinstance(identity, str) else f'#{index}'}"] = item
    return found


def _expand(template: str, asked: _Asked, policy: PolicyBundle) -> list[tuple[str, ...]]:
    """`a.b.{c.d}` as paths below policy/: one for every string found in the field `c.d` of the item, else of the input.

    Braces within braces name a value of the policy: `{licenses.licenses.{license.alternatives}.category}`.
    """
    paths: list[tuple[str, ...]] = [()]
    for part in parts(template):
        found = [part]
        if part.startswith("{"):
            inner = part[1:-1]
            values = [asked.field(inner)]
            if "{" in inner:
                values = [policy.row(path).value for path in _expand(inner, asked, policy)]
            found = list(dict.fromkeys(text for value in values for text in _strings(value)))
        paths = [(*path, text) for path in paths for text in found]
    return paths


def _field(item: Any, path: str) -> Any:
    for part in path.split("."):
        item = item.get(part) if isinstance(item, dict) else None
    return item


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for child in value:
            yield from _strings(child)
