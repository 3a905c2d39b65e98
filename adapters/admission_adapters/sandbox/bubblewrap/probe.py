"""The probe of bubblewrap."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from admission_adapters.sandbox.model import Bounds, Program, RunResult
from admission_adapters.sandbox.probe.canaries import shared_folder
from admission_adapters.sandbox.probe.rows import Row, rows
from admission_adapters.sandbox.probe.trial import tried
from admission_adapters.sandbox.run.process import run_once
from admission_adapters.sandbox.run.user import sandbox_user


def probe_bubblewrap(without: frozenset[str] = frozenset(), known: Mapping[str, str] | None = None) -> tuple[Row, ...]:
    """Try every boundary.

    `without` leaves protections out, to show that the probe notices; `known` are words of controls that were run
    already. Raises OSError, and WorkError when the sandbox does not run.
    """
    user = sandbox_user()
    with TemporaryDirectory(prefix="admission-job-", dir=shared_folder()) as folder:
        job = Path(folder) if "private_job" in without else None
        if job is not None and not user.own:
            os.chown(job, user.uid, user.gid)

        def run(program: Program, bounds: Bounds) -> RunResult:
            return run_once(program, bounds, None, without, job)

        return rows(tried(run, user.other, known))
