"""What adapters use of the engine, which they may not import."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

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


Awaited = Coroutine[Any, Any, Answer]
AnswerT = TypeVar("AnswerT")
AnswerT_co = TypeVar("AnswerT_co", covariant=True)


class Decides(Protocol[AnswerT_co]):
    """What is used of an `Engine`, which returns an `Answer`, or of an `AsyncEngine`, whose answer is awaited."""

    def decide(self, point: str, request: Any, executor: Any, context: Any = ...) -> AnswerT_co:
        """Decide, and let the executor work on an allow."""
