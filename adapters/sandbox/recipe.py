"""What is started as a sandbox, and what its launcher is told: all in which backends differ."""

from __future__ import annotations

import marshal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from adapters.sandbox import arguments, handshake, launcher, seccomp
from adapters.sandbox.memory import fill, memory_file
from adapters.sandbox.model import Bounds, Program


@dataclass(frozen=True, slots=True)
class Ends:
    """The descriptors that every sandbox gets beside its streams: pipes, and the file with its job."""

    status: int
    ready: int
    go: int
    job: int
    report: int


@dataclass(frozen=True, slots=True)
class Line:
    """An argument list, and the descriptors that it needs beside those of every sandbox."""

    command: list[str]
    descriptors: tuple[int, ...]


class Recipe(Protocol):
    """How one backend makes a sandbox."""

    @property
    def spare_bytes(self) -> int:
        """The memory that it needs itself, beside the program."""
        ...

    @property
    def protections(self) -> frozenset[str]:
        """The names that `without` knows."""
        ...

    @property
    def single(self) -> bool:
        """Whether the program is the first process itself, so that a signal which ends that is the program's."""
        ...

    @property
    def drops_user(self) -> bool:
        """Whether the first process gives up being root by itself, once it has read what root may read."""
        ...

    def line(
        self,
        ends: Ends,
        bounds: Bounds,
        environment: Mapping[str, str],
        without: frozenset[str],
        job: Path | None,
        stack: ExitStack,
    ) -> Line:
        """What is started; files that it opens are closed with the stack. Raises WorkError."""
        ...

    def first(
        self, process: subprocess.Popen[bytes], status: Callable[[], bytes], without: frozenset[str]
    ) -> tuple[int, int]:
        """The number and the pidfd of the process whose death is everything's. Raises HandshakeError."""
        ...

    def exit_code(self, process: subprocess.Popen[bytes], said: bytes) -> int | None:
        """How the first process ended, 128 and more for a signal; `said` is what is left in the status pipe."""
        ...

    def work(self, program: Program, bounds: Bounds, without: frozenset[str]) -> bytes:
        """What the launcher reads when it is let go. Raises WorkError for a program that cannot be stated."""
        ...


class Bubblewrapped:
    """Our launcher in bubblewrap, under the system call filter."""

    protections = frozenset(arguments.PROTECTIONS)
    spare_bytes = 0
    single = False
    drops_user = False

    def line(
        self,
        ends: Ends,
        bounds: Bounds,
        environment: Mapping[str, str],
        without: frozenset[str],
        job: Path | None,
        stack: ExitStack,
    ) -> Line:
        """Bubblewrap with its arguments in a file."""
        filter_file, argument_file, code_file = (memory_file(stack) for _ in range(3))
        fill(filter_file, seccomp.here())
        fill(code_file, launcher.code())
        options = {"seccomp": filter_file, "status": ends.status}
        fill(argument_file, arguments.arguments(bounds, environment, options, without, job))
        inner = launcher.command(code_file, ends.ready, ends.go, ends.job, ends.report)
        command = [arguments.BWRAP, "--args", str(argument_file), "--", *inner]
        return Line(command, (argument_file, filter_file, code_file))

    def first(
        self, process: subprocess.Popen[bytes], status: Callable[[], bytes], without: frozenset[str]
    ) -> tuple[int, int]:
        """The child that the status line names, with namespaces of its own."""
        child = handshake.child_of(status(), without)
        return child, handshake.opened(child, process.pid)

    def exit_code(self, process: subprocess.Popen[bytes], said: bytes) -> int | None:  # noqa: ARG002
        """What the monitor tells last."""
        return handshake.exit_line(said)

    def work(self, program: Program, bounds: Bounds, without: frozenset[str]) -> bytes:
        """The launcher's own format."""
        return marshal.dumps(launcher.work(program, bounds, without), 2)


BUBBLEWRAP = Bubblewrapped()
