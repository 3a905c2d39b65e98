"""The programs of the probe: that their words are true where nothing is held back."""

from __future__ import annotations

import ctypes
import errno
import io
import json
import os
import resource
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from admission_adapters.sandbox import probe as package
from admission_adapters.sandbox.probe.canaries import Canaries
from admission_adapters.sandbox.probe.control import Control
from admission_adapters.sandbox.probe.trial import Trial, _Probe
from admission_adapters.sandbox.run.process import run_once
from admission_adapters.sandbox.run.user import sandbox_user
from tests.facilities import needs
from tests.processes import in_child

OTHER = 61_996
"""Nobody's, and not the sandbox's own."""


def loaded(name: str) -> Any:
    """One of the two programs, from its text, as a sandbox gets it."""
    path = Path(package.__file__).with_name(f"{name}.py")
    module = ModuleType(name)
    exec(compile(path.read_text(encoding="utf-8"), f"<{name}>", "exec"), module.__dict__)  # noqa: S102
    return module


@pytest.fixture(scope="module")
def acts() -> Any:
    return loaded("acts")


@pytest.fixture(scope="module")
def floods() -> Any:
    return loaded("floods")


@pytest.fixture(scope="module")
def trial() -> Trial:
    """The acts alone, on both sides."""
    user = sandbox_user().other
    with Canaries(user) as canaries:
        control = Control(user, {canaries.secret_name: canaries.secret}, canaries.descriptor)
        probe = _Probe(run_once, control, canaries)
        probe.acts_outside()
        probe.acts_inside()
    return probe.trial


@needs("bubblewrap")
def test_sandbox_and_control_run_the_same_acts(trial: Trial) -> None:
    assert trial.inside.keys() == trial.outside.keys()
    assert not {"call_clone", "call_clone3"} & trial.inside.keys()


@needs("bubblewrap", "network_namespace")
def test_the_control_creates_namespaces_if_the_machine_allows_it(trial: Trial) -> None:
    made = ("new_user_namespace", "new_namespaces", "cloned_namespace", "cloned3_namespace", "mounted")
    assert {trial.outside[name] for name in made} == {"did"}


@needs("bubblewrap")
def test_a_system_call_returning_zero_counts_as_done(trial: Trial) -> None:
    """As `personality` gives 0, where only its filter ends it inside."""
    assert (trial.outside["call_personality"], trial.inside["call_personality"]) == ("did", "signal:31")


@needs("bubblewrap", "x86_64")
def test_foreign_call_numbers_are_answered_as_on_the_host(trial: Trial) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.syscall(ctypes.c_long(0x40000000 | 39))
    assert trial.outside["x32_call"] == ("did" if done > 0 else f"refused:{errno.errorcode[ctypes.get_errno()]}")
    assert trial.outside["foreign_call"] in {"did", "signal:11"}  # a kernel without 32-bit programs


def refused(number: int) -> str:
    raise OSError(number, "")


def ended(code: int) -> str:
    os._exit(code)


def killed() -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return "did"


def without_memory() -> str:
    raise MemoryError


def test_each_end_of_an_act_is_reported_and_the_next_act_runs(acts: Any) -> None:
    """In a process with one thread, as the probe is: the acts fork without care for locks of other threads."""
    todo: list[tuple[str, Callable[[], str]]] = [
        ("did", lambda: "did"),
        ("refused", lambda: refused(errno.EROFS)),
        ("unknown", lambda: refused(12345)),
        ("memory", without_memory),
        ("failed", lambda: str(1 // 0)),
        ("killed", killed),
        ("ended", lambda: ended(3)),
        ("no text", lambda: "\ud800"),
        ("last", lambda: "value:a\0b"),
    ]
    words = {
        "did": "did",
        "refused": "refused:EROFS",
        "unknown": "refused:UNKNOWN",
        "memory": "refused:ENOMEM",
        "failed": "failed:ZeroDivisionError",
        "killed": "signal:9",
        "ended": "failed:3",
        "no text": "failed:0",
        "last": "value:a b",
    }
    assert in_child(lambda: bool(acts.done(todo) == words))


@needs("root")
def test_a_failed_fork_raises_an_error(acts: Any) -> None:
    def run() -> bool:
        os.setgid(OTHER)
        os.setuid(OTHER)
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        with pytest.raises(OSError, match="fork") as caught:
            acts.done([("did", lambda: "did")])
        return caught.value.errno == errno.EAGAIN

    assert in_child(run)


def test_a_disk_counts_as_filled_if_any_location_accepts_the_data(acts: Any, tmp_path: Path) -> None:
    places = [str(tmp_path / "none" / "a"), str(tmp_path / "b")]
    before = {*tmp_path.iterdir()}
    assert acts.filled(places, 10, 4) == "did"
    with pytest.raises(OSError) as caught:  # noqa: PT011  (the number is asked below)
        acts.filled([places[0], "/dev/full/a"], 10, 4)
    assert caught.value.errno == errno.ENOTDIR
    assert {*tmp_path.iterdir()} == before


def test_a_file_size_error_takes_precedence_over_a_missing_folder(acts: Any, tmp_path: Path) -> None:
    def run() -> bool:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2, 2))
        places = [str(tmp_path / "small"), str(tmp_path / "none" / "a")]
        for order in (places, places[::-1]):
            with pytest.raises(OSError, match=r"27") as caught:
                acts.filled(order, 10, 4)
        return caught.value.errno == errno.EFBIG

    assert in_child(run)


def test_a_file_is_extended_to_the_requested_size(acts: Any, tmp_path: Path) -> None:
    for size in (0, 1, acts.STEP, acts.STEP + 1):
        acts.extended(str(tmp_path / f"{size}"), size)
        assert (tmp_path / f"{size}").stat().st_size == size


def test_a_child_process_and_a_computation_report_success(acts: Any) -> None:
    assert acts.child_process() == "did"
    assert acts.computed() == "did"


def asked(floods: Any, **ask: object) -> bytes:
    """What the second program writes when it is asked in a child of its own."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            for stream in (1, 2):
                os.dup2(write, stream)
            sys.stdin, sys.stdout = io.StringIO(json.dumps(ask)), open(1, "w", closefd=False)  # noqa: SIM115
            floods.main()
            sys.stdout.flush()
            os._exit(0)
        finally:
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        told = file.read()
    os.waitpid(child, 0)
    return told


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize(("more", "blocks"), [(1 - 65536, 1), (0, 1), (1, 2)], ids=["less", "a block", "more"])
def test_a_flood_writes_the_requested_bytes_rounded_up_to_blocks(
    floods: Any, stream: str, more: int, blocks: int
) -> None:
    assert asked(floods, act=stream, bytes=len(floods.BLOCK) + more) == floods.BLOCK * blocks + b"did"


def test_an_unknown_act_does_nothing(floods: Any) -> None:
    assert asked(floods, act="") == b"did"


def test_cpu_time_is_burned_for_the_requested_duration(floods: Any) -> None:
    assert in_child(lambda: floods.burn(0.2) is None and time.process_time() >= 0.2)


def test_memory_is_held_by_children_until_it_is_given_back(floods: Any) -> None:
    def run() -> bool:
        with floods.allocated(1 << 16, 2):
            living = Path("/proc/self/task", str(os.getpid()), "children").read_text().split()
        return len(living) == 2

    assert in_child(run)


def test_a_failed_allocation_in_a_child_raises_a_memory_error(floods: Any) -> None:
    def run() -> bool:
        with pytest.raises(MemoryError), floods.allocated(1 << 60, 2):
            pass
        return True

    assert in_child(run)


def test_a_failing_child_program_is_reported(acts: Any) -> None:
    def run() -> bool:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))  # so that it cannot load its library
        return bool(acts.child_process() == "failed:status")

    assert in_child(run)


_CREATE, _REMOVE = 0o1000, 0


def test_refused_shared_memory_keeps_its_errno(acts: Any) -> None:
    libc, key = ctypes.CDLL(None, use_errno=True), secrets.randbelow(1 << 30) + 1

    def told() -> str:
        with pytest.raises(OSError, match="refused") as caught:
            acts.shared_memory(key)
        return errno.errorcode[caught.value.errno or 0]

    def run() -> bool:
        if os.geteuid() == 0:
            os.setuid(OTHER)
        absent = told()
        segment = libc.shmget(ctypes.c_int(key), ctypes.c_size_t(4096), ctypes.c_int(_CREATE))  # for nobody
        try:
            return (absent, told()) == ("ENOENT", "EACCES")
        finally:
            libc.shmctl(ctypes.c_int(segment), ctypes.c_int(_REMOVE), None)

    assert in_child(run)


def test_a_file_that_libffi_keeps_open_was_not_inherited() -> None:
    """What importing ctypes leaves open is the probe's own."""
    code = """
import builtins, os, runpy, sys
load = builtins.__import__
def opening(name, *rest):
    if name == "ctypes":
        os.open("/dev/null", os.O_RDONLY)
    return load(name, *rest)
builtins.__import__ = opening
print(runpy.run_path(sys.argv[1])["OPEN_AT_START"])
"""
    command = [sys.executable, "-c", code, str(Path(package.__file__).with_name("acts.py"))]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


@needs("root")
def test_a_shared_memory_segment_with_id_zero_is_read(acts: Any) -> None:
    """In an IPC namespace of its own, where it has the number 0."""

    def run() -> bool:
        assert ctypes.CDLL(None).unshare(ctypes.c_int(0x08000000)) == 0
        with Canaries(None) as canaries:
            return bool(acts.shared_memory(canaries.places["segment"]) == f"read:{canaries.secret}")

    assert in_child(run)
