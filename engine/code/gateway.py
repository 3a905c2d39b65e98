"""The path of one run of generated code. Read this first.

    code_action ─> code_scan ─> code_execution ─(sandbox)─> code_output ─> answer
     plan           └── policy_check ──┘         execute       execute

Each arrow is an enforced decision with a record of its own, and nothing is started before the third of them
allows it (C01). A verifier takes the same path once more, in a sandbox of its own (A87). Whatever goes wrong
ends in a registered stop reason (H18); at the end one line of the record ties the run together.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from adapters.sandbox.granted import enforced
from engine.code import stop_reasons as why
from engine.code.asking import Asking, Machine
from engine.code.attempts import Attempt, begin
from engine.code.closing import Closing
from engine.code.keeping import not_kept
from engine.code.program import Program, Wanted, perform
from engine.code.request import CodeRunRequest
from engine.code.result import CodeRun, StoppedError, approval, findings, stopped, succeeded
from engine.code.running import Ticket
from engine.code.trace import Story
from engine.drive import Steps
from engine.errors import EngineError, Exit
from engine.facts.code_answers import carried_of, metrics_of, result_of, sentence
from engine.flow import Context, Parts
from engine.points.code_output import CodeOutputLimits

_VERIFIER = "verifier"
_SOLUTION = "solution"
_SANDBOX = "ran in the sandbox {backend} ({isolation}), which was shown to hold {held} boundaries on this machine"

_SECRET, _STOPPED = "artifact_secret", "run_stopped"
"""Why a file that came out is not kept: what was seen in it, or that its run stopped."""

_EXECUTION = ("profile", "seed", "artifacts", "task", "tighten")
"""Fields of a run that are fields of the request for point `code_execution` too, as far as they are stated."""


def refused(error: EngineError, parts: Parts, machine: Machine, context: Context) -> Steps[CodeRun]:
    """A run that cannot be begun: its deny is recorded at the first point (H18)."""
    run_id = machine.new_run()
    asking = Asking.of(parts, machine, context, run_id, {}, threading.Event())
    answered = yield from asking.ask("code_action", "code_action", error)
    fault = answered.fault or error
    more = {"decisions": asking.decided, "findings": findings([answered])}
    document = stopped(run_id, why.of_request(fault), "plan", Story(), more)
    return CodeRun(document, fault.exit, fault, answered)


def begun(request: CodeRunRequest, ticket: Ticket, parts: Parts, machine: Machine, context: Context) -> Steps[CodeRun]:
    """One run that has a place, from its first decision to its last line."""
    asking = Asking.of(parts, machine, context, ticket.run_id, request.approvals, ticket.cancel)
    run = _Run(request, ticket, asking)
    return (yield from run.steps())


class _Run:
    """A run on its way."""

    def __init__(self, request: CodeRunRequest, ticket: Ticket, asking: Asking) -> None:
        self._request = request
        self._ticket = ticket
        self._asking = asking
        self._story = Story()
        self._attempt: Attempt | None = None
        self._solution: Program | None = None
        self._verifier: Program | None = None
        self._closing = Closing(asking)

    def steps(self) -> Steps[CodeRun]:
        """The whole way; whatever stops it is told."""
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
        self._attempt = yield from begin(asking.parts, asking.context, request.task, request.action)
        if self._attempt is not None:
            execution["attempt"] = self._attempt.id
        contract = request.contract or _contract(asking.parts, _SOLUTION)
        wanted = Wanted(_SOLUTION, request.action, hints, contract, request.request, execution)
        solution = self._solution = Program(wanted, self._story)
        yield from perform(solution, asking, self._ticket)
        if request.verifier is not None:
            yield from self._verify(solution, request.verifier.action, hints)
        return (yield from self._finish(solution))

    def _verify(self, solution: Program, action: Any, hints: Mapping[str, Any]) -> Steps[None]:
        """Let a second program look at the validated output; it shares nothing with the first."""
        output = solution.output
        if not isinstance(output, CodeOutputLimits):
            raise internal(None)
        seen = {"input_payload": self._request.action["input_payload"], "output": result_of(output.result)}
        shown = {**action, "input_payload": seen} if isinstance(action, dict) else action
        execution = {"seed": self._request.seed} if self._request.seed is not None else {}
        wanted = Wanted(
            _VERIFIER, shown, hints, _contract(self._asking.parts, _VERIFIER), self._request.request, execution
        )
        verifier = self._verifier = Program(wanted, Story(), "verifier.")
        try:
            yield from perform(verifier, self._asking, self._ticket)
        except StoppedError as stop:
            own = stop.reason in {why.APPROVAL, why.CANCELLED, why.MAX_SECONDS} or stop.exit is Exit.FAILED_CLOSED
            reason = stop.reason if own else why.of_verifier(stop.reason)
            self._story.ran("verify_code", verifier.planned).failed(reason, {})
            raise StoppedError(reason, "execute", stop.exit, stop.answer) from stop
        self._story.ran("verify_code", verifier.planned).went_well(verifier.measured, verifier.result)

    def _finish(self, solution: Program) -> Steps[CodeRun]:
        """Keep what came of it, record the end, and only then say so."""
        told = self._answer(solution)
        kept = yield from self._closing.keep_success(solution, self._verifier)
        if self._attempt is not None:
            yield from self._attempt.end(ok=True)
            self._attempt = None
        self._story.finished()
        more = {"decisions": self._asking.decided, "stored": kept["stored"], "artifacts": kept["artifacts"]}
        more |= self._not_kept(_SECRET) | self._told()
        document = succeeded(self._ticket.run_id, told, self._story, more)
        yield from self._closing.record(document, solution, self._verifier, kept)
        yield from self._closing.trust(solution, self._verifier)
        return CodeRun(document, Exit.ALLOW, None, self._asking.last, ran=True)

    def _answer(self, solution: Program) -> dict[str, Any]:
        """What is said of a good run, made from the limits of the last decision alone (C43)."""
        output, planned, executed = solution.output, solution.planned, solution.executed
        if not isinstance(output, CodeOutputLimits) or planned is None or executed is None:
            raise internal(None)
        carried, metrics = carried_of(output.carried), metrics_of(output.result)
        world = self._asking.parts.world
        held = enforced(executed.grant.backend, world.sandbox_facts(executed.grant.backend, None).boundaries)
        ran_in = {"backend": executed.grant.backend, "isolation": executed.grant.isolation}
        return {
            "answer": sentence(output.answer, metrics, carried, solution.measured, ran_in),
            "proposed_action": planned.proposed(),
            "aggregate": {**carried, "metrics": metrics},
            "execution": {
                "language": planned.language,
                "code_hash": planned.code_hash,
                **solution.measured,
                "code_sha256": executed.grant.code_sha256,
                "seed": executed.grant.seed,
                **ran_in,
                "sandbox": _SANDBOX.format(**ran_in, held=len(held)),
                "network_denied": "enforced" if "network" in held else "contract only, not enforced",
                "boundaries": dict(sorted(held.items())),
            },
        }

    def _stop(self, stop: StoppedError) -> Steps[CodeRun]:
        """Keep the log of what failed, say how the try ended, record the end."""
        try:
            kept = yield from self._closing.keep_failure(stop.reason, self._solution, self._verifier)
            yield from self._end_attempt(stop)
            document = self._document(stop, kept)
            yield from self._closing.record(document, self._solution, self._verifier, kept)
        except Exception as error:  # noqa: BLE001  (what cannot be kept or recorded is a fault, whatever was before)
            stop = self._of(error)
            document = self._document(stop, {})
        return CodeRun(document, stop.exit, stop.fault, self._asking.last, ran=self._ran)

    @property
    def _ran(self) -> bool:
        return self._solution is not None and self._solution.executed is not None

    def _end_attempt(self, stop: StoppedError) -> Steps[None]:
        """A try of which nothing ran, because a person is asked first or the engine failed, is none.

        One that ran counts. Where a person is asked about its output it has not failed: the same code comes again.
        """
        if self._attempt is None:
            return
        if not self._ran and stop.exit in {Exit.CONFIRM, Exit.FAILED_CLOSED}:
            yield from self._attempt.withdraw()
        else:
            yield from self._attempt.end(ok=stop.exit is Exit.CONFIRM)

    def _document(self, stop: StoppedError, kept: Mapping[str, Any]) -> dict[str, Any]:
        asking = self._asking
        more: dict[str, Any] = {"decisions": asking.decided} | self._told() | self._not_kept(_STOPPED)
        if stop.reason == why.APPROVAL and stop.answer is not None:
            more |= approval(stop.answer, next(reversed(asking.decided)))
        if kept.get("stored"):
            more["stored"] = kept["stored"]
        return stopped(self._ticket.run_id, stop.reason, stop.phase, self._story, more)

    def _told(self) -> dict[str, Any]:
        """What did not hold, of all decisions on both programs; nothing where everything did."""
        programs = [one for one in (self._solution, self._verifier) if one is not None]
        told = findings([answer for program in programs for answer in program.answers])
        return {"findings": told} if told else {}

    def _not_kept(self, reason: str) -> dict[str, Any]:
        """Every file that was left and is not kept, with its reason: this one, where no decision admitted it."""
        left = []
        for program in (self._solution, self._verifier):
            if program is not None and program.executed is not None:
                admitted = program.admitted if reason == _SECRET else ()
                left += not_kept(program.executed, admitted, reason)
        return {"artifacts_not_kept": left} if left else {}

    def _of(self, error: Exception) -> StoppedError:
        """A fault of the engine on the way of a run."""
        fault = error if isinstance(error, EngineError) else internal(error)
        return StoppedError(why.of_fault(fault), self._ticket.phase, Exit.FAILED_CLOSED, None, fault)


def _contract(parts: Parts, role: str) -> str:
    """What the output of a program in this role must be, where the request does not say; empty where nothing says."""
    serving = parts.serving()
    try:
        return serving.contract(role)
    finally:
        serving.release()


def internal(error: BaseException | None) -> EngineError:
    """A fault of ours."""
    what = (
        "the run ended in an unexpected state"
        if error is None
        else f"an unexpected {type(error).__name__} stopped the run"
    )
    fault = EngineError(what, remedy="this is a fault of the engine: report it with the run id")
    fault.__cause__ = error
    return fault
