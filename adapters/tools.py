"""The gate between an agent and its tools: what it may see, what it may call, what it may read back.

    gate = ToolGate(engine, registry, context, policy="assistant", profile="coding", cwd="/work")
    prompt = gate.visible()
    result = gate.call(call_of_the_model)

Every call is decided on, runs under the permit of exactly that decision, is recorded with its side
effects, and its result is decided on again. Whatever a tool or a model does, there is a ToolResult.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, Literal, TypeVar

from adapters.tool_gate.asks import Asked, Decides, DecidesAsync, Registry, walk, walk_async
from adapters.tool_gate.effects import ToolStoppedError, record_side_effect
from adapters.tool_gate.hand import Apart
from adapters.tool_gate.outcome import ToolValidationError
from adapters.tool_gate.path import ToolPath
from adapters.tool_gate.result import ToolResult

__all__ = [
    "AsyncToolGate",
    "ToolGate",
    "ToolResult",
    "ToolStoppedError",
    "ToolValidationError",
    "record_side_effect",
]


EngineT = TypeVar("EngineT")


class _Gate(Generic[EngineT]):
    """What both gates know."""

    def __init__(  # noqa: PLR0913  (each is optional and named)
        self,
        engine: EngineT,
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
        if isinstance(isolated, str):
            raise TypeError("`isolated` is a list of names, not one")  # whose letters would isolate nothing
        self._engine = engine
        asked = Asked(policy, profile, cwd, None if environment is None else dict(environment))
        apart = Apart(frozenset(isolated), dict(process_environment or {}))
        self._path = ToolPath(registry, context, asked, error_mode, apart)


class ToolGate(_Gate[Decides]):
    """The gate for callers that block, over an `Engine`; threads may share it."""

    def visible(self) -> list[dict[str, Any]]:
        """The definitions that may go into the prompt now; empty where the policy cannot be asked."""
        return walk(self._engine, self._path.visible())

    def call(self, call: Any, approval: str | None = None) -> ToolResult:
        """Make a call in any shape that models give (OpenAI, Anthropic, MCP, our own), if it is allowed.

        `approval` is the id that an `awaiting_approval` gave. Never raises for what the model, the tool,
        the policy or the engine does. A tool that hangs in a thread is left behind when its time is up:
        Python cannot kill it, only processes of `isolated` tools end for certain.
        """
        return walk(self._engine, self._path.call(call, approval))


class AsyncToolGate(_Gate[DecidesAsync]):
    """The gate for an event loop, over an `AsyncEngine`. Tools never run on that loop, async ones neither.

    A caller that is cancelled leaves the call to come to its end and to be recorded.
    """

    async def visible(self) -> list[dict[str, Any]]:
        """`ToolGate.visible`."""
        return await walk_async(self._engine, self._path.visible())

    async def call(self, call: Any, approval: str | None = None) -> ToolResult:
        """`ToolGate.call`."""
        return await walk_async(self._engine, self._path.call(call, approval))
