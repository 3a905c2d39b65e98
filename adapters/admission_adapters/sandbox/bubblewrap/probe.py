"""The probe of bubblewrap."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from admission_adapters.sandbox.model import Bounds, Program, RunResult
from admission_adapters.sandbox.probe.canaries import shared_folder
from admission_adapters.sandbox.probe.checks import EGRESS, KERNEL
from admission_adapters.sandbox.probe.rows import Row, rows
from admission_adapters.sandbox.probe.trial import tried
from admission_adapters.sandbox.run.process import run_once
from admission_adapters.sandbox.run.recipe import BUBBLEWRAP, Recipe
from admission_adapters.sandbox.run.user import sandbox_user


class _Answering:
    """Serves a listener: what reaches it gets an answer."""

    def begin(self, listener: socket.socket) -> None:
        """Answer from now on."""
        self._listener = listener
        threading.Thread(target=self._serve, name="sandbox-probe", daemon=True).start()

    def end(self, *, cancelled: bool) -> None:  # noqa: ARG002  (a probe is not cancelled)
        """Close it."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        with self._listener, suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with client, suppress(OSError):
                    client.settimeout(1.0)
                    client.sendall(client.recv(64) and b"seen")


def probe_bubblewrap(
    without: frozenset[str] = frozenset(), known: Mapping[str, str] | None = None, recipe: Recipe = BUBBLEWRAP
) -> tuple[Row, ...]:
    """Try every boundary of a recipe, and that a way out leads to the server of its listener.

    `without` leaves protections out, to show that the probe notices; `known` are words of controls that were run
    already. Raises OSError, and WorkError when the sandbox does not run.
    """
    user = sandbox_user()
    with TemporaryDirectory(prefix="admission-job-", dir=shared_folder()) as folder:
        job = Path(folder) if "private_job" in without else None
        if job is not None and not user.own:
            os.chown(job, user.uid, user.gid)

        def run(program: Program, bounds: Bounds) -> RunResult:
            way_out = replace(program, tunnels=_Answering()) if recipe.egress else program
            return run_once(way_out, bounds, None, without, job, recipe)

        return rows(tried(run, user.other, known), EGRESS if recipe.egress else KERNEL)
