"""Point `sandbox`: whether a command may run in a sandbox, in which one, and within what limits.

A declared boundary that this machine was not shown to enforce refuses the request (D19, H05). Of the
command, only its executable, size and digest get into the input. Without a command, the request asks if one could run.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from engine.documents.canonical import digest
from engine.facts.code.boundaries import (
    Amount,
    Needs,
    ProfileName,
    SandboxedLimits,
    Stated,
    Tighten,
    amounts,
    stated,
)
from engine.model import Boundary, Digest, Model, Pace, Probe
from engine.points import GatherContext, Gathered, Point

Declared = Literal["network", "filesystem", "cpu", "memory", "processes"]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_./+-]{1,128}$")]
Argument = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=1 << 16)]

ARGUMENTS_BYTES = 1 << 17
"""Maximum size of a whole command in UTF-8: the limit of Linux for one argument, well below that for all."""


class SandboxRequest(Model):
    """A request for a sandbox. `command` is a list of arguments that begins with a name in policy/sandbox.yaml.

    `declared` are boundaries that the caller expects to be enforced, `backend` the expected backend.
    """

    profile: ProfileName
    backend: Name | None = None
    declared: Annotated[tuple[Declared, ...], Field(max_length=5)] = ()
    command: Annotated[tuple[Argument, ...], Field(min_length=1, max_length=1_000)] | None = None
    tighten: Tighten | None = None

    @model_validator(mode="after")
    def _not_too_long(self) -> Self:
        if sum(len(word.encode("utf-8")) + 1 for word in self.command or ()) > ARGUMENTS_BYTES:
            raise ValueError(f"a command has at most {ARGUMENTS_BYTES} bytes")
        return self


class DeclaredBoundary(Model):
    """A boundary that the caller expects to be enforced."""

    id: Declared


class CommandFacts(Model):
    """The command: its first word, its number of words, its digest."""

    stated: bool
    executable: str | None = None
    words: int | None = None
    digest: Digest | None = None


class SandboxInput(Model):
    """What OPA sees. `boundaries` and `probes` are what the engine itself found on this machine."""

    profile: str
    backend: Stated
    declared: tuple[DeclaredBoundary, ...]
    command: CommandFacts
    tighten: tuple[Amount, ...]
    required: Needs
    boundaries: tuple[Boundary, ...]
    probes: tuple[Probe, ...]


class NoCommand(Model):
    """Nothing may run."""

    kind: Literal["none"]


class Executable(Model):
    """Exactly this program may run, with exactly these arguments."""

    kind: Literal["argv"]
    path: Annotated[str, StringConstraints(pattern=r"^/[!-~]+$", max_length=4_096)]
    digest: Digest


class SandboxLimits(SandboxedLimits):
    """What the command may use, and which one it is."""

    command: Annotated[NoCommand | Executable, Field(discriminator="kind")]


def digest_of(command: tuple[str, ...]) -> str:
    """The digest of an argument array: each word in UTF-8 and a zero byte, as the kernel gets them."""
    return digest(b"".join(word.encode("utf-8") + b"\0" for word in command))


def gather(request: SandboxRequest, context: GatherContext) -> Gathered:
    """Probe the sandboxes that the policy names, unless that was done before."""
    found, command = context.sandbox(request.profile), request.command
    facts = CommandFacts(stated=False)
    if command is not None:
        facts = CommandFacts(stated=True, executable=command[0], words=len(command), digest=digest_of(command))
    return Gathered(
        SandboxInput(
            profile=request.profile,
            backend=stated(request.backend),
            declared=tuple(DeclaredBoundary(id=name) for name in dict.fromkeys(request.declared)),
            command=facts,
            tighten=amounts(request.tighten),
            required=Needs(),
            boundaries=found.boundaries,
            probes=found.probes,
        ),
        f"sandbox: profile {request.profile}",
    )


POINT = Point("sandbox", SandboxRequest, SandboxInput, SandboxLimits, gather, pace=Pace.SLOW, secret=True)
