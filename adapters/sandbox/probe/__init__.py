"""The probe: what a sandbox of this machine is shown to hold, tried with the launcher of real runs.

For every boundary a harmless program does what it must not, once inside and once as a plain subprocess under
the same user. Only what was refused inside and done outside counts: no control, no claim.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from adapters.sandbox.model import Bounds, Ended, Program
from adapters.sandbox.probe.canaries import shared_folder
from adapters.sandbox.probe.control import WORDING
from adapters.sandbox.probe.rows import KINDS, REQUESTED, Act, Row, rows
from adapters.sandbox.probe.trial import Runner, Trial, tried

__all__ = [
    "KINDS",
    "REQUESTED",
    "WORDING",
    "Act",
    "Row",
    "Runner",
    "Trial",
    "code",
    "probe_bubblewrap",
    "rows",
    "tried",
]


def probe_bubblewrap(without: frozenset[str] = frozenset(), known: Mapping[str, str] | None = None) -> tuple[Row, ...]:
    """Try every boundary with bubblewrap.

    `without` leaves protections out, to show that the probe notices; `known` are words of controls that were run
    already. Raises OSError, and WorkError when the sandbox does not run.
    """
    from adapters.sandbox.process import run_once
    from adapters.sandbox.user import sandbox_user

    user = sandbox_user()
    with TemporaryDirectory(prefix="admission-job-", dir=shared_folder()) as folder:
        job = Path(folder) if "private_job" in without else None
        if job is not None and not user.own:
            os.chown(job, user.uid, user.gid)

        def run(program: Program, bounds: Bounds) -> Ended:
            return run_once(program, bounds, None, without, job)

        return rows(tried(run, None if user.own else user.uid, known))


@cache
def code() -> str:
    """`sha256:…` of the probe itself: a result of another probe is no result."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode("utf-8") + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return f"sha256:{digest.hexdigest()}"
