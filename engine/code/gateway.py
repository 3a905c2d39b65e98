"""The path of one run of generated code. Read this first.

    code_action ─> code_scan ─> code_execution ─(sandbox)─> code_output ─> answer
     plan           └── policy_check ──┘         execute       execute

Each arrow is an enforced decision with its own record, and nothing starts before the third one
allows it (C01). A verifier takes the same path again, in its own sandbox (A87). Every failure
ends in a registered stop reason (H18); at the end, one line of the record links the decisions of the run.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Mapping
from typing import Any

from admission_adapters.sandbox.executor import enforced
from engine.code import closing
from engine.code import stop_reasons as why
from engine.code.asking import Asking, Machine
from engine.code.keeping import not_kept
from engine.code.program import Program, perform
from engine.code.request import CodeRunRequest
from engine.code.result import CodeRun, StoppedError, Story, approval, findings, proposed, stopped, succeeded
from engine.code.running import RunWatcher, Ticket
from engine.documents.canonical import canonical
from engine.drive import Call, Steps
from engine.errors import EngineError, Exit, fault_inside, stack_of
from engine.facts.code.answers import echoed_of, metrics_of, sentence
from engine.flow import Context, Services
from engine.points.code_output import CodeOutputLimits
from engine.state.rows import AttemptRow

_VERIFIER = "verifier"
_SOLUTION = "solution"
_SANDBOX = (
    "ran in the sandbox {backend} ({isolation}), which was shown to enforce {enforced} boundaries on this machine"
)

_SECRET, _STOPPED = "artifact_secret", "run_stopped"
"""Why an output file is not stored: a secret in it, or its run stopped."""

_EXECUTION = ("profile", "packages", "seed", "artifacts", "task", "tighten")
"""Fields of a run that are fields of the request for point `code_execution` too, as far as they are stated."""


def refused(error: EngineError, services: Services, machine: Machine, context: Context) -> Steps[CodeRun]:
    """A run that cannot begin: its deny is recorded at the first point (H18)."""
    run_id = str(uuid.uuid4())
    asking = Asking(
        services, machine, context, Ticket(run_id, context.caller, RunWatcher(), services.gather_context.clock()), {}
    )
    answered = yield from asking.ask("code_action", "code_action", error)
    fault = answered.fault or error
    more = {"decisions": asking.decided, "findings": findings([answered])}
    document = stopped(run_id, why.of_request(fault), "plan", Story(), more)
    return CodeRun(document, fault.exit, fault, answered)


class Run:
    """One run that has a slot, from its first decision to its last line."""

    def __init__(
        self, request: CodeRunRequest, ticket: Ticket, services: Services, machine: Machine, context: Context
    ) -> None:
        self._request = request
        self._ticket = ticket
        self._asking = Asking(services, machine, context, ticket, request.approvals)
        self._story = Story()
        self._attempt: str | None = None
        self._programs: list[Program] = []
        """The solution, then its verifier, each from when it is begun."""

    def steps(self) -> Steps[CodeRun]:
        """The whole path; always returns a document."""
        try:
            return (yield from self._work())
        except StoppedError as error:
            stop = error
        except Exception as error:  # noqa: BLE001  (a fault of ours ends a run like any other)
            stop = self._of(error)
        return (yield from self._stop(stop))

    def _work(self) -> Steps[CodeRun]:
        request, asking = self._request, self._asking
        hints = {"policy_hints": request.policy_hints} if "policy_hints" in request.model_fields_set else {}
        execution = {name: value for name, value in request.stated.items() if name in _EXECUTION and value is not None}
        if request.inline_artifacts:
            execution.setdefault("artifacts", True)
        self._attempt = yield from begin_attempt(asking.services, asking.context, request.task, request.action)
        if self._attempt is not None:
            execution["attempt"] = self._attempt
        contract = request.contract or default_contract(asking.services, _SOLUTION)
        solution = Program(
            _SOLUTION, request.action, hints, contract, request.request, execution, self._story, files=request.files
        )
        self._programs.append(solution)
        yield from perform(solution, asking)
        if request.verifier is not None:
            yield from self._verify(solution, request.verifier.action, hints)
        return (yield from self._finish(solution))

    def _verify(self, solution: Program, action: Any, hints: Mapping[str, Any]) -> Steps[None]:
        """Have a second program verify the validated output; it shares nothing with the first."""
        output = solution.output
        if not isinstance(output, CodeOutputLimits):
            raise _unfinished()
        payload = {"input_payload": self._request.action["input_payload"], "output": solution.result}
        verified_action = {**action, "input_payload": payload} if isinstance(action, dict) else action
        execution = {"seed": self._request.seed} if self._request.seed is not None else {}
        contract, request = default_contract(self._asking.services, _VERIFIER), self._request.request
        verifier = Program(_VERIFIER, verified_action, hints, contract, request, execution, Story(), "verifier.")
        self._programs.append(verifier)
        try:
            yield from perform(verifier, self._asking)
        except StoppedError as stop:
            own = stop.reason in {why.APPROVAL, why.CANCELLED, why.MAX_SECONDS} or stop.exit is Exit.FAILED_CLOSED
            reason = stop.reason if own else why.registered(f"verifier:{stop.reason}")
            self._story.ran("verify_code", verifier.planned)
            self._story.failed(reason, {})
            raise StoppedError(reason, "execute", stop.exit, stop.answer) from stop
        self._story.ran("verify_code", verifier.planned)
        self._story.went_well(verifier.measured, verifier.result)

    def _finish(self, solution: Program) -> Steps[CodeRun]:
        """Store the artifacts, record the end, and only then return the document."""
        outcome = self._answer(solution)
        stored = yield from closing.keep_success(self._asking, self._programs)
        if self._attempt is not None:
            yield from end_attempt(self._asking.services, self._attempt, ok=True)
            self._attempt = None
        self._story.finished()
        more = {"decisions": self._asking.decided, "stored": stored["stored"], "artifacts": self._kept(stored)}
        more |= self._not_kept(_SECRET) | self._public_parts()
        document = succeeded(self._ticket.run_id, outcome, self._story, more)
        yield from closing.record(self._asking, document, self._programs, stored)
        yield from closing.trust(self._asking, self._programs)
        return CodeRun(document, Exit.ALLOW, None, self._asking.last, ran=True, keep_days=self._keep_days)

    def _kept(self, stored: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The stored files, with their content if the request asks for it."""
        if not self._request.inline_artifacts:
            return list(stored["artifacts"])
        runs = [program.executed.run_result for program in self._programs if program.executed is not None]
        content = {one.sha256: base64.b64encode(one.data).decode("ascii") for run in runs for one in run.artifacts}
        return [{**one, "content": content[one["sha256"]]} for one in stored["artifacts"]]

    def _answer(self, solution: Program) -> dict[str, Any]:
        """The answer of a successful run, made from the limits of the last decision alone (C43)."""
        output, planned, executed = solution.output, solution.planned, solution.executed
        if not isinstance(output, CodeOutputLimits) or planned is None or executed is None:
            raise _unfinished()
        echoed, metrics = echoed_of(output.echoed), metrics_of(output.result)
        world = self._asking.services.gather_context
        enforcers = enforced(executed.grant.backend, world.sandbox_facts(executed.grant.backend, None).boundaries)
        ran_in = {"backend": executed.grant.backend, "isolation": executed.grant.isolation}
        return {
            "answer": sentence(output.answer, metrics, echoed, solution.measured, ran_in),
            "proposed_action": proposed(planned),
            "aggregate": {**echoed, "metrics": metrics},
            **({"content": solution.content} if solution.content else {}),
            **({"output": solution.printed} if solution.printed else {}),
            **({"scan_advice": solution.advice} if solution.advice else {}),
            "execution": {
                "language": planned.language,
                "code_hash": planned.code_hash,
                **solution.measured,
                "code_sha256": executed.grant.code_sha256,
                "seed": executed.grant.seed,
                **ran_in,
                **({"packages": executed.grant.packages[0].model_dump()} if executed.grant.packages else {}),
                "sandbox": _SANDBOX.format(**ran_in, enforced=len(enforcers)),
                "network_denied": "enforced" if "network" in enforcers else "contract only, not enforced",
                "boundaries": dict(sorted(enforcers.items())),
            },
        }

    def _stop(self, stop: StoppedError) -> Steps[CodeRun]:
        """Store the log of the failure, store the result of the attempt, record the end."""
        try:
            stored = yield from closing.keep_failure(self._asking, stop.reason, self._programs)
            yield from self._end_attempt(stop)
            document = self._document(stop, stored)
            yield from closing.record(self._asking, document, self._programs, stored)
        except Exception as error:  # noqa: BLE001  (a failure to store or record is a fault in any case)
            stop = self._of(error)
            document = self._document(stop, {})
        return CodeRun(document, stop.exit, stop.fault, self._asking.last, ran=self._ran, keep_days=self._keep_days)

    @property
    def _ran(self) -> bool:
        return any(program.executed is not None for program in self._programs)

    @property
    def _keep_days(self) -> int:
        """How long the permits let the result be kept; 0 if nothing ran."""
        return max((one.executed.grant.retention_days for one in self._programs if one.executed is not None), default=0)

    def _end_attempt(self, stop: StoppedError) -> Steps[None]:
        """An attempt that ran nothing, because an approval is required or the engine failed, does not count.

        One that ran counts. If its output needs an approval it has not failed: the same code comes again.
        """
        if self._attempt is None:
            return
        judged = self._ran or stop.exit not in {Exit.CONFIRM, Exit.FAILED_CLOSED}
        yield from end_attempt(self._asking.services, self._attempt, ok=stop.exit is Exit.CONFIRM if judged else None)

    def _document(self, stop: StoppedError, stored: Mapping[str, Any]) -> dict[str, Any]:
        asking = self._asking
        more: dict[str, Any] = {"decisions": asking.decided} | self._public_parts() | self._not_kept(_STOPPED)
        if stop.reason == why.APPROVAL and stop.answer is not None:
            more |= approval(stop.answer, next(reversed(asking.decided)))
        for program in self._programs:
            if printed := program.printed_before_failure:
                more["output"] = printed
        if stored.get("stored"):
            more["stored"] = stored["stored"]
        return stopped(self._ticket.run_id, stop.reason, stop.phase, self._story, more)

    def _public_parts(self) -> dict[str, Any]:
        """The unmet requirements of all decisions on both programs; empty if there are none."""
        found = findings([answer for program in self._programs for answer in program.answers])
        return {"findings": found} if found else {}

    def _not_kept(self, reason: str) -> dict[str, Any]:
        """Every file that was left and is not stored; `reason` is for files that no decision admitted."""
        left = []
        for program in self._programs:
            if program.executed is not None:
                admitted = program.admitted if reason == _SECRET else ()
                left += not_kept(program.executed, admitted, reason)
        return {"artifacts_not_kept": left} if left else {}

    def _of(self, error: Exception) -> StoppedError:
        """The stop of a run by a fault of the engine."""
        fault = error if isinstance(error, EngineError) else crashed(error, self._asking.services)
        return StoppedError(why.of_fault(fault), self._ticket.phase, Exit.FAILED_CLOSED, None, fault)


def default_contract(services: Services, role: str) -> str | None:
    """The output contract of a program in this role, if the request has none; None without a policy."""
    return services.lookups.contracts.get(role)


def crashed(error: Exception, services: Services) -> EngineError:
    """The fault for an exception that nothing expects; the stack goes to the log alone."""
    services.on_event("crash", {"stack": stack_of(error)})
    return fault_inside("run", "report the run id; the log of `engine serve` shows where it failed (`crash`)")


def _unfinished() -> EngineError:
    return fault_inside("run", "report the run id: it ended in an unexpected state")


def begin_attempt(services: Services, context: Context, task: str | None, action: Any) -> Steps[str | None]:
    """Count one attempt, if a task is stated; returns its id. Raises StateError."""
    if task is None:
        return None
    new = AttemptRow(
        id=str(uuid.uuid4()),
        principal=context.caller.principal or "",
        task=task,
        code_sha256=_digest(action),
        created_at=services.gather_context.clock(),
    )
    yield Call(lambda: services.store().begin_attempt(new))
    return new.id


def end_attempt(services: Services, attempt: str, *, ok: bool | None) -> Steps[None]:
    """Store whether it succeeded; None removes it: its code was not judged. Raises StateError."""
    store, now = services.store, services.gather_context.clock()
    if ok is None:
        yield Call(lambda: store().withdraw_attempt(attempt))
    else:
        yield Call(lambda: store().end_attempt(attempt, "ok" if ok else "failed", now))


def _digest(action: Any) -> str:
    """The digest of the code; of an action without code, of the whole action."""
    code = action.get("code") if isinstance(action, dict) else None
    data = code.encode("utf-8", "surrogatepass") if isinstance(code, str) else canonical(action)
    return hashlib.sha256(data).hexdigest()
