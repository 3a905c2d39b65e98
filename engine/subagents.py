"""An engine's subagents: the adapter, wired to the decision point and to the state that knows whose child is whose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from admission_adapters.subagents.family import Subagents
from admission_adapters.subagents.process import Program, State
from engine.engine import Engine
from engine.flow import Answer, Context, Services
from engine.model import Permit, Result
from engine.points.subagent import conversation_of
from engine.state.rows import ChildRow


@dataclass(frozen=True, slots=True)
class _Children:
    """Keeps the family in the engine's state."""

    services: Services
    principal: str

    def started(self, child: str, parent: str) -> None:
        now = self.services.gather_context.clock()
        self.services.store().add_child(ChildRow(child, conversation_of(parent), now, principal=self.principal))

    def ended(self, child: str, state: State) -> None:
        self.services.store().end_child(child, state, self.services.gather_context.clock())


def subagents(engine: Engine, program: Program, context: Context = Context()) -> Subagents:  # noqa: B008  (frozen)
    """The subagents of an open engine, for callers that block; close them before the engine.

    `context` has the caller and the run; key and approval are passed with each call.
    """
    services = engine.opened

    def decide(
        request: dict[str, Any], executor: Callable[[Permit, Any], Result], key: str | None, approval: str | None
    ) -> Answer:
        return engine.decide("subagent", request, executor, replace(context, idempotency_key=key, approval=approval))

    return Subagents(decide, _Children(services, context.caller.principal or ""), program)
