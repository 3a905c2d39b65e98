"""Live requests decided by a candidate policy too, beside their path: queued, decided in batches, recorded apart.

A request is offered once its decision is durable, and no caller waits for what follows. What the queue cannot hold is
dropped and counted, and so is what the candidate does not answer: whatever happens here changes no decision.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.binaries import find_binary
from engine.decide import Verdict
from engine.drive import BATCH_ITEMS, run_all
from engine.errors import EngineError, stack_of
from engine.model import is_reserved
from engine.points.registry import POINTS
from engine.policy_bundle.build import build
from engine.policy_bundle.sources import PolicySources
from engine.record.model import CandidateVerdict, DecisionRecord, RecordedFinding, ShadowRecord, utc_now
from engine.record.standing import Log
from engine.replay.candidate import Candidate, opened, verdict_steps
from engine.replay.comparing import Cause, Change, compared
from engine.replay.run import UNCHANGED
from engine.settings import Settings
from engine.times import timestamp

_Offered = tuple[DecisionRecord, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ShadowLimits:
    """What shadow decisions may cost: requests that wait, the size of an input, and the pause after a failure."""

    waiting: int = 512
    values: int = 20_000  # of one input, at any depth
    characters: int = 256 << 10  # of all texts of one input
    pause_seconds: float = 1.0


class Shadow:
    """A candidate policy beside a server. `offer` may be called from any thread, and never blocks or raises.

    `decided` counts recorded shadow decisions by what the candidate decides differently, `dropped` requests that were
    not decided by it, by reason.
    """

    def __init__(
        self,
        sources: PolicySources,
        settings: Settings,
        on_event: Callable[[str, Mapping[str, Any]], None],
        limits: ShadowLimits | None = None,
    ) -> None:
        """`settings` are those of the server; `on_event` hears whether the candidate was opened, and of crashes."""
        self.decided: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.up = False
        self._sources = sources
        self._settings = settings
        self._on_event = on_event
        self._limits = limits or ShadowLimits()
        self._waiting: deque[_Offered] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    def start(self, log: Log) -> None:
        """Build and open the candidate in a thread of its own, and append shadow lines to this record."""
        self._thread = threading.Thread(target=self._live, args=(log,), name="engine-shadow", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the candidate; what still waits is dropped."""
        with self._changed:
            self._closing = True
            self.dropped["stopped"] += len(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def offer(self, body: DecisionRecord, document: dict[str, Any] | None) -> None:
        """Have the candidate decide on the input of a recorded decision, some time, if it can be held until then."""
        if document is None or any(is_reserved(found.code) for found in body.findings):
            return  # no policy decided it
        reason = None
        if not self.up:
            reason = "not_running"
        elif len(self._waiting) >= self._limits.waiting:
            reason = "queue_full"
        elif any(path.startswith(("findings", "limits")) for path in body.redactions):
            reason = "redacted"
        elif not self._small(document):
            reason = "too_large"
        with self._changed:
            if reason is not None or self._closing:
                self.dropped[reason or "stopped"] += 1
                return
            self._waiting.append((body, document))
            self._changed.notify_all()

    def _small(self, document: dict[str, Any]) -> bool:
        """Whether an input is within the limits; looks at no more than these."""
        waiting: list[Any] = [document]
        values, characters = self._limits.values, self._limits.characters
        while waiting and values >= 0 and characters >= 0:
            value = waiting.pop()
            values -= 1
            if isinstance(value, dict):
                values -= len(value)
                waiting.extend(value.values() if len(value) <= values else ())
            elif isinstance(value, list | tuple):
                values -= len(value)
                waiting.extend(value if len(value) <= values else ())
            elif isinstance(value, str):
                characters -= len(value)
        return values >= 0 and characters >= 0

    def _live(self, log: Log) -> None:
        try:
            policy = build(self._sources, POINTS, find_binary(), self._settings.cache)
            with opened(policy, self._settings.opa) as candidate:
                self.up = True
                self._on_event("shadow_started", policy.revisions.model_dump())
                while wave := self._next():
                    if not self._decide(candidate, wave, log):
                        with self._changed:
                            self._changed.wait_for(lambda: self._closing, self._limits.pause_seconds)
        except EngineError as error:
            self._on_event("shadow_refused", {"code": error.code, "detail": error.one_line()})
        except Exception as error:  # noqa: BLE001  (the server goes on without it)
            self._on_event("crash", {"decision_id": None, "stack": stack_of(error)})
        finally:
            self.up = False

    def _next(self) -> list[_Offered]:
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._waiting)
            return [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH_ITEMS))]

    def _decide(self, candidate: Candidate, wave: Sequence[_Offered], log: Log) -> bool:
        """Decide and record a wave; false if the candidate or the record did not answer."""
        try:
            with candidate.leased() as served:
                verdicts = run_all([verdict_steps(served, body, document) for body, document in wave])
            lines = []
            for (body, _), verdict in zip(wave, verdicts, strict=True):
                changed = compared(body, verdict)
                lines.append(_line(body, verdict, changed, candidate))
            done = log.append_many([(line, ()) for line in lines])
        except Exception as error:  # noqa: BLE001  (whatever it is, the decisions stand)
            self.dropped["not_answered"] += len(wave)
            if not isinstance(error, EngineError):
                self._on_event("crash", {"decision_id": wave[0][0].decision_id, "stack": stack_of(error)})
            return False
        for line, result in zip(lines, done, strict=True):
            if isinstance(result, int):
                self.decided[line.change or UNCHANGED] += 1
            else:
                self.dropped["not_recorded"] += 1
        return True


def _line(
    body: DecisionRecord, verdict: Verdict, changed: tuple[Change, tuple[Cause, ...]] | None, candidate: Candidate
) -> ShadowRecord:
    findings = (
        RecordedFinding(code=one.code, level=one.level, subject=one.subject, waiver=one.waiver)
        for one in verdict.findings
    )
    candidate_verdict = CandidateVerdict(
        point=body.point,
        outcome=verdict.outcome,
        findings=tuple(findings),
        limits=None if verdict.limits is None else verdict.limits.model_dump(mode="json"),
        policy=candidate.policy.revisions,
    )
    fields = {
        "time": timestamp(utc_now()),
        "decision_id": body.decision_id,
        "change": None if changed is None else changed[0].value,
        "candidate": candidate_verdict.model_dump(mode="json"),  # as JSON, to be redacted
    }
    return ShadowRecord.model_validate(fields, strict=False)
