"""The hand of point `sandbox`: one program with its arguments, in the sandbox and within the limits of a permit.

There is no shell: the argument array of the request becomes that of the program, its first word the path that
policy has for it (B11).
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from adapters.sandbox.granted import Granted, Shown, bounds_of, prove_again, unenforceable
from adapters.sandbox.hand import FOLDER, how_it_ended
from adapters.sandbox.model import Backend, Ended, Program
from engine.errors import WorkError
from engine.model import Limits, Model, Permit, Result

_POINT = "sandbox"


@runtime_checkable
class Executable(Protocol):
    """Which program may run, and the digest of the argument array that it was named in."""

    kind: Literal["argv"]
    path: str
    digest: str


@runtime_checkable
class CommandGrant(Granted, Protocol):
    """What is used of the limits of point `sandbox`."""

    command: Model
    profile: str


@dataclass(frozen=True, slots=True)
class Command:
    """What is to run: the argument array that was decided on, and what stands on its standard input."""

    words: tuple[str, ...]
    stdin: bytes


def run_command(
    permit: Permit,
    input_digest: str,
    limits: type[Limits],
    command: Command,
    backend: Callable[[str], Backend],
    shown: Shown,
    cancel: threading.Event | None = None,
) -> tuple[Result, Ended]:
    """Run a command in a sandbox of its own; what may be written down of it, and how it ended.

    `backend` gives the sandbox of a name. Raises WorkError: `engine.permit_missing` for another command than the
    permit's, `engine.limit_unenforceable` where the machine is no longer shown to hold every boundary.
    """
    grant = permit.demand(_POINT, input_digest, limits)
    if not isinstance(grant, CommandGrant):
        raise unenforceable("the limits of a command are not complete")
    allowed = grant.command
    if not isinstance(allowed, Executable) or allowed.digest != digest_of(command.words):
        raise WorkError(
            "the permit is for another command",
            remedy="ask the engine for a decision on exactly this command",
            code="engine.permit_missing",
        )
    place = backend(grant.backend)
    prove_again(grant, place, shown)
    program = Program(
        language="",
        code="",
        stdin=command.stdin,
        environment={},
        seed=0,
        folder=FOLDER + secrets.token_hex(8),
        command=(allowed.path, *command.words[1:]),
    )
    ended = place.run(program, bounds_of(grant), cancel)
    facts = {"profile": grant.profile, **how_it_ended(grant, ended, shown)}
    return Result(ended.status.value, facts), ended


def digest_of(words: tuple[str, ...]) -> str:
    """The digest of an argument array: each word in UTF-8 and a zero byte, as the kernel gets them."""
    data = b"".join(word.encode("utf-8") + b"\0" for word in words)
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
