"""A server has many files open: the canary among them is found all the same, whatever its number."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.facilities import needs

_OPEN = """
import json, os, resource, sys
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
count = min(int(sys.argv[1]), hard - 300)
resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 300), hard))
kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(count)]
from admission_adapters.sandbox.wasm import probe as wasm_probe
from admission_adapters.sandbox.probe import trial
from admission_adapters.sandbox.probe.canaries import Canaries
from admission_adapters.sandbox.probe.control import Control
from admission_adapters.sandbox.run.process import run_once
from admission_adapters.sandbox.run.user import sandbox_user
user = sandbox_user().other
without = frozenset(sys.argv[3:])
with Canaries(user) as canaries:
    assert canaries.descriptor > count
    if sys.argv[2] == "wasmtime":
        probe = wasm_probe._Probe(canaries, without)
        probe._acts(probe.trial.inside, without)
        probe._acts(probe.trial.outside, wasm_probe._ALL)
    else:
        run = lambda program, bounds: run_once(program, bounds, None, without)
        control = Control(user, {canaries.secret_name: canaries.secret}, canaries.descriptor)
        probe = trial._Probe(run, control, canaries)
        probe.acts_inside()
        probe.acts_outside()
names = ("inherited", "descriptors")
print(json.dumps([[words.get(name) for name in names] for words in (probe.trial.inside, probe.trial.outside)]))
"""


def probed(count: int, backend: str, *without: str) -> list[list[str | None]]:
    """The words of both sides in a process of its own that has so many files open."""
    command = [sys.executable, "-c", _OPEN, str(count), backend, *without]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    found: list[list[str | None]] = json.loads(run.stdout)
    return found


many = pytest.mark.parametrize("count", [0, 300, 5000])


@needs("bubblewrap")
@many
def test_bubblewrap_is_proven_from_a_process_with_many_open_files(count: int) -> None:
    assert probed(count, "bubblewrap") == [["refused:EBADF", "none"], ["did", "did"]]


@needs("bubblewrap")
@many
def test_an_inherited_file_is_detected_at_any_descriptor_number(count: int) -> None:
    assert probed(count, "bubblewrap", "close_fds") == [["did", "did"], ["did", "did"]]


@pytest.mark.full(after=1)
@needs("wasmtime")
@many
def test_wasmtime_is_proven_from_a_process_with_many_open_files(count: int) -> None:
    assert probed(count, "wasmtime") == [[None, "none"], [None, "did"]]
    assert probed(count, "wasmtime", "close_fds") == [[None, "did"], [None, "did"]]
