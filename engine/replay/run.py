"""A replay of the record: every recorded decision that is selected, decided again in batches and counted.

Memory does not grow with the record: inputs are held for one wave at a time, and of what changed only counts, the most
frequent subjects and a few examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import sha256
from heapq import nsmallest
from pathlib import Path
from typing import Any

from engine.decide import Verdict
from engine.documents.files import printable
from engine.drive import BATCH_ITEMS, SIDE_BY_SIDE, run_all
from engine.errors import Location
from engine.model import Level, Outcome
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.catalogue import PolicyRow, Words
from engine.record.chain import Entry
from engine.record.model import DecisionRecord, RecordedFinding, utc_now
from engine.record.reader import Filter, entries
from engine.replay.candidate import Candidate, uncounted, undecidable, verdict_steps
from engine.replay.comparing import Cause, Change, compared
from engine.reports.about import about
from engine.reports.explain import rows_read
from engine.secrets.redaction import redact
from engine.times import timestamp

_WAVE_ITEMS = BATCH_ITEMS * SIDE_BY_SIDE
_WAVE_BYTES = 8 << 20
"""Recorded inputs that are held at once; one that is larger is a wave of its own."""

_MOST_GROUPS, _MOST_SUBJECTS, _MOST_EXAMPLES = 1_000, 1_000, 10
_MOST_UNREADABLE, _MOST_FLIPS = 100, 1_000
_REST = "…"
"""Stands for what is counted together once there is too much of it."""

UNCHANGED, UNDECIDED = "unchanged", "not_decided"

Progress = Callable[[int, int], None]
"""Called with the decisions replayed so far, and the lines of the record that were read for it."""


@dataclass(slots=True)
class Group:
    """Decisions that one finding changed, or one field of their limits; `words` and `where` are of the candidate.

    `words` is None for a code that the candidate does not have.
    """

    change: Change
    point: str
    code: str
    before: Level | None
    after: Level | None
    words: Words | None
    where: Location | None
    decisions: int = 0
    subjects: Counter[str] = field(default_factory=Counter)
    values: dict[str, PolicyRow] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Flip:
    """A decision that would change; `about` is the fact that distinguishes its request from others of the point."""

    decision_id: str
    time: str
    point: str
    change: Change
    before: Outcome
    after: Outcome
    about: str


@dataclass(slots=True)
class Replay:
    """What a replay found. `points` counts decisions by point and change, `unchanged` and `not_decided` among them.

    `flips` are the first of those that would change. `uncounted` counts decisions by point and budget that was not
    counted for them, `departed` those that the policy to compare with decides differently from the record.
    """

    decisions: int = 0
    first: str | None = None
    last: str | None = None
    points: dict[str, Counter[str]] = field(default_factory=dict)
    groups: dict[tuple[str, ...], Group] = field(default_factory=dict)
    undecided: Counter[tuple[str, str]] = field(default_factory=Counter)
    flips: list[Flip] = field(default_factory=list)
    uncounted: Counter[tuple[str, str]] = field(default_factory=Counter)
    departed: int = 0
    unreadable: list[Location] = field(default_factory=list)

    def count(self, what: str) -> int:
        """Decisions of all points."""
        return sum(counted[what] for counted in self.points.values())

    @property
    def compared(self) -> int:
        """Decisions that could be decided again."""
        return self.decisions - self.count(UNDECIDED)

    @property
    def changes(self) -> int:
        """Decisions that would change."""
        return sum(self.count(change) for change in Change if change.counts)

    @property
    def changed(self) -> bool:
        """Whether an outcome changed, or what an allow permits."""
        return self.changes > 0


def replay(
    state: Path,
    criteria: Filter,
    candidate: Candidate,
    sample: int | None,
    progress: Progress,
    base: Candidate | None = None,
) -> Replay:
    """Decide the recorded decisions that `criteria` selects again, or a sample of so many of them.

    They are compared with what was recorded, or with what the policy `base` decides. A sample is spread evenly, and the
    same whenever it is drawn. Raises RecordError for a record that cannot be read, and DecideError while OPA does not
    answer.
    """
    found, criteria = Replay(), replace(criteria, until=timestamp(utc_now()))
    for wave in _ahead(_waves(_selected(state, criteria, sample, found, progress))):
        before = wave if base is None else _decided_by(base, wave)
        for recorded, body, verdict in zip(wave, before, _verdicts(candidate, wave), strict=True):
            count(found, candidate.policy, body, verdict.outcome, compared(body, verdict))
            found.uncounted.update((body.point, name) for name in uncounted(candidate.policy, body))
            found.departed += (body.outcome, body.limits) != (recorded.outcome, recorded.limits)
    return found


def _verdicts(candidate: Candidate, wave: list[DecisionRecord]) -> list[Verdict]:
    with candidate.leased() as served:
        return run_all([verdict_steps(served, body, body.input or {}) for body in wave])


def _decided_by(base: Candidate, wave: list[DecisionRecord]) -> list[DecisionRecord]:
    """The decisions as this policy takes them; those that it took are as they are."""
    others = [body for body in wave if body.policy != base.policy.revisions]
    decided = map(_decided, others, _verdicts(base, others))
    return [body if body.policy == base.policy.revisions else next(decided) for body in wave]


def _decided(body: DecisionRecord, verdict: Verdict) -> DecisionRecord:
    """A decision as this verdict would be recorded."""
    findings = (
        RecordedFinding(code=one.code, level=one.level, subject=redact(one.subject)[0], waiver=one.waiver)
        for one in verdict.findings
    )
    limits = None if verdict.limits is None else verdict.limits.model_dump(mode="json")
    return body.model_copy(update={"outcome": verdict.outcome, "findings": tuple(findings), "limits": limits})


def _selected(
    state: Path, criteria: Filter, sample: int | None, found: Replay, progress: Progress
) -> Iterator[tuple[DecisionRecord, int]]:
    """The decisions that can be decided again, each with the size of its line; the others are counted."""
    last = None
    if sample is not None:
        ranks = nsmallest(sample, (_rank(body) for body, _ in _decisions(state, criteria, Replay(), progress)))
        last = max(ranks, default="")
    for body, size in _decisions(state, criteria, found, progress):
        if last is not None and _rank(body) > last:
            continue
        found.decisions += 1
        found.first = found.first or body.time
        found.last = body.time
        if (reason := undecidable(body)) is None:
            yield body, size
        else:
            leave_out(found, body.point, reason)


def _decisions(
    state: Path, criteria: Filter, found: Replay, progress: Progress
) -> Iterator[tuple[DecisionRecord, int]]:
    read: dict[int, int] = {}
    for entry in entries(state, criteria):
        if isinstance(entry, Entry):
            read[entry.chain] = entry.seq
            progress(found.decisions, sum(read.values()))
            if isinstance(entry.body, DecisionRecord):
                yield entry.body, entry.size
        elif len(found.unreadable) < _MOST_UNREADABLE:
            found.unreadable.append(entry)


def _rank(body: DecisionRecord) -> str:
    return sha256(body.decision_id.encode("utf-8", "replace")).hexdigest()


def _waves(selected: Iterable[tuple[DecisionRecord, int]]) -> Iterator[list[DecisionRecord]]:
    wave: list[DecisionRecord] = []
    held = 0
    for body, size in selected:
        if wave and (len(wave) == _WAVE_ITEMS or held + size > _WAVE_BYTES):
            yield wave
            wave, held = [], 0
        wave.append(body)
        held += size
    if wave:
        yield wave


def _ahead(waves: Iterator[list[DecisionRecord]]) -> Iterator[list[DecisionRecord]]:
    """The waves, the next one read while OPA decides on the current one."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, waves, None)
        while (wave := coming.result()) is not None:
            coming = reader.submit(next, waves, None)
            yield wave


def count(
    found: Replay,
    policy: PolicyBundle | None,
    body: DecisionRecord,
    outcome: Outcome,
    changed: tuple[Change, tuple[Cause, ...]] | None,
) -> None:
    """Count a recorded decision, on which a candidate decides `outcome`; words and places are those of its policy.

    They are left out where the policy is not at hand.
    """
    if changed is None:
        _tally(found, body.point)[UNCHANGED] += 1
        return
    change, causes = changed
    _tally(found, body.point)[change] += 1
    if change.counts and len(found.flips) < _MOST_FLIPS:
        first = printable(next(iter(about(body).values()), ""), 80)
        found.flips.append(Flip(body.decision_id, body.time, body.point, change, body.outcome, outcome, first))
    counted: set[int] = set()
    for cause in causes:
        group = _group(found, policy, change, body.point, cause)
        if id(group) not in counted:
            counted.add(id(group))
            group.decisions += 1
            if len(group.examples) < _MOST_EXAMPLES:
                group.examples.append(body.decision_id)
        subject = cause.subject or "the whole request"
        group.subjects[_bounded(group.subjects, subject, _REST, _MOST_SUBJECTS)] += 1
        requirement = None if policy is None else policy.catalogue.requirement(body.point, cause.code)
        if policy is not None and requirement is not None and len(group.values) < _MOST_SUBJECTS:
            group.values |= {row.path: row for row in rows_read(body.input or {}, requirement, cause.subject, policy)}


def leave_out(found: Replay, point: str, reason: str) -> None:
    """Count a decision that cannot be compared."""
    found.undecided[_bounded(found.undecided, (point, reason), (_REST, _REST), _MOST_GROUPS)] += 1
    _tally(found, point)[UNDECIDED] += 1


def _group(found: Replay, policy: PolicyBundle | None, change: Change, point: str, cause: Cause) -> Group:
    key = (change.value, point, cause.code, cause.before or "", cause.after or "")
    if key not in found.groups:
        if len(found.groups) >= _MOST_GROUPS:
            key, point, cause = (change.value, _REST, _REST, "", ""), _REST, Cause(_REST, None, None, None)
        where: Location | None = None
        if policy is not None and (requirement := policy.catalogue.requirement(point, cause.code)) is not None:
            where = policy.where(requirement.file, requirement.line)
        elif policy is not None and change is Change.LIMITS and point != _REST:
            where = policy.where(f"rego/admission/limits/{point}.rego", 1)
        found.groups.setdefault(
            key,
            Group(
                change,
                point,
                cause.code,
                cause.before,
                cause.after,
                None if policy is None else policy.display_catalogue.words(point, cause.code),
                where,
            ),
        )
    return found.groups[key]


def _tally(found: Replay, point: str) -> Counter[str]:
    return found.points.setdefault(printable(point, 64), Counter())


def _bounded(known: Counter[Any], key: Any, rest: Any, most: int) -> Any:
    """The key to count under: `rest` for a further one of too many."""
    return key if key in known or len(known) < most else rest
