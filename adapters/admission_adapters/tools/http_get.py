"""The tool `http_get`: one address over HTTPS, through the engine's own fetch.

    tool = HttpGet(engine, context, hosts=("data.example.org",), license="CC-BY-4.0")
    tool.register(registry)

The gate decides on each call at `tool_call`. The fetch is decided on at `network`, before a socket opens, and at
`network_response`, before the model sees anything.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol

from admission_adapters.interfaces import Answer, Decides
from admission_adapters.tools.effects import record_side_effect
from admission_adapters.tools.registering import Registered, object_schema, refusal

DEFINITION: dict[str, Any] = {
    "name": "http_get",
    "description": "Fetch one HTTPS address and return its content as text.",
    "input_schema": object_schema({"url": {"type": "string"}}, "url"),
}
SIDE_EFFECTS = ("read", "network")
MOST_REQUESTS = 100
"""Fetches of one tool object, unless it says otherwise."""


class Fetched(Protocol):
    """What came of a fetch."""

    answers: Sequence[Answer]
    content: bytes | None


class Gets(Decides[Any], Protocol):
    """What is used of an `Engine` or an `AsyncEngine`."""

    def get_url(self, url: str, *, hosts: Any, license: str, max_requests: int, context: Any) -> Any:  # noqa: A002
        """Fetch one address into memory, as far as the policy permits it."""


class HttpGet(Registered):
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
        super().__init__(engine, context, DEFINITION, SIDE_EFFECTS)
        self._engine = engine
        self._hosts, self._license = tuple(hosts), license
        self._left = max_requests
        self._lock = threading.Lock()

    def http_get(self, url: str) -> str | bytes:
        """Fetch one address. Raises ToolValidationError with the code of the refusal, or the fault of the engine."""
        with self._lock:
            left, self._left = self._left, max(0, self._left - 1)
        record_side_effect("network", id="page", target=url)
        got = self._engine.get_url(
            url, hosts=self._hosts, license=self._license, max_requests=left, context=self._context
        )
        if got.content is None:
            raise refusal(got.answers[-1])
        try:
            return str(got.content, "utf-8")
        except UnicodeDecodeError:
            return bytes(got.content)
