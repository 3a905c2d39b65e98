"""What is in force for every decision, and approved work in progress, which ends once a stop applies to it.

Every decision reads the stops from the state, where any process that shares it may add one, and with them which
releases may decide. The store keeps what it read for a moment, and a change is answered when no process decides
without it. While there is work in progress, a thread reads the stops several times a second, and asks the policy again
whether the work may go on. Where the stops cannot be read, or the policy does not answer, the work ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.drive import Call, Steps
from engine.errors import DecideError
from engine.model import Mode, StopSignal
from engine.state.in_force import InForce
from engine.state.rows import StopRow

if TYPE_CHECKING:
    from engine.state.store import Store

_LOOK_SECONDS = 0.1
"""Between two looks at the stops: a tenth of the time in which stopped work must have ended."""

_ANSWER_SECONDS = 0.4
"""For the policy to say that work may go on; it takes a millisecond."""

_FOLLOWS = "repeat the request; if that does not help, `engine policy status` shows what is wrong"
_OWN = "give the releases and their key: `--releases DIR --release-key FILE`; `engine policy status` names the release"
_CHECK = f"{_OWN}; for a dry run of another policy, name that, such as `--policy DIR`"
"""What to do where the policy of an engine was not agreed on: it follows the agreement, or has a policy of its own."""

Stops = tuple[StopRow, ...]


@dataclass(slots=True)
class _Watched:
    signal: StopSignal
    seen: list[str]
    allowed: Callable[[Stops, float], bool]
    over: bool = False


class Running:
    """The work in progress in one engine. Threads may share it."""

    def __init__(
        self,
        now: Callable[[], Store | None],
        opened: Callable[[], Store],
        *,
        follows: bool = False,
        try_policy: bool = False,
    ) -> None:
        """`now` returns the store if it is open and its stops are read without waiting, `opened` opens it first.

        `follows` is for an engine that serves what was agreed on; with `try_policy`, dry runs are not bound by that.
        """
        self._now, self._opened = now, opened
        self._follows, self._try_policy = follows, try_policy
        self._changed = threading.Condition()
        self._watched: list[_Watched] = []
        self._thread: threading.Thread | None = None
        self._closed = False
        self.last = InForce()
        """What was read last; nothing before the first read."""

    def stops(self, release: str | None, mode: Mode = Mode.ENFORCE) -> Steps[Stops]:
        """The stops in force, for a decision under the release with this digest; None: under no release.

        Raises DecideError unless that release may decide, StateError: what cannot be read may stop anything.
        """
        store = self._now()
        found: InForce = store.in_force() if store else (yield Call(lambda: self._opened().in_force()))
        self.last = found
        if not (self.agreed(release) or (self._try_policy and mode is Mode.CHECK)):
            raise DecideError(
                "the engines of this state agreed on another release than this engine serves",
                remedy=_FOLLOWS if self._follows else _CHECK if mode is Mode.CHECK else _OWN,
                code="policy_stale",
            )
        return found.stops

    def agreed(self, release: str | None) -> bool:
        """Whether this release may decide, by what was read last."""
        return self.last.may_decide(release, follows=self._follows)

    @contextmanager
    def watching(self, signal: StopSignal, seen: list[str], allowed: Callable[[Stops, float], bool]) -> Iterator[None]:
        """Stop this work once it may not go on, also what is still in progress after the block.

        `seen` are the ids of the stops under which it was allowed; `allowed` says within some seconds, or raises
        EngineError, whether it may go on under others.
        """
        one = _Watched(signal, seen, allowed)
        with self._changed:
            self._watched.append(one)
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="engine-stops", daemon=True)
                self._thread.start()
            elif len(self._watched) == 1:
                self._changed.notify()
        try:
            yield
        finally:
            one.over = True

    def close(self) -> None:
        """Watch nothing any more."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _look(self) -> None:
        while True:
            with self._changed:
                self._watched = [one for one in self._watched if not one.over or one.signal.awaited]
                if not self._closed:  # under the lock: `close` wakes only a thread that waits
                    self._changed.wait(_LOOK_SECONDS if self._watched else None)
                if self._closed:
                    return
                watched = list(self._watched)
            if watched:
                self._end_stopped(watched)

    def _end_stopped(self, watched: list[_Watched]) -> None:
        """End what may not go on. Without an answer, for whatever reason, nothing may, and nothing more is asked."""
        stops: Stops | None = None
        with suppress(Exception):
            stops = self._opened().stops_in_force()
        now = None if stops is None else [stop.id for stop in stops]
        for one in watched:
            if one.seen == now or one.signal.is_set():
                continue
            allowed = False
            if stops is not None:
                try:
                    allowed = one.allowed(stops, _ANSWER_SECONDS)
                except Exception:  # noqa: BLE001  (a thread that ended would watch nothing any more)
                    stops = None
            if allowed and now is not None:
                one.seen = now
            else:
                one.signal.set()
