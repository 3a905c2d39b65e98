"""The end of a run: stored artifacts, state, and the record line that links its decisions.

Every function raises EngineError if it fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from admission_adapters.sandbox.executor import ROOT_CAUSES
from admission_adapters.sandbox.model import Status
from engine.code.asking import Asking
from engine.code.keeping import Keeper
from engine.code.program import Program
from engine.drive import Append, Call, Steps
from engine.model import Pace
from engine.record.model import ResultRecord
from engine.state.rows import ArtifactCheckRow, CheckName
from engine.times import timestamp

_VERDICTS = frozenset(Status) - {Status.CANCELLED, Status.SANDBOX_ERROR}
"""The statuses that are a verdict on the program."""

_RECORDED = ("sha256", "bytes", "stored")
"""What the record has of an artifact."""

_CAUSES = {
    "invalid_request": "request",
    "invalid_action": "action_contract",
    "policy_block": "policy",
    "invalid_code_output": "output_contract",
    "approval_required": "approval",
    "max_seconds": "time_budget",
    "cancelled": "cancelled",
    "engine_fault": "engine",
    "success": "none",
}
"""Root cause by the first word of a stop reason, unless the status of a program is more exact (A88)."""


def keep_success(asking: Asking, programs: list[Program]) -> Steps[dict[str, Any]]:
    """Store the code, result and artifacts of a successful run."""

    def keep() -> dict[str, Any]:
        keeper = _keeper(asking)
        return _merged(
            [keeper.success(p.executed, p.result or p.printed, p.admitted) if p.executed else {} for p in programs]
        )

    found: dict[str, Any] = yield Call(keep, Pace.SLOW)
    return found


def trust(asking: Asking, programs: list[Program]) -> Steps[None]:
    """Remember that both checks have passed; only for a run that is fully recorded."""

    def remember() -> None:
        for program in programs:
            _remember(asking, program, valid=True)

    yield Call(remember)


def keep_failure(asking: Asking, reason: str, programs: list[Program]) -> Steps[dict[str, Any]]:
    """Store the code and a log of the failed program; for a solution refused by its verifier also the result."""
    if not any(program.executed is not None for program in programs):
        return {}

    def keep() -> dict[str, Any]:
        keeper, stored = _keeper(asking), []
        for program in programs:
            if program.executed is not None:
                stored.append(keeper.failure(program.executed, reason, root_cause(reason, program)))
                _remember(asking, program, valid=False)
        return _merged(stored)

    found: dict[str, Any] = yield Call(keep, Pace.SLOW)
    return found


def record(
    asking: Asking, document: Mapping[str, Any], programs: list[Program], stored: Mapping[str, Any]
) -> Steps[None]:
    """Record one line for the whole run, under the last of its decisions: action, artifacts, validation."""
    if asking.last is None:
        return
    facts = {
        "run_id": asking.ticket.run_id,
        "stop_reason": document["stop_reason"],
        **({"phase": document["phase"]} if "phase" in document else {}),
        "root_cause": root_cause(document["stop_reason"], programs[-1] if programs else None),
        "decisions": dict(asking.decided),
        "programs": {program.role: _facts(program) for program in programs},
        "stored": stored.get("stored", {}),
        "artifacts": [{name: one[name] for name in _RECORDED} for one in stored.get("artifacts", ())],
        "artifacts_not_kept": len(document.get("artifacts_not_kept", ())),
    }
    body = ResultRecord(
        time=timestamp(asking.services.clock()),
        decision_id=asking.last.decision.decision_id,
        request_id=asking.context.request_id,
        trace=asking.context.trace,
        status=f"run_{document['status']}",
        facts=facts,
        duration=asking.elapsed_ms * 1_000,
    )
    yield Append(asking.services.log, body)


def _keeper(asking: Asking) -> Keeper:
    return Keeper(asking.machine.store, int(asking.services.clock().timestamp()))


def _remember(asking: Asking, program: Program, *, valid: bool) -> None:
    """Remember whether the code succeeded in its sandbox, and whether its output was admitted."""
    run, now = program.executed, asking.services.gather_context.clock()
    if run is None or run.run_result.status not in _VERDICTS:
        return
    checks: list[tuple[CheckName, bool, str | None]] = [
        ("sandbox", run.run_result.status is Status.OK, run.decision_id),
        ("validation", valid, program.output_decision),
    ]
    for name, passed, decision in checks:
        if decision is not None:
            new = ArtifactCheckRow(run.grant.code_sha256, name, passed, run.grant.isolation, decision, now)
            asking.services.store().add_artifact_check(new)


def root_cause(reason: str, program: Program | None) -> str:
    """The root cause class of a run's end: from the status of its program, else from the stop reason (A88)."""
    run = None if program is None else program.executed
    if run is not None and run.run_result.status is not Status.OK:
        return ROOT_CAUSES[run.run_result.status]
    return _CAUSES.get(reason.removeprefix("verifier:").partition(":")[0], "other")


def _facts(program: Program) -> dict[str, Any]:
    """A program in the record: hashes, sizes and status."""
    planned, run = program.planned, program.executed
    found: dict[str, Any] = {} if planned is None else {"code_hash": planned.code_hash, "language": planned.language}
    return found if run is None else found | {k: v for k, v in run.facts.items() if k not in {"run_id", "artifacts"}}


def _merged(each: list[dict[str, Any]]) -> dict[str, Any]:
    """The digests of the solution, those of the verifier under its name, and all artifacts."""
    stored = {name: value for name, value in each[0].items() if name != "artifacts"}
    if len(each) > 1:
        stored["verifier"] = {name: value for name, value in each[1].items() if name != "artifacts"}
    return {"stored": stored, "artifacts": [artifact for own in each for artifact in own.get("artifacts", ())]}
