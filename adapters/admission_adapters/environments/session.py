"""A built environment behind the tool gate: its curated tools, and the checkpoints that undo what they do.

    with open_environment(engine, Path("DIR/contacts_sqlite"), context) as environment:
        prompt = environment.visible()
        result = environment.call(call_of_the_model)

Every tool is registered under a permit of point `tool_contract`, and every call is decided on at point `tool_call`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Protocol, Self

from admission_adapters.environments import contacts, documents
from admission_adapters.environments.held import OpenEnvironment
from admission_adapters.interfaces import Decides
from admission_adapters.tools.gate import ToolGate
from admission_adapters.tools.implementations import implementation_digest
from admission_adapters.tools.registry import ToolRegistry
from admission_adapters.tools.request import named_tool
from admission_adapters.tools.result import ToolResult, codes_of
from engine.errors import WorkError
from engine.model import HeldEnvironment, Job, Permit, Result

_TOOLS: dict[str, tuple[type[Any], dict[str, tuple[str, tuple[str, ...], dict[str, Any]]]]] = {
    "contacts": (contacts.Contacts, contacts.OPERATIONS),
    "documents": (documents.Documents, documents.OPERATIONS),
}
"""The implementations of the tools, by what an environment holds."""


class Holds(Decides, Protocol):
    """What is used of an `Engine`."""

    def hold(self, held: Callable[[], HeldEnvironment]) -> str:
        """An id for an open environment."""

    def let_go(self, name: str) -> None:
        """Forget it."""


class EnvironmentSession:
    """An open environment and the gate to its tools. A context manager; threads may share it."""

    def __init__(
        self, gate: ToolGate, environment: OpenEnvironment, destructive: frozenset[str], end: ExitStack
    ) -> None:
        self._gate = gate
        self._environment = environment
        self._destructive = destructive
        self._end = end
        self.checkpoint = environment.checkpoint
        self.restore = environment.restore
        self.reset = environment.reset
        self.verify = environment.verify

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end.close()

    @property
    def trajectory(self) -> list[dict[str, Any]]:
        """Every change of the environment since it was built; no content."""
        return self._environment.trajectory

    def visible(self) -> list[dict[str, Any]]:
        """The definitions that may go into the prompt now."""
        return self._gate.visible()

    def call(self, call: Any, approval: str | None = None) -> ToolResult:
        """Make a call, if it is allowed; before a destructive one, the current state is kept as a checkpoint.

        Without a checkpoint, because the disk is full, the gate refuses the call.
        """
        if named_tool(call) in self._destructive:
            with suppress(WorkError):  # then the engine sees that there is none
                self._environment.undo_point()
        return self._gate.call(call, approval)


def open_environment(
    engine: Holds, folder: Path, context: Any, *, policy: str | None = None, profile: str | None = None
) -> EnvironmentSession:
    """Open a built environment and register its tools. `context` is the engine's Context: the caller and its run.

    `policy` and `profile` are names from policy/tools.yaml; without them nothing may be called. Raises WorkError:
    those of OpenEnvironment, and `engine.tool_not_registered` for a tool that is refused.
    """
    with ExitStack() as stack:
        environment = stack.enter_context(OpenEnvironment(folder))
        held = engine.hold(environment.held)
        stack.callback(engine.let_go, held)
        made, operations = _TOOLS[environment.holds]
        implementation, registry = made(environment), ToolRegistry()
        known = {tool: name for tool, name in environment.tools.items() if name in operations}
        for tool, name in known.items():
            _register(
                engine, registry, environment.name, tool, getattr(implementation, name), operations[name], context
            )
        gate = ToolGate(engine, registry, context, policy=policy, profile=profile, environment={"held": held})
        destructive = frozenset(tool for tool, name in known.items() if "destructive" in operations[name][1])
        return EnvironmentSession(gate, environment, destructive, stack.pop_all())


def _register(
    engine: Holds,
    registry: ToolRegistry,
    environment: str,
    tool: str,
    implementation: Callable[..., Any],
    operation: tuple[str, tuple[str, ...], dict[str, Any]],
    context: Any,
) -> None:
    description, side_effects, schema = operation
    definition = {"name": tool, "description": description, "input_schema": schema}

    def admit(permit: Permit, job: Job) -> Result:
        return registry.admit(permit, job.input_digest, type(permit.limits), implementation, definition)

    request = {
        "tool": {
            "definition": definition,
            "implementation": {"local": True, "digest": implementation_digest(implementation)},
            "environment": environment,
            "side_effects": list(side_effects),
        }
    }
    answer = engine.decide("tool_contract", request, admit, context)
    if tool not in registry.names():
        codes = codes_of(answer.decision) if answer.fault is None else [answer.fault.code]
        raise WorkError(
            f"tool `{tool}` of the environment is refused: {', '.join(codes)}",
            remedy="see policy/tools.yaml; its `curated` has the digests of reviewed implementations",
            code="engine.tool_not_registered",
        )
