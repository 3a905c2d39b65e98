"""The end of a run: what is kept of it, what the state remembers, and the line of the record that ties it together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.sandbox.hand import ROOT_CAUSES
from adapters.sandbox.model import Status
from engine.code.asking import Asking
from engine.code.keeping import Keeper, remember_run, remember_validation
from engine.code.program import Program
from engine.drive import Append, Call, Steps
from engine.model import Pace
from engine.record.model import ResultRecord, timestamp

_VERDICTS = frozenset(Status) - {Status.CANCELLED, Status.SANDBOX_ERROR}
"""The ends that say something about the program."""

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
"""Root cause by the first word of a stop reason, where no end of a program says it better (A88)."""


class Closing:
    """Writes down the end of one run. Every method raises EngineError where it cannot."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def keep_success(self, solution: Program, verifier: Program | None) -> Steps[dict[str, Any]]:
        """Code, result and artifacts of a good run."""
        programs = [one for one in (solution, verifier) if one is not None]

        def keep() -> dict[str, Any]:
            keeper = self._keeper()
            return _kept([_success(keeper, one) for one in programs])

        found: dict[str, Any] = yield Call(keep, Pace.SLOW)
        return found

    def trust(self, solution: Program, verifier: Program | None) -> Steps[None]:
        """Remember that both checks were passed; only of a run that is recorded to its end."""

        def remember() -> None:
            for program in (solution, verifier):
                if program is not None:
                    self._remember(program, valid=True)

        yield Call(remember)

    def keep_failure(self, reason: str, solution: Program | None, verifier: Program | None) -> Steps[dict[str, Any]]:
        """The code and a log of the program that failed; of a solution that its verifier refused, its result too."""
        programs = [one for one in (solution, verifier) if one is not None and one.executed is not None]
        if not programs:
            return {}

        def keep() -> dict[str, Any]:
            keeper, kept = self._keeper(), []
            for program in programs:
                if program.executed is not None:
                    kept.append(keeper.failure(program.executed, reason, root_cause(reason, program)))
                self._remember(program, valid=False)
            return _kept(kept)

        found: dict[str, Any] = yield Call(keep, Pace.SLOW)
        return found

    def record(
        self, document: Mapping[str, Any], solution: Program | None, verifier: Program | None, kept: Mapping[str, Any]
    ) -> Steps[None]:
        """One line for the whole run, under the last of its decisions: from action to artifact to validation."""
        asking = self._asking
        if asking.last is None:
            return
        programs = {"solution": solution, "verifier": verifier}
        facts = {
            "run_id": asking.run_id,
            "stop_reason": document["stop_reason"],
            **({"phase": document["phase"]} if "phase" in document else {}),
            "root_cause": root_cause(document["stop_reason"], verifier or solution),
            "decisions": dict(asking.decided),
            "programs": {name: _facts(one) for name, one in programs.items() if one is not None},
            "stored": kept.get("stored", {}),
            "artifacts": [_only(one) for one in kept.get("artifacts", ())],
            "artifacts_not_kept": len(document.get("artifacts_not_kept", ())),
        }
        body = ResultRecord(
            time=timestamp(asking.parts.clock()),
            decision_id=asking.last.decision.decision_id,
            request_id=asking.context.request_id,
            trace=asking.context.trace,
            status=f"run_{document['status']}",
            facts=facts,
            duration=asking.elapsed_ms * 1_000,
        )
        yield Append(asking.parts.log, body)

    def _keeper(self) -> Keeper:
        return Keeper(self._asking.machine.store, int(self._asking.parts.clock().timestamp()))

    def _remember(self, program: Program, *, valid: bool) -> None:
        """What was seen of the code: whether it ran well in its sandbox, and whether its output was admitted."""
        run, now = program.executed, self._asking.parts.world.clock()
        if run is None or run.ended.status not in _VERDICTS:
            return
        store = self._asking.parts.store()
        remember_run(store, run, passed=run.ended.status is Status.OK, now=now)
        if program.output_decision is not None:
            remember_validation(store, run, program.output_decision, passed=valid, now=now)


def root_cause(reason: str, program: Program | None) -> str:
    """The class of what ended a run: by how its program ended, else by the reason (A88)."""
    run = None if program is None else program.executed
    if run is not None and run.ended.status is not Status.OK:
        return ROOT_CAUSES[run.ended.status]
    return _CAUSES.get(reason.removeprefix("verifier:").partition(":")[0], "other")


def _facts(program: Program) -> dict[str, Any]:
    """A program in the record: hashes, sizes and how it ended."""
    planned, run = program.planned, program.executed
    found: dict[str, Any] = {} if planned is None else {"code_hash": planned.code_hash, "language": planned.language}
    return found if run is None else found | {k: v for k, v in run.facts.items() if k not in {"run_id", "artifacts"}}


def _success(keeper: Keeper, program: Program) -> dict[str, Any]:
    return keeper.success(program.executed, program.result, program.admitted) if program.executed else {}


def _only(artifact: Mapping[str, Any]) -> dict[str, Any]:
    return {name: artifact[name] for name in ("sha256", "bytes", "stored")}


def _kept(each: list[dict[str, Any]]) -> dict[str, Any]:
    """The digests of the solution, those of the verifier under its name, and all artifacts."""
    stored = {name: value for name, value in each[0].items() if name != "artifacts"}
    if len(each) > 1:
        stored["verifier"] = {name: value for name, value in each[1].items() if name != "artifacts"}
    return {"stored": stored, "artifacts": [one for own in each for one in own.get("artifacts", ())]}
