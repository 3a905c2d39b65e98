"""Reads the answer of a runner: its JSON unchanged on success, one cleaned sentence on failure.

A runner may put anything into its error: stack traces, paths, secrets of the request. None of that is passed on.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from engine.errors import WorkError

ERROR_CHARACTERS = 500
"""Of a runner's error; a sentence for a person is shorter."""

CREDENTIAL_TOLD = "it contains the token of this gate"

_LONGEST_REASON = 64 << 10
"""Characters of an error that are searched for secrets, of which a request may have thousands."""

_LONGEST_LINE = 8 * ERROR_CHARACTERS

_LEVELS = 128
"""Nested objects and lists, as the engine reads them; Python's own bound differs between its versions."""

_OK = 200
_NO_REASON = "the runner gave no reason"
_LONG_REASON = "the runner's reason is too long to be passed on"
_PATH = re.compile(r"(?:file://|\b[A-Za-z]:\\|(?<![\w:/.])(?:~|\.{1,2})?/(?=[\w.@~+-]))[^\s'\"`()<>,;]*")
_FRAMES = re.compile(r"(?<!\s)\s+at (?:async |new )?(?:[\w.$<>\[\] ]+ )?(?!\d[\dT-]*:)[(/\w<][^\s]*:\d+.*$")
_TRACEBACK = "Traceback (most recent call last)"
_PYTHON_FRAMES = re.compile(rf'{re.escape(_TRACEBACK)}:?\s*|\bFile "[^"]{{0,300}}", line \d+(?:, in [\w.<>]+)?\s*')
_SECRET = "[secret]"  # noqa: S105  (in place of one)


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """The answer of a runner. `data` is its unchanged JSON after a successful run, else `error` is set."""

    data: bytes = b""
    error: str | None = None


class RunnerError(WorkError):
    """The runner cannot be reached, is too slow, or its answer cannot be passed on."""

    code = "engine.runner_unreachable"


def run_result(answer: Any) -> dict[str, Any]:
    """The result of a run from the JSON of the response, for callers of `POST /run`.

    Raises WorkError with the text `Agent run failed: <error>` for anything but a successful run.
    """
    document = answer if isinstance(answer, dict) else {}
    if document.get("ok") is True:
        return document
    stated = (document.get("error"), document.get("detail"))
    error = next((text for text in stated if isinstance(text, str) and text.strip()), "there was no answer to the run")
    raise WorkError(f"Agent run failed: {error}", remedy="see the accompanying decision", code="engine.run_failed")


def read_answer(status: int, data: bytes, secrets: tuple[str, ...]) -> RunAnswer:
    """Read a runner's answer; `secrets` are those that it got. Raises RunnerError for an invalid answer."""
    try:
        document = plain_object(data)
    except ValueError as unreadable:
        raise not_an_answer("it is not a plain JSON object", status) from unreadable
    ok = document.get("ok")
    if ok is True and status == _OK:
        return RunAnswer(data)
    if ok is not False:
        raise not_an_answer("it reports neither success nor failure", status)
    error = document.get("error")
    return RunAnswer(error=clean(error, secrets) if isinstance(error, str) else _NO_REASON)


def clean(error: str, secrets: tuple[str, ...]) -> str:
    """The message of an error in one line, without stack trace, paths and these secrets."""
    if len(error) > _LONGEST_REASON:
        return _LONG_REASON
    for secret in sorted(secrets, key=len, reverse=True):  # one may be a part of another
        error = error.replace(secret, _SECRET)
    lines = [line for line in error.splitlines() if line.strip()] or [_NO_REASON]
    line = lines[-1] if _TRACEBACK in lines[0] else lines[0]
    line = _PATH.sub("[path]", _FRAMES.sub("", _PYTHON_FRAMES.sub("", line[:_LONGEST_LINE])))
    line = "".join(character if character.isprintable() else " " for character in line).strip()
    return line[:ERROR_CHARACTERS] or _NO_REASON


def secrets_of(body: bytes) -> tuple[str, ...]:
    """Every secret in a run request."""
    found: set[str] = set()
    waiting: list[Any] = [json.loads(body)]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item
        elif isinstance(item, dict):
            for key, value in item.items():
                if key in {"secrets", "env"} and isinstance(value, dict):
                    found |= {secret for secret in value.values() if isinstance(secret, str)}
                elif key == "authorization" and isinstance(value, str):
                    found |= {value, value.rpartition(" ")[2]}
                else:
                    waiting.append(value)
    return tuple(found - {""})


def not_an_answer(why: str, status: int = _OK) -> RunnerError:
    """The error for an answer that cannot be passed on; it contains nothing of the answer."""
    reason = why if status == _OK else f"it answered {status}"
    return RunnerError(
        f"the runner's answer cannot be passed on: {reason}",
        remedy="see the runner's own log, then repeat the request",
        code="engine.runner_answer",
    )


def plain_object(data: bytes) -> dict[str, Any]:
    """The JSON object in these bytes. Raises ValueError for anything else, deep nesting, and JSON with two readings."""
    try:
        document = json.loads(data.decode("utf-8"), object_pairs_hook=_pairs, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError from error
    if not isinstance(document, dict) or _deeper_than(_LEVELS, document):
        raise ValueError
    return document


def _deeper_than(levels: int, document: Any) -> bool:
    layer = [document]
    for _ in range(levels):
        layer = [
            inner
            for item in layer
            if isinstance(item, (dict, list))
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return bool(layer)


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    if len(found) != len(items):
        raise ValueError
    return found


def _refuse(_: str) -> NoReturn:
    raise ValueError
