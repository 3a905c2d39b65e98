"""The errors of the engine, one family per verb, and their exit codes.

    EngineError
    ├── GatherError    the request or what it refers to cannot be read
    ├── DecideError    OPA returned no well-formed answer
    ├── EnforceError   an allow that cannot be turned into a permit
    ├── WorkError      approved work failed or exceeded its permit
    ├── StateError     budgets, approvals or tokens cannot be read or written
    ├── RecordError    the record cannot be written or does not verify
    └── PolicyError    rules or values cannot be built into a policy bundle

Every error has a stable code, a text that states what happened, and a remedy.
Texts are lower case without a full stop, put user input in backticks and never contain content.
"""

from __future__ import annotations

import copyreg
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any


class Exit(IntEnum):
    """Exit codes of the command line: the only table of them."""

    ALLOW = 0
    DENY = 1
    UNREADABLE = 2  # usage, or an input that cannot be read
    CONFIRM = 3
    FAILED_CLOSED = 4  # OPA, record or state
    POLICY_INVALID = 5  # build, lint, test or signature
    REPLAY_CHANGED = 6


@dataclass(frozen=True, slots=True)
class Location:
    """A place a person can open: a file, a line counted from 1, a path of fields."""

    file: str
    line: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return _visible(place if self.field is None else f"{place} ({self.field})")

    @property
    def without_folders(self) -> Location:
        """The same for callers of a server, who may learn what its files are called but not where they are."""
        return replace(self, file=self.file.rsplit("/", 1)[-1])


def _visible(text: str) -> str:
    """The text on one line, without characters that a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else " " if one == "\n" else "?" for one in text)


def reason_of(error: OSError) -> str:
    """What the system says of an error, in lower case."""
    return (error.strerror or "it failed").lower()


def install_extra(name: str) -> str:
    """The remedy for packages that only an extra of the engine brings."""
    return f"install the extra: `pip install 'admission-engine[{name}]'`; in a checkout, run `scripts/setup dev`"


def lack_of(error: BaseException) -> str | None:
    """What the machine has no more of, where Python says that by an exception which is no OSError."""
    if isinstance(error, MemoryError):
        return "no memory is left"
    no_thread = isinstance(error, RuntimeError) and str(error) == "can't start new thread"
    return "no thread can be started" if no_thread else None


RAISE_LIMIT = "raise the limit of this user or service (`ulimit -a` shows it), or end other processes"


class EngineError(Exception):
    """Base of all errors a caller may see; `code` is stable, `remedy` is the instruction to fix it."""

    code = "engine.internal"
    exit = Exit.FAILED_CLOSED

    def __init__(self, message: str, *, remedy: str, where: Location | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.where = where
        if code is not None:
            self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        """Without `__init__`, whose arguments differ: a pool waits for ever for an error that it cannot unpickle."""
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]

    def one_line(self) -> str:
        """Where and what, for a finding or a log line."""
        return _visible(self.message if self.where is None else f"{self.where}: {self.message}")

    def without_folders(self) -> str:
        """The same for callers of a server."""
        return _visible(self.message if self.where is None else f"{self.where.without_folders}: {self.message}")

    def __str__(self) -> str:
        return self.one_line()


def fault_inside(stopped: str, remedy: str) -> EngineError:
    """The error for an exception that nothing expects. Its type and message are for `stack_of`, not for users."""
    return EngineError(f"a fault inside the engine stopped the {stopped}", remedy=remedy)


def stack_of(error: BaseException) -> str:
    """Where an error and its causes arose. Messages of errors that are not ours may hold content: types only."""
    import traceback

    parts: list[str] = []
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        summary = f" {at.code}: {at.message}" if isinstance(at, EngineError) else ""
        parts.append(f"{type(at).__name__}{summary}\n{''.join(traceback.format_tb(at.__traceback__))}".rstrip())
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return "\ncaused by ".join(parts)


class GatherError(EngineError):
    """The request, or the source bundle it names, cannot be read at all."""

    code = "engine.input_unreadable"
    exit = Exit.UNREADABLE


class DecideError(EngineError):
    """OPA is dead, late, of another revision, or its answer is not a valid decision."""

    code = "policy_unavailable"


class EnforceError(EngineError):
    """A decision whose limits cannot be enforced here."""

    code = "engine.limit_unenforceable"


class WorkError(EngineError):
    """An adapter got no permit for this, or the work failed."""

    code = "engine.work_failed"


class PermitMissingError(WorkError):
    """There is no permit for this work, or it is for something else."""

    code = "engine.permit_missing"


class UnenforceableError(WorkError):
    """The limits of a permit cannot be enforced here."""

    code = "engine.limit_unenforceable"


class StateError(EngineError):
    """The state of budgets, approvals, tokens cannot be used; nothing that needs it is allowed."""

    code = "engine.state_unavailable"
    undone = False
    """Whether it is certain that nothing was changed."""


class RecordError(EngineError):
    """The record is locked, broken, or cannot be made durable; nothing is allowed without it."""

    code = "engine.record_unavailable"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with rules or values, where it is, and what to do about it."""

    where: Location
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}\n  {self.remedy}"


class PolicyError(EngineError):
    """Rules or values that the policy bundle build refuses; lists every problem found."""

    code = "engine.policy_invalid"
    exit = Exit.POLICY_INVALID

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first, more = problems[0], len(problems) - 1
        message = f"{first.message}; {more} more in `engine policy lint`" if more else first.message
        super().__init__(message, remedy=first.remedy, where=first.where)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)
