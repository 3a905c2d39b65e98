"""Reads the answer of a runner that comes in parts: lines of JSON, or server-sent events.

The object with `ok` is the result and the last one. Everything before is an event, passed on as it comes; its `error`
is cleaned like that of a result.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from admission_adapters.lines import Lines
from admission_adapters.runner.answer import CREDENTIAL_TOLD, clean, not_an_answer, plain_object

Follow = Callable[[dict[str, Any]], None]
"""Takes one event. May block."""


class EventLines:
    """The lines of one answer. `secrets` are those that the runner got; `token`, one of them, is the gate's own."""

    def __init__(self, follow: Follow, secrets: tuple[str, ...], token: str = "") -> None:
        self._follow = follow
        self._secrets, self._token = secrets, token.encode("ascii")
        self._lines = Lines()
        self._name = ""
        self._data: list[bytes] = []
        self._result: bytes | None = None

    def feed(self, chunk: bytes) -> None:
        """The next piece. Raises RunnerError for anything but events of JSON objects and one result at the end."""
        for line in self._lines.feed(chunk):
            self._line(line.rstrip(b"\r"))

    def result(self) -> bytes:
        """The JSON of the result. Raises RunnerError if there is none."""
        self.feed(b"\n\n" if self._lines.open or self._data else b"")
        if self._result is None:
            raise not_an_answer("it ended without a result")
        return self._result

    def _line(self, line: bytes) -> None:
        if line.startswith(b"{"):
            self._event(line)
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif line.startswith(b"event:"):
            self._name = line[6:].strip().decode("utf-8", "replace")
        elif not line and self._data:
            data, name, self._data, self._name = b"\n".join(self._data), self._name, [], ""
            self._event(data, name)
        elif line and not line.startswith((b":", b"id:", b"retry:")):
            raise not_an_answer("a part of it is no event")

    def _event(self, data: bytes, name: str = "") -> None:
        if self._result is not None:
            raise not_an_answer("it goes on after its result")
        if self._token and self._token in data:
            raise not_an_answer(CREDENTIAL_TOLD)
        try:
            event = plain_object(data)
        except ValueError as error:
            raise not_an_answer("a part of it is not a plain JSON object") from error
        if isinstance(event.get("ok"), bool):
            self._result = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")
            return
        if isinstance(event.get("error"), str):
            event["error"] = clean(event["error"], self._secrets)
        self._follow({"type": name, **event} if name else event)
