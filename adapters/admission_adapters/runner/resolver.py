"""The executor of DNS lookups: all addresses of a host from the system resolver within a deadline, or none.

The system's lookup has no deadline and cannot be cancelled, so each runs in its own thread. Their number is limited,
and one that waits for a dead server occupies its slot until it ends. Late, failed, or no free slot: no addresses.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Lookup = Callable[[str], Sequence[Any]]
"""Gives rows as `socket.getaddrinfo` does."""


@dataclass(frozen=True, slots=True)
class LookupLimits:
    """Limits of DNS lookups."""

    seconds: float = 3.0  # waiting for a thread and for the answer; resolvers try a second server after 5
    threads: int = 16  # concurrent lookups, including abandoned ones
    answers: int = 64  # addresses of one host; the largest services have about 20


class Resolver:
    """Resolves hosts; threads may share it. After `close` it returns no addresses."""

    def __init__(self, limits: LookupLimits = LookupLimits(), lookup: Lookup | None = None) -> None:
        self._limits = limits
        self._lookup = _system if lookup is None else lookup
        self._places = threading.BoundedSemaphore(limits.threads)
        self._closed = False

    def addresses(self, host: str) -> tuple[str, ...] | None:
        """Every address of the host, sorted and unique; None if not all are known in time. Never raises.

        An address keeps its scope id (`fe80::1%2`), so that the policy sees it.
        """
        deadline = time.monotonic() + self._limits.seconds
        if self._closed or not self._places.acquire(timeout=self._limits.seconds):
            return None
        found: list[Sequence[Any]] = []
        done = threading.Event()

        def look() -> None:
            try:
                found.append(self._lookup(host))
            except Exception:  # noqa: BLE001  (a host without addresses, a resolver that is not there)
                found.clear()
            finally:
                self._places.release()
                done.set()

        try:
            threading.Thread(target=look, name="lookup", daemon=True).start()
        except RuntimeError:  # no more threads
            self._places.release()
            return None
        if not done.wait(max(0.0, deadline - time.monotonic())) or not found:
            return None
        return _answers(found[0], self._limits.answers)

    def close(self) -> None:
        """Refuse further lookups; lookups in progress are abandoned."""
        self._closed = True


def _system(host: str) -> Sequence[Any]:
    return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)


def _answers(rows: Sequence[Any], most: int) -> tuple[str, ...] | None:
    """The addresses of all rows; None if there are none or too many, or one belongs to another family."""
    texts: set[str] = set()
    for family, _, _, _, place in rows:
        if family not in {socket.AF_INET, socket.AF_INET6}:
            return None
        text = str(place[0])
        scope = place[3] if family == socket.AF_INET6 else 0
        texts.add(f"{text}%{scope}" if scope and "%" not in text else text)
    return tuple(sorted(texts)) if 0 < len(texts) <= most else None
