"""The types of a sandboxed run: the program, its limits and its result."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from string import ascii_lowercase
from typing import Protocol

FOLDER_PREFIX = "code_exec_agent_"
"""How the name of a working folder begins (C30)."""

_FOLDER_LETTERS = 14
"""64 bits of chance."""


def _folder() -> str:
    """A fresh name, of letters alone: a path with random digits is redacted like a secret where it is printed."""
    return FOLDER_PREFIX + "".join(secrets.choice(ascii_lowercase) for _ in range(_FOLDER_LETTERS))


class Status(StrEnum):
    """How a run ended. `sandbox_error` is a fault of the sandbox and never a verdict on the program."""

    OK = "ok"
    RUNTIME_ERROR = "runtime_error"  # it ended by itself with another exit code than 0
    SIGNAL = "signal"
    TIMEOUT_WALL = "timeout_wall"
    TIMEOUT_CPU = "timeout_cpu"
    OUTPUT_LIMIT = "output_limit"
    OOM = "oom"  # the kernel killed for memory
    FORBIDDEN_SYSCALL = "forbidden_syscall"
    CANCELLED = "cancelled"
    SANDBOX_ERROR = "sandbox_error"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a program; all are required. Seconds, bytes, counts.

    `memory_bytes` is the address space of one process, and with a memory cgroup also what the whole tree
    may use beside its files. `processes` counts threads and the program itself. `disk_bytes` is all that
    the program can write anywhere. `artifact_files` 0 means that no file is handed out.
    """

    wall_seconds: float
    cpu_seconds: int
    memory_bytes: int
    processes: int
    open_files: int
    file_bytes: int
    disk_bytes: int
    stdout_bytes: int
    stderr_bytes: int
    artifact_files: int
    artifact_bytes: int


class Dialogue(Protocol):
    """Talks with a program while it runs: in place of a fixed standard input, or by files in its relay folder."""

    def begin(self, write: Callable[[bytes], None]) -> None:
        """The program runs. `write` may be called from any thread; it raises OSError once the program is dead."""

    def hear(self, data: bytes) -> None:
        """The next piece of its standard output, or of a relay the next request: `<name> <content>`.

        Must not block: the thread that calls it enforces the limits.
        """

    def end(self) -> None:
        """The program is dead."""


LISTENER = ("127.0.0.1", 3128)
"""What a sandbox with a way out listens on, in its own network namespace."""


class Tunnels(Protocol):
    """Serves the listener of a sandbox from outside: the one way out of its network namespace."""

    def begin(self, listener: socket.socket) -> None:
        """The program runs. The listener is owned by the callee from here on."""

    def end(self, *, cancelled: bool) -> None:
        """The program is dead: nothing may stay open."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run: code in a language or, if `command` is set, an argument list; never a shell string (B11).

    `folder` is the name of the working folder, `environment` its variables beside PATH, HOME and LANG. With a
    `dialogue`, standard input is what that writes, and not `stdin`. `files` are written before it starts, by their
    paths below its working folder or below `/work`. A `relay` gets the requests that it leaves in `/work/relay`.
    `packages` is a folder of Python packages on this machine, which it can import and not change. `on_output` gets
    each piece of `stdout` and `stderr` within their limits as it is read; it must not block. `tunnels` serves the
    listener of a backend with a way out; without it, nothing does.
    """

    language: str = ""
    code: str = ""
    stdin: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    folder: str = field(default_factory=_folder)
    command: tuple[str, ...] = ()
    dialogue: Dialogue | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    relay: Dialogue | None = None
    packages: str = ""
    on_output: Callable[[str, bytes], None] | None = None
    tunnels: Tunnels | None = None


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that the program left in `artifacts/`: its path below it, its content, the SHA-256 in hex."""

    path: str
    data: bytes
    sha256: str


@dataclass(frozen=True, slots=True)
class RefusedArtifact:
    """A file in `artifacts/` that was not handed out: its escaped path and the reason in one word."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run; created when everything that it started is dead.

    `stdout` and `stderr` are cut at their limits; `stdout_bytes` and `stderr_bytes` are what was read, one
    more than the limit at most. `limit` names the limit that fired: wall, cpu, stdout, stderr, memory.
    `refused_artifacts` are files that were not handed out: all files, if the program was killed. With
    `sandbox_error`, `stderr` is the output of the sandbox itself.
    """

    status: Status
    exit_code: int | None = None
    signal: int | None = None
    wall_seconds: float = 0.0
    cpu_seconds: float | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    limit: str | None = None
    artifacts: tuple[Artifact, ...] = ()
    refused_artifacts: tuple[RefusedArtifact, ...] = ()


class NotStartedError(Exception):
    """The sandbox did not become ready; the text is its own output. No caller of a backend sees it."""


class Backend(Protocol):
    """Runs programs within bounds on this machine."""

    @property
    def name(self) -> str:
        """Its name in policies and records."""

    def run(self, program: Program, bounds: Bounds, cancel: threading.Event | None = None) -> RunResult:
        """Run the program to its end. Raises WorkError for a program that cannot be encoded."""

    def available(self) -> str | None:
        """None, or what this machine lacks, as a sentence with a remedy."""

    def machine(self) -> str:
        """`sha256:…` of everything that a probe's result depends on."""
