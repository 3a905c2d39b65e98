"""What stands in the place of a module when it is probed: where nothing is held back, every act is done."""

from __future__ import annotations

import ctypes
import json
import os
import struct
from collections.abc import Iterator

import pytest

from admission_adapters.sandbox.bubblewrap import seccomp
from admission_adapters.sandbox.bubblewrap.syscalls import numbers
from admission_adapters.sandbox.probe.canaries import Canaries
from admission_adapters.sandbox.wasm import acts as wasm_acts
from admission_adapters.sandbox.wasm import backend as wasm
from admission_adapters.sandbox.wasm.probe import _CALLS, _LOOKED
from tests.facilities import needs
from tests.processes import descriptors


@pytest.fixture(scope="module")
def canaries() -> Iterator[Canaries]:
    with Canaries(None) as laid:
        yield laid


def put_on(program: bytes) -> None:
    """As the process of a module does: no new privileges, then the filter."""
    libc, none = ctypes.CDLL(None), ctypes.c_ulong(0)
    lines = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(lines)))
    assert libc.prctl(38, ctypes.c_ulong(1), none, none, none) == 0
    assert libc.prctl(22, ctypes.c_ulong(2), header) == 0


def said(canaries: Canaries, *, filtered: bool) -> dict[str, str]:
    """The words of a child; `own` is one of its pipes."""
    known = numbers(seccomp.ARCHITECTURES[os.uname().machine].column)
    world = {
        **canaries.places,
        "file": canaries.places["file_secret"],
        "new_file": f"{canaries.places['folder']}/new",
        "descriptor": canaries.descriptor,
        "program": "/usr/bin/true",
        "secret_name": canaries.secret_name,
        "calls": {name: known[name] for name in _CALLS},
        "memory_bytes": 1 << 20,
        "open_files": 8,
    }
    program = wasm.call_filter()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if filtered:
                put_on(program)
            os.write(write, json.dumps({**wasm_acts.words(world, write), "own": str(write)}).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        told = file.read()
    os.waitpid(child, 0)
    found: dict[str, str] = json.loads(told)
    return found


@pytest.fixture(scope="module")
def words(canaries: Canaries) -> dict[str, str]:
    return said(canaries, filtered=False)


def test_acts_blocked_by_the_filter_are_reported_as_refused(canaries: Canaries) -> None:
    found = said(canaries, filtered=True)
    held = {name for name, word in found.items() if word == "refused:EPERM"}
    assert found.keys() - held == {"secret_variable", "descriptors", "memory", "files_opened", "own"}


def test_acts_on_the_host_succeed_without_protection(words: dict[str, str], canaries: Canaries) -> None:
    done = ("file_written", "file_described", "folder_listed", "tcp", "unix", "process_started", "program_started")
    assert {name: words[name] for name in (*done, "process_signaled", "memory", "files_opened")} == dict.fromkeys(
        (*done, "process_signaled", "memory", "files_opened"), "did"
    )
    assert words["file_read"] == f"read:{canaries.secret}"
    assert words["secret_variable"] == f"value:{canaries.secret}"
    assert canaries.wrote("new")


@needs("network_namespace")
def test_a_namespace_is_made_where_the_machine_lets_it(words: dict[str, str]) -> None:
    assert words["namespace_made"] == "did"


def test_every_call_act_reaches_the_kernel(words: dict[str, str]) -> None:
    assert {words[f"call_{name}"] for name in _CALLS} <= set(_LOOKED)
    assert words["call_personality"] == "did"


def test_every_open_descriptor_is_seen_but_the_one_that_is_reported_on(
    words: dict[str, str], canaries: Canaries
) -> None:
    found = words["descriptors"].removeprefix("fds:").split(",")
    assert str(canaries.descriptor) in found
    assert words["own"] not in found
    assert len(found) < len(descriptors()) + 100  # and none that is closed
