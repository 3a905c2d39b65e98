"""The gate between an agent and its tools: visible tools, calls and their results.

    gate = ToolGate(engine, registry, context, policy="assistant", profile="coding", cwd="/work")
    prompt = gate.visible()
    result = gate.call(call_of_the_model)

Every call is decided on, runs under the permit of exactly that decision, is recorded with its side
effects, and its result is decided on again. Whatever a tool or a model does, there is a ToolResult.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Generic, Literal

from admission_adapters.interfaces import Answer, AnswerT, Awaited, Decides
from admission_adapters.tools.effects import ToolStoppedError, record_side_effect
from admission_adapters.tools.executor import ToolPlaces
from admission_adapters.tools.outcome import ToolValidationError
from admission_adapters.tools.path import CallContext, Listed, Question, ToolPath
from admission_adapters.tools.registry import ToolRegistry
from admission_adapters.tools.result import ToolResult
from engine.steps import run, run_async

__all__ = [
    "AsyncToolGate",
    "ToolGate",
    "ToolResult",
    "ToolStoppedError",
    "ToolValidationError",
    "record_side_effect",
]


class Gate(Generic[AnswerT]):
    """The state of every gate."""

    def __init__(  # noqa: PLR0913  (each is optional and named)
        self,
        engine: Decides[AnswerT],
        registry: ToolRegistry,
        context: Any,
        *,
        policy: str | None = None,
        profile: str | None = None,
        cwd: str | None = None,
        home: str | None = None,
        environment: Mapping[str, Any] | None = None,
        error_mode: Literal["safe", "debug"] = "safe",
        isolated: Iterable[str] = (),
        process_environment: Mapping[str, str] | None = None,
        on_loop: Iterable[str] = (),
    ) -> None:
        """`context` is the engine's Context: the caller and its run; without a run, the gate is one.

        `cwd` is the working folder of the calls, `home` what `~` is in their commands; both are absolute.
        `policy` and `profile` are names from policy/tools.yaml; none is the policy that denies everything.
        `environment` states what could undo a destructive call (`reset`, `checkpoint`), or the id of an environment
        that the engine holds (`held`). `error_mode` is what
        is requested (B31). Tools that `isolated` names run in their own processes, with
        `process_environment` as their environment, and are killed at the timeout. Async tools that `on_loop` names
        are awaited on the loop of the caller of an `AsyncToolGate`, with its context variables: they share its clients,
        and one that blocks stops that loop.
        """
        if isinstance(isolated, str) or isinstance(on_loop, str):
            raise TypeError("`isolated` and `on_loop` must be lists of names")  # whose letters would name no tool
        self._engine = engine
        if context.run is None:
            context = replace(context, run=uuid.uuid4().hex)  # what this agent touches is counted by its run
        call_context = CallContext(policy, profile, cwd, home, None if environment is None else dict(environment))
        places = ToolPlaces(frozenset(isolated), dict(process_environment or {}), frozenset(on_loop))
        self._path = ToolPath(registry, context, call_context, error_mode, places)

    def _decide(self, question: Question) -> AnswerT:
        return question.put(self._engine)


class ToolGate(Gate[Answer]):
    """The gate for callers that block, over an `Engine`; threads may share it."""

    def visible(self) -> list[dict[str, Any]]:
        """The definitions that may go into the prompt now; empty if no decision can be made."""
        return self.listed().definitions

    def listed(self) -> Listed:
        """The same, with the codes of a refusal."""
        return run(self._path.listed(), self._decide)

    def call(self, call: Any, approval: str | None = None) -> ToolResult:
        """Make a call in any supported format (of a model provider, MCP, LangChain, our own), if it is allowed.

        The EngineError of a call that could not be read is recorded and refused.
        `approval` is the id of an `awaiting_approval` result. Never raises for errors of the model, the tool,
        the policy or the engine. A tool that hangs in a thread is abandoned at the timeout:
        Python cannot kill threads; only processes of `isolated` tools certainly end.
        """
        return run(self._path.call(call, approval), self._decide)


class AsyncToolGate(Gate[Awaited]):
    """The gate for an event loop, over an `AsyncEngine`. Tools run on that loop only if `on_loop` names them.

    If the caller is cancelled, the call still runs to its end and is recorded.
    """

    async def visible(self) -> list[dict[str, Any]]:
        """`ToolGate.visible`."""
        return (await run_async(self._path.listed(), self._decide)).definitions

    async def call(self, call: Any, approval: str | None = None) -> ToolResult:
        """`ToolGate.call`."""
        places = replace(self._path.places, loop=asyncio.get_running_loop())
        return await run_async(replace(self._path, places=places).call(call, approval), self._decide)
