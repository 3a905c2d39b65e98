"""The path of a call through the gate, one text for gates that block and that do not.

call ─> tool_call ─> the tool, under the permit ─> tool_result ─> ToolResult
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from adapters.tool_gate.asks import Ask, Asked, Registry, Steps
from adapters.tool_gate.grants import Job, ResultGrant, VisibilityGrant, granted, unenforceable
from adapters.tool_gate.hand import Apart, CallHand, result_request
from adapters.tool_gate.outcome import Outcome
from adapters.tool_gate.request import named_tool, private_copy
from adapters.tool_gate.result import ToolResult, broken, not_run, returned, withheld
from engine.errors import EngineError
from engine.model import Decision, Permit, Result
from engine.model import Outcome as Decided


@dataclass(frozen=True, slots=True)
class ToolPath:
    """The steps of a gate; has no state of its own, so threads and tasks may share it.

    `context` is the engine's Context of whoever asks.
    """

    registry: Registry
    context: Any
    asked: Asked
    error_mode: str
    apart: Apart

    def visible(self) -> Steps[list[dict[str, Any]]]:
        """The definitions that may go into the prompt; none where that cannot be decided.

        A definition that states another name than the one it is registered under is none of them: what
        the model would call by that name is another tool.
        """
        shown: list[str] = []

        def hand(permit: Permit, job: Job) -> Result:
            grant = granted(permit, job, "tool_visibility")
            if not isinstance(grant, VisibilityGrant):
                raise unenforceable("tool_visibility")
            shown.extend(grant.visible)
            return Result("shown", {"tools": len(shown)})

        try:
            every = {name: self.registry.definition(name) for name in self.registry.names()}
            known = {name: definition for name, definition in every.items() if named_tool(definition) == name}
            request = self.asked.request("policy", "profile", tools=list(known.values()))
            answer = yield Ask("tool_visibility", request, hand, self._context(None))
        except Exception:  # noqa: BLE001  (what cannot be decided is not shown)
            return []
        if answer.fault is not None:
            return []
        return [private_copy(known[name]) for name in shown if name in known]

    def call(self, call: Any, approval: str | None) -> Steps[ToolResult]:
        """Decide, run, decide on the result."""
        request, name = self._request(call)
        hand = CallHand(self.registry, self.apart, name)
        try:
            answer = yield Ask("tool_call", request, hand, self._context(approval))
        except Exception as error:  # noqa: BLE001  (always a result)
            return broken(_code(error), None, ran=hand.outcome is not None)
        if hand.interrupt is not None:
            raise hand.interrupt
        decision = answer.decision
        if hand.outcome is None:
            if decision.outcome is Decided.ALLOW:
                code = "engine.work_not_run" if answer.fault is None else answer.fault.code
                return broken(code, decision.decision_id, ran=False)
            return not_run(decision)
        if answer.fault is not None:
            return broken(answer.fault.code, decision.decision_id, ran=True)
        return (yield from self._read_back(hand, hand.outcome, decision))

    def _read_back(self, call: CallHand, outcome: Outcome, decision: Decision) -> Steps[ToolResult]:
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
            request = result_request(call, outcome, decision.decision_id, self.error_mode)
            answer = yield Ask("tool_result", request, hand, self._context(None))
        except Exception as error:  # noqa: BLE001
            return broken(_code(error), decision.decision_id, ran=True)
        if answer.fault is not None:
            return broken(answer.fault.code, decision.decision_id, ran=True)
        return given[0] if given else withheld(decision, answer.decision)

    def _request(self, call: Any) -> tuple[Any, str | None]:
        """The request for a call and the tool it names; the error where it cannot be read, which the engine records."""
        try:
            frozen = private_copy(call)
            name = named_tool(frozen)
            known = self.registry.names()
            definition = self.registry.definition(name) if name is not None and name in known else None
        except EngineError as error:
            return error, None
        except Exception as error:  # noqa: BLE001  (a registry of somebody else)
            return _unreadable(error), None
        return self.asked.request("policy", "profile", "cwd", "environment", call=frozen, definition=definition), name

    def _context(self, approval: str | None) -> Any:
        return replace(self.context, approval=approval, idempotency_key=None)  # a key is for one request


def _unreadable(error: Exception) -> EngineError:
    return EngineError(f"the registry of tools failed with {type(error).__name__}", remedy="see to the registry")


def _code(error: Exception) -> str:
    return error.code if isinstance(error, EngineError) else "engine.internal"
