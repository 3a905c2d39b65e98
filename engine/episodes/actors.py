"""Actors: callables from what an actor may read to its reply. A call has a time and its own thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.episodes.definition import ActorDefinition
from engine.errors import EngineError
from engine.model import StopSignal
from engine.points.episode import CallPermit


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a transcript, as a reader gets it; author and role are set by the engine."""

    author: str
    role: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    """What an actor is given: the entries that it may read, the state, and what its reply may use.

    `calls`: how often it has replied before, retries included. `rejected`: codes of its last reply, if it was rejected.
    `replies`: whether it has to reply with a `proposal` or with `text`.
    """

    actor: str
    role: str
    transcript: tuple[Entry, ...]
    state: Mapping[str, Mapping[str, Any]]
    max_tokens: int
    milliseconds: int
    calls: int
    rejected: tuple[str, ...] = ()
    replies: str = "proposal"


@dataclass(frozen=True, slots=True)
class ActorReply:
    """The text of a reply, and the usage as the provider reported it: `{"tokens": 120, "spend_micros": 40}`."""

    text: str
    usage: Any = None


class ActorStoppedError(Exception):
    """Raised by an actor that may not go on, through no fault of its own: the episode stops with `error`."""

    def __init__(self, error: EngineError) -> None:
        super().__init__(error.message)
        self.error = error


Actor = Callable[[Turn], ActorReply]
"""Scripted, or a model. It may raise; then it has not replied."""


def scripted(definition: ActorDefinition) -> Actor | None:
    """The actor of a script; None if the definition has none."""
    script = definition.script
    if script is None:
        return None

    def reply(turn: Turn) -> ActorReply:
        line = script[min(turn.calls, len(script) - 1)]
        return ActorReply(line.reply(), line.usage)

    return reply


@dataclass(slots=True)
class PendingCall:
    """A call in progress. What comes after its time is dropped."""

    actor: Actor
    turn: Turn
    grant: CallPermit
    stop: StopSignal
    _done: threading.Event = field(default_factory=threading.Event)
    _reply: ActorReply | None = None
    _error: EngineError | None = None

    def start(self) -> None:
        """Call the actor."""
        self.stop.then(self._done.set)
        threading.Thread(target=self._call, name="engine-actor", daemon=True).start()

    def wait(self) -> ActorReply | None:
        """The reply; None if there was none in time, or before the call was stopped.

        Raises the error by which the actor stopped the episode.
        """
        self._done.wait(self.grant.milliseconds / 1000)
        self.stop.forget(self._done.set)
        if self._error is not None:
            raise self._error
        return self._reply

    def _call(self) -> None:
        try:
            found: Any = self.actor(self.turn)
            if isinstance(found, ActorReply) and isinstance(getattr(found, "text", None), str):
                self._reply = found
        except ActorStoppedError as stopped:
            self._error = stopped.error
        except Exception:  # noqa: BLE001  (an actor that fails has not replied)
            self._reply = None
        finally:
            self._done.set()
