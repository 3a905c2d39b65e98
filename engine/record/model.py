"""What one line of the record says: a decision, the result of its work, or a recovery of the log itself.

Words of findings (titles, remedies) are not here: they live in the catalogue of the policy bundle.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from engine.model import Decision, Digest, Level, Mode, Model, Outcome, Revisions, Sha256
from engine.record.redaction import redact

Time = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$")]
"""RFC 3339 in UTC with microseconds, such as `2026-11-21T09:30:00.000000Z`."""

Count = Annotated[int, Field(ge=0)]
Version = Annotated[str, Field(max_length=64, pattern=r"^[^\"\\]*$")]


def utc_now() -> datetime:
    """The clock of the machine."""
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """The one form of time in the record. `moment` must be aware of its time zone."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class RecordedFinding(Model):
    """A finding without its words."""

    code: str
    level: Level
    subject: str | None


class Versions(Model):
    """Versions of the engine and of the OPA that took part; `opa` is null where none was reached."""

    engine: Version
    opa: Version | None


class Durations(Model):
    """How long two verbs took, in microseconds; null for a verb that was not reached."""

    gather: Count | None
    decide: Count | None


class CoveredEvents(Model):
    """The lines of source_events.jsonl that a decision wrote: how many, and the digest of their exact bytes."""

    bytes: Count
    count: Count
    sha256: Sha256


class _Redacted(Model):
    """A body that is redacted as it is made: whoever leaves out `redactions` gets it done."""

    redactions: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _redact(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "redactions" in data:
            return data
        paths: list[str] = []
        clean = dict(data)
        if "findings" in data:
            clean["findings"] = [dict(finding) for finding in data["findings"]]  # a model gives its fields too
        for name in _FREE & data.keys():
            clean[name], found = redact(clean[name])
            paths += (f"{name}.{path}" if path else name for path in found)
        return clean | {"redactions": tuple(sorted(paths))}


_FREE = {"decision_id", "principal", "run", "input", "findings", "limits", "status", "facts"}
"""Fields whose content others chose; all others have a closed form."""


class DecisionRecord(_Redacted):
    """One decision and everything needed to decide it again.

    `input` is the redacted input, null where none could be gathered; `input_digest` is the decision's.
    `redactions` names the fields of this record that were replaced, such as `input.bundle.id`. The log
    fills `source_events`.
    """

    kind: Literal["decision"] = "decision"
    time: Time
    decision_id: str
    point: str
    mode: Mode
    principal: str | None = None
    run: str | None = None
    input_digest: Digest | None
    input: dict[str, Any] | None
    outcome: Outcome
    findings: Annotated[tuple[RecordedFinding, ...], Field(strict=False)]
    limits: dict[str, Any] | None
    policy: Revisions | None
    versions: Versions
    durations: Durations
    source_events: CoveredEvents | None = None

    @classmethod
    def of(
        cls,
        decision: Decision,
        *,
        time: str,
        document: dict[str, Any] | None,
        versions: Mapping[str, str],
        durations: Mapping[str, int],
        principal: str | None = None,
        run: str | None = None,
    ) -> DecisionRecord:
        """The record of a decision on `document`, the input as OPA saw it.

        `versions` has `engine` and, where one was reached, `opa`; `durations` has microseconds of `gather`
        and `decide`, as far as they ran.
        """
        return cls.model_validate(
            {
                "time": time,
                "decision_id": decision.decision_id,
                "point": decision.point,
                "mode": decision.mode,
                "principal": principal,
                "run": run,
                "input_digest": decision.input_digest,
                "input": document,
                "outcome": decision.outcome,
                "findings": [
                    {"code": finding.code, "level": finding.level, "subject": finding.subject}
                    for finding in decision.findings
                ],
                "limits": None if decision.limits is None else decision.limits.model_dump(mode="json"),
                "policy": decision.policy,
                "versions": Versions(engine=versions["engine"], opa=versions.get("opa")),
                "durations": Durations(gather=durations.get("gather"), decide=durations.get("decide")),
            }
        )


class ResultRecord(_Redacted):
    """What approved work did; `duration` in microseconds, `facts` without content."""

    kind: Literal["result"] = "result"
    time: Time
    decision_id: str
    status: str
    facts: dict[str, Any]
    duration: Count


class RecoveryRecord(Model):
    """An unfinished write that was cut from the end of a file; the cut bytes are in `kept`, beside the log."""

    kind: Literal["recovery"] = "recovery"
    time: Time
    file: str
    offset: Count
    bytes: Count
    sha256: Sha256
    kept: str


Body = DecisionRecord | ResultRecord | RecoveryRecord

BODIES: dict[str, type[DecisionRecord | ResultRecord | RecoveryRecord]] = {
    "decision": DecisionRecord,
    "result": ResultRecord,
    "recovery": RecoveryRecord,
}
