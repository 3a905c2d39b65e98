"""What one line of the record says: a decision, the result of its work, or a recovery of the log itself.

Words of findings (titles, remedies) are not here: they live in the catalogue of the policy bundle.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from engine.model import Digest, Level, Mode, Model, Outcome, Revisions, Sha256

Time = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$")]
"""RFC 3339 in UTC with microseconds, such as `2026-11-21T09:30:00.000000Z`."""

Count = Annotated[int, Field(ge=0)]
Version = Annotated[str, Field(max_length=64, pattern=r"^[^\"\\]*$")]


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
    """How long two verbs took, in microseconds."""

    gather: Count
    decide: Count


class CoveredEvents(Model):
    """The lines of source_events.jsonl that a decision wrote: how many, and the digest of their exact bytes."""

    bytes: Count
    count: Count
    sha256: Sha256


class DecisionRecord(Model):
    """One decision and everything needed to decide it again.

    `input` is the redacted input, null where none could be gathered; `input_digest` is of the input
    as OPA saw it. `redactions` names the fields of this record that were replaced, such as
    `input.bundle.id`. The log fills `source_events`.
    """

    kind: Literal["decision"] = "decision"
    time: Time
    decision_id: str
    point: str
    mode: Mode
    principal: str | None
    run: str | None
    input_digest: Digest | None
    input: dict[str, Any] | None
    redactions: tuple[str, ...]
    outcome: Outcome
    findings: tuple[RecordedFinding, ...]
    limits: dict[str, Any] | None
    policy: Revisions | None
    versions: Versions
    durations: Durations
    source_events: CoveredEvents | None = None


class ResultRecord(Model):
    """What approved work did; `duration` in microseconds, `facts` without content."""

    kind: Literal["result"] = "result"
    time: Time
    decision_id: str
    status: str
    facts: dict[str, Any]
    redactions: tuple[str, ...]
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

BODIES: dict[str, type[DecisionRecord] | type[ResultRecord] | type[RecoveryRecord]] = {
    "decision": DecisionRecord,
    "result": ResultRecord,
    "recovery": RecoveryRecord,
}
