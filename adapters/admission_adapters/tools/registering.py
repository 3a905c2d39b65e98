"""Registers a tool of this package: decided at point `tool_contract`, with the digest of its source file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from admission_adapters.interfaces import Answer
from admission_adapters.tools.implementations import implementation_digest
from admission_adapters.tools.outcome import ToolValidationError
from admission_adapters.tools.registry import ToolRegistry
from admission_adapters.tools.result import codes_of
from engine.errors import WorkError
from engine.model import Job, Permit, Result


class Decides(Protocol):
    """What is used of an `Engine` or an `AsyncEngine`."""

    @property
    def decide(self) -> Callable[..., Any]:
        """Decide, and let the executor work on an allow; awaitable with an `AsyncEngine`."""


class Registered:
    """A tool that one method implements, with its definition and the side effects that it reports."""

    def __init__(self, engine: Decides, context: Any, definition: dict[str, Any], side_effects: Sequence[str]) -> None:
        """`context` is the engine's Context: the caller and its run."""
        self._decide, self._context = engine.decide, context
        self._definition, self._side_effects = definition, side_effects

    def register(self, registry: ToolRegistry) -> None:
        """Register the tool with an `Engine`. Raises WorkError `engine.tool_not_registered` where it is refused."""
        self._check(registry, self._decide("tool_contract", self._candidate(), self._entry(registry), self._context))

    async def register_async(self, registry: ToolRegistry) -> None:
        """`register` with an `AsyncEngine`."""
        asked = self._decide("tool_contract", self._candidate(), self._entry(registry), self._context)
        self._check(registry, await asked)

    @property
    def _name(self) -> str:
        return str(self._definition["name"])

    def _candidate(self) -> dict[str, Any]:
        return {
            "tool": {
                "definition": self._definition,
                "implementation": {"local": True, "digest": implementation_digest(getattr(self, self._name))},
                "environment": "workspace",
                "side_effects": list(self._side_effects),
            }
        }

    def _entry(self, registry: ToolRegistry) -> Callable[[Permit, Job], Result]:
        return lambda permit, job: registry.admit(permit, job.input_digest, getattr(self, self._name), self._definition)

    def _check(self, registry: ToolRegistry, answer: Answer) -> None:
        if answer.fault is not None:
            raise answer.fault
        if self._name not in registry.names():
            raise WorkError(
                f"tool `{self._name}` is refused: {', '.join(codes_of(answer.decision))}",
                remedy="see policy/tools.yaml; its `curated` has the digests of reviewed implementations",
                code="engine.tool_not_registered",
            )


def refusal(answer: Answer) -> Exception:
    """The error of a tool whose work was not done: the fault of the engine, or the code of the refusal."""
    if answer.fault is not None:
        return answer.fault
    findings = answer.decision.findings
    first = next((one for one in findings if one.level.value == answer.decision.outcome.value), findings[0])
    return ToolValidationError(first.code, first.requirement)
