"""A request for a call as the gate takes it: copied at once, so that nobody changes it behind the decision."""

from __future__ import annotations

from typing import Any

from engine.errors import GatherError

_CODE = "engine.request_invalid"
DEPTH = 200
"""Levels that are copied; policies take far fewer, and Python takes them wherever the gate is called from."""


def private_copy(value: Any) -> Any:
    """The JSON value in `value`, sharing nothing with it. Raises GatherError where there is none.

    Keys that are no text, and objects that only look like JSON, are refused: two readers could see two things.
    """
    try:
        return _copy(value, 0)
    except RecursionError as error:
        raise _refused("it is nested too deep") from error
    except GatherError:
        raise
    except Exception as error:
        raise _refused(f"it cannot be read: {type(error).__name__}") from error


def _copy(value: Any, depth: int) -> Any:
    if value is None or value is True or value is False:
        return value
    if depth > DEPTH:
        raise _refused("it is nested too deep")
    kind = type(value)
    if kind in {str, int, float}:
        return value
    if kind is dict:
        if not all(type(key) is str for key in value):
            raise _refused("a key is no text")
        return {key: _copy(item, depth + 1) for key, item in value.items()}
    if kind in {list, tuple}:
        return [_copy(item, depth + 1) for item in value]
    raise _refused("it holds something that has no JSON form")


def named_tool(call: Any) -> str | None:
    """The name of the tool in a call of any shape, to look its definition up; None where there is none."""
    if not isinstance(call, dict):
        return None
    for inner in (call.get("function"), call.get("params"), call):
        if isinstance(inner, dict) and isinstance(name := inner.get("name"), str):
            return name
    return None


def _refused(why: str) -> GatherError:
    return GatherError(f"the call is not plain JSON: {why}", remedy="send the call as the model gave it", code=_CODE)
