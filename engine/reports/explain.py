"""From an answer to a report: the place of each finding, what was found there, the rule and the policy rows behind it.

Explaining decides nothing: field, facts and rows are those that the requirement names (`custom.field`,
`custom.facts`, `custom.reads`), and similar keys are suggestions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from engine.documents.files import Stated
from engine.documents.validation import FieldsError
from engine.errors import Exit, Location
from engine.facts.text.nearest import did_you_mean, nearest
from engine.flow import Answer
from engine.model import Decision, Finding
from engine.points import Gathered
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.catalogue import PolicyRow, Requirement
from engine.policy_bundle.notes import parts

_MOST_ROWS = 8
_MOST_SUGGESTIONS = 100
"""Different texts of one report for which keys are suggested; each is compared with all keys of a table."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A finding, the place in the request, the requirement's place, labels and policy rows.

    `found` says what is there instead of what is required, `description` why it is required, and `home` is
    the point whose requirement it is.
    """

    finding: Finding
    where: Location | None = None
    rule: Location | None = None
    labels: tuple[tuple[str, str], ...] = ()
    rows: tuple[PolicyRow, ...] = ()
    found: str | None = None
    description: str | None = None
    home: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The answer to one request. `explained` has every finding of the decision, `subjects` all that was decided."""

    path: str
    title: str
    decision: Decision
    explained: tuple[Explained, ...]
    subjects: tuple[str, ...]
    exit: Exit


def report(path: str, answer: Answer, policy: PolicyBundle | None) -> Report:
    """The report of one answer on the file at `path`."""
    gathered = answer.gathered
    fault = None if answer.fault is None else answer.fault.where
    inputs = None if gathered is None or policy is None else _Inputs(_document(gathered), policy)
    places = {} if gathered is None else gathered.places
    explained = tuple(
        _explained(
            Explained(finding, fault or places.get(finding.subject, places.get(None))),
            answer.decision.point,
            inputs,
            gathered,
        )
        for finding in answer.decision.findings
    )
    subjects = () if gathered is None else tuple(dict.fromkeys(gathered.subjects))
    invalid = answer.fault is not None and answer.fault.code == FieldsError.code
    title = gathered.title if gathered is not None else "" if invalid else "could not be read"
    return Report(path, title, answer.decision, explained, subjects, answer.exit)


def rows_read(
    document: dict[str, Any], requirement: Requirement, subject: str | None, policy: PolicyBundle
) -> tuple[PolicyRow, ...]:
    """The rows of the policy that a requirement reads for a subject of this input."""
    inputs = _Inputs(document, policy)
    paths = [path for template in requirement.reads for path in _expand(template, inputs, subject)]
    return tuple(map(inputs.row, paths[:_MOST_ROWS]))


def _document(gathered: Gathered) -> dict[str, Any]:
    return gathered.input.model_dump(mode="json", exclude_none=True)


class _Inputs:
    """What the rules were asked about: each item of a list, and the whole input, in which they may look too."""

    def __init__(self, document: dict[str, Any], policy: PolicyBundle) -> None:
        self.policy = policy
        self._document = document
        self._items = _items(document)
        self._alike: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}

    def fact(self, subject: str | None, path: str) -> Any:
        """The fact at a dotted path below the subject, else below the input; None if it is absent."""
        items = (self._items.get(subject, self._document), self._document)
        return next((value for item in items if (value := fact_at(item, path)) is not None), None)

    def row(self, path: tuple[str, ...]) -> PolicyRow:
        """A row of the policy; one that is not there with the keys that are spelled alike."""
        row = self.policy.row(path)
        return row if row.where is not None else replace(row, nearest=self.alike(path[-1], path[:-1]))

    def alike(self, text: str, table: tuple[str, ...]) -> tuple[str, ...]:
        """The keys of a table of the policy that are spelled like this, also by the `aliases` of its document."""
        if (text, table) not in self._alike:
            keys, aliases = self.policy.row(table).value, self.policy.row((*table[:1], "aliases")).value
            if not isinstance(keys, dict) or len(self._alike) == _MOST_SUGGESTIONS:
                return ()
            self._alike[text, table] = nearest(text, keys, aliases or {})
        return self._alike[text, table]


def _explained(item: Explained, point: str, inputs: _Inputs | None, gathered: Gathered | None) -> Explained:
    finding = item.finding
    requirement = None if inputs is None else inputs.policy.catalogue.words(point, finding.code)
    if requirement is None or inputs is None or gathered is None:
        return item
    stated = None if requirement.field is None else gathered.stated(finding.subject, requirement.field)
    if not isinstance(requirement, Requirement):
        return item if stated is None else replace(item, where=stated.where, found=stated.note)
    paths = [path for template in requirement.reads for path in _expand(template, inputs, finding.subject)]
    if finding.waiver is not None:
        paths.insert(0, ("waivers", "waivers", point, finding.code, finding.waiver))
    found = (
        _facts(requirement, finding.subject, inputs, stated),
        gathered.notes.get(finding.subject or ""),
        None if stated is None else stated.note,
        None if stated is None or paths else _misspelt(stated.value, requirement, inputs),
    )
    own = inputs.policy.sources.with_own_files
    return Explained(
        finding.model_copy(update={"requirement": own(finding.requirement), "remedy": own(finding.remedy)}),
        (stated and stated.where) or item.where,
        inputs.policy.where(requirement.file, requirement.line),
        tuple(sorted(requirement.labels.items())),
        tuple(map(inputs.row, paths[:_MOST_ROWS])),
        "; ".join(filter(None, found)) or None,
        own(requirement.description),
        requirement.point,
    )


def _facts(requirement: Requirement, subject: str | None, inputs: _Inputs, stated: Stated | None) -> str:
    """The facts of a requirement; the one that its field gave as the request states it, such as a day.

    A value that a note says more about is left out.
    """
    own = {} if stated is None or stated.note else {requirement.field: stated.value}
    named = ((name, own.get(path) or inputs.fact(subject, path)) for name, path in requirement.facts.items())
    return ", ".join(f"{name} {_fact_text(value)}" for name, value in named if value not in (None, [], {}))


def _fact_text(value: Any) -> str:
    """A fact in words: files by number and size, items of a list by their texts, an item by all that is known of it."""
    if isinstance(value, list) and value and all(isinstance(item, dict) and "bytes" in item for item in value):
        return f"{len(value)} ({sum(item['bytes'] for item in value)} bytes)"
    if isinstance(value, dict):
        return " ".join(map(_fact_text, value.values()))
    if isinstance(value, list):
        return ", ".join(map(_item_text, value))
    return str(value)


def _item_text(item: Any) -> str:
    if isinstance(item, dict):
        return " ".join(value for value in item.values() if isinstance(value, str))
    return _fact_text(item)


def _misspelt(value: Any, requirement: Requirement, inputs: _Inputs) -> str | None:
    """What a text that gave no fact to look up by could have meant."""
    tables = (tuple(template.partition(".{")[0].split(".")) for template in requirement.reads if ".{" in template)
    found = (inputs.alike(value, table) for table in tables) if isinstance(value, str) else ()
    keys = next(filter(None, found), ())
    return f"it cannot be read; {did_you_mean(keys)}" if keys else None


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


def _expand(template: str, inputs: _Inputs, subject: str | None) -> list[tuple[str, ...]]:
    """`a.b.{c.d}` as paths below policy/: one for every string found in the fact `c.d`.

    Braces within braces name a value of the policy: `{licenses.licenses.{license.alternatives}.category}`.
    """
    paths: list[tuple[str, ...]] = [()]
    for part in parts(template):
        found = [part]
        if part.startswith("{"):
            inner = part[1:-1]
            values = [inputs.fact(subject, inner)]
            if "{" in inner:
                values = [inputs.policy.row(path).value for path in _expand(inner, inputs, subject)]
            found = list(dict.fromkeys(text for value in values for text in _strings(value)))
        paths = [(*path, text) for path in paths for text in found]
    return paths


def fact_at(item: Any, path: str) -> Any:
    """The fact at a dotted path below an item; None if it is absent."""
    for part in path.split("."):
        item = item.get(part) if isinstance(item, dict) else None
    return item


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for child in value:
            yield from _strings(child)
