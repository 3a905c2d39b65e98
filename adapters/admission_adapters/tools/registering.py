"""Registers a tool of this package: decided at point `tool_contract`, with the digest of its source file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from admission_adapters.interfaces import Answer, Decides
from admission_adapters.tools.implementations import implementation_digest
from admission_adapters.tools.outcome import ToolValidationError
from admission_adapters.tools.path import Question
from admission_adapters.tools.registry import ToolRegistry
from admission_adapters.tools.result import codes_of
from engine.errors import WorkError
from engine.model import Decision, Finding, Job, Permit, Result


def object_schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """The JSON schema of an object that has these properties and no others."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def contract(
    registry: ToolRegistry,
    implementation: Callable[..., Any],
    definition: dict[str, Any],
    environment: str,
    side_effects: Sequence[str],
    context: Any,
) -> Question:
    """The question for point `tool_contract` about a tool of this program; its executor registers the tool."""

    def admit(permit: Permit, job: Job) -> Result:
        return registry.admit(permit, job.input_digest, implementation, definition)

    candidate = {
        "definition": definition,
        "implementation": {"local": True, "digest": implementation_digest(implementation)},
        "environment": environment,
        "side_effects": list(side_effects),
    }
    return Question("tool_contract", {"tool": candidate}, admit, context)


def require_registered(tool: str, registry: ToolRegistry, answer: Answer) -> None:
    """Raise the fault of the engine, or WorkError `engine.tool_not_registered` unless the tool is registered by now."""
    if answer.fault is not None:
        raise answer.fault
    if tool not in registry.names():
        raise WorkError(
            f"tool `{tool}` is refused: {', '.join(codes_of(answer.decision))}",
            remedy=_first(answer.decision).remedy,
            code="engine.tool_not_registered",
        )


class Registered:
    """A tool that one method implements, with its definition and the side effects that it reports."""

    def __init__(
        self, engine: Decides[Any], context: Any, definition: dict[str, Any], side_effects: Sequence[str]
    ) -> None:
        """`context` is the engine's Context: the caller and its run."""
        self._decides, self._context = engine, context
        self._definition, self._side_effects = definition, side_effects

    def register(self, registry: ToolRegistry) -> None:
        """Register the tool with an `Engine`. Raises WorkError `engine.tool_not_registered` where it is refused."""
        require_registered(self._name, registry, self._contract(registry).put(self._decides))

    async def register_async(self, registry: ToolRegistry) -> None:
        """`register` with an `AsyncEngine`."""
        require_registered(self._name, registry, await self._contract(registry).put(self._decides))

    @property
    def _name(self) -> str:
        return str(self._definition["name"])

    def _contract(self, registry: ToolRegistry) -> Question:
        implementation = getattr(self, self._name)
        return contract(registry, implementation, self._definition, "workspace", self._side_effects, self._context)


def refusal(answer: Answer) -> Exception:
    """The error of a tool whose work was not done: the fault of the engine, or the code of the refusal."""
    if answer.fault is not None:
        return answer.fault
    first = _first(answer.decision)
    return ToolValidationError(first.code, first.requirement)


def _first(decision: Decision) -> Finding:
    """The first finding that decided a refusal."""
    return next((one for one in decision.findings if one.level.value == decision.outcome.value), decision.findings[0])
