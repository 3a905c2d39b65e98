"""The operational log: JSON lines on standard error, redacted, written by a background thread.

A line states what happened without content: no arguments, results, bodies or credentials (B41, B43,
D29). Only `payload` adds the redacted body, and only where the policy of point `record` admits it (B42).
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from engine.api.messages import Exchange, Response, outline
from engine.api.uploads import write_all
from engine.record.model import utc_now
from engine.secrets.redaction import redact, redact_text
from engine.times import timestamp

_LINES = 20_000
"""Lines buffered for a slow reader; more are dropped and counted."""

_to_json = json.JSONEncoder(default=str).encode

_REMEMBERED = 1_024
"""Request ids and principals that were redacted last."""

_GATHER_SECONDS = 0.02
"""Lines of this long are written together: a wake of the thread costs more than a line."""


class Level(StrEnum):
    """What is logged: everything, or only what went wrong."""

    INFO = "info"
    WARNING = "warning"


class OperationalLog:
    """Takes lines from any thread. `close` writes what is left, for at most a second."""

    def __init__(self, level: Level = Level.INFO, *, payload: bool = False, descriptor: int | None = None) -> None:
        self._level = level
        self._payload = payload
        self._descriptor = sys.stderr.fileno() if descriptor is None else descriptor
        self._lines: deque[str] = deque()
        self._wake = threading.Event()
        self._closing = False
        self._idle = True
        self._before = b""
        self.dropped = 0
        self._clean = lru_cache(_REMEMBERED)(redact_text)
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def event(
        self, event: str, level: Level = Level.INFO, people: Mapping[str, str] | None = None, /, **fields: Any
    ) -> None:
        """Something that happened to the engine itself.

        `people` are those whom the policy names by their mail addresses, by role; everything else is redacted.
        """
        if level is Level.WARNING or self._level is Level.INFO:
            self._put(level.value, event, {**_redacted(fields), **(people or {})})

    def answered(self, exchange: Exchange, response: Response, nanoseconds: int) -> None:
        """One request that was answered: who, what, how, how long; never what it contained.

        Every name here is one of ours but request id and principal.
        """
        wrong = response.status >= HTTPStatus.BAD_REQUEST
        if self._level is Level.WARNING and not wrong:
            return
        caller = exchange.caller
        fields = {
            "operation": exchange.operation.name,
            "request_id": self._clean(exchange.request_id) if exchange.named else exchange.request_id,
            "trace": exchange.trace.trace_id,
            "status": response.status,
            "duration_ms": nanoseconds // 1000 / 1000,
            "via": caller.via,
            **outline(exchange, response),
        }
        if caller.principal is not None:
            fields["principal"] = self._clean(caller.principal)
        if self._payload and exchange.stored and _is_loggable(exchange):
            fields["payload"] = _payload(exchange.body)
        self._put("warning" if wrong else "info", "request", fields)

    def crash(self, **fields: Any) -> None:
        """The stack of a fault of ours, with the id of its request or decision; it goes to this log only."""
        self._put("error", "crash", _redacted(fields))

    def close(self) -> None:
        """Write what is left and end."""
        self._closing = True
        self._wake.set()
        self._thread.join(1.0)

    def _put(self, level: str, event: str, fields: dict[str, Any]) -> None:
        if len(self._lines) >= _LINES:
            self.dropped += 1
            return
        self._lines.append(_to_json({"time": timestamp(utc_now()), "level": level, "event": event, **fields}))
        if self._idle:
            self._idle = False
            self._wake.set()

    def _write(self) -> None:
        while not (self._closing and not self._lines):
            self._wake.wait()
            self._wake.clear()
            if not self._closing:
                time.sleep(_GATHER_SECONDS)
            self._idle = True
            lines = []
            with suppress(IndexError):
                while True:
                    lines.append(self._lines.popleft())
            if lines:
                self._write_lines(lines)

    def _write_lines(self, lines: list[str]) -> None:
        try:
            write_all(self._descriptor, [self._before, ("\n".join(lines) + "\n").encode("ascii")])
            self._before = b""
        except OSError:  # its disk is full, or its reader has closed it: the engine continues
            self._before = b"\n"  # a part of a line may be there
            self.dropped += len(lines)


def _redacted(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: redact_text(value) if isinstance(value, str) else value for name, value in fields.items()}


def _is_loggable(exchange: Exchange) -> bool:
    """Whether the body is the request of a single point whose requests contain no secrets."""
    from engine.points.registry import POINTS

    point = POINTS.get(exchange.operation.point or "")
    return point is not None and not point.secret


def _payload(body: bytes) -> Any:
    try:
        return redact(json.loads(body))[0]
    except (ValueError, RecursionError):  # secrets are found by the names beside them: log nothing of it
        return {"unreadable": True, "bytes": len(body), "digest": f"sha256:{hashlib.sha256(body).hexdigest()}"}
