"""Bodies of answers as models: handlers fill them in, and the OpenAPI document is generated from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from engine.model import ABSENT, Decision, Digest, Mode, Model, Outcome, Revisions, Via
from engine.record.model import Durations, RecordedFinding, Versions


class FieldProblem(Model):
    """A field of the request, and what is wrong with it."""

    field: str
    problem: str


class PolicyProblem(Model):
    """One problem of a policy that was refused."""

    where: str
    message: str
    remedy: str


class Problem(Model):
    """RFC 9457 problem details. `decision` is the recorded deny, null if no decision was requested."""

    type: Annotated[str, Field(json_schema_extra={"format": "uri"})]
    title: str
    status: int
    detail: str
    code: str
    remedy: str | None = ABSENT
    instance: str | None
    decision: Decision | None
    errors: tuple[FieldProblem, ...] | None = ABSENT
    problems: tuple[PolicyProblem, ...] | None = ABSENT
    run: dict[str, Any] | None = ABSENT


class FailedItem(Model):
    """An item of a batch that was not decided, with the deny that was recorded for it."""

    code: str
    message: str
    remedy: str | None
    errors: tuple[FieldProblem, ...] | None = ABSENT
    decision: Decision | None
    http_status_code: str | None = ABSENT


class RunFailure(Problem):
    """A problem in the form that callers of a runner expect."""

    ok: Literal[False] = False
    error: str


class HealthCaller(Model):
    """How the caller is identified."""

    via: Via
    principal: str | None


class OpaHealth(Model):
    """Whether OPA answers, and how often it was restarted."""

    alive: bool
    restarts: int


class Health(Model):
    """The process is alive: all that callers without credentials see."""

    status: Literal["ok", "stopping"]


class HealthDetails(Health):
    """What identified callers see."""

    trust_level: int
    trust: dict[str, bool]
    caller: HealthCaller
    policy: Revisions | None
    opa: OpaHealth
    record: bool
    state: bool
    state_age_seconds: float
    version: str


class Ready(Model):
    """Whether the engine can allow a request, and each part that this depends on.

    `policy`: whether it serves the release that was activated for all engines of its state, if one was.
    """

    ready: bool
    stopping: bool
    opa: bool
    record: bool
    state: bool
    policy: bool


class ActivatedPolicy(Revisions):
    """The policy in force, the previous one, and the codes that only the previous one has."""

    previous: Revisions
    removed_codes: tuple[str, ...]


class CodePhase(Model):
    """The phase of a run that has begun; or the place of one that waits, from 1."""

    run_id: str
    status: Literal["waiting", "running", "cancelling"]
    phase: Literal["plan", "policy_check", "execute"]
    place: int | None = ABSENT
    started_at: str


class CodeRunEnd(Model):
    """A run that has ended. It is listed until `kept_until`."""

    run_id: str
    status: Literal["ok", "stopped"]
    stop_reason: str
    decision_id: str | None
    started_at: str
    ended_at: str
    kept_until: str


class KeptCodeRun(CodeRunEnd):
    """A run that has ended, with its result without secrets; null if nothing ran, or if it is too large to be kept."""

    result: dict[str, Any] | None


class CodeRunPage(Model):
    """The caller's runs, the newest first. `next` is the `before` of the next page, null at the end."""

    active: tuple[CodePhase, ...]
    ended: tuple[CodeRunEnd, ...]
    next: int | None


class FetchAnswer(Model):
    """The new source bundle, below the folder of the server for what is fetched; null if nothing was written.

    Two decisions for each address that was fetched, up to the one that refused.
    """

    folder: str | None
    decisions: tuple[Decision, ...]


class BuildAnswer(Model):
    """The environment's folder below that of the server for what is built, and what is in it; null if none was built.

    The decision is that of point `environment`, or of point `source` if that refused.
    """

    folder: str | None
    environment: dict[str, Any] | None
    decision: Decision


class DecidedItem(Decision):
    """An item of a batch that was decided; the status where some items were not."""

    http_status_code: str | None = ABSENT


class BatchAnswer(Model):
    """The items of a batch by their ids."""

    batch_decision_id: str
    responses: dict[str, DecidedItem | FailedItem]


class AdministrationAnswer(Model):
    """The decision on the act, and what it created or changed; null if it took no effect."""

    decision: Decision
    done: dict[str, Any] | None


class DecisionSummary(Model):
    """A decision as it is recorded, without its input; the line of its chain, both counted from 1."""

    time: str
    decision_id: str
    point: str
    mode: Mode
    principal: str | None
    run: str | None
    request_id: str | None
    trace: str | None
    approval: str | None
    input_digest: Digest | None
    outcome: Outcome
    findings: tuple[RecordedFinding, ...]
    policy: Revisions | None
    chain: int
    seq: int


class RecordedDecision(DecisionSummary):
    """A decision with its redacted input; `redactions` names the fields that were replaced."""

    input: dict[str, Any] | None
    limits: dict[str, Any] | None
    redactions: tuple[str, ...]
    versions: Versions
    durations: Durations


class DecisionPage(Model):
    """Decisions, the newest first. `next` is the `cursor` of the next page, null at the end of the record.

    A page may have fewer decisions than asked for, or none, and still have a next one.
    """

    decisions: tuple[DecisionSummary, ...]
    next: str | None


class EvaluationAnswer(Model):
    """The answer of AuthZEN 1.0 to one evaluation."""

    decision: bool
    context: dict[str, Any]


class EvaluationsAnswer(Model):
    """The answer of AuthZEN 1.0 to many evaluations, in their order."""

    evaluations: tuple[EvaluationAnswer, ...]


class BackendBoundary(Model):
    """A boundary that a run may declare. `source`: whether the backend was probed for it."""

    boundary: str
    enforced: bool
    source: Literal["probed", "static"]


class RunnerBackend(Model):
    """Where runs may take place, and what is enforced there."""

    host: Literal["runner", "remote"]
    boundaries: tuple[BackendBoundary, ...]


class RunnerHarness(Model):
    """What a harness can do and how that is known; its models by provider, and how it may be connected to one."""

    capabilities: dict[str, bool]
    source: Literal["probed", "static", "none"]
    custom_tools: Literal["native", "mcp"]
    models: dict[str, tuple[str, ...]]
    connection_modes: tuple[str, ...]


class Capabilities(Model):
    """What a runner can hold."""

    backends: dict[str, RunnerBackend]
    harnesses: dict[str, RunnerHarness]


class Schemas(Model):
    """JSON Schemas of a run: `WireRunRequest`, the outputs of an agent, and `WireRunResult`, which has them."""

    inputs: dict[str, Any]
    outputs: dict[str, Any]
    result: dict[str, Any]


class ServedRevision(Model):
    """The policy that is served, and the schemas of its runs."""

    policy: Revisions | None
    schemas: Schemas


class Inspection(Model):
    """What forms need to know of a runner."""

    revision: ServedRevision
    harnesses: dict[str, RunnerHarness]


class ToolAnswer(Model):
    """The result of a tool call of a run."""

    status: Literal["ok", "error", "refused", "awaiting_approval"]
    content: str
    code: str | None
    approval: str | None


class _Open(Model):
    """Base of documents with further fields."""

    model_config = ConfigDict(extra="allow")


class RunAnswer(_Open):
    """The runner's own answer; or the reason why there is none, with the decision if that was the reason."""

    ok: bool = ABSENT
    error: str = ABSENT
    replayed: Literal[True] | None = ABSENT
    decision: Decision | None = ABSENT


_Step = Annotated[dict[str, Any], Field(json_schema_extra={"required": ["step"]})]


class _CodeRun(_Open):
    """What every result of a run of code has."""

    run_id: Annotated[str, Field(json_schema_extra={"format": "uuid"})]
    stop_reason: str
    trace: tuple[_Step, ...]
    decisions: dict[str, str] = ABSENT
    findings: tuple[dict[str, Any], ...] = ABSENT
    artifacts_not_kept: tuple[dict[Literal["name", "reason"], str], ...] = ABSENT


class StoppedRun(_CodeRun):
    """A run that stopped."""

    status: Literal["stopped"]
    phase: Literal["plan", "policy_check", "execute"]
    history: tuple[_Step, ...]
    approval: dict[str, Any] = ABSENT


class FinishedRun(_CodeRun):
    """A run whose program ran and whose output meets the contract."""

    status: Literal["ok"]
    outcome: Literal["code_execution_success"]
    answer: str
    aggregate: dict[str, Any]
    content: dict[str, Any] = ABSENT
    execution: dict[str, Any]
    history: tuple[_Step, ...] = ABSENT
    proposed_action: dict[str, Any] = ABSENT
    stored: dict[str, Any] = ABSENT
    artifacts: tuple[dict[str, Any], ...] = ABSENT
