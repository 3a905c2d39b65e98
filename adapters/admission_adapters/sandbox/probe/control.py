"""The positive control: the same program as a plain subprocess of the same user, without a sandbox.

It shows that what a sandbox refuses is possible on this machine. It is a separate subprocess boundary
(best-effort, not a security sandbox), claims nothing, and runs the probe's own harmless programs only.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from admission_adapters.sandbox.bubblewrap.arguments import interpreter
from admission_adapters.sandbox.model import Bounds, Program, RunResult, Status
from admission_adapters.sandbox.probe.canaries import as_user, shared_folder

WORDING = "a separate subprocess boundary (best-effort, not a security sandbox)"
"""What a plain subprocess is called, everywhere (C80)."""


@dataclass(frozen=True, slots=True)
class Control:
    """Runs controls as `user` (None: as this process is), with these variables and this descriptor left to them."""

    user: int | None
    environment: Mapping[str, str]
    descriptor: int

    def run(self, program: Program, bounds: Bounds) -> RunResult:
        """Run it until it ends with any exit code, or its wall time is over; no other limit applies. Raises OSError.

        At the timeout, only the started process is killed; its descendants survive.
        """
        place = shared_folder("/dev/shm")  # noqa: S108
        with TemporaryDirectory(prefix="admission-control-", dir=place, ignore_cleanup_errors=True) as name:
            folder = Path(name)
            (folder / "main.py").write_text(program.code, encoding="utf-8")
            if self.user is not None:
                for path in (folder, folder / "main.py"):
                    os.chown(path, self.user, self.user)
            return self._run(program, folder, bounds.wall_seconds)

    def _run(self, program: Program, folder: Path, seconds: float) -> RunResult:
        with TemporaryFile() as stdin, TemporaryFile() as stdout, TemporaryFile() as stderr:
            stdin.write(program.stdin)
            stdin.seek(0)
            process = subprocess.Popen(
                [*interpreter(), "main.py"],
                env={"PATH": "/usr/bin", "LANG": "C.UTF-8", **self.environment, **program.environment},
                cwd=folder,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=[self.descriptor],
                **as_user(self.user),
            )
            status, wall_seconds = Status.OK, 0.0
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                status, wall_seconds = Status.TIMEOUT_WALL, seconds
            stdout.seek(0)
            stderr.seek(0)
            return RunResult(status, wall_seconds=wall_seconds, stdout=stdout.read(), stderr=stderr.read())
