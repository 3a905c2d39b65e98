"""What the subagents' adapter takes and gives: who asks, whom it asks itself, what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from engine.errors import EngineError
from engine.model import Decision, Permit, Result


@dataclass(frozen=True, slots=True)
class Ask:
    """Who asks, under which tool policy and profile. `key` makes a repetition harmless, `approval` was granted."""

    conversation: str
    user: str
    account: str
    policy: str | None = None
    profile: str | None = None
    key: str | None = None
    approval: str | None = None

    def request(self) -> dict[str, Any]:
        """What a request of the point says of it."""
        return {
            "conversation": self.conversation,
            "user": self.user,
            "account": self.account,
            "policy": self.policy,
            "profile": self.profile,
        }


@dataclass(frozen=True, slots=True)
class Work:
    """What permitted work did, and the turns that it gives."""

    result: Result
    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """The decision; on an allow the result and the turns, or the fault that stopped the work."""

    decision: Decision
    fault: EngineError | None
    result: Result | None = None
    turns: tuple[str, ...] = ()


class Answered(Protocol):
    """What an engine gives for a request."""

    @property
    def decision(self) -> Decision:
        """The decision, recorded."""
        ...

    @property
    def fault(self) -> EngineError | None:
        """What went wrong on the way, or in the work."""
        ...


class Decide(Protocol):
    """Takes a request through point `subagent` and lets the hand do the work, once for each key."""

    def __call__(
        self, request: dict[str, Any], hand: Callable[[Permit, Any], Result], key: str | None, approval: str | None
    ) -> Answered:
        """Never raises for a refusal."""
        ...


class Family(Protocol):
    """Keeps whose child is whose, where the decision point reads it."""

    def started(self, child: str, parent: str) -> None:
        """Before a child is started; whatever it raises, nothing is started."""
        ...

    def ended(self, child: str, state: Literal["running", "ended", "cancelled", "killed"]) -> None:
        """Once it is dead; called from the thread that saw it."""
        ...


@runtime_checkable
class Grant(Protocol):
    """What is read of the limits of point `subagent`."""

    @property
    def operation(self) -> str:
        """Exactly this one."""
        ...

    @property
    def child(self) -> str:
        """The subagent that it is about; `new` for one that is to be started."""
        ...

    @property
    def turns(self) -> int:
        """The most turns to give."""
        ...

    @property
    def line_bytes(self) -> int:
        """Bytes of each turn."""
        ...

    @property
    def timeout_seconds(self) -> int:
        """How long the operation may take."""
        ...

    @property
    def lifetime_seconds(self) -> int:
        """How long a subagent may live."""
        ...
