"""The backend `wasmtime`: runs WebAssembly in a process that cannot open files, connect or start programs (E09).

Two layers: the module sees WASI without any folder and without sockets, and the process around it is under a
system call filter that leaves it three streams. It needs no user namespaces. The language is `wasm`, in its text
format: a scan can read what it imports.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admission_adapters.digests import json_digest
from admission_adapters.sandbox import machine
from admission_adapters.sandbox.bubblewrap import arguments, seccomp
from admission_adapters.sandbox.launcher.launch import encoded
from admission_adapters.sandbox.model import Bounds, Program, RunResult
from admission_adapters.sandbox.run.handshake import HandshakeError
from admission_adapters.sandbox.run.process import run_once
from admission_adapters.sandbox.run.recipe import CommandLine, Pipes, Recipe, Setup
from admission_adapters.sandbox.run.user import sandbox_user
from engine.errors import UnenforceableError, WorkError

ALLOWED = frozenset(
    """
    read write readv writev close lseek fcntl mmap mprotect munmap mremap madvise brk futex set_robust_list rseq
    rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2
    poll ppoll gettid getpid getuid geteuid getrandom clock_gettime clock_getres clock_nanosleep nanosleep
    sched_yield sched_getaffinity exit exit_group restart_syscall
    """.split()  # noqa: SIM905  (a table of names, as of the other filter)
)
"""What the runtime and the interpreter around it use once they are loaded."""

_GUARDED = {
    "clone": seccomp.THREAD_ONLY,
    "clone3": seccomp.CLONE3,
    "prctl": seccomp.one_of(0, (15,)),  # PR_SET_NAME, which the runtime gives its threads
    "ioctl": seccomp.one_of(1, (0x5401,)),  # TCGETS: whether a stream is a terminal
}

ANSWER = seccomp.answering(ALLOWED, _GUARDED)


def call_filter() -> bytes:
    """The filter for this machine; under it, a compromised runtime has only three pipes. Raises WorkError."""
    return seccomp.assemble(platform.machine(), ANSWER)


LANGUAGE = "wasm"

PROTECTIONS = (
    *("seccomp", "namespaces", "new_session", "drop_uid", "limiter", "epoch", "rlimit_as", "rlimit_cpu"),
    *("rlimit_nofile", "rlimit_fsize", "clearenv", "close_fds", "memory_cgroup", "output_cap", "wall_clock"),
)
"""The protections that `without` can disable."""

_CHILD = Path(__file__).with_name("child.py")
_SOURCES = Path(__file__).parents[3]
_PACKAGE = "wasmtime"


@dataclass(frozen=True)
class Wasmtime(Recipe):
    """Runs every module in its own process. `preopened` and `acts` are the probe's: its positive controls."""

    preopened: str | None = None
    acts: Mapping[str, Any] | None = None

    name = "wasmtime"
    protections = frozenset(PROTECTIONS)
    spare_bytes = 256 << 20  # of the interpreter and the runtime
    single = True
    drops_user = True  # the package may be in a folder that only root can read

    def run(self, program: Program, bounds: Bounds, cancel: threading.Event | None = None) -> RunResult:
        """Run it; nothing is returned before its process is dead. Raises WorkError."""
        return run_once(program, bounds, cancel, recipe=self)

    def available(self) -> str | None:
        """None, or what this machine lacks, as a sentence with a remedy."""
        if platform.system() != "Linux" or platform.machine() not in seccomp.ARCHITECTURES:
            return "WebAssembly is run on Linux on x86_64 or aarch64 only: use such a machine"
        if packages() is None:
            return "the package wasmtime is missing: install the engine with its extra `wasm`"
        return machine.without_user()

    def machine(self) -> str:
        """`sha256:…` of everything that a probe's result depends on: also the runtime and its interpreter."""
        library = packages()
        files = [] if library is None else sorted((library / _PACKAGE).rglob("*.so"))
        found = [arguments.identity(str(path)) for path in (*files, sys.executable)]
        return json_digest([machine.digest(), hashlib.sha256(call_filter()).hexdigest(), found])

    def line(self, ends: Pipes, setup: Setup, stack: ExitStack) -> CommandLine:  # noqa: ARG002
        """This interpreter with nothing of its surroundings but the standard library. Raises WorkError."""
        library = packages()
        if library is None:
            raise UnenforceableError(
                "WebAssembly is not available: the package wasmtime is missing",
                remedy="install the engine with its extra `wasm`",
            )
        descriptors = [str(number) for number in (ends.ready, ends.go, ends.job, ends.report)]
        return CommandLine([sys.executable, "-I", "-S", "-B", str(_CHILD), str(library), *descriptors], ())

    def first_process(
        self,
        process: subprocess.Popen[bytes],
        status: Callable[[], bytes],  # noqa: ARG002
        without: frozenset[str],  # noqa: ARG002
    ) -> tuple[int, int]:
        """The process itself: it is our own child and cannot have been replaced."""
        try:
            return process.pid, os.pidfd_open(process.pid)
        except OSError as error:
            raise HandshakeError("pidfd") from error

    def exit_code(self, process: subprocess.Popen[bytes], status: bytes) -> int | None:  # noqa: ARG002
        """Its own exit status."""
        code = process.returncode
        return code if code is None or code >= 0 else 128 - code

    def work(self, program: Program, bounds: Bounds, without: frozenset[str]) -> bytes:
        """The module and all its limits, as JSON."""
        return json.dumps(
            {
                "module": _module(program),
                "environment": dict(program.environment),
                "seed": program.seed,
                "memory_bytes": bounds.memory_bytes,
                "cpu_seconds": bounds.cpu_seconds,
                "open_files": bounds.open_files,
                "uid": None if "drop_uid" in without else sandbox_user().other,
                "filter": "" if "seccomp" in without else call_filter().hex(),
                "preopened": self.preopened,
                "acts": self.acts,
                "sources": str(_SOURCES),
                "without": sorted(without),
            }
        ).encode()


def packages() -> Path | None:
    """The folder that wasmtime was installed in."""
    found = importlib.util.find_spec(_PACKAGE)
    return None if found is None or found.origin is None else Path(found.origin).parent.parent


def _module(program: Program) -> str:
    """The text of the module. Raises WorkError for what cannot be one."""
    if program.command or program.language != LANGUAGE:
        raise WorkError("the WebAssembly sandbox runs only WebAssembly", remedy=f"set the language to `{LANGUAGE}`")
    if not program.code.lstrip().startswith(("(", ";")):
        raise WorkError(
            "the code is not WebAssembly in text format", remedy="send a module, which begins with `(module`"
        )
    encoded(program.code)
    return program.code
