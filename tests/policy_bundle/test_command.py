"""OPA as a tool: what it says is read, what it does is bounded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.errors import DecideError
from engine.opa.command import OpaCommand


def tool(tmp_path: Path, script: str) -> Path:
    path = tmp_path / "tool"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o700)
    return path


def test_the_exit_code_and_both_streams_are_returned(tmp_path: Path) -> None:
    finished = OpaCommand(tool(tmp_path, 'echo "[1]"; echo no >&2; exit 3')).run("a b", "c")
    assert (finished.code, finished.stdout, finished.stderr) == (3, b"[1]\n", b"no\n")
    assert finished.json() == [1]


def test_json_of_errors_and_of_nothing(tmp_path: Path) -> None:
    assert OpaCommand(tool(tmp_path, 'echo "{}" >&2; exit 1')).run().json() == {}
    assert OpaCommand(tool(tmp_path, "echo no")).run().json() is None


def test_arguments_stay_apart_and_the_environment_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1")
    finished = OpaCommand(tool(tmp_path, 'printf "%s|" "$@"; env')).run("a b", "$HOME")
    assert finished.stdout.startswith(b"a b|$HOME|")
    assert b"PROXY" not in finished.stdout
    assert b"GOGC=400" in finished.stdout
    assert b"GOMEMLIMIT=1GiB" in finished.stdout


def test_too_slow(tmp_path: Path) -> None:
    with pytest.raises(DecideError, match=r"longer than 0\.2 seconds"):
        OpaCommand(tool(tmp_path, "exec sleep 60"), seconds=0.2).run()


def test_oversized_output_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DecideError, match="more than 1000 bytes"):
        OpaCommand(tool(tmp_path, "exec yes"), output_bytes=1000).run()


def test_no_such_binary(tmp_path: Path) -> None:
    with pytest.raises(DecideError, match="cannot run OPA") as caught:
        OpaCommand(tmp_path / "none").run()
    assert caught.value.code == "engine.opa_binary"


@pytest.mark.parametrize("reason", ["runtime: out of memory: cannot allocate", "fatal error: failed to reserve"])
def test_exhausted_memory_is_reported_as_an_opa_failure(reason: str, tmp_path: Path) -> None:
    stack = "yes pc=0x1 | head -c 9999"
    with pytest.raises(DecideError, match=f"{reason}$") as caught:  # and no stack
        OpaCommand(tool(tmp_path, f'(echo "{reason}"; echo; {stack}) >&2; exit 2')).run("check")
    assert caught.value.code == "engine.opa_binary"


def test_a_killed_opa_is_no_refusal(tmp_path: Path) -> None:
    """Such as by the kernel for want of memory: nothing is known of a signature, or of rules."""
    with pytest.raises(DecideError, match="OPA was ended by signal 9"):
        OpaCommand(tool(tmp_path, "kill -9 $$")).run("build")


def test_a_tool_that_is_not_opa(tmp_path: Path) -> None:
    with pytest.raises(DecideError, match="built-in functions"):
        OpaCommand(tool(tmp_path, "echo hello")).capabilities()


def test_a_stopped_command_leaves_no_child_process(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with pytest.raises(DecideError):
        OpaCommand(tool(tmp_path, f"echo $$ > {note}; exec yes"), output_bytes=1000).run()
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text(encoding="utf-8")), 0)
