"""The gate between an agent and its tools: what it may see, what it may call, what it may read back.

    gate = ToolGate(engine, registry, context, policy="assistant", profile="coding", cwd="/work")
    prompt = gate.visible()
    result = gate.call(call_of_the_model)

Every call is decided on, runs under the permit of exactly that decision, is recorded with its side
effects, and its result is decided on again. Whatever a tool or a model does, there is a ToolResult.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Protocol, TypeVar

from adapters.tool_effects import ToolStoppedError, record_side_effect
from adapters.tool_outcome import ToolValidationError
from adapters.tool_path import Answer, Asked, Registry, Steps, ToolPath
from adapters.tool_result import ToolResult

__all__ = [
    "AsyncToolGate",
    "ToolGate",
    "ToolResult",
    "ToolStoppedError",
    "ToolValidationError",
    "record_side_effect",
]

T = TypeVar("T")


class Decides(Protocol):
    """What is used of an `Engine`."""

    def decide(self, point: str, request: Any, hand: Any, context: Any) -> Answer:
        """Decide, and let the hand work on an allow."""
        ...


class DecidesAsync(Protocol):
    """What is used of an `AsyncEngine`."""

    async def decide(self, point: str, request: Any, hand: Any, context: Any) -> Answer:
        """Decide, and let the hand work on an allow."""
        ...


class _Gate:
    """What both gates know."""

    def __init__(  # noqa: PLR0913  (each is optional and named)
        self,
        registry: Registry,
        context: Any,
        *,
        policy: str | None = None,
        profile: str | None = None,
        cwd: str | None = None,
        environment: Mapping[str, bool] | None = None,
        error_mode: Literal["safe", "debug"] = "safe",
        isolated: Iterable[str] = (),
        process_environment: Mapping[str, str] | None = None,
    ) -> None:
        """`context` is the engine's Context: who asks, in which run. `cwd` is absolute.

        `policy` and `profile` name what policy/tools.yaml says; none is the policy that denies everything.
        `environment` says what could undo a destructive call (`reset`, `checkpoint`). `error_mode` is what
        is asked for (B31). Tools that `isolated` names run in a process of their own, with
        `process_environment` as their environment, and are killed when their time is up.
        """
        asked = Asked(policy, profile, cwd, None if environment is None else dict(environment))
        self._path = ToolPath(
            registry, context, asked, error_mode, frozenset(isolated), dict(process_environment or {})
        )


class ToolGate(_Gate):
    """The gate for callers that block, over an `Engine`; threads may share it."""

    def __init__(self, engine: Decides, registry: Registry, context: Any, **options: Any) -> None:
        super().__init__(registry, context, **options)
        self._engine = engine

    def visible(self) -> list[dict[str, Any]]:
        """The definitions that may go into the prompt now; empty where the policy cannot be asked."""
        return self._walk(self._path.visible())

    def call(self, call: Any, approval: str | None = None) -> ToolResult:
        """Make a call in any shape that models give (OpenAI, Anthropic, MCP, our own), if it is allowed.

        `approval` is the id that an `awaiting_approval` gave. Never raises for what the model, the tool,
        the policy or the engine does. A tool that hangs in a thread is left behind when its time is up:
        Python cannot kill it, only processes of `isolated` tools end for certain.
        """
        return self._walk(self._path.call(call, approval))

    def _walk(self, steps: Steps[T]) -> T:
        try:
            ask = next(steps)
            while True:
                try:
                    answer = self._engine.decide(ask.point, ask.request, ask.hand, ask.context)
                except Exception as error:  # noqa: BLE001  (the path decides what it means)
                    ask = steps.throw(error)
                else:
                    ask = steps.send(answer)
        except StopIteration as end:
            value: T = end.value
            return value


class AsyncToolGate(_Gate):
    """The gate for an event loop, over an `AsyncEngine`. Tools never run on that loop, async ones neither.

    A caller that is cancelled leaves the call to come to its end and to be recorded.
    """

    def __init__(self, engine: DecidesAsync, registry: Registry, context: Any, **options: Any) -> None:
        super().__init__(registry, context, **options)
        self._engine = engine

    async def visible(self) -> list[dict[str, Any]]:
        """`ToolGate.visible`."""
        return await self._walk(self._path.visible())

    async def call(self, call: Any, approval: str | None = None) -> ToolResult:
        """`ToolGate.call`."""
        return await self._walk(self._path.call(call, approval))

    async def _walk(self, steps: Steps[T]) -> T:
        try:
            ask = next(steps)
            while True:
                try:
                    answer = await self._engine.decide(ask.point, ask.request, ask.hand, ask.context)
                except Exception as error:  # noqa: BLE001  (the path decides what it means)
                    ask = steps.throw(error)
                else:
                    ask = steps.send(answer)
        except StopIteration as end:
            value: T = end.value
            return value
