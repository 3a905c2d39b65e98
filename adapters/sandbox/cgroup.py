"""The memory cgroup of one sandbox, where this process may make one: what the whole tree holds, files included.

Version 1 takes single threads, so that the starting thread steps in and its child is born there; in version 2
the processes are moved before the program is let go. Without one, memory is bounded by a product of limits.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.errors import WorkError

_ROOT = Path("/sys/fs/cgroup")
_OVERHEAD_BYTES = 16 << 20
"""Of bubblewrap and the launcher, which are in the group too."""

_REMOVAL_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where groups are made: the folder and the version, 1 or 2."""

    folder: Path
    version: int


class MemoryGroup:
    """One group; `close` removes it once everything in it is dead. Raises WorkError where it cannot be made."""

    def __init__(self, place: Place, memory_bytes: int) -> None:
        self._place = place
        self._folder = place.folder / f"sandbox-{os.getpid()}-{os.urandom(8).hex()}"
        limits = ["memory.limit_in_bytes"] if place.version == 1 else ["memory.max"]
        self.oom: int | None = None
        try:
            self._folder.mkdir()
            for name in limits:
                self._write(name, str(memory_bytes + _OVERHEAD_BYTES))
            if place.version == 1:
                with suppress(OSError):  # there is none where swap is not counted
                    self._write("memory.memsw.limit_in_bytes", str(memory_bytes + _OVERHEAD_BYTES))
                self._watch()
            else:
                self._write("memory.oom.group", "1")
                with suppress(OSError):  # there is none where the kernel has no swap
                    self._write("memory.swap.max", "0")
        except OSError as error:
            self.close()
            raise _unusable(error) from error

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Children that this thread starts meanwhile are in the group (version 1)."""
        if self._place.version != 1:
            yield
            return
        thread = str(threading.get_native_id())
        try:
            self._write("tasks", thread)
        except OSError as error:
            raise _unusable(error) from error
        try:
            yield
        finally:
            (self._place.folder / "tasks").write_text(thread, encoding="ascii")

    def take(self, pid: int) -> None:
        """Move a sandbox that waits to be let go: its first process and those that it has started (version 2)."""
        if self._place.version == 1:
            return
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
            for process in (str(pid), *children):
                self._write("cgroup.procs", process)
        except OSError as error:
            raise _unusable(error) from error

    def killed(self) -> bool:
        """Whether the kernel killed something in it for memory."""
        name = "memory.oom_control" if self._place.version == 1 else "memory.events"
        with suppress(OSError):
            rows = (self._folder / name).read_text(encoding="ascii").splitlines()
            return any(row.split()[0] == "oom_kill" and row.split()[1] != "0" for row in rows)
        return False

    def close(self) -> None:
        """Remove it; what has just died in it may take a moment to be gone."""
        if self.oom is not None:
            os.close(self.oom)
            self.oom = None
        deadline = time.monotonic() + _REMOVAL_SECONDS
        while True:
            try:
                self._folder.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                if time.monotonic() > deadline:
                    return
                time.sleep(0.001)
            else:
                return

    def _watch(self) -> None:
        """`oom` becomes readable when memory runs out; version 1 kills one process only and not the tree."""
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


def memory_place() -> Place | None:
    """Where this process may make memory cgroups; tried once."""
    return _found(os.getpid())


@cache
def _found(_process: int) -> Place | None:
    for place in places(_ROOT, Path("/proc/self/cgroup").read_text(encoding="utf-8")):
        try:
            MemoryGroup(place, 1 << 26).close()
        except WorkError:
            continue
        _swept(place)
        return place
    return None


def _swept(place: Place) -> None:
    """Remove the empty groups of engines that are gone."""
    for folder in place.folder.glob("sandbox-*-*"):
        engine = folder.name.split("-")[1]
        if engine.isdecimal() and not Path("/proc", engine).exists():
            with suppress(OSError):
                folder.rmdir()


def places(root: Path, memberships: str) -> list[Place]:
    """Where a group could be made, by the lines of /proc/self/cgroup; whether it can is tried."""
    found: list[Place] = []
    for line in memberships.splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            found.append(Place(root / "memory" / path.lstrip("/"), 1))
        elif not controllers:
            own = root / path.lstrip("/")
            found += [Place(folder, 2) for folder in (own, own.parent) if _delegates(folder) and folder != root.parent]
    return found


def _delegates(folder: Path) -> bool:
    with suppress(OSError):
        return "memory" in (folder / "cgroup.subtree_control").read_text(encoding="ascii").split()
    return False


def _unusable(error: OSError) -> WorkError:
    return WorkError(
        f"the memory cgroup of a sandbox cannot be used: {os.strerror(error.errno or 0).lower()}",
        remedy="see `engine doctor --sandbox` for what this machine enforces",
        code="engine.limit_unenforceable",
    )
