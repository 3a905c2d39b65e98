"""One program of a run: its action is decided on, it runs in a sandbox of its own, its output is decided on.

The solution and its verifier both take this path, each with its own decisions, permit, folder and budget.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.sandbox.granted import Shown
from adapters.sandbox.hand import Code, milliseconds, run_code
from adapters.sandbox.model import Status
from engine.code import stop_reasons as why
from engine.code.asking import Asking
from engine.code.keeping import Executed, files_of
from engine.code.result import StoppedError
from engine.code.running import Phase, Ticket
from engine.code.snippets import snippets
from engine.code.trace import Planned, Story
from engine.drive import Call, Steps
from engine.errors import EngineError, Exit, WorkError
from engine.facts.code_answers import result_of
from engine.flow import Answer
from engine.model import Limits, Outcome, Pace, Permit, Result
from engine.points.code_action import CodeActionLimits
from engine.points.code_output import CodeOutputLimits
from engine.points.registry import find
from engine.secret_forms import SecretForms
from engine.work import Job

_PASSED = "policy_pass"
"""The reason of a policy check that found nothing (C19)."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be done. `execution` are further fields of the request for point `code_execution`."""

    role: str
    action: Any
    hints: Mapping[str, Any]
    contract: str
    request: Any
    execution: Mapping[str, Any]


@dataclass(slots=True)
class Program:
    """A program on its way; what is None was not reached."""

    wanted: Wanted
    story: Story
    names: str = ""
    """What stands before the names of its decisions: empty for the solution."""
    planned: Planned | None = None
    executed: Executed | None = None
    output: Limits | None = None
    output_decision: str | None = None
    answers: list[Answer] = field(default_factory=list)
    """The decisions that found something."""

    @property
    def measured(self) -> dict[str, int]:
        """Milliseconds and bytes of what ran."""
        if self.executed is None:
            return {}
        ended = self.executed.ended
        return {
            "exec_ms": milliseconds(ended),
            "stdout_bytes": ended.stdout_bytes,
            "stderr_bytes": ended.stderr_bytes,
        }

    @property
    def admitted(self) -> frozenset[str]:
        """The SHA-256 of the files that may be kept."""
        return frozenset(self.output.artifacts) if isinstance(self.output, CodeOutputLimits) else frozenset()

    @property
    def result(self) -> Mapping[str, Any]:
        """The validated result; empty before there is one."""
        return result_of(self.output.result) if isinstance(self.output, CodeOutputLimits) else {}


def perform(program: Program, asking: Asking, ticket: Ticket, step: str = "execute_code") -> Steps[None]:
    """Take a program through its decisions; fills it in on the way. Raises StoppedError."""
    planned = yield from _plan(program, asking, ticket)
    yield from _execute(program, planned, asking, ticket, step)


def _plan(program: Program, asking: Asking, ticket: Ticket) -> Steps[Planned]:
    wanted = program.wanted
    ticket.enter("plan")
    body = {"action": wanted.action, **wanted.hints, "elapsed_ms": asking.elapsed_ms}
    answer = yield from asking.ask(f"{program.names}code_action", "code_action", body)
    _pass(program, answer, "plan")
    if answer.decision.outcome is Outcome.DENY:
        raise StoppedError(why.of_action(answer.decision.findings), "plan", Exit.DENY, answer)
    limits = answer.decision.limits
    if not isinstance(limits, CodeActionLimits):
        raise _malformed("code_action")
    planned = program.planned = Planned(
        id=limits.id,
        language=limits.language,
        entrypoint=limits.entrypoint,
        code_hash=limits.code_hash,
        chars=limits.chars,
        allowed_policy=limits.allowed_languages_policy,
        allowed_execution=limits.allowed_languages_execution,
    )
    program.story.planned(planned)
    return planned


def _execute(program: Program, planned: Planned, asking: Asking, ticket: Ticket, step: str) -> Steps[None]:
    wanted, story = program.wanted, program.story
    ticket.enter("policy_check")
    body = {"language": planned.language, "code": wanted.action["code"]}
    scan = yield from asking.ask(f"{program.names}code_scan", "code_scan", body)
    if scan.fault is None or scan.fault.exit is not Exit.UNREADABLE:  # a language nobody scans is for policy to refuse
        _pass(program, scan, "policy_check", planned)
    hand = _Hand(program, planned, asking, ticket)
    more = {"elapsed_ms": asking.elapsed_ms, "role": wanted.role, **wanted.execution}
    body = {"action": wanted.action, **wanted.hints, **more}
    answer = yield from asking.ask(f"{program.names}code_execution", "code_execution", body, hand)
    executed = program.executed
    if executed is None:
        _not_started(program, planned, scan, answer)
    story.judged(planned, "allow", _PASSED)
    ran = story.ran(step, planned)
    try:
        if executed is None or answer.fault is not None:
            raise _fault(answer, "execute")
        yield from _validate(program, executed, asking)
    except StoppedError as stop:
        told = _snippets(executed) if stop.reason.startswith("code_runtime_error") else {}
        ran.failed(stop.reason, told)
        raise
    ran.went_well(program.measured, program.result)


def _not_started(program: Program, planned: Planned, scan: Answer, answer: Answer) -> None:
    """Stop where nothing was started, unless it was allowed and only the work failed."""
    _pass(program, answer, "policy_check", planned)
    if answer.decision.outcome is Outcome.ALLOW:
        return
    reason = why.of_execution(answer.decision.findings, scan.decision.findings)
    if reason == why.MAX_SECONDS:  # the code is allowed; there is no time left to run it (C44)
        program.story.judged(planned, "allow", _PASSED)
        raise StoppedError(reason, "execute", Exit.DENY, answer)
    if scan.decision.outcome is not Outcome.ALLOW:
        program.answers.append(scan)
    program.story.judged(planned, "deny", reason.removeprefix("policy_block:"))
    raise StoppedError(reason, "policy_check", Exit.DENY, answer)


def _validate(program: Program, executed: Executed, asking: Asking) -> Steps[None]:
    """Decide on the output of a program that ended."""
    ended = executed.ended
    if ended.status is Status.CANCELLED:
        raise StoppedError(why.CANCELLED, "execute", Exit.DENY)
    if ended.status is Status.SANDBOX_ERROR:
        fault = _sandbox_error()
        raise StoppedError(why.of_fault(fault), "execute", Exit.FAILED_CLOSED, None, fault)
    run = {
        "status": ended.status.value,
        "exit_code": ended.exit_code,
        "signal": ended.signal,
        "stdout_bytes": ended.stdout_bytes,
        "stderr_bytes": ended.stderr_bytes,
        "limit": ended.limit,
    }
    body = {
        "contract": program.wanted.contract,
        "request": program.wanted.request,
        "run": {name: value for name, value in run.items() if value is not None},
        "stdout": executed.stdout,
        "artifacts": (yield Call(lambda: files_of(executed, _forms(asking)), Pace.SLOW)),
    }
    answer = yield from asking.ask(f"{program.names}code_output", "code_output", body)
    program.output_decision = answer.decision.decision_id
    _pass(program, answer, "execute")
    if answer.decision.outcome is Outcome.DENY:
        raise StoppedError(why.of_output(answer.decision.findings), "execute", Exit.DENY, answer)
    program.output = answer.decision.limits
    program.answers += [answer] if answer.decision.findings else []


def _forms(asking: Asking) -> SecretForms:
    serving = asking.parts.serving()
    try:
        return serving.secret_forms()
    finally:
        serving.release()


def _pass(program: Program, answer: Answer, phase: Phase, planned: Planned | None = None) -> None:
    """Stop on a fault, and where a person has to approve first."""
    if answer.decision.outcome is not Outcome.ALLOW:
        program.answers.append(answer)
    if answer.fault is not None and answer.result is None:
        raise _fault(answer, phase)
    if answer.decision.outcome is Outcome.CONFIRM:
        if planned is not None:
            program.story.judged(planned, "deny", why.APPROVAL)
        raise StoppedError(why.APPROVAL, phase, Exit.CONFIRM, answer)
    if answer.decision.outcome is Outcome.DENY and answer.decision.point == "code_scan":
        program.answers.pop()  # it gates nothing by itself; told where the execution is refused


def _fault(answer: Answer, phase: Phase) -> StoppedError:
    fault = answer.fault or WorkError("the approved work was not done", remedy="ask again")
    reason = why.of_request(fault) if phase == "plan" else why.of_fault(fault)
    return StoppedError(reason, phase, fault.exit if phase == "plan" else Exit.FAILED_CLOSED, answer, fault)


@dataclass(slots=True)
class _Hand:
    """Runs the program under the permit, once."""

    program: Program
    planned: Planned
    asking: Asking
    ticket: Ticket

    def __call__(self, permit: Permit, job: Job) -> Result:
        limits, asking, action = permit.limits, self.asking, self.program.wanted.action
        backend = asking.machine.backend(limits.on_backend() or "")
        found = asking.parts.world.sandbox_facts(backend.name, None)
        payload = json.dumps(action["input_payload"]) + "\n"
        code = Code(action["code"], self.planned.entrypoint, payload.encode("ascii"))
        self.ticket.enter("execute")
        result, ended, grant = run_code(
            permit,
            job.input_digest,
            find("code_execution").limits,
            code,
            backend,
            Shown(found.boundaries, found.probes),
            asking.cancel,
        )
        facts = {"run_id": asking.run_id, **result.facts}
        self.program.executed = Executed(code.text, payload, grant, ended, permit.decision_id, facts)
        return Result(result.status, facts)


def _sandbox_error() -> EngineError:
    """The sandbox itself failed: nothing is said about the program."""
    return WorkError(
        "the sandbox could not run the program",
        remedy="run `engine doctor --sandbox`; the failure log has what the sandbox said",
        code="engine.sandbox_error",
    )


def _snippets(executed: Executed | None) -> dict[str, str]:
    if executed is None:
        return {}
    return snippets(executed.stdout, executed.stderr, executed.code, executed.payload)


def _malformed(point: str) -> EngineError:
    return EngineError(f"the limits of `{point}` are not complete", remedy="tell whoever releases the policy")
