"""Tries at one task: each is counted before it is decided on, and told how it ended (C63).

How many there may be, and that failed code is not tried again, is for the policy to say.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from typing import Any

from engine.canonical import canonical
from engine.drive import Call, Steps
from engine.flow import Context, Parts
from engine.state.store import NewAttempt, Store


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try that was begun."""

    id: str
    parts: Parts

    def end(self, *, ok: bool) -> Steps[None]:
        """It came to something, or it failed. Raises StateError."""
        now = self.parts.world.clock()
        yield Call(lambda: self.parts.store().end_attempt(self.id, "ok" if ok else "failed", now))

    def withdraw(self) -> Steps[None]:
        """Nothing was decided about its code: a person was asked first, or the engine failed. Raises StateError."""
        yield Call(lambda: self.parts.store().withdraw_attempt(self.id))


def begin(parts: Parts, context: Context, task: str | None, action: Any) -> Steps[Attempt | None]:
    """Count one try, where a task is stated. Raises StateError."""
    if task is None:
        return None
    new = NewAttempt(
        id=str(uuid.uuid4()),
        principal=context.caller.principal or "",
        task=task,
        code_sha256=_digest(action),
        created_at=parts.world.clock(),
    )

    def write() -> None:
        store: Store = parts.store()
        store.begin_attempt(new)

    yield Call(write)
    return Attempt(new.id, parts)


def _digest(action: Any) -> str:
    """Of the code; of an action without any, of all of it."""
    code = action.get("code") if isinstance(action, dict) else None
    data = code.encode("utf-8", "surrogatepass") if isinstance(code, str) else canonical(action)
    return hashlib.sha256(data).hexdigest()
