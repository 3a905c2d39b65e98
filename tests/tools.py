"""Commands of other projects, installed from the package index into an environment of their own."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path


def installed(folder: Path, *packages: str) -> Path:
    """The folder of commands of a new environment with these packages."""
    venv.create(folder, symlinks=True)
    install = ["install", "--quiet", "--disable-pip-version-check", "--no-input", *packages]
    run(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", *install)
    return folder / "bin"


def run(*command: object, given: str = "") -> str:
    """What a command prints; fails with all of it where the command does."""
    done = subprocess.run(list(map(str, command)), input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
