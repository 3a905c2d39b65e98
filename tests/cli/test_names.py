"""Names and words that a terminal or a workflow would obey, or that are not UTF-8, stay text."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_streams import ended
from tests.command import SECONDS, Command, lines

STEERS = "a\x1b]0;b\x07\n::error::c"
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]|^\s*::", re.MULTILINE)


@pytest.mark.parametrize(
    "words",
    [
        ("runner", "seal", "trace", "--public-key", STEERS),
        ("policy", "coverage", "--tools", STEERS),
        ("policy", "approve", "empty"),
        ("sandbox", "run", "--profile", "restricted_process", "--tighten", STEERS, "--", "true"),
        ("tools", "explain", STEERS),
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
    done = ended(command, "<&1 1>/dev/null", "runner", "seal", "trace", "--public-key", "README.md")
    assert (done.returncode, done.stderr.startswith("engine: cannot read `standard input`: ")) == (2, True), done.stderr


def test_a_removed_working_folder_is_reported(command: Command) -> None:
    line = (
        "bash",
        "-c",
        'mkdir gone; cd gone; rmdir ../gone; exec "$@"',
        "bash",
        *command.argv("release", "1", "--stage", "x"),
    )
    done = subprocess.run(
        line, cwd=command.home, env=command.environment(), capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 4
    assert "the folder of this command was removed; nothing was allowed\n" in done.stderr


def test_an_operating_system_error_is_not_reported_as_an_engine_fault(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    run = command("policy", "init", tmp_path / "file" / "new")
    assert run.code in {2, 4}
    assert "not a directory" in run.stderr
    assert "fault inside" not in run.stderr


def test_a_policy_is_started_from_a_shipped_recipe_or_none(command: Command, tmp_path: Path) -> None:
    own = tmp_path / "own"
    command("policy", "init", own, "--template", "default").refused("no shipped recipe `default`", "coding_agent")
    command("policy", "init", own, "--template", "../coding_agent").refused("no shipped recipe")
    assert not own.exists()
    assert command("policy", "init", own, "--template", "coding_agent").code == 0
    assert command("policy", "lint", "--policy", own).code == 0


def test_a_store_that_is_not_utf_8_is_an_error_of_usage(command: Command) -> None:
    command("record", "ship", os.fsdecode(b"file:///caf\xe9")).refused("it is not UTF-8 text")


def test_an_empty_list_of_package_environments_is_reported(command: Command, unprotected: Path) -> None:
    unprotected.chmod(0o755)  # root lists those of the machine where others may not enter its cache
    run = command("sandbox", "env", "list", env={"XDG_CACHE_HOME": str(unprotected)})
    assert (run.code, run.stdout) == (0, "no package environments\n")
    listed = command("sandbox", "env", "list", "--format", "json", env={"XDG_CACHE_HOME": str(unprotected)})
    assert (listed.code, listed.json) == (0, {"environments": []})
