"""The executor of point `sandbox`: runs one command in the sandbox and within the limits of its permit.

There is no shell: the argument array of the request becomes that of the program, its first word the path that
policy has for it (B11).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from admission_adapters.digests import digest
from admission_adapters.grants import granted
from admission_adapters.sandbox.executor import INPUTS, Granted, result_facts, run_granted
from admission_adapters.sandbox.model import Backend, Dialogue, Program, RunResult, Tunnels
from engine.errors import PermitMissingError
from engine.model import Model, Permit, Result, SandboxFacts

_POINT = "sandbox"


@runtime_checkable
class Executable(Protocol):
    """Which program may run, and the digest of the argument array that it was named in."""

    kind: Literal["argv"]
    path: str
    digest: str


@runtime_checkable
class CommandGrant(Granted, Protocol):
    """The limits of point `sandbox`, as far as they are read."""

    command: Model
    files: Sequence[Any]
    profile: str


@dataclass(frozen=True, slots=True)
class Command:
    """The argument array that was decided on, and its standard input: bytes, or a dialogue. `cancel` ends it.

    `inputs` are the files in its `inputs/`, by their paths there, which were decided on too. `environment` are
    variables that the operator sets for it; `files`, `relay` and `tunnels` are those of a program.
    """

    words: tuple[str, ...]
    stdin: bytes = b""
    dialogue: Dialogue | None = None
    cancel: threading.Event | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, bytes] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    relay: Dialogue | None = None
    tunnels: Tunnels | None = None


def run_command(
    permit: Permit,
    input_digest: str,
    command: Command,
    backend: Callable[[str], Backend],
    evidence: SandboxFacts,
) -> tuple[Result, RunResult]:
    """Run a command in its own sandbox; returns its recordable facts and its result.

    `backend` returns the sandbox of a name. Raises WorkError: `engine.permit_missing` for another command than the
    permit's, `engine.limit_unenforceable` if the evidence no longer covers every boundary.
    """
    grant = granted(permit, _POINT, input_digest, CommandGrant)
    allowed, files = grant.command, {one.path: one.sha256 for one in grant.files}
    input_digests = {path: hashlib.sha256(content).hexdigest() for path, content in command.inputs.items()}
    if not isinstance(allowed, Executable) or (allowed.digest, files) != (digest_of(command.words), input_digests):
        raise PermitMissingError(
            "the permit is for another command or other files",
            remedy="request a decision on exactly this command and these files",
        )
    words = (allowed.path, *command.words[1:])
    program = Program(
        stdin=command.stdin,
        command=words,
        dialogue=command.dialogue,
        environment=command.environment,
        files={**command.files, **{f"{INPUTS}/{path}": content for path, content in command.inputs.items()}},
        relay=command.relay,
        tunnels=command.tunnels,
    )
    run_result = run_granted(grant, backend(grant.backend), evidence, program, command.cancel)
    facts = {"profile": grant.profile, **result_facts(grant, run_result, evidence)}
    return Result(run_result.status.value, facts), run_result


def digest_of(words: tuple[str, ...]) -> str:
    """The digest of an argument array: each word in UTF-8 and a zero byte, as the kernel gets them."""
    return digest(b"".join(word.encode("utf-8") + b"\0" for word in words))
