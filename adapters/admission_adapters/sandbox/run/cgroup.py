"""The memory cgroup of one sandbox: limits the whole process tree, files included, where cgroups are delegated.

Version 1 moves single threads: each group has a thread, and processes that it starts belong to the group.
Moving a thread into a group makes the kernel wait for all processors, longer than the rest of a start
takes, so such a group is reused by the next sandbox. In version 2, the processes are moved before the
program starts. Without a group, memory is bounded by a product of limits.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.errors import UnenforceableError, WorkError

_ROOT = Path("/sys/fs/cgroup")
_OVERHEAD_BYTES = 16 << 20
"""Of bubblewrap and the launcher, which are in the group too."""

_REMOVAL_SECONDS = 2.0

_YOUNG_SECONDS = 60.0
"""A younger group may belong to an engine in another PID namespace, which looks dead from here."""

_KEPT = 16
"""Idle groups that are reused, with a thread each."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Where groups are made: the folder and the version, 1 or 2."""

    folder: Path
    version: int


class MemoryGroup:
    """One group, for one sandbox at a time. Raises WorkError where it cannot be made."""

    def __init__(self, place: Hierarchy, memory_bytes: int) -> None:
        self.place = place
        self._folder = place.folder / f"sandbox-{os.getpid()}-{os.urandom(8).hex()}"
        self._kills = 0
        self._bytes = 0
        self.oom: int | None = None
        """Readable when memory runs out; version 1 has it, which kills one process only and not the tree."""
        self.thread: ThreadPoolExecutor | None = None
        """The thread of the group (version 1)."""
        try:
            self._folder.mkdir()
            self._bound(memory_bytes)
            if place.version == 1:
                self._watch()
                self.thread = ThreadPoolExecutor(1, "sandbox-group")
                self.thread.submit(self._enter).result()
            else:
                self._write("memory.oom.group", "1")
        except (OSError, RuntimeError) as error:  # the last one: this process is ending
            self.close()
            raise _unusable(error) from error

    @classmethod
    def ready(cls, place: Hierarchy, memory_bytes: int) -> MemoryGroup:
        """An idle empty group, or a new one. Raises WorkError."""
        groups = _reusable(os.getpid())
        with suppress(IndexError):
            while True:
                group = groups.pop()
                if group.place == place and group.emptied(memory_bytes):
                    return group
                group.close()
        return cls(place, memory_bytes)

    def give_back(self) -> None:
        """Called when its sandbox is dead: keeps the group for reuse, or removes it."""
        groups = _reusable(os.getpid())
        if self.thread is None or len(groups) >= _KEPT:
            self.close()
        else:
            groups.append(self)

    def emptied(self, memory_bytes: int) -> bool:
        """Whether only its thread is in it; then it has this bound, and nothing of the last sandbox counts."""
        try:
            if self.oom is None or len((self._folder / "tasks").read_text(encoding="ascii").split()) != 1:
                return False
            if self._bytes != memory_bytes:
                self._bound(memory_bytes)
            self._kills = self._killed_ever()
            with suppress(BlockingIOError):
                os.eventfd_read(self.oom)
        except (OSError, ValueError):
            return False
        return True

    def take(self, pid: int) -> None:
        """Move a sandbox that waits to be let go: its first process and those that it has started (version 2)."""
        if self.place.version == 1:
            return
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
            for process in (str(pid), *children):
                self._write("cgroup.procs", process)
        except OSError as error:
            raise _unusable(error) from error

    def killed(self) -> bool:
        """Whether the kernel killed something in it for memory."""
        with suppress(OSError):
            return self._killed_ever() > self._kills
        return False

    def close(self) -> None:
        """Remove the group; processes that were just killed may take a moment to disappear."""
        if self.thread is not None:
            self.thread.shutdown()
        if self.oom is not None:
            os.close(self.oom)
            self.oom = None
        deadline = time.monotonic() + _REMOVAL_SECONDS
        while self._folder.exists() and time.monotonic() < deadline:
            try:
                self._folder.rmdir()
            except OSError:
                time.sleep(0.001)

    def _bound(self, memory_bytes: int) -> None:
        most = str(memory_bytes + _OVERHEAD_BYTES)
        if self.place.version != 1:
            self._write("memory.max", most)
            with suppress(OSError):  # missing if the kernel has no swap
                self._write("memory.swap.max", "0")
            return
        self._bytes = 0
        with suppress(OSError):  # missing if swap is not counted; never below the other
            self._write("memory.memsw.limit_in_bytes", "-1")
        self._write("memory.limit_in_bytes", most)
        with suppress(OSError):
            self._write("memory.memsw.limit_in_bytes", most)
        self._bytes = memory_bytes

    def _killed_ever(self) -> int:
        name = "memory.oom_control" if self.place.version == 1 else "memory.events"
        rows = (row.split() for row in (self._folder / name).read_text(encoding="ascii").splitlines())
        return sum(int(count) for key, count in rows if key == "oom_kill")

    def _enter(self) -> None:
        self._write("tasks", str(threading.get_native_id()))

    def _watch(self) -> None:
        self.oom = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        control = os.open(self._folder / "memory.oom_control", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._write("cgroup.event_control", f"{self.oom} {control}")
        finally:
            os.close(control)

    def _write(self, name: str, text: str) -> None:
        with (self._folder / name).open("w", encoding="ascii") as file:
            file.write(text)


def memory_mode() -> str:
    """`v1`, `v2`, or `none` where this process may make no memory cgroup."""
    place = memory_place()
    return "none" if place is None else f"v{place.version}"


@cache
def _reusable(process: int) -> deque[MemoryGroup]:
    """The groups of this process that are not in use; a forked child has none. Removed when the process ends."""
    groups: deque[MemoryGroup] = deque()

    def remove() -> None:
        while groups and os.getpid() == process:
            groups.pop().close()

    atexit.register(remove)
    return groups


def memory_place() -> Hierarchy | None:
    """Where this process may make memory cgroups; tried once."""
    return _hierarchy(os.getpid())


@cache
def _hierarchy(_process: int) -> Hierarchy | None:
    for place in places(_ROOT, Path("/proc/self/cgroup").read_text(encoding="utf-8")):
        try:
            MemoryGroup(place, 1 << 26).close()
        except WorkError:
            continue
        _swept(place)
        return place
    return None


def _swept(place: Hierarchy) -> None:
    """Remove the empty groups of engines that no longer run."""
    for folder in place.folder.glob("sandbox-*-*"):
        engine = folder.name.split("-")[1]
        if engine.isdecimal() and not Path("/proc", engine).exists():
            with suppress(OSError):
                if time.time() - folder.stat().st_mtime > _YOUNG_SECONDS:
                    folder.rmdir()


def places(root: Path, memberships: str) -> list[Hierarchy]:
    """Where a group could be made, by the lines of /proc/self/cgroup; whether it can is tried."""
    found: list[Hierarchy] = []
    for line in memberships.splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            found.append(Hierarchy(root / "memory" / path.lstrip("/"), 1))
        elif not controllers:
            own = root / path.lstrip("/")
            found += [
                Hierarchy(folder, 2) for folder in (own, own.parent) if _delegates(folder) and folder != root.parent
            ]
    return found


def _delegates(folder: Path) -> bool:
    with suppress(OSError):
        return "memory" in (folder / "cgroup.subtree_control").read_text(encoding="ascii").split()
    return False


def _unusable(error: OSError | RuntimeError) -> WorkError:
    why = os.strerror(error.errno or 0).lower() if isinstance(error, OSError) else "this process is ending"
    return UnenforceableError(
        f"the memory cgroup of a sandbox cannot be used: {why}",
        remedy="see `engine doctor --sandbox` for what this machine enforces",
    )
