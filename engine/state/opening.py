"""Opens a store at first use, and again after a fault of its disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from engine.errors import EngineError, StateError

if TYPE_CHECKING:
    from engine.state.store import Store

StoreT = TypeVar("StoreT", bound="Store")

_AGAIN_SECONDS = 1.0
"""Between two tries to open a state, which may wait for another process or for a server."""


class Opener(Generic[StoreT]):
    """A store that threads share; threads that wait for its opening get the same store, or the same fault."""

    def __init__(self, opened: Callable[[bool], StoreT]) -> None:
        """`opened` opens the store; it is told whether one failed before."""
        self._opened = opened
        self._guard = threading.Lock()
        self._store: StoreT | None = None
        self._fault: EngineError | None = None
        self._again = 0.0

    def get(self) -> StoreT:
        """The open store. Raises EngineError if it cannot be opened."""
        with self._guard:
            failed = self._store
            if failed is not None and not failed.failed:
                return failed
            if self._fault is not None and time.monotonic() < self._again:
                raise self._fault
            try:
                if failed is not None:
                    failed.close()
                self._store = self._opened(failed is not None)
                self._fault = None
            except EngineError as error:  # callers that waited here meanwhile do not wait for it once more
                self._fault, self._again = error, time.monotonic() + _AGAIN_SECONDS
                raise
            return self._store

    def now(self) -> StoreT:
        """The store if it was opened, usable or not; never waits. Raises EngineError if it was not."""
        if self._store is None:
            raise self._fault or StateError("the state is not open yet", remedy="try again in a second")
        return self._store

    def close(self) -> None:
        """Close the store, if it was opened."""
        if self._store is not None:
            self._store.close()
