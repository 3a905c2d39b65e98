"""The path of a call through the gate, shared by the blocking and the async gate.

call ─> tool_call ─> the tool, under the permit ─> tool_result ─> ToolResult
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from admission_adapters.grants import granted
from admission_adapters.interfaces import Answer, AnswerT, Decides
from admission_adapters.tools.executor import CallExecutor, ToolPlaces, result_request
from admission_adapters.tools.grants import ResultGrant, VisibilityGrant
from admission_adapters.tools.held import HeldResult, HeldResults
from admission_adapters.tools.registry import ToolRegistry
from admission_adapters.tools.request import call_parts, private_copy, tool_name
from admission_adapters.tools.result import ToolResult, codes_of, not_run, returned, waiting, withheld
from engine.errors import EngineError
from engine.model import Job, Permit, Result
from engine.model import Outcome as Decided

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question:
    """One question to the engine, and the executor that does the work of an allow."""

    point: str
    request: Any
    executor: Any
    context: Any

    def put(self, engine: Decides[AnswerT]) -> AnswerT:
        """What this engine answers."""
        return engine.decide(self.point, self.request, self.executor, self.context)


@dataclass(frozen=True, slots=True)
class Listed:
    """The definitions that may go into the prompt now; `codes` say why none were decided on, a `fault` in words."""

    definitions: list[dict[str, Any]]
    codes: tuple[str, ...] = ()
    fault: str = ""


Steps = Generator[Question, Answer, T]
"""A path: yields questions and receives the answers or errors."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """The context of a gate's calls; None means not stated, which the policy judges."""

    policy: str | None = None
    profile: str | None = None
    cwd: str | None = None
    home: str | None = None
    environment: Mapping[str, Any] | None = None

    def request(self, *names: str, **more: Any) -> dict[str, Any]:
        """A request with these fields of this object and `more`."""
        return {name: copy.copy(getattr(self, name)) for name in names} | more


@dataclass(frozen=True, slots=True)
class ToolPath:
    """The steps of a gate; threads and tasks may share it.

    `context` is the engine's Context of the caller, `held` the results that wait for a person.
    """

    registry: ToolRegistry
    context: Any
    call_context: CallContext
    error_mode: str
    places: ToolPlaces
    held: HeldResults = field(default_factory=HeldResults)

    def listed(self) -> Steps[Listed]:
        """The definitions that may go into the prompt; none if no decision can be made.

        A definition that states another name than its registered one is omitted: what
        the model would call by that name is another tool.
        """
        visible_names: list[str] = []

        def executor(permit: Permit, job: Job) -> Result:
            grant = granted(permit, "tool_visibility", job.input_digest, VisibilityGrant)
            visible_names.extend(grant.visible)
            return Result("shown", {"tools": len(visible_names)})

        try:
            every = {name: self.registry.definition(name) for name in self.registry.names()}
            known = {name: definition for name, definition in every.items() if tool_name(definition) == name}
            request = self.call_context.request("policy", "profile", tools=list(known.values()))
            answer = yield Question("tool_visibility", request, executor, self._context(None))
        except Exception as error:  # noqa: BLE001  (a tool without a decision is not visible)
            return Listed([], (_code(error),))
        if (fault := answer.fault) is not None:
            return Listed([], (fault.code,), f"{fault.one_line()}; {fault.remedy}")
        if answer.decision.outcome is not Decided.ALLOW:
            return Listed([], tuple(codes_of(answer.decision)))
        return Listed([private_copy(known[name]) for name in visible_names if name in known])

    def call(self, call: Any, approval: str | None) -> Steps[ToolResult]:
        """Decide on the call, run it, decide on the result."""
        if (held := self.held.take(approval, call_parts(call))) is not None:
            return (yield from self._read_back(held, approval))
        request, name = self.request(call)
        definition = request.get("definition") if isinstance(request, dict) else None
        executor = CallExecutor(self.registry, self.places, name, definition)
        try:
            answer = yield Question("tool_call", request, executor, self._context(approval))
        except Exception as error:  # noqa: BLE001  (always a result)
            return withheld([_code(error)], None, ran=executor.outcome is not None)
        if executor.interrupt is not None:
            raise executor.interrupt
        decision = answer.decision
        if executor.outcome is None:
            if decision.outcome is Decided.ALLOW:
                code = "engine.work_not_run" if answer.fault is None else answer.fault.code
                return withheld([code], decision.decision_id, ran=False)
            return not_run(decision)
        if answer.fault is not None:
            return withheld([answer.fault.code], decision.decision_id, ran=True)
        made = HeldResult(call_parts(request["call"]) or ("", None), executor, executor.outcome, decision)
        return (yield from self._read_back(made, None))

    def _read_back(self, made: HeldResult, approval: str | None) -> Steps[ToolResult]:
        """Decide on the result, and return the permitted part of it; what waits for a person is kept."""
        results: list[ToolResult] = []
        outcome, decision = made.outcome, made.decision

        def executor(permit: Permit, job: Job) -> Result:
            grant = granted(permit, "tool_result", job.input_digest, ResultGrant)
            result = returned(outcome, grant, job.opened, decision.decision_id)
            results.append(result)
            facts = {"bytes": len(result.content.encode("utf-8")), "truncated": result.metadata["truncated"]}
            return Result("returned", facts | {"redacted": result.metadata.get("redacted", {})})

        try:
            request = result_request(made.executor, outcome, decision.decision_id, self.error_mode)
            answer = yield Question("tool_result", request, executor, self._context(approval))
            codes = codes_of(answer.decision) if answer.fault is None else [answer.fault.code]
            failed, requested = answer.fault is not None, answer.decision.approval
        except Exception as error:  # noqa: BLE001
            codes, failed, requested = [_code(error)], True, None
        if results:
            return withheld(codes, decision.decision_id, ran=True) if failed else results[0]
        if not failed and requested is not None and answer.decision.outcome is Decided.CONFIRM:
            self.held.put(requested.id, made)
            return waiting(codes, decision.decision_id, requested.id)
        if approval is not None:  # such as one that is not granted yet, or a fault of the engine
            self.held.put(approval, made)
        return withheld(codes, decision.decision_id, ran=True)

    def request(self, call: Any) -> tuple[Any, str | None]:
        """The request for a call and the name of its tool; for an unreadable call the error, for the record."""
        if isinstance(call, EngineError):
            return call, None
        try:
            frozen = private_copy(call)
            name = tool_name(frozen)
            known = self.registry.names()
            definition = self.registry.definition(name) if name is not None and name in known else None
        except EngineError as error:
            return error, None
        except Exception as error:  # noqa: BLE001  (the registry may be foreign code)
            what = f"the registry of tools failed with {type(error).__name__}"
            return EngineError(what, remedy="check the registry"), None
        return self.call_context.request(
            "policy", "profile", "cwd", "home", "environment", call=frozen, definition=definition
        ), name

    def _context(self, approval: str | None) -> Any:
        return replace(self.context, approval=approval, idempotency_key=None)  # a key is for one request


def _code(error: Exception) -> str:
    return error.code if isinstance(error, EngineError) else "engine.internal"
