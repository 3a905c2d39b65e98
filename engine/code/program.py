"""One program of a run: a decision on its action, a run in its own sandbox, a decision on its output.

The solution and its verifier both take this path, each with its own decisions, permit, folder and budget.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from admission_adapters.sandbox.executor import Code, run_code
from admission_adapters.sandbox.model import Status
from engine.code import stop_reasons as why
from engine.code.asking import Asking
from engine.code.keeping import Executed, output_request
from engine.code.result import StoppedError, Story
from engine.code.running import EitherEvent, Phase
from engine.documents.strict_json import levels_of
from engine.drive import Call, Steps
from engine.errors import EngineError, Exit, WorkError
from engine.facts.code.answers import ContentLimit, result_of
from engine.facts.code.outputs import content_of
from engine.facts.text.content import redacted_content
from engine.flow import Answer
from engine.model import Limits, Outcome, Pace, Permit, Result
from engine.points.code_action import CodeActionLimits
from engine.points.code_output import CodeOutputLimits
from engine.secrets.redaction import redact_text
from engine.work import Job

_PASSED = "policy_pass"
"""The reason of a policy check that found nothing (C19)."""

_MOST_ADVICE = 50
"""Findings of a scan that an answer has; the record of the scan has all of them."""


@dataclass(slots=True)
class Program:
    """A program: what to run, and what came of it, each None until its step is reached.

    `execution` are further fields of the request for point `code_execution`.
    """

    role: str
    action: Any
    hints: Mapping[str, Any]
    contract: str | None
    request: Any
    execution: Mapping[str, Any]
    story: Story
    names: str = ""
    """Prefix of the names of its decisions; empty for the solution."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """What it finds in `inputs/`, by name."""
    planned: CodeActionLimits | None = None
    executed: Executed | None = None
    output: Limits | None = None
    output_decision: str | None = None
    answers: list[Answer] = field(default_factory=list)
    """The decisions that found something."""
    advice: list[dict[str, Any]] = field(default_factory=list)
    """What the scan found in code that ran in spite of it."""

    @property
    def measured(self) -> dict[str, int]:
        """Milliseconds and bytes of the run."""
        if self.executed is None:
            return {}
        return {name: self.executed.facts[name] for name in ("exec_ms", "stdout_bytes", "stderr_bytes")}

    @property
    def admitted(self) -> frozenset[str]:
        """The SHA-256 of the files that may be stored."""
        return frozenset(self.output.artifacts) if isinstance(self.output, CodeOutputLimits) else frozenset()

    @property
    def printed(self) -> dict[str, str]:
        """Both streams as text without secrets, if the decision on the output admits that; else empty."""
        run, output = self.executed, self.output
        if run is None or not isinstance(output, CodeOutputLimits):
            return {}
        digest = hashlib.sha256(run.stdout.encode("utf-8", "replace")).hexdigest()
        return run.printed if digest in output.printed else {}

    @property
    def printed_before_failure(self) -> dict[str, str]:
        """Both streams of a program that failed, where its permit lets output be shown while it runs; else empty."""
        run = self.executed
        if run is None or not run.grant.live or run.run_result.status in {Status.OK, Status.SANDBOX_ERROR}:
            return {}
        return run.printed

    @property
    def result(self) -> Mapping[str, Any]:
        """The validated result; empty before there is one."""
        return {**result_of(self.output.result), **self.content} if isinstance(self.output, CodeOutputLimits) else {}

    @property
    def content(self) -> Mapping[str, Any]:
        """Texts, lists and tables of the result, without secrets. Raises EngineError for what was not decided on."""
        if self.executed is None or not isinstance(self.output, CodeOutputLimits):
            return {}
        return {
            item.name: _admitted(self.executed.stdout, item)
            for item in self.output.result
            if isinstance(item, ContentLimit)
        }


def _admitted(stdout: str, item: ContentLimit) -> Any:
    content, digest = content_of(stdout, item.name, item.shape)
    if digest != item.content:
        raise EngineError("the output is not the one that was decided on", remedy="this is an engine fault: report it")
    return redacted_content(content)


def perform(program: Program, asking: Asking) -> Steps[None]:
    """Take a program through its decisions and fill in its fields. Raises StoppedError."""
    planned = yield from _plan(program, asking)
    yield from _execute(program, planned, asking)


def _plan(program: Program, asking: Asking) -> Steps[CodeActionLimits]:
    asking.ticket.enter("plan")
    tried = {name: program.execution[name] for name in ("task", "attempt") if name in program.execution}
    run = {"contract": program.contract, "request": program.request, "elapsed_ms": asking.elapsed_ms}
    body = {"action": program.action, **program.hints, **tried, **run}
    answer = yield from asking.ask(f"{program.names}code_action", "code_action", body)
    _pass(program, answer, "plan")
    if answer.decision.outcome is Outcome.DENY:
        raise StoppedError(why.of_action(answer.decision.findings), "plan", Exit.DENY, answer)
    limits = answer.decision.limits
    if not isinstance(limits, CodeActionLimits):
        raise EngineError("the limits of `code_action` are not complete", remedy="report it to the policy owner")
    program.planned = limits
    program.story.planned(limits)
    return limits


def _execute(program: Program, planned: CodeActionLimits, asking: Asking) -> Steps[None]:
    story = program.story
    asking.ticket.enter("policy_check")
    body = {"language": planned.language, "code": program.action["code"]}
    scan = yield from asking.ask(f"{program.names}code_scan", "code_scan", body)
    if scan.fault is None or scan.fault.exit is not Exit.UNREADABLE:  # the policy refuses languages without a scanner
        _pass(program, scan, "policy_check", planned)
    executor = partial(_run, program, planned, asking)
    more = {"elapsed_ms": asking.elapsed_ms, "role": program.role, **program.execution, **_material(program)}
    body = {"action": program.action, **program.hints, **more}
    answer = yield from asking.ask(f"{program.names}code_execution", "code_execution", body, executor)
    executed = program.executed
    if executed is None:
        _not_started(program, planned, scan, answer)
    program.advice = [{"code": one.code, "subject": one.subject} for one in scan.decision.findings][:_MOST_ADVICE]
    story.judged(planned, "allow", _PASSED)
    story.ran("execute_code", planned)
    try:
        if executed is None or answer.fault is not None:
            raise _fault(answer, "execute")
        yield from _validate(program, executed, asking)
    except StoppedError as stop:
        output = _snippets(executed) if stop.reason.startswith("code_runtime_error") else {}
        story.failed(stop.reason, output)
        raise
    story.went_well(program.measured, program.result)


def _material(program: Program) -> dict[str, Any]:
    """The fields of the request for the contract and the files; the files by their digests."""
    files = [
        {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in program.files.items()
    ]
    return {"contract": program.contract, **({"files": files} if files else {})}


def _not_started(program: Program, planned: CodeActionLimits, scan: Answer, answer: Answer) -> None:
    """Stop if nothing was started, unless it was allowed and only the work failed."""
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
    run_result = executed.run_result
    if run_result.status is Status.CANCELLED:
        cancelled = asking.ticket.watch.cancel.is_set()
        raise StoppedError(why.CANCELLED if cancelled else why.STOPPED, "execute", Exit.DENY)
    if run_result.status is Status.SANDBOX_ERROR:
        fault = WorkError(  # no verdict on the program
            "the sandbox could not run the program",
            remedy="run `engine doctor --sandbox`; the failure log contains the output of the sandbox",
            code="engine.sandbox_error",
        )
        raise StoppedError(why.of_fault(fault), "execute", Exit.FAILED_CLOSED, None, fault)
    forms = asking.services.lookups.forms
    left = yield Call(lambda: output_request(program.contract or "", run_result, forms), Pace.SLOW)
    body = {**left, "request": program.request}
    answer = yield from asking.ask(f"{program.names}code_output", "code_output", body)
    program.output_decision = answer.decision.decision_id
    _pass(program, answer, "execute")
    if answer.decision.outcome is Outcome.DENY:
        raise StoppedError(why.of_output(answer.decision.findings), "execute", Exit.DENY, answer)
    program.output = answer.decision.limits
    program.answers += [answer] if answer.decision.findings else []


def _pass(program: Program, answer: Answer, phase: Phase, planned: CodeActionLimits | None = None) -> None:
    """Stop on a fault, and if an approval is required."""
    if answer.decision.outcome is not Outcome.ALLOW:
        program.answers.append(answer)
    if answer.fault is not None and answer.result is None:
        raise _fault(answer, phase)
    if answer.decision.outcome is Outcome.CONFIRM:
        if planned is not None:
            program.story.judged(planned, "deny", why.APPROVAL)
        raise StoppedError(why.APPROVAL, phase, Exit.CONFIRM, answer)
    if answer.decision.outcome is Outcome.DENY and answer.decision.point == "code_scan":
        program.answers.pop()  # it gates nothing by itself; its findings count if the execution is refused


def _fault(answer: Answer, phase: Phase) -> StoppedError:
    fault = answer.fault or WorkError("the approved work was not performed", remedy="repeat the request")
    reason = why.of_request(fault) if phase == "plan" else why.of_fault(fault)
    return StoppedError(reason, phase, fault.exit if phase == "plan" else Exit.FAILED_CLOSED, answer, fault)


def _run(program: Program, planned: CodeActionLimits, asking: Asking, permit: Permit, job: Job) -> Result:
    """Run the program under the permit, once."""
    backend = asking.machine.backend(permit.limits.on_backend() or "")
    found = asking.services.gather_context.sandbox_facts(backend.name, None)
    payload = json.dumps(program.action["input_payload"]) + "\n"
    name = program.execution.get("packages")
    packages = None if name is None else asking.machine.packages(name)
    code = Code(
        program.action["code"],
        planned.entrypoint,
        payload.encode("ascii"),
        program.files,
        None if packages is None else (str(packages.folder), packages.tree),
        asking.ticket.watch.on_output,
    )
    asking.ticket.enter("execute")
    result, run_result, grant = run_code(
        permit, job.input_digest, code, backend, found, EitherEvent(asking.ticket.watch.cancel, job.stop)
    )
    facts = {"run_id": asking.ticket.run_id, **result.facts}
    program.executed = Executed(code.text, payload, grant, run_result, permit.decision_id, facts)
    return Result(result.status, facts)


CHARACTERS = 200

_CODE = "[code]"
_PAYLOAD = "[payload]"
_WORD = 8
"""Characters of a text or number in the payload that is removed; shorter ones are ordinary words."""


def _snippets(run: Executed | None) -> dict[str, str]:
    """`stderr_snippet` and `stdout_snippet` of a program that ran, those that are not empty."""
    if run is None:
        return {}
    found = {
        "stderr_snippet": snippet(run.stderr, run.code, run.payload, end=True),  # where a traceback has the error
        "stdout_snippet": snippet(run.stdout, run.code, run.payload),
    }
    return {name: text for name, text in found.items() if text}


def snippet(text: str, code: str, payload: str, *, end: bool = False) -> str:
    """The start or end of a text as one line of at most `CHARACTERS`; empty if there is nothing to show.

    An interpreter prints the line of code that failed; such lines are removed. So are the texts and
    numbers in the payload, the long ones first, except those that are too short to reveal anything. Secrets are
    removed before the text is cut, because half a secret is not recognized (C36, C83).
    """
    for own, mark in ((code.strip(), _CODE), (payload.strip(), _PAYLOAD)):
        text = text.replace(own, mark) if own else text
    for own in _without_secrets(payload, text):
        text = text.replace(own, _PAYLOAD)
    lines = {line.strip() for line in code.splitlines()} - {""}
    visible = [_CODE if line.strip() in lines else line for line in text.splitlines()]
    flat = "".join(
        character if character.isprintable() else " " for character in redact_text("\n".join(visible)).strip()
    )
    return (flat[-CHARACTERS:] if end else flat[:CHARACTERS]).strip()


def _without_secrets(payload: str, text: str) -> list[str]:
    """What a payload has that occurs in a text, as it is or as JSON and Python write it; the long ones first."""
    starts = {text[at : at + _WORD] for at in range(len(text))}
    items = chain.from_iterable(levels_of(json.loads(payload or "null")))
    texts = {str(item).strip() for item in items if not isinstance(item, dict | list)}
    forms = (form for own in texts if len(own) >= _WORD for form in _forms(own))
    found = {form for form in forms if form[:_WORD] in starts and form in text}
    return sorted(found, key=lambda form: (-len(form), form))


def _forms(own: str) -> tuple[str, ...]:
    if own.isascii() and own.isprintable() and not set(own) & set("\\\"'"):
        return (own,)
    return own, json.dumps(own)[1:-1], json.dumps(own, ensure_ascii=False)[1:-1], repr(own)[1:-1]
