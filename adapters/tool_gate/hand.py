"""The hand of a tool call: demands the permit, then calls exactly the tool with exactly the arguments decided on."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.tool_gate.asks import Registry
from adapters.tool_gate.effects import Effects
from adapters.tool_gate.grants import CallGrant, DecidedCall, Job, granted, unenforceable
from adapters.tool_gate.outcome import Outcome
from adapters.tool_gate.process import in_process
from adapters.tool_gate.thread import Tool, in_thread
from engine.errors import WorkError
from engine.model import Permit, Result


@dataclass(frozen=True, slots=True)
class Apart:
    """The tools that run in a process of their own, and all that these processes have of an environment."""

    names: frozenset[str]
    environment: Mapping[str, str]


@dataclass(slots=True)
class CallHand:
    """Makes one call, once. `outcome` stays None where it was not made.

    `looked_up` is the tool whose definition went into the request. `interrupt` is what made whoever waited
    for the tool stop waiting, such as Ctrl-C; the call is recorded first.
    """

    registry: Registry
    apart: Apart
    looked_up: str | None
    tool: str = ""
    outcome: Outcome | None = None
    effects: list[dict[str, str]] = field(default_factory=list)
    interrupt: BaseException | None = None

    def __call__(self, permit: Permit, job: Job) -> Result:
        """Raises WorkError without a permit for this call, and for a tool that is not registered."""
        grant = granted(permit, job, "tool_call")
        if not isinstance(grant, CallGrant):
            raise unenforceable("tool_call")
        call: DecidedCall = job.opened
        if not call.tool == grant.tool == self.looked_up or self.outcome is not None:
            raise WorkError(
                "the permit is for one call of another tool", remedy="ask for this one", code="engine.permit_missing"
            )
        tool, arguments = self.registry.get(call.tool), copy.deepcopy(call.arguments)
        effects = Effects()
        try:
            outcome = self._run(call.tool, tool, arguments, grant, effects)
        except Exception:
            raise  # it was not begun
        except BaseException as stop:  # noqa: BLE001  (of whoever waits here, not of the tool)
            self.interrupt, outcome = stop, Outcome.failed(stop)
        self.tool, self.outcome, self.effects = call.tool, outcome, effects.close()
        facts = {
            "tool": call.tool,
            "declared_side_effects": list(grant.side_effects),
            "side_effects": self.effects,
            **measured(outcome),
        }
        return Result(_status(outcome), facts)

    def _run(self, name: str, tool: Tool, arguments: dict[str, Any], grant: CallGrant, effects: Effects) -> Outcome:
        if name in self.apart.names:
            environment = self.apart.environment
            return in_process(tool, arguments, grant.seconds, grant.result_bytes, effects, environment)
        return in_thread(tool, arguments, grant.seconds, grant.result_bytes, effects)


def measured(outcome: Outcome) -> dict[str, Any]:
    """What may be written down of an outcome: no content and no message."""
    given, failure = outcome.given, outcome.failure
    if given is not None:
        return {"result": {"bytes": given.bytes, "digest": given.digest, "media": given.media}}
    return {} if failure is None else {"error": {"kind": failure.kind, "class": failure.class_}}


def result_request(hand: CallHand, outcome: Outcome, decision_id: str, error_mode: str) -> dict[str, Any]:
    """The request for point `tool_result`; a message that nobody would be shown stays here."""
    request: dict[str, Any] = {
        "tool": hand.tool,
        "decision": decision_id,
        "status": "ok" if outcome.failure is None else "error",
        "error_mode": error_mode,
        "side_effects": hand.effects,
        **measured(outcome),
    }
    failure = outcome.failure
    if failure is not None and (failure.kind == "validation" or error_mode == "debug"):
        told = {"code": failure.code, "message": failure.message, "details": dict(failure.details)}
        request["error"] |= {name: value for name, value in told.items() if value}
    return request


def _status(outcome: Outcome) -> str:
    if outcome.late:
        return "timed_out"
    return "done" if outcome.failure is None else "failed"
