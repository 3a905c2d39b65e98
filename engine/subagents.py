"""An engine's subagents: the adapter, wired to the decision point and to the state that knows whose child is whose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from adapters.subagent_process import Program, State
from adapters.subagents import Subagents
from engine.engine import Engine
from engine.errors import EngineError
from engine.flow import Answer, Context, Parts
from engine.model import Permit, Result
from engine.points.subagent import SubagentLimits, conversation_of
from engine.state import NewChild


@dataclass(frozen=True, slots=True)
class _Children:
    """Keeps the family in the engine's state."""

    parts: Parts

    def started(self, child: str, parent: str) -> None:
        self.parts.store().add_child(NewChild(child, conversation_of(parent), self.parts.world.clock()))

    def ended(self, child: str, state: State) -> None:
        self.parts.store().end_child(child, state, self.parts.world.clock())


def subagents(engine: Engine, program: Program, context: Context = Context()) -> Subagents:  # noqa: B008  (frozen)
    """The subagents of an open engine, for callers that block; close them before the engine.

    `context` says who asks and for which run; key and approval come with each call.
    """
    if engine.parts is None:
        raise EngineError("the engine is not open", remedy="use it as `with Engine(settings) as engine:`")

    def decide(
        request: dict[str, Any], hand: Callable[[Permit, Any], Result], key: str | None, approval: str | None
    ) -> Answer:
        return engine.decide("subagent", request, hand, replace(context, idempotency_key=key, approval=approval))

    return Subagents(decide, _Children(engine.parts), program, SubagentLimits)
