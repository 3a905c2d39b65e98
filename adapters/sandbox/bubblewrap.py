"""The backend `bubblewrap`: namespaces, a system call filter and limits of the kernel, as an unprivileged user."""

from __future__ import annotations

import threading

from adapters.sandbox.machine import digest, missing
from adapters.sandbox.model import Bounds, Ended, Program
from adapters.sandbox.process import run_once


class Bubblewrap:
    """Runs every program in a sandbox of its own, with every protection or not at all."""

    name = "bubblewrap"

    def run(self, program: Program, bounds: Bounds, cancel: threading.Event | None = None) -> Ended:
        """Run it; nothing is returned before everything that it started is dead. Raises WorkError."""
        return run_once(program, bounds, cancel)

    def available(self) -> str | None:
        """None, or what this machine lacks, in words that say what to do."""
        return missing()

    def machine(self) -> str:
        """`sha256:…` of everything that a probe's result depends on."""
        return digest()
