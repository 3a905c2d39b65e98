"""The positive control: the same program as a plain subprocess, under the same user, with nothing held back.

It shows that what a sandbox refuses is possible on this machine. It is a separate subprocess boundary
(best-effort, not a security sandbox), claims nothing, and runs the probe's own harmless programs only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from adapters.sandbox.arguments import interpreter
from adapters.sandbox.model import Program
from adapters.sandbox.probe.canaries import shared_folder

WORDING = "a separate subprocess boundary (best-effort, not a security sandbox)"
"""What a plain subprocess is called, everywhere (C80)."""


@dataclass(frozen=True, slots=True)
class Plain:
    """How a control ended: what it wrote, and whether it had to be killed."""

    stdout: bytes
    stderr: bytes
    killed: bool


@dataclass(frozen=True, slots=True)
class Control:
    """Runs controls as `user` (None: as this process is), with these variables and this descriptor left to them."""

    user: int | None
    environment: Mapping[str, str]
    descriptor: int

    def run(self, program: Program, seconds: float) -> Plain:
        """Run it until it ends or `seconds` are over. Raises OSError.

        Only the process that was started is ended then, as a plain subprocess is; what it left behind lives on.
        """
        folder = Path(tempfile.mkdtemp(prefix="admission-control-", dir=shared_folder("/dev/shm")))  # noqa: S108
        try:
            (folder / "main.py").write_text(program.code, encoding="utf-8")
            if self.user is not None:
                for one in (folder, folder / "main.py"):
                    os.chown(one, self.user, self.user)
            return self._run(program, folder, seconds)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, program: Program, folder: Path, seconds: float) -> Plain:
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
                user=self.user,
                group=self.user,
                extra_groups=None if self.user is None else [],
            )
            try:
                process.wait(seconds)
                killed = False
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                killed = True
            stdout.seek(0)
            stderr.seek(0)
            return Plain(stdout.read(), stderr.read(), killed)
