"""A request for a tool call: copied on arrival, so that it cannot change after the decision."""

from __future__ import annotations

from typing import Any

from engine.errors import GatherError

_CODE = "engine.request_invalid"
_CALLED = ("function", "params", "functionCall", "function_call", "toolUse")
"""What holds the tool and its arguments, in the formats in which the call itself does not."""

DEPTH = 200
"""Levels that are copied; policies admit far fewer, and Python handles this depth everywhere."""


def private_copy(value: Any) -> Any:
    """A deep copy of a JSON value. Raises GatherError for a value without a JSON form.

    Keys that are no text, and objects that only look like JSON, are refused: two readers could read them differently.
    """
    try:
        return _copy(value, 0)
    except RecursionError as error:
        raise _refused("it is nested too deeply") from error
    except GatherError:
        raise
    except Exception as error:
        raise _refused(f"it cannot be read: {type(error).__name__}") from error


def _copy(value: Any, depth: int) -> Any:
    if value is None or value is True or value is False:
        return value
    if depth > DEPTH:
        raise _refused("it is nested too deeply")
    kind = type(value)
    if kind in {str, int, float}:
        return value
    if kind is dict:
        if not all(type(key) is str for key in value):
            raise _refused("a key is not text")
        return {key: _copy(item, depth + 1) for key, item in value.items()}
    if kind in {list, tuple}:
        return [_copy(item, depth + 1) for item in value]
    raise _refused("it contains a value that has no JSON form")


def call_parts(call: Any) -> tuple[str, Any] | None:
    """The name and arguments of a call in any format, as they were written; None for anything else."""
    if not isinstance(call, dict):
        return None
    for inner in (*map(call.get, _CALLED), call):
        if isinstance(inner, dict) and isinstance(name := inner.get("name"), str):
            return name, next((inner[field] for field in ("arguments", "input", "args") if field in inner), None)
    return None


def tool_name(call: Any) -> str | None:
    """The name of the tool in a call or a definition of any format; None if there is none."""
    named = call_parts(call)
    return None if named is None else named[0]


def _refused(why: str) -> GatherError:
    return GatherError(
        f"the call is not plain JSON: {why}", remedy="send the call as the model produced it", code=_CODE
    )
