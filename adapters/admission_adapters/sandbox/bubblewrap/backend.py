"""The backend `bubblewrap`: namespaces, a seccomp filter and kernel limits, as an unprivileged user."""

from __future__ import annotations

import threading

from admission_adapters.digests import json_digest
from admission_adapters.sandbox.machine import digest, missing
from admission_adapters.sandbox.model import Bounds, Program, RunResult
from admission_adapters.sandbox.run.process import run_once
from admission_adapters.sandbox.run.recipe import Recipe


class Bubblewrap(Recipe):
    """Runs every program in its own sandbox, with every protection or not at all."""

    name = "bubblewrap"

    def run(self, program: Program, bounds: Bounds, cancel: threading.Event | None = None) -> RunResult:
        """Run the program; returns when everything that it started is dead. Raises WorkError."""
        return run_once(program, bounds, cancel, recipe=self)

    def available(self) -> str | None:
        """None, or what this machine lacks, as a sentence with a remedy."""
        return missing()

    def machine(self) -> str:
        """`sha256:…` of everything that a probe's result depends on."""
        return digest()


class BubblewrapEgress(Bubblewrap):
    """The same with one way out: a listener in the network namespace of the program, served from outside of it.

    Its filter permits TCP sockets over IPv4 and no other; nothing but the listener can be reached.
    """

    name = "bubblewrap_egress"
    egress = True

    def machine(self) -> str:
        """`sha256:…` of everything that a probe's result depends on: the filter is among the code."""
        return json_digest([super().machine(), self.name])
