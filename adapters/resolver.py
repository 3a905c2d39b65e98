"""The hand of lookups: all addresses of a host by the system's resolver, within a deadline, or none at all.

The system's lookup has no deadline and cannot be broken off, so each has a thread of its own; there are only so many,
and one that waits for a dead server keeps its place until it ends. Late, failed, or no place left: no addresses.
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
    """What lookups may cost."""

    seconds: float = 3.0  # waiting for a place and for the answer; resolvers ask a second server after 5
    threads: int = 16  # lookups at the same time, those that nobody waits for any more included
    answers: int = 64  # addresses of one host; the largest services have about 20


class Resolver:
    """Looks hosts up; threads may share it. After `close` it gives no addresses."""

    def __init__(self, limits: LookupLimits = LookupLimits(), lookup: Lookup | None = None) -> None:
        self._limits = limits
        self._lookup = _system if lookup is None else lookup
        self._places = threading.BoundedSemaphore(limits.threads)
        self._closed = False

    def addresses(self, host: str) -> tuple[str, ...] | None:
        """Every address of the host, sorted, each once; None where they are not all known in time. Never raises.

        An address with a scope id keeps it (`fe80::1%2`), so that whoever decides sees it.
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
        """Look nothing up any more; what is under way ends by itself, and nobody waits for it."""
        self._closed = True


def _system(host: str) -> Sequence[Any]:
    return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)


def _answers(rows: Sequence[Any], most: int) -> tuple[str, ...] | None:
    """The addresses of all rows; None when there is none, too many, or one of another kind."""
    texts: set[str] = set()
    for family, _, _, _, place in rows:
        if family not in {socket.AF_INET, socket.AF_INET6}:
            return None
        text = str(place[0])
        scope = place[3] if family == socket.AF_INET6 else 0
        texts.add(f"{text}%{scope}" if scope and "%" not in text else text)
    return tuple(sorted(texts)) if 0 < len(texts) <= most else None
