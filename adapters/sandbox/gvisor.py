"""The backend `gvisor`: the stronger tier, in which a program's calls are answered by a kernel of its own.

It is chosen by policy only, costs about a dozen times the start of bubblewrap, and needs it. How it is watched
and ended is the same; only what is started differs.
"""

from __future__ import annotations

import hashlib
import marshal
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from adapters.sandbox import arguments, gvisor_binary, gvisor_bundle, launcher, machine, seccomp
from adapters.sandbox.memory import fill, memory_file
from adapters.sandbox.model import Bounds, Ended, Program
from adapters.sandbox.process import run_once
from adapters.sandbox.recipe import Bubblewrapped, Ends, Line
from engine.errors import WorkError

_FILTER = """
def confine(program):
    import ctypes, os, struct
    libc = ctypes.CDLL(None, use_errno=True)
    lines = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(lines)))
    none = ctypes.c_ulong(0)
    if libc.prctl(38, ctypes.c_ulong(1), none, none, none) or libc.prctl(22, ctypes.c_ulong(2), header):
        os._exit(125)
"""
"""Put before the launcher's text: bubblewrap sets a filter by itself, gVisor's own knows no ENOSYS."""


class Gvisor:
    """Runs every program in a gVisor of its own. `folder` is where the verified runsc stands."""

    name = "gvisor"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, program: Program, bounds: Bounds, cancel: threading.Event | None = None) -> Ended:
        """Run it; nothing is returned before everything that it started is dead. Raises WorkError."""
        return run_once(program, bounds, cancel, recipe=InGvisor(self._folder))

    def available(self) -> str | None:
        """None, or what this machine lacks, in words that say what to do."""
        try:
            gvisor_binary.find(self._folder)
        except gvisor_binary.MissingError as error:
            return str(error)
        return machine.missing()

    def machine(self) -> str:
        """`sha256:…` of everything that a probe's result depends on: that of bubblewrap, and the runsc."""
        try:
            runsc = gvisor_binary.find(self._folder).sha256
        except gvisor_binary.MissingError:
            runsc = "none"
        return "sha256:" + hashlib.sha256(f"{machine.digest()} gvisor {runsc}".encode()).hexdigest()


class InGvisor(Bubblewrapped):
    """Our launcher in gVisor, and that in bubblewrap."""

    spare_bytes = 48 << 20  # of gVisor's kernel, its helper and the binary itself

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def line(
        self,
        ends: Ends,
        bounds: Bounds,
        environment: Mapping[str, str],
        without: frozenset[str],
        job: Path | None,  # noqa: ARG002  (of the host: nothing of it is shown in gVisor)
        stack: ExitStack,
    ) -> Line:
        """Bubblewrap, in it the runsc that is held open, in it the launcher. Raises WorkError without one."""
        try:
            runsc = gvisor_binary.find(self._folder)
        except gvisor_binary.MissingError as error:
            raise WorkError("gVisor cannot be used", remedy=str(error), code="engine.limit_unenforceable") from error
        config, outer, code_file = (memory_file(stack) for _ in range(3))
        fill(code_file, launcher.code())
        fill(config, gvisor_bundle.container(bounds, environment, _launcher(without)))
        fill(outer, gvisor_bundle.outside(config, ends.status))
        given = {"launcher": code_file, "ready": ends.ready, "go": ends.go, "job": ends.job, "report": ends.report}
        passed = [f"--pass-fd={number}:{gvisor_bundle.GUEST[name]}" for name, number in given.items()]
        inner = [f"/proc/self/fd/{runsc.descriptor}", *gvisor_bundle.FLAGS, "run", "--bundle", gvisor_bundle.BUNDLE]
        command = [arguments.BWRAP, "--args", str(outer), "--", *inner, *passed, "program"]
        return Line(command, (config, outer, code_file, runsc.descriptor))

    def work(self, program: Program, bounds: Bounds, without: frozenset[str]) -> bytes:
        """As in bubblewrap, but for its first process, which is the launcher itself and counts once."""
        fewer = replace(bounds, processes=bounds.processes - 1)
        return marshal.dumps(launcher.work(program, fewer, without.union(gvisor_bundle.FROM_OUTSIDE)), 2)


def _launcher(without: frozenset[str]) -> list[str]:
    """The launcher's command, which sets the filter first."""
    *interpreter, text = launcher.command(**gvisor_bundle.GUEST)
    confined = text if "seccomp" in without else f"{_FILTER}\nconfine({seccomp.here()!r})\n{text}"
    return [*interpreter, confined]
