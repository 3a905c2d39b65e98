"""A checkout in any folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from engine.version import __version__
from tests.conftest import ROOT


def test_the_command_works_below_a_folder_of_any_name_and_beside_any_package(tmp_path: Path) -> None:
    checkout = tmp_path / """it's "a" $folder`s ü"""
    (checkout / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "run", checkout / "scripts")
    (checkout / "scripts" / "setup").symlink_to("/bin/true")
    venv = checkout / ".venv"  # without the scripts of pip, which name their Python in a way that some folders break
    (venv / "bin").mkdir(parents=True)
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", venv)
    for name in ("bin/python", "lib"):
        (venv / name).symlink_to(Path(sys.prefix) / name)
    (tmp_path / "engine.py").write_text("raise SystemExit('not this one')", encoding="utf-8")
    run = [str(checkout / "scripts" / "run"), "--version"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{__version__}\n", "")
