"""The processor time of a tree of processes, as the kernel counts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from admission_adapters.sandbox.run import proc
from admission_adapters.sandbox.run.proc import tree_seconds
from tests.expect import there

_PARENT = """\
import os, time
out, into = os.pipe()
if not os.fork():
    while time.process_time() < 0.2: pass
    os.write(into, b"1")
    time.sleep(600)
os.read(out, 1)
print("used", flush=True)
time.sleep(600)
"""


@pytest.fixture
def parent() -> Iterator[int]:
    """A process that did little, whose child has used a fifth of a second and waits."""
    with subprocess.Popen([sys.executable, "-S", "-c", _PARENT], stdout=subprocess.PIPE) as process:
        assert there(process.stdout).readline() == b"used\n"
        yield process.pid
        (child,) = _children(process.pid)
        os.kill(int(child), signal.SIGKILL)
        process.kill()


def _children(process: int) -> list[str]:
    return Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()


def test_cpu_time_is_summed_over_a_bounded_number_of_processes(parent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.15 < tree_seconds(parent) < 20.0
    own = tree_seconds(int(_children(parent)[0]))
    for most, enough in ((1, False), (2, True)):
        monkeypatch.setattr(proc, "_MOST", most)
        assert (tree_seconds(parent) >= own) is enough


def test_a_dead_process_has_used_no_cpu_time() -> None:
    with subprocess.Popen(["/usr/bin/true"]) as process:
        process.wait()
    assert tree_seconds(process.pid) == 0.0
