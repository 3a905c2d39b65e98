"""The backend `wasmtime`: WebAssembly in a process of its own that can open, connect and start nothing (E09).

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

from adapters.sandbox import arguments, machine, seccomp, wasm_filter
from adapters.sandbox.handshake import HandshakeError
from adapters.sandbox.model import Bounds, Ended, Program
from adapters.sandbox.process import run_once
from adapters.sandbox.recipe import Ends, Line
from adapters.sandbox.user import sandbox_user
from engine.errors import WorkError

LANGUAGE = "wasm"

PROTECTIONS = (
    *("seccomp", "namespaces", "new_session", "drop_uid", "limiter", "epoch", "rlimit_as", "rlimit_cpu"),
    *("rlimit_nofile", "rlimit_fsize", "clearenv", "close_fds", "memory_cgroup", "output_cap", "wall_clock"),
)
"""The names that `without` knows."""

_CHILD = Path(__file__).with_name("wasm_child.py")
_ACTS = Path(__file__).with_name("wasm_acts.py")
_PACKAGE = "wasmtime"


class Wasmtime:
    """Runs every module in a process of its own."""

    name = "wasmtime"

    def run(self, program: Program, bounds: Bounds, cancel: threading.Event | None = None) -> Ended:
        """Run it; nothing is returned before its process is dead. Raises WorkError."""
        return run_once(program, bounds, cancel, recipe=InWasmtime())

    def available(self) -> str | None:
        """None, or what this machine lacks, in words that say what to do."""
        if platform.system() != "Linux" or platform.machine() not in seccomp.ARCHITECTURES:
            return "WebAssembly is run on Linux on x86_64 or aarch64 only: use such a machine"
        if packages() is None:
            return "the package wasmtime is missing: install the engine with its extra `wasm`"
        try:
            sandbox_user()
        except WorkError as error:
            return f"{error.message}: {error.remedy}"
        return None

    def machine(self) -> str:
        """`sha256:…` of everything that a probe's result depends on: also the runtime and its interpreter."""
        library = packages()
        files = [] if library is None else sorted((library / _PACKAGE).rglob("*.so"))
        found = [arguments.identity(str(path)) for path in (*files, sys.executable)]
        text = json.dumps([machine.digest(), hashlib.sha256(_filter()).hexdigest(), found])
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class InWasmtime:
    """The process that runs one module. `preopened` and `acts` are the probe's: its positive controls."""

    preopened: str | None = None
    acts: Mapping[str, Any] | None = None

    @property
    def protections(self) -> frozenset[str]:
        """What is its own, and what the engine does for every sandbox."""
        return frozenset(PROTECTIONS)

    @property
    def spare_bytes(self) -> int:
        """Of the interpreter and the runtime."""
        return 256 << 20

    @property
    def single(self) -> bool:
        """It is one process from beginning to end."""
        return True

    @property
    def drops_user(self) -> bool:
        """The package may stand where only root can read it."""
        return True

    def line(
        self,
        ends: Ends,
        bounds: Bounds,  # noqa: ARG002
        environment: Mapping[str, str],  # noqa: ARG002  (the module's, not the process's)
        without: frozenset[str],  # noqa: ARG002
        job: Path | None,  # noqa: ARG002
        stack: ExitStack,  # noqa: ARG002
    ) -> Line:
        """This interpreter with nothing of its surroundings but the standard library. Raises WorkError."""
        library = packages()
        if library is None:
            raise WorkError(
                "WebAssembly cannot be run: the package wasmtime is missing",
                remedy="install the engine with its extra `wasm`",
                code="engine.limit_unenforceable",
            )
        given = [str(number) for number in (ends.ready, ends.go, ends.job, ends.report)]
        return Line([sys.executable, "-I", "-S", "-B", str(_CHILD), str(library), *given], ())

    def first(
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

    def exit_code(self, process: subprocess.Popen[bytes], said: bytes) -> int | None:  # noqa: ARG002
        """Its own exit status."""
        code = process.returncode
        return code if code is None or code >= 0 else 128 - code

    def work(self, program: Program, bounds: Bounds, without: frozenset[str]) -> bytes:
        """The module and all its limits, as JSON."""
        user = sandbox_user()
        return json.dumps(
            {
                "module": _module(program),
                "environment": dict(program.environment),
                "seed": program.seed,
                "memory_bytes": bounds.memory_bytes,
                "cpu_seconds": bounds.cpu_seconds,
                "open_files": bounds.open_files,
                "uid": None if user.own or "drop_uid" in without else user.uid,
                "filter": "" if "seccomp" in without else _filter().hex(),
                "preopened": self.preopened,
                "acts": self.acts,
                "acts_file": str(_ACTS),
                "without": sorted(without),
            }
        ).encode()


def packages() -> Path | None:
    """The folder that wasmtime was installed in."""
    found = importlib.util.find_spec(_PACKAGE)
    return None if found is None or found.origin is None else Path(found.origin).parent.parent


def _filter() -> bytes:
    return wasm_filter.here()


def _module(program: Program) -> str:
    """The text of the module. Raises WorkError for what cannot be one."""
    if program.command or program.language != LANGUAGE:
        raise WorkError("the sandbox for WebAssembly runs nothing else", remedy=f"state the language `{LANGUAGE}`")
    if not program.code.lstrip().startswith(("(", ";")):
        raise WorkError(
            "the code is no WebAssembly in its text format", remedy="give a module, which begins with `(module`"
        )
    try:
        program.code.encode()
    except UnicodeEncodeError as error:
        raise WorkError("the code is no text that UTF-8 can hold", remedy="leave out lone surrogates") from error
    return program.code
