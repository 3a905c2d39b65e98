"""A built environment behind the tool gate: its curated tools, and the checkpoints that undo what they do.

    with engine.open_environment(Path("DIR/contacts_sqlite"), context) as environment:
        prompt = environment.visible()
        result = environment.call(call_of_the_model)

Every tool is registered under a permit of point `tool_contract`, every call is decided on at point `tool_call`, and
every checkpoint, restore and reset at point `environment_act`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar, runtime_checkable

from admission_adapters.environments import contacts, documents
from admission_adapters.environments.held import OpenEnvironment
from admission_adapters.grants import granted, unenforceable
from admission_adapters.interfaces import Answer, AnswerT, AnswerT_co, Awaited, Decides
from admission_adapters.tools.gate import AsyncToolGate, ToolGate
from admission_adapters.tools.path import Listed, Question, Steps
from admission_adapters.tools.registering import contract, require_registered
from admission_adapters.tools.registry import ToolRegistry
from admission_adapters.tools.request import tool_name
from admission_adapters.tools.result import ToolResult
from engine.errors import WorkError
from engine.model import HeldEnvironment, Job, Permit, Result
from engine.steps import run, run_async

GateT = TypeVar("GateT")
Operations = dict[str, tuple[str, tuple[str, ...], dict[str, Any]]]

_TOOLS: dict[str, tuple[type[Any], Operations]] = {
    "contacts": (contacts.Contacts, contacts.OPERATIONS),
    "documents": (documents.Documents, documents.OPERATIONS),
}
"""The implementations of the tools, by what an environment holds."""

Held = Callable[[str | None], HeldEnvironment]
"""What can be undone in an open environment, and whether this checkpoint can be restored."""


class Holds(Decides[AnswerT_co], Protocol[AnswerT_co]):
    """What is used of an engine."""

    def hold(self, held: Held) -> str:
        """An id for an open environment."""

    def forget_environment(self, name: str) -> None:
        """Forget it."""


@runtime_checkable
class ActGrant(Protocol):
    """What is read of the limits of point `environment_act`."""

    environment: str  # the environment
    act: Literal["checkpoint", "restore", "reset"]


class EnvironmentTools:
    """The tools of an open environment, and the acts on its state."""

    def __init__(self, environment: OpenEnvironment, context: Any) -> None:
        """`context` is the engine's Context: the caller and its run."""
        made, operations = _TOOLS[environment.holds]
        named = {tool: operations.get(name) for tool, name in environment.about.tools.items()}
        self.environment = environment
        self.registry = ToolRegistry()
        self.tools = {tool: operation for tool, operation in named.items() if operation is not None}
        self.held = ""
        self._context = context
        self._implementation = made(environment)

    def registered(self) -> Steps[None]:
        """Register each tool. Raises WorkError `engine.tool_not_registered`."""
        for tool, (description, side_effects, schema) in self.tools.items():
            definition = {"name": tool, "description": description, "input_schema": schema}
            implementation = getattr(self._implementation, self.environment.about.tools[tool])
            answer = yield contract(
                self.registry, implementation, definition, self.environment.name, side_effects, self._context
            )
            require_registered(tool, self.registry, answer)

    def manifest(self) -> dict[str, Any]:
        """The manifest of an adapter that offers these tools, for point `adapter`."""
        effects = {tool: list(effects) for tool, (_, effects, _) in self.tools.items()}
        return {
            "format": 1,
            "id": self.environment.name,
            "execution": "in_process",
            "environment_identity": self.environment.name,
            "source_policy_hash": self.environment.about.source_policy_hash,
            "supported_operations": ["tools/list", "tools/call"],
            "tool_schemas": {tool: schema for tool, (_, _, schema) in self.tools.items()},
            "side_effect_classes": effects,
            "verifier_implications": {
                tool: "unaffected" if classes == ["read"] else "reads_state" for tool, classes in effects.items()
            },
            "capabilities": [],
        }

    def prepare(self, call: Any) -> None:
        """Keep the current state before a destructive call. Without a checkpoint, the engine will refuse it."""
        operation = self.tools.get(tool_name(call) or "")
        if operation is not None and "destructive" in operation[1]:
            with suppress(WorkError):
                self.environment.undo_point()

    def act(self, act: str, checkpoint: str | None, approval: str | None) -> Question:
        """The question for point `environment_act`; its executor acts."""
        request = {"held": self.held, "act": act, "checkpoint": checkpoint}
        context = replace(self._context, approval=approval, idempotency_key=None)
        return Question("environment_act", request, self._perform, context)

    def _perform(self, permit: Permit, job: Job) -> Result:
        grant = granted(permit, "environment_act", job.input_digest, ActGrant)
        if (grant.environment, grant.act) != (self.environment.name, job.opened.act):
            raise unenforceable("the permit is for another act or environment")
        match grant.act:
            case "checkpoint":
                line = self.environment.checkpoint()
            case "restore":
                line = self.environment.restore(job.opened.checkpoint)
            case "reset":
                line = self.environment.reset()
        facts = {name: value for name, value in line.items() if name != "previous"}
        return Result(line["event"], {"environment": self.environment.name, **facts})


class _Session(Generic[AnswerT, GateT]):
    """What both sessions do.

    Acts never raise; their answer has `decision`, `fault`, and as `result` the line of the trajectory.
    """

    def __init__(self, engine: Holds[AnswerT], tools: EnvironmentTools, gate: GateT) -> None:
        self._engine, self._tools, self._gate = engine, tools, gate
        self._environment = tools.environment
        self.registry = tools.registry
        self.manifest = tools.manifest()

    @property
    def trajectory(self) -> list[dict[str, Any]]:
        """Every change of the environment since it was built; no content."""
        return self._environment.trajectory

    def checkpoint(self, approval: str | None = None) -> AnswerT:
        """Keep the current state; the result has the `name` of the checkpoint."""
        return self._act("checkpoint", None, approval)

    def restore(self, name: str, approval: str | None = None) -> AnswerT:
        """Go back to a checkpoint; every change since is undone."""
        return self._act("restore", name, approval)

    def reset(self, approval: str | None = None) -> AnswerT:
        """Go back to what was built; every change is undone."""
        return self._act("reset", None, approval)

    def _act(self, act: str, checkpoint: str | None, approval: str | None) -> AnswerT:
        return self._tools.act(act, checkpoint, approval).put(self._engine)


class EnvironmentSession(_Session[Answer, ToolGate]):
    """An open environment and the gate to its tools, over an `Engine`; threads may share it."""

    def visible(self) -> list[dict[str, Any]]:
        """The definitions that may go into the prompt now."""
        return self._gate.visible()

    def listed(self) -> Listed:
        """The same, with the codes of a refusal."""
        return self._gate.listed()

    def call(self, call: Any, approval: str | None = None) -> ToolResult:
        """Make a call, if it is allowed; before a destructive one, the current state is kept as a checkpoint."""
        self._tools.prepare(call)
        return self._gate.call(call, approval)

    def verify(self) -> list[str]:
        """What differs from what was built and from what the trajectory states."""
        return self._environment.verify()


class AsyncEnvironmentSession(_Session[Awaited, AsyncToolGate]):
    """`EnvironmentSession` over an `AsyncEngine`, for an event loop."""

    async def visible(self) -> list[dict[str, Any]]:
        """`EnvironmentSession.visible`."""
        return await self._gate.visible()

    async def call(self, call: Any, approval: str | None = None) -> ToolResult:
        """`EnvironmentSession.call`."""
        await asyncio.to_thread(self._tools.prepare, call)
        return await self._gate.call(call, approval)

    async def verify(self) -> list[str]:
        """`EnvironmentSession.verify`."""
        return await asyncio.to_thread(self._environment.verify)


@contextmanager
def open_environment(
    engine: Holds[Answer], folder: Path, context: Any, policy: str | None, profile: str | None
) -> Iterator[EnvironmentSession]:
    """Open a built environment and register its tools. `context` is the engine's Context: the caller and its run.

    `policy` and `profile` are names from policy/tools.yaml; without them nothing may be called. Raises WorkError:
    those of OpenEnvironment, and `engine.tool_not_registered` for a tool that is refused.
    """
    with ExitStack() as stack:
        tools = EnvironmentTools(stack.enter_context(OpenEnvironment(folder)), context)
        run(tools.registered(), lambda question: question.put(engine))
        tools.held = _registered(engine, tools, stack)
        environment = {"held": tools.held}
        gate = ToolGate(engine, tools.registry, context, policy=policy, profile=profile, environment=environment)
        yield EnvironmentSession(engine, tools, gate)


@asynccontextmanager
async def open_environment_async(
    engine: Holds[Awaited], folder: Path, context: Any, policy: str | None, profile: str | None
) -> AsyncIterator[AsyncEnvironmentSession]:
    """`open_environment`, for an event loop."""
    with ExitStack() as stack:
        tools = EnvironmentTools(stack.enter_context(await _opened(folder)), context)
        await run_async(tools.registered(), lambda question: question.put(engine))
        tools.held = _registered(engine, tools, stack)
        environment = {"held": tools.held}
        gate = AsyncToolGate(engine, tools.registry, context, policy=policy, profile=profile, environment=environment)
        yield AsyncEnvironmentSession(engine, tools, gate)


async def _opened(folder: Path) -> OpenEnvironment:
    """Open an environment in a thread; one whose caller no longer waits is closed."""
    opening = asyncio.ensure_future(asyncio.to_thread(OpenEnvironment, folder))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        with suppress(WorkError):
            (await opening).__exit__()
        raise


def _registered(engine: Holds[Any], tools: EnvironmentTools, stack: ExitStack) -> str:
    """The id under which the engine holds the environment until the stack is closed."""
    held = engine.hold(tools.environment.held)
    stack.callback(engine.forget_environment, held)
    return held
