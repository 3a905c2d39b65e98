"""Names and words that a terminal or a workflow would obey, or that are not UTF-8, stay text."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.cli.test_streams import ended
from tests.command import Command, lines

STEERS = "a\x1b]0;b\x07\n::error::c"
CONTROL = re.compile(r"[^\n -~]|^::", re.MULTILINE)


@pytest.mark.parametrize(
    "words",
    [
        ("runner", "seal", "trace", "--public-key", STEERS),
        ("policy", "coverage", "--tools", STEERS),
        ("policy", "approve", "empty"),
        ("export", STEERS, "--into", "out.jsonl"),
        ("tools", "audit", STEERS, "--server", "time"),
        ("record", "export", "--output", STEERS + "/out"),
        ("policy", "lint", "--policy", STEERS),
        ("release", STEERS, "--stage", "production"),
        ("code", "run", STEERS),
    ],
    ids=lambda words: "-".join(words[:2]) if words[1] != STEERS else words[0],
)
def test_a_name_cannot_steer_a_terminal(words: tuple[str, ...], command: Command, tmp_path: Path) -> None:
    (tmp_path / STEERS).write_text('{"a": 1}\n', encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / STEERS).touch()
    run = command(*words, cwd=tmp_path, stdin="x")
    assert run.code not in {0, 4}
    assert not CONTROL.search(run.stdout + run.stderr), run.stdout + run.stderr


def test_a_state_folder_may_have_any_name(command: Command, tmp_path: Path) -> None:
    state = tmp_path / os.fsdecode(b"caf\xe9\n?#%")
    run = command("stop", "tool", "http_get", "--reason", "x", env={"ENGINE_STATE_DIR": str(state)})
    assert run.code == 0, run.stderr
    assert command("stop", "list", env={"ENGINE_STATE_DIR": str(state)}).code == 0
    assert len(lines(state)) == 2  # the decision and the act


def test_a_standard_input_that_cannot_be_read_is_a_deny(command: Command) -> None:
    done = ended(command, "<&1 1>/dev/null", "runner", "seal", "place", "--public-key", "README.md")
    assert (done.returncode, done.stderr.startswith("engine: cannot read `standard input`: ")) == (2, True), done.stderr


def test_no_package_environment_is_told(command: Command) -> None:
    run = command("sandbox", "env", "list", env={"XDG_CACHE_HOME": str(command.home)})
    assert (run.code, run.stdout) == (0, "no package environments\n")
