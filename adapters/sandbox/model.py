"""The words of a sandboxed run: what runs, within which bounds, and how it ended."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Status(StrEnum):
    """How a run ended. Only `sandbox_error` says nothing about the program: it is never its verdict."""

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
    """All that a program may use; every one is required. Seconds, bytes, counts.

    `memory_bytes` is the address space of one process, and with a memory cgroup also what the whole tree
    may hold beside its files. `processes` counts threads and the program itself. `disk_bytes` is all that
    the program can write anywhere. `artifact_files` 0 means that no file comes out.
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


@dataclass(frozen=True, slots=True)
class Program:
    """What runs: code in a language or, when `command` is given, an argument list; never a shell string (B11).

    `folder` is the name of the working folder, `environment` all there is of one beside PATH, HOME and LANG.
    """

    language: str
    code: str
    stdin: bytes
    environment: Mapping[str, str]
    seed: int
    folder: str
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that the program left in `artifacts/`: its path below it, its content, the SHA-256 in hex."""

    path: str
    data: bytes
    sha256: str


@dataclass(frozen=True, slots=True)
class NotTaken:
    """A file that the program left in `artifacts/` and that did not come out: its path, made safe, and one word why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended; never made before everything that it started is dead.

    `stdout` and `stderr` are cut at their bounds; `stdout_bytes` and `stderr_bytes` are what was seen, one
    more than the bound at most. `limit` names the limit that fired: wall, cpu, stdout, stderr, memory.
    `refused_artifacts` is what was left and not taken: all files, where the program was killed. With
    `sandbox_error`, `stderr` is what the sandbox said.
    """

    status: Status
    exit_code: int | None
    signal: int | None
    wall_seconds: float
    cpu_seconds: float | None
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int
    limit: str | None = None
    artifacts: tuple[Artifact, ...] = ()
    refused_artifacts: tuple[NotTaken, ...] = ()


class NotStartedError(Exception):
    """The sandbox did not become ready; the text is what it said itself. No caller of a backend sees it."""


class Backend(Protocol):
    """Runs programs within bounds on this machine."""

    @property
    def name(self) -> str:
        """As it stands in policies and records."""
        ...

    def run(self, program: Program, bounds: Bounds, cancel: threading.Event | None = None) -> Ended:
        """Run it to its end. Raises WorkError for a program that cannot be stated at all."""
        ...

    def available(self) -> str | None:
        """None, or what this machine lacks, in words that say what to do."""
        ...

    def machine(self) -> str:
        """`sha256:…` of everything that a probe's result depends on."""
        ...
