"""The executor of a tool call: verifies the permit, then calls exactly the tool and arguments decided on."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from admission_adapters.grants import granted
from admission_adapters.tools.effects import Effects
from admission_adapters.tools.grants import CallGrant, DecidedCall
from admission_adapters.tools.outcome import Outcome
from admission_adapters.tools.process import in_process
from admission_adapters.tools.registry import ToolRegistry
from admission_adapters.tools.thread import Tool, in_thread
from engine.errors import PermitMissingError, WorkError
from engine.model import Job, Permit, Result, StopSignal


@dataclass(frozen=True, slots=True)
class ToolPlaces:
    """Where tools run: those of `isolated` in their own processes, with this environment, others in threads.

    What an async tool of `on_loop` does is awaited on `loop`, the caller's own.
    """

    isolated: frozenset[str] = frozenset()
    environment: Mapping[str, str] = field(default_factory=dict)
    on_loop: frozenset[str] = frozenset()
    loop: asyncio.AbstractEventLoop | None = None


@dataclass(slots=True)
class CallExecutor:
    """Makes one call, once. `outcome` stays None if it was not made.

    `looked_up` is the tool whose `definition` went into the request: after a change the call is not made. `interrupt`
    is what made the waiting caller for the tool stop waiting, such as Ctrl-C; the call is recorded first.
    """

    registry: ToolRegistry
    places: ToolPlaces
    looked_up: str | None
    definition: Mapping[str, Any] | None
    tool: str = ""
    outcome: Outcome | None = None
    effects: list[dict[str, str]] = field(default_factory=list)
    interrupt: BaseException | None = None

    def __call__(self, permit: Permit, job: Job) -> Result:
        """Raises WorkError without a permit for this call, and for a tool that is not registered."""
        grant = granted(permit, "tool_call", job.input_digest, CallGrant)
        call: DecidedCall = job.opened
        if not call.tool == grant.tool == self.looked_up or self.outcome is not None:
            raise PermitMissingError(
                "the permit is for a call of another tool", remedy="request a decision on this call"
            )
        tool, arguments = self.registry.get(call.tool), copy.deepcopy(call.arguments)
        if self.registry.definition(call.tool) != self.definition:
            raise WorkError(
                f"the definition of tool `{call.tool}` changed after the decision",
                remedy="repeat the call",
                code="engine.tool_changed",
            )
        effects = Effects()
        try:
            outcome = self._run(tool, arguments, grant, effects, job.stop)
        except Exception:
            raise  # it was not begun
        except BaseException as stop:  # noqa: BLE001  (of the waiting caller, not of the tool)
            self.interrupt, outcome = stop, Outcome.failed(stop)
        self.tool, self.outcome, self.effects = call.tool, outcome, effects.close()
        facts = {
            "tool": call.tool,
            "declared_side_effects": list(grant.side_effects),
            "side_effects": self.effects,
            **measured(outcome),
        }
        return Result(_status(outcome), facts)

    def _run(
        self, tool: Tool, arguments: dict[str, Any], grant: CallGrant, effects: Effects, stop: StopSignal
    ) -> Outcome:
        places = self.places
        if grant.tool in places.isolated:
            environment = places.environment
            return in_process(tool, arguments, grant.seconds, grant.result_bytes, effects, environment, stop)
        loop = places.loop if grant.tool in places.on_loop else None
        return in_thread(tool, arguments, grant.seconds, grant.result_bytes, effects, stop, loop)


def measured(outcome: Outcome) -> dict[str, Any]:
    """The recordable facts of an outcome: no content and no message."""
    text, failure = outcome.result_text, outcome.failure
    if text is not None:
        return {"result": {"bytes": text.bytes, "digest": text.digest, "media": text.media}}
    return {} if failure is None else {"error": {"kind": failure.kind, "class": failure.class_}}


def result_request(executor: CallExecutor, outcome: Outcome, decision_id: str, error_mode: str) -> dict[str, Any]:
    """The request for point `tool_result`, without a message that would not be shown."""
    request: dict[str, Any] = {
        "tool": executor.tool,
        "decision": decision_id,
        "status": "ok" if outcome.failure is None else "error",
        "error_mode": error_mode,
        "side_effects": executor.effects,
        **measured(outcome),
    }
    if (text := outcome.result_text) is not None:
        request["result"] |= {"text": text.text}
    failure = outcome.failure
    if failure is not None and (failure.kind == "validation" or error_mode == "debug"):
        error = {"code": failure.code, "message": failure.message, "details": dict(failure.details)}
        request["error"] |= {name: value for name, value in error.items() if value}
    return request


def _status(outcome: Outcome) -> str:
    if outcome.late:
        return "timed_out"
    return "done" if outcome.failure is None else "failed"
