"""Point `sandbox`: whether a command may run in a sandbox, in which one, and within what limits.

A command is a list of arguments, or a text for the shell that the policy has for a profile.

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
from engine.model import Boundary, Count, Digest, Model, Pace, Probe, Sha256
from engine.points import GatherContext, Gathered, Point
from engine.points.code_execution import FileFacts
from engine.values.runners import Argument

Declared = Literal["network", "filesystem", "cpu", "memory", "processes"]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_./+-]{1,128}$")]
_FILE_NAME = r"[^/\\.\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]{0,254}"
FilePath = Annotated[str, StringConstraints(pattern=f"^{_FILE_NAME}(/{_FILE_NAME}){{0,31}}$", max_length=1_000)]
"""The path of a file in `inputs/`: of at most 32 names, none of them hidden."""

ARGUMENTS_BYTES = 1 << 17
"""Maximum size of a whole command in UTF-8: the limit of Linux for one argument, well below that for all."""


class GivenFile(Model):
    """A file that the command finds in `inputs/`: its path there, its bytes, its content by its SHA-256."""

    path: FilePath
    bytes: Count
    sha256: Sha256


class SandboxRequest(Model):
    """A request for a sandbox. `command` is a list of arguments that begins with a name in policy/sandbox.yaml.

    `shell` is a command as text in its place. With `egress`, the command gets one way out of the sandbox; `files` are
    what it is given to read.
    `declared` are boundaries that the caller expects to be enforced, `backend` the expected backend.
    """

    profile: ProfileName
    backend: Name | None = None
    declared: Annotated[tuple[Declared, ...], Field(max_length=5)] = ()
    command: Annotated[tuple[Argument, ...], Field(min_length=1, max_length=1_000)] | None = None
    shell: Argument | None = None
    egress: bool = False
    files: Annotated[tuple[GivenFile, ...], Field(max_length=1_000)] = ()
    tighten: Tighten | None = None

    @model_validator(mode="after")
    def _one_command(self) -> Self:
        if self.command is not None and self.shell is not None:
            raise ValueError("state `command` or `shell`")
        if sum(len(word.encode("utf-8")) + 1 for word in self.words() or ()) > ARGUMENTS_BYTES:
            raise ValueError(f"a command has at most {ARGUMENTS_BYTES} bytes")
        return self

    def words(self) -> tuple[str, ...] | None:
        """The argument array, or that of the shell; None without a command."""
        return self.command if self.shell is None else shell_words(self.shell)


class DeclaredBoundary(Model):
    """A boundary that the caller expects to be enforced."""

    id: Declared


class CommandFacts(Model):
    """The command: its first word, its number of words, its digest. `text`: it is one for a shell."""

    stated: bool
    text: bool
    executable: str | None = None
    words: int | None = None
    digest: Digest | None = None


class SandboxInput(Model):
    """What OPA sees. `boundaries` and `probes` are what the engine itself found on this machine."""

    profile: str
    backend: Stated
    declared: tuple[DeclaredBoundary, ...]
    command: CommandFacts
    egress: bool
    files: tuple[FileFacts, ...]
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


class EgressLimits(Model):
    """What all tunnels of one run may use together. `most` counts requests for one, refused ones too."""

    at_once: Annotated[int, Field(ge=1, le=64)]
    most: Annotated[int, Field(ge=1, le=10_000)]
    sent_bytes: Annotated[int, Field(ge=1)]
    received_bytes: Annotated[int, Field(ge=1)]


class CommandFileLimit(Model):
    """A file that the command gets: its path, and its content by its SHA-256."""

    path: FilePath
    sha256: Sha256


class SandboxLimits(SandboxedLimits):
    """What the command may use, and which one it is. Without `egress` it has no way out."""

    command: Annotated[NoCommand | Executable, Field(discriminator="kind")]
    files: tuple[CommandFileLimit, ...]
    egress: EgressLimits | None


def shell_words(text: str) -> tuple[str, ...]:
    """The argument array of a shell for this text; the policy has the path for its first word."""
    return "shell", "-c", text


def digest_of(command: tuple[str, ...]) -> str:
    """The digest of an argument array: each word in UTF-8 and a zero byte, as the kernel gets them."""
    return digest(b"".join(word.encode("utf-8") + b"\0" for word in command))


def gather(request: SandboxRequest, context: GatherContext) -> Gathered:
    """Probe the sandboxes that the policy names, unless that was done before."""
    found, command, text = context.sandbox(request.profile), request.words(), request.shell is not None
    facts = CommandFacts(stated=False, text=False)
    if command is not None:
        program = None if text else command[0]
        facts = CommandFacts(stated=True, text=text, executable=program, words=len(command), digest=digest_of(command))
    return Gathered(
        SandboxInput(
            profile=request.profile,
            backend=stated(request.backend),
            declared=tuple(DeclaredBoundary(id=name) for name in dict.fromkeys(request.declared)),
            command=facts,
            egress=request.egress,
            files=tuple(FileFacts(id=one.path, bytes=one.bytes, sha256=one.sha256) for one in request.files),
            tighten=amounts(request.tighten),
            required=Needs(),
            boundaries=found.boundaries,
            probes=found.probes,
        ),
        f"sandbox: profile {request.profile}",
    )


POINT = Point("sandbox", SandboxRequest, SandboxInput, SandboxLimits, gather, pace=Pace.SLOW, secret=True)
