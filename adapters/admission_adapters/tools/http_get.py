"""The tool `http_get`: one address over HTTPS, through the engine's own fetch.

    tool = HttpGet(engine, context, hosts=("data.example.org",), license="CC-BY-4.0")
    tool.register(registry)

The gate decides on each call at `tool_call`. The fetch is decided on at `network`, before a socket opens, and at
`network_response`, before the model sees anything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from admission_adapters.interfaces import Answer
from admission_adapters.tools.effects import record_side_effect
from admission_adapters.tools.implementations import implementation_digest
from admission_adapters.tools.outcome import ToolValidationError
from admission_adapters.tools.registry import ToolRegistry
from admission_adapters.tools.result import codes_of
from engine.errors import WorkError
from engine.model import Job, Permit, Result

DEFINITION: dict[str, Any] = {
    "name": "http_get",
    "description": "Fetch one HTTPS address and return its content as text.",
    "input_schema": {
        "type": "object",
        "properties": {"url": {"type": "string"}},
        "required": ["url"],
        "additionalProperties": False,
    },
}
SIDE_EFFECTS = ("read", "network")
MOST_REQUESTS = 100
"""Fetches of one tool object, unless it says otherwise."""


class Fetched(Protocol):
    """What came of a fetch."""

    answers: Sequence[Answer]
    content: bytes | None


class Gets(Protocol):
    """What is used of an `Engine` or an `AsyncEngine`."""

    @property
    def decide(self) -> Callable[..., Any]:
        """Decide, and let the executor work on an allow; awaitable with an `AsyncEngine`."""

    def get_url(self, url: str, *, hosts: Any, license: str, max_requests: int, context: Any) -> Any:  # noqa: A002
        """Fetch one address into memory, as far as the policy permits it."""


class HttpGet:
    """The tool of one agent; threads may share it."""

    def __init__(
        self,
        engine: Gets,
        context: Any,
        *,
        hosts: Sequence[str],
        license: str,  # noqa: A002  (its name everywhere)
        max_requests: int = MOST_REQUESTS,
    ) -> None:
        """`hosts` are the exact hosts that it may ask for, `license` is the SPDX label of what they have.

        `context` is the engine's Context: the caller and its run, for which at most `max_requests` fetches are asked.
        """
        self._engine, self._context = engine, context
        self._hosts, self._license = tuple(hosts), license
        self._left = max_requests
        self._lock = threading.Lock()

    def register(self, registry: ToolRegistry) -> None:
        """Register the tool with an `Engine`. Raises WorkError `engine.tool_not_registered` where it is refused."""
        answer = self._engine.decide("tool_contract", self._candidate(), self._entry(registry), self._context)
        _registered(registry, answer)

    async def register_async(self, registry: ToolRegistry) -> None:
        """`register` with an `AsyncEngine`."""
        answer = await self._engine.decide("tool_contract", self._candidate(), self._entry(registry), self._context)
        _registered(registry, answer)

    def _candidate(self) -> dict[str, Any]:
        return {
            "tool": {
                "definition": DEFINITION,
                "implementation": {"local": True, "digest": implementation_digest(self.http_get)},
                "environment": "workspace",
                "side_effects": list(SIDE_EFFECTS),
            }
        }

    def _entry(self, registry: ToolRegistry) -> Callable[[Permit, Job], Result]:
        return lambda permit, job: registry.admit(
            permit, job.input_digest, type(permit.limits), self.http_get, DEFINITION
        )

    def http_get(self, url: str) -> str | bytes:
        """Fetch one address. Raises ToolValidationError with the code of the refusal, or the fault of the engine."""
        with self._lock:
            left, self._left = self._left, max(0, self._left - 1)
        record_side_effect("network", id="page", target=url)
        got = self._engine.get_url(
            url, hosts=self._hosts, license=self._license, max_requests=left, context=self._context
        )
        if got.content is None:
            raise _refusal(got)
        try:
            return str(got.content, "utf-8")
        except UnicodeDecodeError:
            return bytes(got.content)


def _registered(registry: ToolRegistry, answer: Answer) -> None:
    if answer.fault is not None:
        raise answer.fault
    if DEFINITION["name"] not in registry.names():
        raise WorkError(
            f"tool `http_get` is refused: {', '.join(codes_of(answer.decision))}",
            remedy="see policy/tools.yaml; its `curated` has the digests of reviewed implementations",
            code="engine.tool_not_registered",
        )


def _refusal(got: Fetched) -> Exception:
    last = got.answers[-1]
    if last.fault is not None:
        return last.fault
    findings = last.decision.findings
    first = next((one for one in findings if one.level.value == last.decision.outcome.value), findings[0])
    return ToolValidationError(first.code, first.requirement)
