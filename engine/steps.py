"""Runs a generator to its end: each step that it yields is performed, and it receives the outcome or the error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import TypeVar

StepT = TypeVar("StepT")
ValueT = TypeVar("ValueT")
ResultT = TypeVar("ResultT")


def run(steps: Generator[StepT, ValueT, ResultT], perform: Callable[[StepT], ValueT]) -> ResultT:
    """The result of the generator; blocking."""
    try:
        step = next(steps)
        while True:
            try:
                value = perform(step)
            except BaseException as error:  # noqa: BLE001  (the generator decides what it means)
                step = steps.throw(error)
            else:
                step = steps.send(value)
    except StopIteration as end:
        result: ResultT = end.value
        return result


async def run_async(steps: Generator[StepT, ValueT, ResultT], perform: Callable[[StepT], Awaitable[ValueT]]) -> ResultT:
    """The result of the generator; from an event loop."""
    try:
        step = next(steps)
        while True:
            try:
                value = await perform(step)
            except BaseException as error:  # noqa: BLE001  (the generator decides what it means)
                step = steps.throw(error)
            else:
                step = steps.send(value)
    except StopIteration as end:
        result: ResultT = end.value
        return result
