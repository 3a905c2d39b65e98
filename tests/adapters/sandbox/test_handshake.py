"""What bubblewrap says is no proof: its child must be in namespaces of its own, and be its child."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from admission_adapters.sandbox.run.handshake import NAMESPACES, HandshakeError, child_of, exit_line, is_dead, opened
from tests.processes import leaks

WHOLE = frozenset[str]()


def own(name: str) -> int:
    return Path(f"/proc/self/ns/{name}").stat().st_ino


def status(**changes: Any) -> bytes:
    """A status line of a sandbox that shares nothing; a change to None leaves a word out."""
    told: dict[str, Any] = {f"{name}_namespace": own(name) + 1 for name in NAMESPACES}
    told = {name.replace("_", "-"): value for name, value in ({"child_pid": 77, **told} | changes).items()}
    return json.dumps({name: value for name, value in told.items() if value is not None}).encode() + b"\n"


def test_the_child_of_a_fully_isolated_sandbox_is_accepted() -> None:
    assert child_of(status(), WHOLE) == 77
    assert child_of(status(child_pid=2), WHOLE) == 2


@pytest.mark.parametrize("name", NAMESPACES)
def test_a_shared_or_missing_namespace_is_refused(name: str) -> None:
    for found in (own(name), None, str(own(name) + 1), [own(name) + 1]):
        line = status(**{f"{name}_namespace": found})
        with pytest.raises(HandshakeError, match=f"{name} namespace"):
            child_of(line, WHOLE)
        with pytest.raises(HandshakeError, match=f"{name} namespace"):
            child_of(line, frozenset({"unshare_user"}))
        assert child_of(line, frozenset({f"unshare_{name}"})) == 77


@pytest.mark.parametrize("child", [1, 0, -1, True, "77", 77.0, [77]])
def test_an_invalid_child_pid_is_refused(child: object) -> None:
    with pytest.raises(HandshakeError, match="child"):
        child_of(status(child_pid=child), WHOLE)


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b"1", b"null", b'"child-pid"', status(child_pid=None), b"[" * 99999]
)
def test_a_malformed_status_line_is_refused(line: bytes) -> None:
    with pytest.raises(HandshakeError, match="status"):
        child_of(line, WHOLE)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["/usr/bin/cat"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_only_a_living_child_of_the_monitor_is_held(child: subprocess.Popen[bytes]) -> None:
    pidfd = opened(child.pid, os.getpid())
    assert not is_dead(pidfd)

    def refused() -> None:
        for monitor in (os.getppid(), child.pid, 1, 0):
            with pytest.raises(HandshakeError, match="child"):
                opened(child.pid, monitor)

    assert not leaks(refused)
    child.kill()
    assert is_dead(pidfd, 20.0)
    with pytest.raises(HandshakeError, match="child"):  # nobody has waited for it yet
        opened(child.pid, os.getpid())
    child.wait()
    with pytest.raises(HandshakeError, match="pidfd"):
        opened(child.pid, os.getpid())
    os.close(pidfd)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"", None),
        (b'{"exit-code": 0}\n', 0),
        (b'{"exit-code": 137}\n', 137),
        (b'{"other": 1}\n{"exit-code": 3}\n', 3),
        (b'x\n[]\nnull\n{"exit-code": "3"}\n', None),
    ],
)
def test_the_exit_code_is_read_from_the_monitors_output(said: bytes, code: int | None) -> None:
    assert exit_line(said) == code
