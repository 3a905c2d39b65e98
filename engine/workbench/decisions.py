"""Decisions: a list with filters, one in full, and what it would have been with other values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from engine.api.messages import Response
from engine.documents.files import printable
from engine.drive import run_all
from engine.errors import EngineError, GatherError, Location, PolicyError
from engine.model import Mode, Outcome
from engine.points.registry import POINTS
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.catalogue import PolicyRow, Requirement, Words
from engine.record.chain import Entry
from engine.record.model import Body, DecisionRecord, RecordedFinding
from engine.record.pages import read_page
from engine.record.reader import Filter, newest
from engine.replay.candidate import opened, undecidable, verdict_steps
from engine.replay.comparing import compared
from engine.reports.about import about
from engine.reports.explain import rows_read
from engine.times import timestamp
from engine.workbench.desk import Desk
from engine.workbench.pages import UnknownError
from engine.workbench.visit import Visit

_ROWS = 50
_BYTES = 64 << 20
"""Decisions of a page, and bytes of the record that one page looks through."""

_FILTERS = ("decision_id", "point", "outcome", "mode", "code", "principal", "request_id", "trace", "since", "until")
_MOST_OVERRIDES = 50


def listed(visit: Visit) -> Response:
    """Decisions that the filters select, the newest first."""
    stated = {name: text for name in _FILTERS if (text := visit.query.get(name, "").strip())}
    try:
        times = {name: _moment(stated[name]) for name in ("since", "until") if name in stated}
    except GatherError as error:
        return _list(visit, stated, fault=error)
    selected: dict[str, Any] = stated | times
    found = read_page(visit.desk.settings.state, Filter(**selected), _ROWS, _BYTES, visit.query.get("cursor") or None)
    bodies = [one.body for one in found.entries if isinstance(one.body, DecisionRecord)]
    further = None if found.next is None else "/decisions?" + urlencode({**stated, "cursor": found.next})
    return _list(visit, stated, [(body, next(iter(about(body).values()), "")) for body in bodies], further)


def _list(
    visit: Visit,
    stated: dict[str, str],
    rows: Sequence[tuple[DecisionRecord, str]] = (),
    further: str | None = None,
    fault: GatherError | None = None,
) -> Response:
    return visit.page(
        "decisions.html",
        200 if fault is None else 400,
        rows=rows,
        further=further,
        fault=fault,
        earlier="cursor" in visit.query,
        stated={**dict.fromkeys(_FILTERS, ""), **stated},
        filtered=bool(stated),
        points=sorted(POINTS),
        outcomes=[one.value for one in Outcome],
        modes=[one.value for one in Mode],
    )


def _moment(text: str) -> str:
    """A time of a form as the record writes it; without a zone it is UTC. Raises GatherError."""
    try:
        moment = datetime.fromisoformat(text)
        return timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError) as error:
        raise GatherError(f"`{printable(text, 40)}` is not a time", remedy="write it like 2026-11-21T09:30") from error


@dataclass(frozen=True, slots=True)
class Recorded:
    """A decision with its line, and the lines about what came of it, oldest first."""

    entry: Entry
    body: DecisionRecord
    after: tuple[Body, ...]


def recorded(desk: Desk, id_: str) -> Recorded:
    """The decision with this id, or the last one whose id begins so. Raises UnknownError, RecordError."""
    after: list[Body] = []
    for entry in newest(desk.settings.state, Filter(decision_id=id_)) if id_ else ():
        if isinstance(entry.body, DecisionRecord):
            return Recorded(entry, entry.body, tuple(reversed(after)))
        after.append(entry.body)
    raise UnknownError("the record has no such decision", remedy="search for it in the list of decisions")


@dataclass(frozen=True, slots=True)
class Explained:
    """A recorded finding with its words, its rule and the values that this rule read, of the policy as it is now."""

    finding: RecordedFinding
    words: Words | None = None
    requirement: Requirement | None = None
    rule: Location | None = None
    rows: tuple[PolicyRow, ...] = ()


def explained(body: DecisionRecord, finding: RecordedFinding, policy: PolicyBundle | None) -> Explained:
    """A finding of a recorded decision; without a policy, it has no words."""
    if policy is None:
        return Explained(finding)
    requirement = policy.display_catalogue.requirement(body.point, finding.code)
    words = policy.display_catalogue.words(body.point, finding.code)
    if requirement is None:
        return Explained(finding, words)
    rows = rows_read(body.input or {}, requirement, finding.subject, policy)
    return Explained(finding, words, requirement, policy.where(requirement.file, requirement.line), rows)


def one(visit: Visit) -> Response:
    """A decision in full."""
    return _page(visit, recorded(visit.desk, visit.name))


def _page(visit: Visit, found: Recorded, **tried: Any) -> Response:
    body, policy, refused = found.body, None, None
    try:
        policy = visit.desk.policy()
    except EngineError as error:
        refused = error
    approval_id = body.approval
    approval = None if approval_id is None else visit.desk.stated(lambda store: store.approval(approval_id))
    return visit.page(
        "decisions_one.html",
        entry=found.entry,
        body=body,
        about=about(body),
        after=found.after,
        findings=[explained(body, finding, policy) for finding in body.findings],
        same=policy is not None and body.policy == policy.revisions,
        refused=refused,
        approval=approval,
        undecidable=undecidable(body),
        **{"overrides": "", "problems": (), "otherwise": None, "causes": (), "changed": None, **tried},
    )


def tried(visit: Visit) -> Response:
    """The same input decided by the policy with changed values: nothing is recorded or written."""
    found = recorded(visit.desk, visit.name)
    body, text = found.body, visit.form.get("overrides", "")
    overrides = tuple(line.strip() for line in text.splitlines() if line.strip())[:_MOST_OVERRIDES]
    if undecidable(body) is not None:
        return _page(visit, found, overrides=text)
    try:
        policy = visit.desk.policy(overrides)
    except PolicyError as error:
        return _page(visit, found, overrides=text, problems=error.problems)
    points = frozenset({body.point})
    with opened(policy, visit.desk.settings.opa, points) as candidate, candidate.leased() as served:
        (verdict,) = run_all([verdict_steps(served, body, body.input or {})])
    change, causes = compared(body, verdict) or (None, ())
    return _page(visit, found, overrides=text, otherwise=verdict, changed=change, causes=causes)
