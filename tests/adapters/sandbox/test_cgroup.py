"""The memory cgroup of one sandbox: a real one where this machine gives one, else a folder that is as one is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from admission_adapters.sandbox.run import cgroup
from admission_adapters.sandbox.run.cgroup import Hierarchy, MemoryGroup, memory_mode, memory_place
from engine.errors import WorkError
from tests.expect import there
from tests.facilities import needs
from tests.processes import leaks

_MIB = 1 << 20
_ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not empty is given up sooner."""
    monkeypatch.setattr(cgroup, "_REMOVAL_SECONDS", 0.1)


@pytest.fixture
def place() -> Iterator[Hierarchy]:
    """Where this machine has groups of version 1, of which none is kept but those of the test."""
    if not re.search(r"^\d+:(.*,)?memory[,:]", Path("/proc/self/cgroup").read_text(encoding="ascii"), re.MULTILINE):
        pytest.skip("groups are kept with version 1 only")
    found = there(memory_place())
    assert found.version == 1
    kept = cgroup._reusable(os.getpid())
    before = list(kept)
    kept.clear()
    yield found
    while kept:
        kept.pop().close()
    kept.extend(before)


@contextmanager
def _inhabited(group: MemoryGroup) -> Iterator[int]:
    """A process that was born in a group."""
    with there(group.thread).submit(subprocess.Popen, ["/usr/bin/cat"], stdin=subprocess.PIPE).result() as process:
        yield process.pid
        process.kill()


def _read(group: MemoryGroup, name: str) -> str:
    return (group._folder / name).read_text(encoding="ascii").strip()


def _emptied(group: MemoryGroup) -> None:
    """A folder has files where a group has none."""
    for file in group._folder.iterdir():
        file.unlink()


def test_version_2_limits_memory_and_kills_the_group_as_a_whole(tmp_path: Path) -> None:
    group = MemoryGroup.ready(Hierarchy(tmp_path, 2), 64 * _MIB)
    told = {file.name: file.read_text(encoding="ascii") for file in group._folder.iterdir()}
    assert told == {"memory.max": str(80 * _MIB), "memory.swap.max": "0", "memory.oom.group": "1"}
    assert (group.thread, group.oom) == (None, None)


def test_version_2_accepts_a_process_until_the_group_is_removed(tmp_path: Path) -> None:
    group = MemoryGroup(Hierarchy(tmp_path, 2), 64 * _MIB)
    with subprocess.Popen(["/usr/bin/cat"], stdin=subprocess.PIPE) as process:
        group.take(process.pid)
        assert _read(group, "cgroup.procs") == str(process.pid)
    with pytest.raises(WorkError, match="cannot be used: no such file or directory"):
        group.take(process.pid)


@pytest.mark.parametrize(("said", "killed"), [("oom_kill 1", True), ("oom_kill 0", False), ("max 9", False)])
def test_version_2_detects_a_memory_kill(tmp_path: Path, said: str, killed: object) -> None:
    group = MemoryGroup(Hierarchy(tmp_path, 2), 64 * _MIB)
    assert group.killed() is False  # nothing can be read
    (group._folder / "memory.events").write_text(f"low 3\noom 5\n{said}\n", encoding="ascii")
    assert group.killed() is killed


def test_version_2_groups_are_not_reused(tmp_path: Path) -> None:
    group = MemoryGroup.ready(Hierarchy(tmp_path, 2), 64 * _MIB)
    _emptied(group)
    group.give_back()
    assert list(tmp_path.iterdir()) == []
    assert group not in cgroup._reusable(os.getpid())


def test_a_group_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    for folder, version in ((tmp_path / "none", 2), (tmp_path / "none", 1), (tmp_path, 1)):
        with pytest.raises(WorkError, match="memory cgroup of a sandbox cannot be used") as caught:
            MemoryGroup.ready(Hierarchy(folder, version), 64 * _MIB)
        assert caught.value.code == "engine.limit_unenforceable"
    (left,) = tmp_path.iterdir()  # files keep a folder that is no group
    told = {file.name: file.read_text(encoding="ascii") for file in left.iterdir()}
    assert told == dict.fromkeys(("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), str(80 * _MIB))


def test_closing_a_group_waits_for_dying_processes_up_to_a_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup, "_REMOVAL_SECONDS", 20.0)
    group = MemoryGroup(Hierarchy(tmp_path, 2), 64 * _MIB)
    timer = threading.Timer(0.2, _emptied, [group])
    timer.start()
    group.close()
    timer.join()
    assert list(tmp_path.iterdir()) == []

    monkeypatch.setattr(cgroup, "_REMOVAL_SECONDS", 0.1)
    MemoryGroup(Hierarchy(tmp_path, 2), 64 * _MIB).close()
    assert len(list(tmp_path.iterdir())) == 1


@needs("memory_cgroup")
def test_a_returned_group_is_reused_with_a_new_limit(place: Hierarchy) -> None:
    group = MemoryGroup.ready(place, 64 * _MIB)
    assert _read(group, "memory.limit_in_bytes") == str(80 * _MIB)
    group.give_back()
    assert MemoryGroup.ready(place, 32 * _MIB) is group
    assert _read(group, "memory.limit_in_bytes") == str(48 * _MIB)
    assert group.killed() is False
    group.close()


@needs("memory_cgroup")
def test_a_nonempty_or_foreign_group_is_not_reused(place: Hierarchy, tmp_path: Path) -> None:
    group = MemoryGroup.ready(place, 64 * _MIB)
    with _inhabited(group) as process:
        assert str(process) in _read(group, "tasks").split()
        group.give_back()
        other = MemoryGroup.ready(place, 64 * _MIB)
        assert other is not group
    group._folder.rmdir()  # possible only now: the process in it has ended
    other.give_back()
    elsewhere = MemoryGroup.ready(Hierarchy(tmp_path, 2), 64 * _MIB)
    assert elsewhere.place.folder == tmp_path
    assert not other._folder.exists()


@needs("memory_cgroup")
def test_the_number_of_reusable_groups_is_bounded(place: Hierarchy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "_KEPT", 2)
    groups = [MemoryGroup.ready(place, 64 * _MIB) for _ in range(3)]
    for group in groups:
        group.give_back()
    assert [group._folder.exists() for group in groups] == [True, True, False]
    assert list(cgroup._reusable(os.getpid())) == groups[:2]


@needs("memory_cgroup")
def test_a_group_that_is_closed_leaves_nothing(place: Hierarchy) -> None:
    assert not leaks(lambda: MemoryGroup(place, 64 * _MIB).close())
    group = MemoryGroup(place, 64 * _MIB)
    thread = there(group.thread)
    group.close()
    assert not group._folder.exists()
    with pytest.raises(RuntimeError, match="after shutdown"):
        thread.submit(os.getpid)


def test_only_old_empty_groups_of_engines_that_are_gone_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen(["/usr/bin/true"]) as gone:
        gone.wait()
    made = {
        name: tmp_path / f"sandbox-{engine}-{name}"
        for name, engine in (
            ("old", gone.pid),
            ("young", gone.pid),
            ("full", gone.pid),
            ("own", os.getpid()),
            ("odd", "x"),
        )
    }
    for name, folder in made.items():
        folder.mkdir()
        if name == "full":
            (folder / "tasks").touch()
        if name != "young":
            os.utime(folder, (time.time() - 90, time.time() - 90))
    cgroup._swept(Hierarchy(tmp_path, 2))
    assert {name for name, folder in made.items() if not folder.exists()} == {"old"}


def test_no_group_is_made_above_the_root(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    root.mkdir()
    for folder in (tmp_path, root):
        assert cgroup.places(root, "0::/\n") == []
        (folder / "cgroup.subtree_control").write_text("memory", encoding="ascii")
    assert cgroup.places(root, "0::/\n") == [Hierarchy(root, 2)]


@needs("memory_cgroup")
def test_version_1_moves_no_process_into_the_group(place: Hierarchy) -> None:
    group = MemoryGroup(place, 64 * _MIB)
    with subprocess.Popen(["/usr/bin/cat"], stdin=subprocess.PIPE) as process:
        group.take(process.pid)
        assert str(process.pid) not in _read(group, "tasks").split()
    group.close()


def test_the_memory_mode_names_the_cgroup_version(monkeypatch: pytest.MonkeyPatch) -> None:
    for place, mode in ((None, "none"), (Hierarchy(Path("/"), 1), "v1"), (Hierarchy(Path("/"), 2), "v2")):
        monkeypatch.setattr(cgroup, "memory_place", lambda place=place: place)
        assert memory_mode() == mode


_FORKED = """\
import atexit, os
from admission_adapters.sandbox.run.cgroup import MemoryGroup, _reusable, memory_place
engine = os.getpid()
atexit.register(lambda: print(os.getpid() == engine, len(_reusable(engine)), flush=True))
MemoryGroup.ready(memory_place(), 1 << 26).give_back()
if os.fork():
    os.wait()
"""


@needs("memory_cgroup")
@pytest.mark.usefixtures("place")
def test_the_groups_of_an_engine_are_removed_by_itself_only() -> None:
    done = subprocess.run([sys.executable, "-c", _FORKED], cwd=_ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False 1\nTrue 0\n"
