"""The models of record lines: decisions, results of work, replayed answers, changes of policy and record, shadows.

Texts of findings (titles, remedies) are not here: they are in the catalogue of the policy bundle.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from engine.documents.canonical import Fragment, canonical, in_order
from engine.model import Count, Decision, Digest, Level, Mode, Model, Outcome, Revisions, Sha256, WaiverId
from engine.secrets import prefilter
from engine.secrets.redaction import redact

_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$"
Time = Annotated[str, Field(pattern=_TIME)]
"""RFC 3339 in UTC with microseconds, such as `2026-11-21T09:30:00.000000Z`."""

Version = Annotated[str, Field(max_length=64, pattern=r"^[^\"\\]*$")]
Trace = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
"""A trace id as in W3C Trace Context."""


def utc_now() -> datetime:
    """The clock of the machine."""
    return datetime.now(UTC)


class RecordedFinding(Model):
    """A finding without its texts; `waiver` is the id of the waiver that covered it, absent without one."""

    code: str
    level: Level
    subject: str | None
    waiver: WaiverId = None

    @property
    def written(self) -> dict[str, Any]:
        """Its fields in a line of the record."""
        fields = {"code": self.code, "level": self.level, "subject": self.subject}
        return fields if self.waiver is None else {**fields, "waiver": self.waiver}


class Versions(Model):
    """Versions of the engine and of OPA; `opa` is null if none was reached."""

    engine: Version
    opa: Version | None


class Durations(Model):
    """Durations of two verbs in microseconds; null for a verb that was not reached."""

    gather: Count | None
    decide: Count | None


class CoveredEvents(Model):
    """The lines of source_events.jsonl that a decision wrote: their number, and the digest of their exact bytes."""

    bytes: Count
    count: Count
    sha256: Sha256


class _Redacted(Model):
    """A body that is redacted at creation, unless `redactions` is passed."""

    redactions: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _redact(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "redactions" in data:
            return data
        paths: list[str] = []
        clean = dict(data)
        if "findings" in data:
            clean["findings"] = [dict(finding) for finding in data["findings"]]  # a model has its fields too
        for name in _FREE & data.keys():
            clean[name], found = redact(clean[name])
            paths += (f"{name}.{path}" if path else name for path in found)
        return clean | {"redactions": tuple(sorted(paths))}


_FREE = {
    *("decision_id", "principal", "run", "request_id", "approval", "shared_from", "reason"),
    *("input", "findings", "limits", "status", "facts", "release", "candidate"),
}
"""Fields whose content others chose; all others have a closed form."""


class DecisionRecord(_Redacted):
    """One decision and everything needed to replay it.

    `input` is the redacted input, null if none could be gathered; `input_digest` is the decision's.
    `redactions` names the fields of this record that were replaced, such as `input.bundle.id`. `approval`
    is the id of the approval that was used or requested. `shared_from` is the id of the decision for which OPA gave
    this answer, if it is that to an equal case; else null. The log fills `source_events`.
    """

    kind: Literal["decision"] = "decision"
    time: Time
    decision_id: str
    point: str
    mode: Mode
    principal: str | None = None
    run: str | None = None
    request_id: str | None = None
    trace: Trace | None = None
    approval: str | None = None
    input_digest: Digest | None
    input: dict[str, Any] | None
    outcome: Outcome
    findings: Annotated[tuple[RecordedFinding, ...], Field(strict=False)]
    limits: dict[str, Any] | None
    policy: Revisions | None
    versions: Versions
    durations: Durations
    source_events: CoveredEvents | None = None
    shared_from: str | None = None

    @classmethod
    def of(  # noqa: PLR0913 (each is a field)
        cls,
        decision: Decision,
        *,
        time: str,
        document: dict[str, Any] | None,
        versions: Mapping[str, str],
        durations: Mapping[str, int],
        principal: str | None = None,
        run: str | None = None,
        request_id: str | None = None,
        trace: str | None = None,
        approval: str | None = None,
        shared_from: str | None = None,
    ) -> DecisionRecord:
        """The record of a decision on `document`, the input as OPA saw it.

        `versions` has `engine` and, where one was reached, `opa`; `durations` has microseconds of `gather`
        and `decide`, as far as they ran. Raises ValidationError where `time` or `trace` has another form.
        """
        fields: dict[str, Any] = {
            "time": time,
            "trace": trace,
            "point": decision.point,
            "mode": decision.mode,
            "input_digest": decision.input_digest,
            "outcome": decision.outcome,
            "policy": decision.policy,
            "versions": _versions(versions["engine"], versions.get("opa")),
            "durations": Durations(gather=durations.get("gather"), decide=durations.get("decide")),
            "decision_id": decision.decision_id,
            "principal": principal,
            "run": run,
            "request_id": request_id,
            "approval": approval,
            "shared_from": shared_from,
            "input": document,
            "findings": tuple(
                _recorded(finding.code, finding.level, finding.subject, finding.waiver) for finding in decision.findings
            ),
            "limits": None if decision.limits is None else decision.limits.model_dump(mode="json"),
        }
        if _WHEN.match(time) and (trace is None or _WHERE.match(trace)) and (checked := _harmless(fields)) is not None:
            more = {"kind": "decision", "redactions": (), "source_events": None, _CHECKED: checked}
            return _made(cls, fields | more)
        return cls.model_validate(fields)


class ResultRecord(_Redacted):
    """The result of approved work; `duration` in microseconds, `facts` without content."""

    kind: Literal["result"] = "result"
    time: Time
    decision_id: str
    status: str
    facts: dict[str, Any]
    duration: Count
    request_id: str | None = None
    trace: Trace | None = None
    approval: str | None = None


class ReplayRecord(_Redacted):
    """An answer that was replayed, this many `times`.

    Its caller repeated the idempotency key; or unidentified callers got one deny for all of them.
    """

    kind: Literal["replay"] = "replay"
    time: Time
    decision_id: str
    times: Annotated[int, Field(ge=1)] = 1
    principal: str | None = None
    request_id: str | None = None
    trace: Trace | None = None


class RecoveryRecord(Model):
    """An unfinished write that was cut from the end of a file; `kept` is the file with the cut bytes."""

    kind: Literal["recovery"] = "recovery"
    time: Time
    file: str
    offset: Count
    bytes: Count
    sha256: Sha256
    kept: str


class RetentionRecord(_Redacted):
    """Whole segments removed for their age, with principal and reason; written before the first removal.

    `decision_id` is the decision that allowed it. Every line of the segments `first_segment` to `last_segment`
    was older than `before`; `last_seq` and `last_hash` are of the last of these lines, so that the remaining chain
    continues from there.
    """

    kind: Literal["retention"] = "retention"
    time: Time
    keep_days: Count
    decision_id: str
    before: Time
    first_segment: Annotated[int, Field(ge=1)]
    last_segment: Annotated[int, Field(ge=1)]
    last_seq: Annotated[int, Field(ge=1)]
    last_hash: Sha256
    principal: str | None = None
    reason: str | None = None


class RecordedRelease(Model):
    """A release of a policy: its number, who built it, who approved it, and the notes of its author."""

    name: str
    sequence: Count
    digest: Digest
    author: str
    approver: str | None
    notes: str


class PolicyRecord(_Redacted):
    """A change of the active policy, with principal and reason: `activated`, written before the switch, or `refused`.

    `started` is the policy that a server begins with. `previous` was served before, `revisions` are those of the new
    policy; null if there was none, or it did not build. `code` is the code of the error that caused a refusal.
    `release` is the release that the policy came as; null if it was built from folders.
    """

    kind: Literal["policy"] = "policy"
    time: Time
    outcome: Literal["started", "activated", "refused"]
    principal: str | None
    reason: str | None
    previous: Revisions | None
    revisions: Revisions | None
    code: str | None
    release: RecordedRelease | None = None
    request_id: str | None = None
    trace: Trace | None = None


class CandidateVerdict(Model):
    """What a candidate policy decides on an input. No field of the line itself has these names: it is no decision."""

    point: str
    outcome: Annotated[Outcome, Field(strict=False)]
    findings: Annotated[tuple[RecordedFinding, ...], Field(strict=False)]
    limits: dict[str, Any] | None
    policy: Revisions


class ShadowRecord(_Redacted):
    """What a candidate policy decided beside a decision, which stands whatever this says.

    `change` is what it decides differently, in the words of `engine record replay`; null if nothing.
    """

    kind: Literal["shadow"] = "shadow"
    time: Time
    decision_id: str
    change: str | None
    candidate: Annotated[CandidateVerdict, Field(strict=False)]


Body = DecisionRecord | ResultRecord | ReplayRecord | RecoveryRecord | RetentionRecord | PolicyRecord | ShadowRecord

BODIES: dict[str, type[Body]] = {model.model_fields["kind"].default: model for model in get_args(Body)}


def encode_body(body: Body) -> bytes:
    """The canonical JSON of a body. Raises ValueError, TypeError or RecursionError for a body without such a form."""
    return _decision_json(body) if type(body) is DecisionRecord else canonical(body.model_dump())


def _decision_json(body: DecisionRecord) -> bytes:
    """All keys in order; pydantic's own way there costs four times as much."""
    checked = body.__dict__.get(_CHECKED, {})
    policy, versions, durations, events = body.policy, body.versions, body.durations, body.source_events
    return in_order(
        {
            "approval": body.approval,
            "decision_id": body.decision_id,
            "durations": {"decide": durations.decide, "gather": durations.gather},
            "findings": Fragment(_same(checked, "findings", body.findings) or _findings_json(body.findings)),
            "input": Fragment(_same(checked, "input", body.input) or _json(body.input)),
            "input_digest": body.input_digest,
            "kind": "decision",
            "limits": Fragment(_same(checked, "limits", body.limits) or _json(body.limits)),
            "mode": body.mode,
            "outcome": body.outcome,
            "point": body.point,
            "policy": None if policy is None else {"rules": policy.rules, "values": policy.values},
            "principal": body.principal,
            "redactions": body.redactions,
            "request_id": body.request_id,
            "run": body.run,
            "shared_from": body.shared_from,
            "source_events": None if events is None else events.__dict__,
            "time": body.time,
            "trace": body.trace,
            "versions": {"engine": versions.engine, "opa": versions.opa},
        }
    )


def _json(value: Any) -> bytes:
    return b"null" if value is None else canonical(value)


_Checked = dict[str, tuple[Any, bytes]]
"""Fields in which redaction would change nothing, with the JSON in which it looked for that."""

_CHECKED = "_checked"
"""The field of a record with this JSON, so that exactly what was searched for secrets is written."""


def _harmless(fields: dict[str, Any]) -> _Checked | None:
    """The fields that are more than a text, if all have the right types and redaction would not change them."""
    findings = fields["findings"]
    try:
        texts = in_order([_of(fields[name], str) for name in _TEXTS])
        found = {name: (fields[name], _json(_of(fields[name], dict))) for name in ("input", "limits")}
        found["findings"] = findings, _findings_json(findings)
    except (ValueError, TypeError, RecursionError):
        return None
    return found if prefilter.clean(b",".join((texts, *(text for _, text in found.values())))) else None


def _same(checked: _Checked, name: str, value: Any) -> bytes | None:
    """The JSON of a field, if it still is the one that was searched."""
    known = checked.get(name)
    return known[1] if known is not None and known[0] is value else None


@lru_cache(maxsize=1_024)
def _recorded(code: str, level: Level, subject: str | None, waiver: str | None) -> RecordedFinding:
    return RecordedFinding.model_construct(code=code, level=level, subject=subject, waiver=waiver)


def _findings_json(findings: Sequence[RecordedFinding]) -> bytes:
    return b"[%b]" % b",".join([_finding_json(one.code, one.level, one.subject, one.waiver) for one in findings])


@lru_cache(maxsize=1_024)
def _finding_json(code: str, level: Level, subject: str | None, waiver: str | None) -> bytes:
    return canonical(_recorded(code, level, subject, waiver).written)


def _made(model: type[DecisionRecord], fields: dict[str, Any]) -> DecisionRecord:
    """Like `model_construct`, in a tenth of its time: all fields are present and have the right types."""
    record = model.__new__(model)
    for name, value in (
        ("__dict__", fields),
        ("__pydantic_fields_set__", _ALL),
        ("__pydantic_extra__", None),
        ("__pydantic_private__", None),
    ):
        object.__setattr__(record, name, value)
    return record


def _of(value: Any, kind: type) -> Any:
    if value is not None and type(value) is not kind:
        raise TypeError
    return value


_ALL = set(DecisionRecord.model_fields)
_TEXTS = ("decision_id", "principal", "run", "request_id", "approval", "shared_from")
_WHEN, _WHERE = re.compile(_TIME[:-1] + r"\Z"), re.compile(r"[0-9a-f]{32}\Z")


@lru_cache(maxsize=8)
def _versions(engine: str, opa: str | None) -> Versions:
    return Versions(engine=engine, opa=opa)
