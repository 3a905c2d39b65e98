"""What bounds a program's use of the machine, each with the same program where the bound is left out or wide."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from admission_adapters.sandbox.model import Bounds, RunResult, Status
from admission_adapters.sandbox.run.cgroup import memory_place, places
from admission_adapters.sandbox.run.process import run_once
from tests.adapters.sandbox.programs import bounds, program, ran
from tests.expect import there
from tests.facilities import needs

pytestmark = needs("bubblewrap")


def unbounded(code: str, within: Bounds, *names: str) -> RunResult:
    """The positive control: the same program with single protections left out."""
    return run_once(program(code), within, None, frozenset(names))


# covers: A85.1 C59.3 C65.3
def test_one_process_gets_no_more_memory() -> None:
    code = "kept = b'x' * (300 << 20); print(len(kept))"
    ended = ran(code)
    assert (ended.status, ended.exit_code, ended.limit) == (Status.RUNTIME_ERROR, 1, "memory")
    assert ended.stderr.endswith(b"MemoryError\n")
    assert unbounded(code, bounds(), "rlimit_as", "memory_cgroup").stdout == b"314572800\n"


# covers: A85.1 C58.2 C65
@needs("memory_cgroup")
def test_the_tree_gets_no_more_memory() -> None:
    code = """
import os
reported, report = os.pipe()
held, release = os.pipe()
children = []
for _ in range(4):
    child = os.fork()
    if not child:
        kept = b"x" * (60 << 20)
        os.write(report, b"x")
        os.read(held, 1)
        os._exit(0)
    children.append(child)
for _ in children: os.read(reported, 1)
os.write(release, b"x" * 4)
print([os.waitpid(child, 0)[1] for child in children])
"""
    within = bounds(memory_bytes=100 << 20)
    ended = ran(code, within=within)
    assert (ended.status, ended.limit) == (Status.OOM, "memory")
    assert unbounded(code, within, "memory_cgroup").stdout == b"[0, 0, 0, 0]\n"


# covers: C65.1
@needs("memory_cgroup")
def test_a_flood_of_files_is_held_by_the_memory_of_the_tree() -> None:
    code = """
import os
for number in range(10_000_000):
    os.close(os.open(str(number), os.O_CREAT))
"""
    ended = ran(code, within=bounds(memory_bytes=64 << 20, cpu_seconds=60, wall_seconds=60.0))
    assert ended.status in {Status.OOM, Status.RUNTIME_ERROR}  # killed, or no room for another inode
    assert ended.limit == "memory" or b"No space left" in ended.stderr


# covers: C65.2
def test_processes_and_threads_are_counted_exactly() -> None:
    code = """
import os, time
made = 0
try:
    while made < 50:
        if not os.fork():
            time.sleep(30)
            os._exit(0)
        made += 1
except BlockingIOError:
    pass
print(made)
"""
    for most in (1, 4, 10):
        assert ran(code, within=bounds(processes=most)).stdout == f"{most - 1}\n".encode()
    assert unbounded(code, bounds(processes=1), "rlimit_nproc").stdout == b"50\n"
    threads = """
import os, threading, time
try:
    for _ in range(40): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
except RuntimeError as error:
    os.write(1, str(error).encode())  # not by a traceback: the stacks of the threads leave little memory for one
"""
    assert b"can't start new thread" in ran(threads).stdout


# covers: C65.2
def test_a_fork_bomb_ends_with_its_time() -> None:
    ended = ran("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", within=bounds(wall_seconds=0.5))
    assert (ended.status, ended.limit) == (Status.TIMEOUT_WALL, "wall")


# covers: C34.1 C59.2 C65.4
def test_a_busy_loop_ends_with_its_processor_time() -> None:
    ended = ran("while True: pass", within=bounds(cpu_seconds=1, wall_seconds=60.0))
    assert (ended.status, ended.signal, ended.limit) == (Status.TIMEOUT_CPU, 24, "cpu")
    assert 0.7 < there(ended.cpu_seconds) < 2


def test_a_program_ignoring_sigxcpu_is_killed_for_cpu_time() -> None:
    code = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    ended = ran(code, within=bounds(cpu_seconds=1, wall_seconds=60.0))
    assert (ended.status, ended.signal, ended.limit) == (Status.TIMEOUT_CPU, 9, "cpu")


def test_a_limit_of_processor_time_cannot_be_raised() -> None:
    code = """
import resource
try:
    resource.setrlimit(resource.RLIMIT_CPU, (100, 100))
except ValueError:
    print("held", resource.getrlimit(resource.RLIMIT_CPU))
"""
    assert ran(code, within=bounds(cpu_seconds=3)).stdout == b"held (3, 4)\n"


# covers: C65
def test_children_share_the_processor_time() -> None:
    code = """
import os, time
for _ in range(3):
    if not os.fork():
        while True: pass
time.sleep(500)
"""
    ended = ran(code, within=bounds(cpu_seconds=1, wall_seconds=600.0))
    assert (ended.status, ended.limit) == (Status.TIMEOUT_CPU, "cpu")
    assert there(ended.cpu_seconds) > 1.4
    assert ended.wall_seconds < 500


# covers: C34.1
def test_a_sleeping_program_is_killed_at_the_wall_clock_limit() -> None:
    ended = ran("import time; time.sleep(60)", within=bounds(wall_seconds=0.3))
    assert (ended.status, ended.exit_code, ended.signal, ended.limit) == (Status.TIMEOUT_WALL, None, 9, "wall")
    assert 0.3 <= ended.wall_seconds < 60


# covers: C65.1
def test_files_and_the_disk_are_bounded() -> None:
    code = """
import os
def write(name, size):
    try:
        with open(name, "wb", buffering=0) as file:
            for _ in range(size >> 20): file.write(b"x" * (1 << 20))
    except OSError as error:
        return error.errno
    return os.stat(name).st_size >> 20
print(write("large", 12 << 20), os.unlink("large"))
print([write(name, 6 << 20) for name in ("one", "/tmp/two", "three")])
"""
    assert ran(code).stdout == b"27 None\n[6, 6, 28]\n"  # EFBIG past 8 MiB; ENOSPC past 16 MiB of both folders
    wide = bounds(disk_bytes=64 << 20, file_bytes=32 << 20)
    assert ran(code, within=wide).stdout == b"12 None\n[6, 6, 6]\n"


def test_only_the_work_and_tmp_folders_are_writable() -> None:
    code = """
import os
for folder in ("/", "/usr", "/usr/local", "/usr/lib", "/dev", "/etc", "/work", "/tmp"):
    try:
        open(f"{folder}/written", "w").close()
        print(folder)
    except OSError:
        pass
"""
    assert ran(code).stdout == b"/work\n/tmp\n"


def test_open_files_are_counted() -> None:
    code = """
kept = []
try:
    while True: kept.append(open("main.py"))
except OSError as error:
    print(error.errno, len(kept) > 5)
"""
    assert ran(code, within=bounds(open_files=16)).stdout == b"24 True\n"


@needs("memory_cgroup")
def test_a_cgroup_is_empty_after_its_sandbox_has_ended() -> None:
    place = there(memory_place())
    for code in ("print(1)", "import os; os.fork()", "kept = b'x' * (1 << 30)", "print(1)"):
        ran(code)
        for folder in place.folder.glob(f"sandbox-{os.getpid()}-*"):
            assert len((folder / "tasks").read_text(encoding="ascii").split()) <= 1
    assert ran("print(1)").status is Status.OK


_ONE_RUN = """\
import os
from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap
from admission_adapters.sandbox.model import Bounds, Program
bounds = Bounds(5.0, 5, 268435456, 16, 64, 1048576, 4194304, 4096, 4096, 0, 0)
print(Bubblewrap().run(Program("python", "print(1)", b"", {}, 0, "code_exec_agent_0"), bounds).status, os.getpid())
"""


@needs("memory_cgroup")
def test_cgroups_are_removed_when_the_engine_exits() -> None:
    place = there(memory_place())
    done = subprocess.run(
        [sys.executable, "-c", _ONE_RUN], cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True
    )
    status, number = done.stdout.split()
    assert status == "ok"
    assert list(place.folder.glob(f"sandbox-{number}-*")) == []


def test_the_cgroup_locations_are_read_from_the_process_membership(tmp_path) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    first = places(tmp_path, "9:name=systemd:/\n4:memory:/a/b\n0::/a\n")
    assert [(place.folder, place.version) for place in first] == [(tmp_path / "memory/a/b", 1)]
    for name, controllers in (("user.slice/s.scope", "cpu"), ("user.slice", "cpu memory pids")):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "cgroup.subtree_control").write_text(controllers, encoding="ascii")
    second = places(tmp_path, "0::/user.slice/s.scope\n")
    assert [(place.folder, place.version) for place in second] == [(tmp_path / "user.slice", 2)]
    assert places(tmp_path, "0::/\n") == []
