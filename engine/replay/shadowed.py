"""Recorded shadow lines as a replay: what a candidate decided beside a server, compared with the decisions themselves.

The record is read from its end, so that a report can be of the last lines alone. A shadow line is met before its
decision, and held until then; few are at a time, because a server has few requests in its queue.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.model import Revisions
from engine.policy_bundle.build import PolicyBundle
from engine.record.chain import Entry
from engine.record.model import DecisionRecord, ShadowRecord
from engine.record.reader import Filter, newest
from engine.replay.comparing import compared_with
from engine.replay.run import Progress, Replay, count, leave_out

_MOST_HELD, _MOST_CANDIDATES = 20_000, 20
"""Shadow lines that wait for their decision; candidates that are counted apart."""

_GONE = "the record no longer has the decision"


@dataclass(frozen=True, slots=True)
class Shadowed:
    """What one candidate decided differently; `known` if its policy is at hand, `others` counts lines of others."""

    revisions: Revisions
    found: Replay
    known: bool
    others: Mapping[Revisions, int]


def shadowed(
    state: Path,
    criteria: Filter,
    policy: PolicyBundle | None,
    progress: Progress = lambda *_: None,
    most: int | None = None,
) -> Shadowed | None:
    """The shadow lines of decisions that `criteria` selects, or the last `most` of them; None without any.

    They are those of `policy`, or where it has none those of the candidate that was recorded last. Raises RecordError.
    """
    held: OrderedDict[str, list[ShadowRecord]] = OrderedDict()
    found: dict[Revisions, Replay] = {}
    lines = 0
    for read, entry in enumerate(newest(state, Filter(since=criteria.since)), start=1):
        progress(lines, read)
        body = entry.body
        if isinstance(body, ShadowRecord):
            if lines == most:
                break
            lines += 1
            held.setdefault(body.decision_id, []).append(body)
            if len(held) > _MOST_HELD:
                _lost(found, held.popitem(last=False)[1])
        elif isinstance(body, DecisionRecord) and body.decision_id in held:
            _compare(found, entry, body, held.pop(body.decision_id), criteria, policy)
    if criteria == Filter() and most is None:  # with a selection, the decision may be one that is not selected
        for waiting in held.values():
            _lost(found, waiting)
    return _chosen(found, policy)


def _compare(
    found: dict[Revisions, Replay],
    entry: Entry,
    body: DecisionRecord,
    shadows: list[ShadowRecord],
    criteria: Filter,
    policy: PolicyBundle | None,
) -> None:
    if not criteria.admits(entry):
        return
    for verdict in (one.candidate for one in shadows):
        if (own := _of(found, verdict.policy)) is not None:
            _dated(own, body.time)
            changed = compared_with(body, verdict.outcome, verdict.findings, verdict.limits)
            known = policy if policy is not None and policy.revisions == verdict.policy else None
            count(own, known, body, verdict.outcome, changed)


def _lost(found: dict[Revisions, Replay], shadows: list[ShadowRecord]) -> None:
    for line in shadows:
        if (own := _of(found, line.candidate.policy)) is not None:
            _dated(own, line.time)
            leave_out(own, line.candidate.point, _GONE)


def _dated(own: Replay, time: str) -> None:
    """Count one decision; the record is read from its end."""
    own.decisions += 1
    own.first, own.last = time, own.last or time


def _of(found: dict[Revisions, Replay], revisions: Revisions) -> Replay | None:
    """What is counted for a candidate; None for a further one of too many."""
    return found.get(revisions) or (found.setdefault(revisions, Replay()) if len(found) < _MOST_CANDIDATES else None)


def _chosen(found: dict[Revisions, Replay], policy: PolicyBundle | None) -> Shadowed | None:
    if not found:
        return None
    known = policy is not None and policy.revisions in found
    revisions = policy.revisions if policy is not None and known else next(iter(found))
    others = {one: replay.decisions for one, replay in found.items() if one != revisions}
    return Shadowed(revisions, found[revisions], known, others)
