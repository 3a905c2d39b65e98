"""The operational log: JSON lines on standard error, redacted, written by a thread that nobody waits for.

A line says what happened and never what was in it: no arguments, results, bodies or credentials (B41, B43,
D29). Only `payload` adds the redacted body, and only where the policy of point `record` admits it (B42).
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from engine.record.redaction import redact, redact_text

if TYPE_CHECKING:
    from engine.api.messages import Exchange, Response

_LINES = 20_000
"""Lines kept for a reader that is slow; more are dropped and counted."""

_REMEMBERED = 1_024
_GATHER_SECONDS = 0.02
"""Lines of this long are written together: a wake of the thread costs more than a line."""


class Level(StrEnum):
    """What is told: everything, or only what went wrong."""

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
        self._second = (0, "")
        self._clean: dict[str, str] = {}
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()
        self.dropped = 0

    def event(self, event: str, level: Level = Level.INFO, **fields: Any) -> None:
        """Something that happened to the engine itself."""
        if level is Level.INFO and self._level is Level.WARNING:
            return
        clean = {name: redact_text(value) if isinstance(value, str) else value for name, value in fields.items()}
        self._put(json.dumps({"time": self._time(), "level": level.value, "event": event, **clean}, default=str))

    def answered(self, exchange: Exchange, response: Response, nanoseconds: int) -> None:
        """One request that was answered: who, what, how, how long; never what it contained.

        Every name here is one of ours but request id and principal, so the line is put together as text.
        """
        wrong = response.status >= HTTPStatus.BAD_REQUEST
        if self._level is Level.WARNING and not wrong:
            return
        caller, operation = exchange.caller, exchange.operation
        request_id = self._quoted(exchange.request_id) if exchange.named else f'"{exchange.request_id}"'
        parts = [
            (
                f'{{"time":"{self._time()}","level":"{"warning" if wrong else "info"}","event":"request",'
                f'"operation":"{operation.name}","request_id":{request_id},"trace":"{exchange.trace.trace_id}",'
                f'"status":{response.status},"duration_ms":{nanoseconds // 1000 / 1000},"via":"{caller.via}"'
            )
        ]
        if operation.point is not None:
            parts.append(f',"point":"{operation.point}"')
        if response.outcome is not None:
            parts.append(f',"outcome":"{response.outcome}"')
        if response.codes:
            parts.append(f',"codes":{json.dumps(response.codes)}')
        if response.decision_id is not None:
            parts.append(f',"decision_id":{json.dumps(response.decision_id)}')
        if caller.principal is not None:
            parts.append(f',"principal":{self._quoted(caller.principal)}')
        if self._payload and exchange.chunks and _may_be_told(exchange):
            parts.append(f',"payload":{json.dumps(_payload(exchange.body))}')
        parts.append("}")
        self._put("".join(parts))

    def crash(self, request_id: str, stack: str) -> None:
        """The stack of a fault of ours, for whoever reads this log and nobody else."""
        self._put(
            json.dumps(
                {
                    "time": self._time(),
                    "level": "error",
                    "event": "crash",
                    "request_id": redact_text(request_id),
                    "stack": redact_text(stack),
                }
            )
        )

    def close(self) -> None:
        """Write what is left and end."""
        self._closing = True
        self._wake.set()
        self._thread.join(1.0)

    def _put(self, line: str) -> None:
        if len(self._lines) >= _LINES:
            self.dropped += 1
            return
        self._lines.append(line)
        if self._idle:
            self._idle = False
            self._wake.set()

    def _quoted(self, text: str) -> str:
        """A text that others chose, without secrets, as JSON."""
        clean = self._clean.get(text)
        if clean is None:
            if len(self._clean) >= _REMEMBERED:
                self._clean.clear()
            clean = self._clean[text] = json.dumps(redact_text(text))
        return clean

    def _time(self) -> str:
        now = time.time_ns()
        second = now // 1_000_000_000
        if second != self._second[0]:
            self._second = second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{self._second[1]}.{now // 1000 % 1_000_000:06d}Z"

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
            if lines and not self._written(("\n".join(lines) + "\n").encode("ascii")):
                return

    def _written(self, data: bytes) -> bool:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:  # nobody reads it any more: the engine goes on without
            return False
        return True


def _may_be_told(exchange: Exchange) -> bool:
    """Whether the body is the request of one point, and of one whose requests hold no secrets."""
    from engine.points.registry import POINTS

    point = POINTS.get(exchange.operation.point or "")
    return point is not None and not point.secret


def _payload(body: bytes) -> Any:
    try:
        return redact(json.loads(body))[0]
    except (ValueError, RecursionError):  # secrets are found by the names beside them: nothing of it is told
        return {"unreadable": True, "bytes": len(body), "digest": f"sha256:{hashlib.sha256(body).hexdigest()}"}
