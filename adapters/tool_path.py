"""The path of a call through the gate, as steps that ask the engine; one text for gates that block and that do not.

call ─> tool_call ─> the tool, under the permit ─> tool_result ─> ToolResult
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from adapters.tool_effects import Effects
from adapters.tool_grants import CallGrant, DecidedCall, Job, ResultGrant, VisibilityGrant, granted, unenforceable
from adapters.tool_outcome import Outcome
from adapters.tool_process import in_process
from adapters.tool_request import named_tool, private_copy
from adapters.tool_result import ToolResult, broken, not_run, returned, withheld
from adapters.tool_thread import Tool, in_thread
from engine.errors import EngineError, WorkError
from engine.model import Decision, Permit, Result
from engine.model import Outcome as Decided

T = TypeVar("T")


class Registry(Protocol):
    """Callables by name, and what is said about them; `ToolRegistry` is one."""

    def get(self, name: str) -> Tool:
        """The callable of a tool. Raises WorkError."""
        ...

    def names(self) -> Collection[str]:
        """The names of all tools."""
        ...

    def definition(self, name: str) -> dict[str, Any]:
        """What is said about a tool, for the caller alone. Raises WorkError."""
        ...


class Answer(Protocol):
    """What is read of an answer of the engine."""

    @property
    def decision(self) -> Decision:
        """The decision."""
        ...

    @property
    def fault(self) -> EngineError | None:
        """What failed of the engine or its record."""
        ...


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to the engine, and the hand that does the work of an allow."""

    point: str
    request: Any
    hand: Any
    context: Any


Steps = Generator[Ask, Answer, T]


@dataclass(frozen=True, slots=True)
class Asked:
    """Under what the calls of a gate are made; what is None is not stated, and the policy decides on that."""

    policy: str | None = None
    profile: str | None = None
    cwd: str | None = None
    environment: Mapping[str, bool] | None = None

    def request(self, *names: str, **more: Any) -> dict[str, Any]:
        """A request with these of the fields, as far as they are stated."""
        stated = {name: copy.copy(getattr(self, name)) for name in names}
        return {name: value for name, value in {**stated, **more}.items() if value is not None}


@dataclass(slots=True)
class _Ran:
    """What became of a call that was allowed; nothing while it was not made."""

    tool: str = ""
    outcome: Outcome | None = None
    effects: list[dict[str, str]] = field(default_factory=list)
    interrupt: BaseException | None = None


@dataclass(frozen=True, slots=True)
class ToolPath:
    """The steps of a gate; has no state of its own, so threads and tasks may share it.

    `context` is the engine's Context of whoever asks, `isolated` names the tools that run in a process of
    their own, with `process_environment` and nothing else of this one's.
    """

    registry: Registry
    context: Any
    asked: Asked
    error_mode: str
    isolated: frozenset[str]
    process_environment: Mapping[str, str]

    def visible(self) -> Steps[list[dict[str, Any]]]:
        """The definitions that may go into the prompt; none where that cannot be decided."""
        shown: list[str] = []

        def hand(permit: Permit, job: Job) -> Result:
            grant = granted(permit, job, "tool_visibility")
            if not isinstance(grant, VisibilityGrant):
                raise unenforceable("tool_visibility")
            shown.extend(grant.visible)
            return Result("shown", {"tools": len(shown)})

        try:
            known = {name: self.registry.definition(name) for name in self.registry.names()}
            request = self.asked.request("policy", "profile", tools=list(known.values()))
            answer = yield Ask("tool_visibility", request, hand, self._context(None))
        except Exception:  # noqa: BLE001  (what cannot be decided is not shown)
            return []
        if answer.fault is not None:
            return []
        return [self.registry.definition(name) for name in shown if name in known]

    def call(self, call: Any, approval: str | None) -> Steps[ToolResult]:
        """Decide, run, decide on the result."""
        ran = _Ran()
        try:
            answer = yield Ask("tool_call", self._request(call), self._hand(ran), self._context(approval))
        except Exception as error:  # noqa: BLE001  (always a result)
            return broken(_code(error), None, ran=ran.outcome is not None)
        if ran.interrupt is not None:
            raise ran.interrupt
        decision = answer.decision
        if ran.outcome is None:
            if decision.outcome is Decided.ALLOW:
                code = "engine.work_not_run" if answer.fault is None else answer.fault.code
                return broken(code, decision.decision_id, ran=False)
            return not_run(decision)
        if answer.fault is not None:
            return broken(answer.fault.code, decision.decision_id, ran=True)
        return (yield from self._read_back(ran, ran.outcome, decision))

    def _read_back(self, ran: _Ran, outcome: Outcome, decision: Decision) -> Steps[ToolResult]:
        """Decide on the result, and give what may be given of it."""
        given: list[ToolResult] = []

        def hand(permit: Permit, job: Job) -> Result:
            grant = granted(permit, job, "tool_result")
            if not isinstance(grant, ResultGrant):
                raise unenforceable("tool_result")
            result = returned(outcome, grant, decision.decision_id)
            given.append(result)
            size = len(result.content.encode("utf-8"))
            return Result("returned", {"bytes": size, "truncated": result.metadata["truncated"]})

        try:
            request = _result_request(ran, outcome, decision.decision_id, self.error_mode)
            answer = yield Ask("tool_result", request, hand, self._context(None))
        except Exception as error:  # noqa: BLE001
            return broken(_code(error), decision.decision_id, ran=True)
        if answer.fault is not None:
            return broken(answer.fault.code, decision.decision_id, ran=True)
        return given[0] if given else withheld(decision, answer.decision)

    def _request(self, call: Any) -> Any:
        """The request for a call; the error where it cannot be read, which the engine answers and records."""
        try:
            frozen = private_copy(call)
        except EngineError as error:
            return error
        name = named_tool(frozen)
        known = name is not None and name in self.registry.names()
        definition = self.registry.definition(name) if known and name is not None else None
        return self.asked.request("policy", "profile", "cwd", "environment", call=frozen, definition=definition)

    def _context(self, approval: str | None) -> Any:
        return replace(self.context, approval=approval, idempotency_key=None)  # a key is for one request

    def _hand(self, ran: _Ran) -> Any:
        def hand(permit: Permit, job: Job) -> Result:
            grant = granted(permit, job, "tool_call")
            if not isinstance(grant, CallGrant):
                raise unenforceable("tool_call")
            call: DecidedCall = job.opened
            if call.tool != grant.tool:
                raise WorkError(
                    "the permit is for another tool", remedy="ask for this one", code="engine.permit_missing"
                )
            tool, arguments = self.registry.get(call.tool), copy.deepcopy(call.arguments)
            effects = Effects()
            try:
                outcome = self._run(call.tool, tool, arguments, grant, effects)
            except (KeyboardInterrupt, SystemExit) as stop:  # of whoever waits here, not of the tool
                ran.interrupt, outcome = stop, Outcome.failed(stop)
            ran.tool, ran.outcome, ran.effects = call.tool, outcome, effects.close()
            return Result(_status(outcome), _facts(ran, outcome, grant))

        return hand

    def _run(self, name: str, tool: Tool, arguments: dict[str, Any], grant: CallGrant, effects: Effects) -> Outcome:
        if name in self.isolated:
            environment = self.process_environment
            return in_process(tool, arguments, grant.seconds, grant.result_bytes, effects, environment)
        return in_thread(tool, arguments, grant.seconds, grant.result_bytes, effects)


def _status(outcome: Outcome) -> str:
    if outcome.late:
        return "timed_out"
    return "done" if outcome.failure is None else "failed"


def _facts(ran: _Ran, outcome: Outcome, grant: CallGrant) -> dict[str, Any]:
    """What the record keeps of a call: no argument, no content, no message."""
    facts: dict[str, Any] = {
        "tool": ran.tool,
        "declared_side_effects": list(grant.side_effects),
        "side_effects": ran.effects,
    }
    return facts | _measured(outcome)


def _measured(outcome: Outcome) -> dict[str, Any]:
    given, failure = outcome.given, outcome.failure
    if given is not None:
        return {"result": {"bytes": given.bytes, "digest": given.digest, "media": given.media}}
    return {} if failure is None else {"error": {"kind": failure.kind, "class": failure.class_}}


def _result_request(ran: _Ran, outcome: Outcome, decision_id: str, error_mode: str) -> dict[str, Any]:
    request: dict[str, Any] = {
        "tool": ran.tool,
        "decision": decision_id,
        "status": "ok" if outcome.failure is None else "error",
        "error_mode": error_mode,
        "side_effects": ran.effects,
        **_measured(outcome),
    }
    if (failure := outcome.failure) is not None:
        told = {"code": failure.code, "message": failure.message, "details": dict(failure.details)}
        request["error"] |= {name: value for name, value in told.items() if value}
    return request


def _code(error: Exception) -> str:
    return error.code if isinstance(error, EngineError) else "engine.internal"
