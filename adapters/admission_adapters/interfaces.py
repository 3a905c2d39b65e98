"""What adapters use of the engine, which they may not import."""

from __future__ import annotations

from typing import Any, Protocol

from engine.errors import EngineError
from engine.model import Decision, Result


class Answer(Protocol):
    """The answer to a request."""

    @property
    def decision(self) -> Decision:
        """The decision, recorded."""

    @property
    def fault(self) -> EngineError | None:
        """What failed of the engine, its record or the work."""

    @property
    def result(self) -> Result | None:
        """What the approved work did; None if none was done."""


class Decides(Protocol):
    """What is used of an `Engine`."""

    def decide(self, point: str, request: Any, executor: Any, context: Any = ...) -> Answer:
        """Decide, and let the executor work on an allow."""


class DecidesAsync(Protocol):
    """What is used of an `AsyncEngine`."""

    async def decide(self, point: str, request: Any, executor: Any, context: Any = ...) -> Answer:
        """Decide, and let the executor work on an allow."""
