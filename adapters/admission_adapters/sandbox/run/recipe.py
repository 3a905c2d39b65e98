"""Recipes: the command line and the launcher job of each backend; everything in which backends differ."""

from __future__ import annotations

import fcntl
import marshal
import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from admission_adapters.sandbox.bubblewrap import arguments, seccomp
from admission_adapters.sandbox.launcher import launch as launcher
from admission_adapters.sandbox.model import Bounds, Program
from admission_adapters.sandbox.run import handshake
from engine.errors import UnenforceableError


@dataclass(frozen=True, slots=True)
class Pipes:
    """The descriptors that every sandbox gets beside its streams: pipes, and the file with its job."""

    status: int
    ready: int
    go: int
    job: int
    report: int
    egress: int = -1
    """The socket over which a sandbox hands out its listener, if it has one."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """An argument list, and the descriptors that it needs beside those of every sandbox."""

    command: list[str]
    descriptors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything that is fixed when a sandbox starts.

    `without` names protections that are left out, `job` is a folder of the host that replaces the private one;
    both are for the probe only. `talks`: its standard input is written while it runs. `packages` is the folder of
    Python packages that it shows, if any.
    """

    bounds: Bounds
    environment: Mapping[str, str]
    without: frozenset[str] = frozenset()
    job: Path | None = None
    talks: bool = False
    packages: str = ""


class Recipe:
    """How one backend starts its sandboxes: our launcher in bubblewrap, under the system call filter.

    A backend overrides what differs. `protections` can be disabled by `without`; `spare_bytes` is memory that the
    sandbox needs beside the program; `single`: the program is the first process itself, so that a signal which
    ends it is the program's; `drops_user`: the first process drops root by itself, after it has read
    files that only root may read; `egress`: it hands out a listener of its network namespace.
    """

    protections = frozenset(arguments.PROTECTIONS)
    spare_bytes = 0
    single = False
    drops_user = False
    egress = False

    def line(self, ends: Pipes, setup: Setup, stack: ExitStack) -> CommandLine:
        """The command line; files that it opens are closed with the stack. Raises WorkError."""
        filter_file, code_file = (
            memory_file(stack, seccomp.here(egress=self.egress)),
            memory_file(stack, launcher.code()),
        )
        options = {"seccomp": filter_file, "status": ends.status}
        words = arguments.arguments(setup.bounds, setup.environment, options, setup.without, setup.job, setup.packages)
        argument_file = memory_file(stack, words)
        inner = launcher.command(code_file, ends.ready, ends.go, ends.job, ends.report, ends.egress)
        command = [arguments.BWRAP, "--args", str(argument_file), "--", *inner]
        return CommandLine(command, (argument_file, filter_file, code_file))

    def first_process(
        self, process: subprocess.Popen[bytes], status: Callable[[], bytes], without: frozenset[str]
    ) -> tuple[int, int]:
        """The number and pidfd of the process whose death ends the whole sandbox. Raises HandshakeError."""
        child = handshake.child_of(status(), without)
        return child, handshake.opened(child, process.pid)

    def exit_code(self, process: subprocess.Popen[bytes], status: bytes) -> int | None:  # noqa: ARG002
        """The exit code of the first process, 128 and more for a signal; `status` is the rest of the status pipe."""
        return handshake.exit_line(status)

    def work(self, program: Program, bounds: Bounds, without: frozenset[str]) -> bytes:
        """The job for the launcher. Raises WorkError for a program that cannot be encoded, or needs a way out."""
        if program.tunnels is not None and not self.egress:
            raise UnenforceableError(
                "this sandbox has no way out", remedy="name a profile whose backend has `egress` in policy/sandbox.yaml"
            )
        return marshal.dumps(launcher.work(program, bounds, without), 2)


BUBBLEWRAP = Recipe()


_ALL_SEALS = 0xF


def memory_file(stack: ExitStack, data: bytes | None = None) -> int:
    """A file in memory, closed with the stack; with data, it is filled and sealed."""
    file = os.memfd_create("sandbox", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    stack.callback(os.close, file)
    if data is not None:
        fill(file, data)
    return file


def fill(file: int, data: bytes) -> None:
    """Write the data to a file in memory, rewind it and seal it against changes."""
    written = 0
    while written < len(data):
        written += os.pwrite(file, data[written:], written)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, _ALL_SEALS)
