"""Approvals: what waits for a person, what it is about, and the decision of the person of this workbench."""

from __future__ import annotations

import time
from itertools import islice
from urllib.parse import quote

from engine.api.messages import Response
from engine.errors import EngineError
from engine.record.model import DecisionRecord
from engine.record.pages import read_page
from engine.record.reader import Filter, newest
from engine.reports.about import about
from engine.state.rows import ApprovalRow
from engine.workbench.decisions import explained
from engine.workbench.desk import Desk
from engine.workbench.pages import UnknownError, moved
from engine.workbench.visit import Visit

_MOST = 200
_RECORDED = 10_000
"""Approvals of a page; decisions of a point among which the one that asked is looked for."""

_LISTED, _BYTES = 1_000, 16 << 20
"""Decisions, and bytes of the record, among which those that ask for the listed approvals are looked for."""

_VERBS = {"grant": "grant_approval", "refuse": "refuse_approval"}


def listed(visit: Visit) -> Response:
    """Approvals that wait, then those that were decided."""
    waiting = visit.desk.stated(lambda store: store.approvals("requested", _MOST)) or ()
    rows = visit.desk.stated(lambda store: store.approvals(None, _MOST)) or ()
    now = time.time()
    asking = read_page(visit.desk.settings.state, Filter(outcome="confirm"), _LISTED, _BYTES, None)
    bodies = [one.body for one in asking.entries if isinstance(one.body, DecisionRecord)]
    return visit.page(
        "approvals.html",
        open=[row for row in waiting if row.state_at(now) == "requested"],
        closed=[row for row in rows if row.state_at(now) != "requested"],
        about={(body.point, body.input_digest): next(iter(about(body).values()), "") for body in bodies},
        now=now,
        most=_MOST,
    )


def one(visit: Visit, status: int = 200, fault: EngineError | None = None) -> Response:
    """One approval with the request that it is about; `fault` is why it could not be resolved."""
    row = visit.desk.stated(lambda store: store.approval(visit.name))
    if row is None:
        raise UnknownError("there is no such approval", remedy="choose one from the list of approvals")
    asking, policy = _asking(visit.desk, row), visit.desk.policy_or_none()
    return visit.page(
        "approvals_one.html",
        status,
        row=row,
        state=row.state_at(time.time()),
        asking=asking,
        about={} if asking is None else about(asking),
        findings=[] if asking is None else [explained(asking, one, policy) for one in asking.findings],
        same=policy is not None and (row.rules, row.values) == (policy.rules.revision, policy.values.revision),
        fault=fault,
        reason=visit.form.get("reason", ""),
    )


def _asking(desk: Desk, row: ApprovalRow) -> DecisionRecord | None:
    """The last recorded decision that asked for this approval."""
    entries = islice(newest(desk.settings.state, Filter(point=row.point, outcome="confirm")), _RECORDED)
    bodies = (entry.body for entry in entries)
    same = (body for body in bodies if isinstance(body, DecisionRecord) and body.input_digest == row.input_digest)
    return next(same, None)


def resolved(visit: Visit) -> Response:
    """Pass the person's yes or no on: it is decided by the policy and recorded, as that of `engine approvals` is."""
    act = _VERBS.get(visit.form.get("verb", ""))
    if act is None:
        raise UnknownError("this is neither yes nor no", remedy="use the buttons of the page")
    try:
        visit.desk.act({"act": act, "id": visit.name, "reason": visit.form.get("reason", "").strip() or None})
    except EngineError as error:
        return one(visit, 409, error)
    return moved(f"/approvals/{quote(visit.name)}")
