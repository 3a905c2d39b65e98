"""Many threads at once, and a machine on which none can be started, though everything else goes on."""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tests.processes import limited

_STACK = 1 << 30
_ROOM = 256 << 20


T = TypeVar("T")


def at_once(work: Iterable[Callable[[], T]]) -> list[T]:
    """What each gives, in this order; each has a thread of its own."""
    calls = list(work)
    with ThreadPoolExecutor(len(calls)) as pool:
        return [begun.result() for begun in [pool.submit(call) for call in calls]]


@contextmanager
def no_threads() -> Iterator[None]:
    """Bound the address space of this process so that a new thread's stack has no place in it."""
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    stack = threading.stack_size(_STACK)
    try:
        with limited(resource.RLIMIT_AS, used + _ROOM):
            yield
    finally:
        threading.stack_size(stack)
