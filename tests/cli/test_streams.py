"""Standard streams that are full, closed, or have no reader are no fault of the engine, and never end as a deny."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.command import SECONDS, Command, decisions
from tests.conftest import ROOT

COMMANDS = {
    "version": ("--version",),
    "help": ("policy", "--help"),
    "document": ("decide", "license", "--schema"),
}


def ended(command: Command, redirection: str, *arguments: str, keep: int = 2) -> subprocess.CompletedProcess[str]:
    line = ("bash", "-c", f'"$@" {redirection}; exit ${{PIPESTATUS[0]}}', "bash", *command.argv(*arguments))
    return subprocess.run(
        line,
        cwd=ROOT,
        env=command.environment(),
        pass_fds=[keep],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_standard_output_is_reported(name: str, command: Command) -> None:
    done = ended(command, ">/dev/full", *COMMANDS[name])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("engine: cannot write to standard output: no space left on device\n"), done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_a_closed_output_pipe_shows_only_in_the_exit_code(name: str, command: Command) -> None:
    read, write = os.pipe()
    os.close(read)
    done = ended(command, f">&{write}", *COMMANDS[name], keep=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (2, "")


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", "2>&1 >/dev/null | true"])
def test_unwritable_standard_error_changes_no_exit_code(redirection: str, command: Command) -> None:
    assert ended(command, redirection, "approvals", "show", "f" * 32).returncode == 2
    assert ended(command, redirection, "decide", "license").returncode == 2
    assert len(decisions(command.state)) == 1


def test_streams_that_are_closed_change_no_exit_code(command: Command) -> None:
    done = ended(command, "<&- >&- 2>&-", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


INTERRUPTED = """
import sys
class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
"""


def test_ctrl_c_during_the_imports_shows_no_traceback(command: Command, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED, encoding="utf-8")
    environment = command.environment()
    environment["PYTHONPATH"] = f"{tmp_path}:{environment['PYTHONPATH']}"
    done = subprocess.run(
        command.argv("--version"), cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
