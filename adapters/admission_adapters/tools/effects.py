"""Side effects reported by tools. Each is reported before it happens, so the record is complete however a call ends.

    record_side_effect("write", id="report", target="/work/report.txt")

Only a digest of the target is kept. Rows A07, A99.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from admission_adapters.digests import digest
from engine.errors import PermitMissingError
from engine.model import DIGEST

MOST_EFFECTS = 1_000
"""Of one call; a tool that does more reports them as one, such as a folder instead of its files."""

_ID = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_CLASS = re.compile(r"[a-z][a-z_]{0,31}")


class ToolStoppedError(BaseException):
    """Raised in a tool after the end of its call, at the next side effect, which must not happen."""


class Effects:
    """The side effects of one call, in the order in which they were reported. Threads may share it."""

    def __init__(self, report: Callable[[dict[str, str]], None] = lambda _: None) -> None:
        """`report` is called with each effect at once."""
        self._report = report
        self._lock = threading.Lock()
        self._found: dict[str, dict[str, str]] = {}
        self._closed = False

    def add(self, class_: object, id_: object, target_digest: str | None) -> None:
        """Add an effect; a class or id in the wrong form is replaced by a name of ours.

        Raises ToolStoppedError when the call is over, or has had its `MOST_EFFECTS`.
        """
        with self._lock:
            number = len(self._found)
            if self._closed or number >= MOST_EFFECTS:
                raise ToolStoppedError
            name = id_ if isinstance(id_, str) and _ID.fullmatch(id_) else f"effect-{number}"
            while name in self._found:  # also one that looks like a name of ours
                name = f"{name}.{number}"
            known = isinstance(class_, str) and _CLASS.fullmatch(class_)
            effect = {"id": name, "class": str(class_) if known else "unknown"}
            if target_digest is not None:
                effect["target_digest"] = target_digest
            self._found[name] = effect
            self._report(effect)

    def close(self) -> list[dict[str, str]]:
        """Accept no more effects; returns those so far."""
        with self._lock:
            self._closed = True
            return list(self._found.values())


_EFFECTS: ContextVar[Effects | None] = ContextVar("tool_effects", default=None)


def within_call() -> bool:
    """Whether this runs within a call that a gate has permitted."""
    return _EFFECTS.get() is not None


def record_side_effect(class_: str, *, id: str, target: str | None = None) -> None:  # noqa: A002  (its name)
    """Report, from within a tool, an imminent side effect; `class_` is one that its policy entry declares.

    Call it before the effect: if the call has been abandoned meanwhile, this raises and nothing happens.
    `id` names the effect in the record, `target` is not recorded. Raises WorkError where
    no gate has permitted a call: also on threads that a tool starts without its context.
    """
    effects = _EFFECTS.get()
    if effects is None:
        raise PermitMissingError("this tool has a side effect without a permit", remedy="call it through a ToolGate")
    effects.add(class_, id, None if target is None else digest(str(target).encode("utf-8", "surrogatepass")))


@contextmanager
def recording(effects: Effects) -> Iterator[None]:
    """Assigns effects reported within, also on tasks and threads that copy the context, to this call."""
    token = _EFFECTS.set(effects)
    try:
        yield
    finally:
        _EFFECTS.reset(token)


def record_reported(effects: Effects, effect: Any) -> None:
    """Record an effect that the process of a tool has reported."""
    stated = effect if isinstance(effect, dict) else {}
    target = stated.get("target_digest")
    plain = isinstance(target, str) and DIGEST.fullmatch(target)
    effects.add(stated.get("class", ""), stated.get("id", ""), target if plain else None)
