"""Results that wait for a person: kept in this process until the same call is repeated with the approval.

A call is not made twice for its result. What is not asked for again is dropped, the oldest first.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from admission_adapters.tools.executor import CallExecutor
from admission_adapters.tools.outcome import Outcome
from engine.model import Decision

MOST = 32
"""Results that wait in one gate; each may have the bytes of `result_bytes`."""


@dataclass(frozen=True, slots=True)
class HeldResult:
    """A call that was made, and how it ended."""

    call: tuple[str, Any]
    executor: CallExecutor
    outcome: Outcome
    decision: Decision


class HeldResults:
    """The results that wait, by the id of their approval. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, HeldResult] = {}

    def put(self, approval: str, held: HeldResult) -> None:
        """Keep a result."""
        with self._lock:
            self._held[approval] = held
            while len(self._held) > MOST:
                del self._held[next(iter(self._held))]

    def take(self, approval: str | None, call: tuple[str, Any] | None) -> HeldResult | None:
        """The result of exactly this call, which then waits no longer; None if there is none."""
        known = approval or ""
        with self._lock:
            held = self._held.get(known)
            return None if held is None or held.call != call else self._held.pop(known)

    def __contains__(self, approval: str) -> bool:
        """Whether a result waits for this approval."""
        with self._lock:
            return approval in self._held

    def text(self, approval: str) -> str:
        """The text of a result that waits, for a person and never for the model; empty if there is none."""
        with self._lock:
            held = self._held.get(approval)
        text = None if held is None else held.outcome.result_text
        return "" if text is None else text.text
