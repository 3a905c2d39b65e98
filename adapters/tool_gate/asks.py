"""What the gate asks the engine, and the little that it uses of engine, answer and registry."""

from __future__ import annotations

import copy
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from adapters.tool_gate.thread import Tool
from engine.errors import EngineError
from engine.model import Decision

T = TypeVar("T")


class Registry(Protocol):
    """Callables by name, and what is said about them; `ToolRegistry` is one."""

    def get(self, name: str) -> Tool:
        """The callable of a tool. Raises WorkError."""
        ...

    def names(self) -> Collection[str]:
        """The names of all tools."""
        ...

    def definition(self, name: str) -> dict[str, Any]:
        """What is said about a tool, for the caller alone. Raises WorkError."""
        ...


class Answer(Protocol):
    """What is read of an answer of the engine."""

    @property
    def decision(self) -> Decision:
        """The decision."""
        ...

    @property
    def fault(self) -> EngineError | None:
        """What failed of the engine or its record."""
        ...


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


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to the engine, and the hand that does the work of an allow."""

    point: str
    request: Any
    hand: Any
    context: Any


Steps = Generator[Ask, Answer, T]
"""A path that yields what it asks and is sent the answer, or has thrown into it what went wrong."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Under what the calls of a gate are made; what is None is not stated, and the policy decides on that."""

    policy: str | None = None
    profile: str | None = None
    cwd: str | None = None
    environment: Mapping[str, bool] | None = None

    def request(self, *names: str, **more: Any) -> dict[str, Any]:
        """A request with these fields of this object and `more`."""
        return {name: copy.copy(getattr(self, name)) for name in names} | more


def walk(engine: Decides, steps: Steps[T]) -> T:
    """Take a path to its end, blocking."""
    try:
        ask = next(steps)
        while True:
            try:
                answer = engine.decide(ask.point, ask.request, ask.hand, ask.context)
            except Exception as error:  # noqa: BLE001  (the path decides what it means)
                ask = steps.throw(error)
            else:
                ask = steps.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


async def walk_async(engine: DecidesAsync, steps: Steps[T]) -> T:
    """Take a path to its end on an event loop."""
    try:
        ask = next(steps)
        while True:
            try:
                answer = await engine.decide(ask.point, ask.request, ask.hand, ask.context)
            except Exception as error:  # noqa: BLE001  (the path decides what it means)
                ask = steps.throw(error)
            else:
                ask = steps.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value
