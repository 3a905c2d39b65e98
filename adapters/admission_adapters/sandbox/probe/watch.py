"""Watches the processes of a program from outside, by the name that they give themselves (proc(5))."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Self

from admission_adapters.sandbox.run.proc import every_process, status_of

_PROC = Path("/proc")
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
_SETS = ("CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd")


def named(token: str) -> list[int]:
    """Live processes of this name; zombies do not count."""
    found = []
    for pid in every_process():
        with suppress(OSError):
            name, _, rest = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")
            if rest[1:2] not in {b"Z", b"X"} and name.partition(b"(")[2] == token.encode("ascii"):
                found.append(pid)
    return sorted(found)


def observed(pid: int) -> dict[str, str]:
    """The identity of a process from the kernel: user, capabilities, filter, session, namespaces. Raises OSError."""
    status = status_of(pid)
    capabilities = {int(status[name], 16) for name in _SETS}
    own = {name for name in _NAMESPACES if _namespace(pid, name) != _namespace(os.getpid(), name)}
    return {
        "outside_user": "root" if "0" in status["Uid"].split() else "unprivileged",
        "outside_groups": "root" if "0" in [*status["Gid"].split(), *status["Groups"].split()] else "unprivileged",
        "outside_capabilities": "none" if capabilities == {0} else "some",
        "outside_new_privileges": "refused" if status["NoNewPrivs"] == "1" else "did",
        "outside_filter": "refused" if status["Seccomp"] == "2" else "did",
        "outside_session": "shared" if os.getsid(pid) == os.getsid(0) else "own",
        **{f"namespace_{name}": "own" if name in own else "shared" for name in _NAMESPACES},
    }


class Watcher(ABC):
    """Looks at the processes of a program in a thread, from time to time, until it has seen all or is closed.

    `facts` are what was observed of the program itself, `most` is how many were alive at once of those that count.
    """

    seconds = 0.02
    """Between two looks."""

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}
        self.most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sandbox-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def complete(self) -> bool:
        """Whether all that is watched for was seen."""
        return False

    @abstractmethod
    def look(self) -> None:
        """Look once."""

    def _watch(self) -> None:
        while not self._over.is_set() and not self.complete:
            self.look()
            self._over.wait(self.seconds)


class ProcessWatcher(Watcher):
    """Watches for processes of two names: the facts are of the one named `main`, what counts is named `token`."""

    seconds = 0.004  # well below a start

    def __init__(self, main: str, token: str, count: int) -> None:
        super().__init__()
        self._main, self._token, self._count = main, token, count

    @property
    def complete(self) -> bool:
        """Whether `main` and as many others as expected were seen."""
        return bool(self.facts) and self.most >= self._count

    def look(self) -> None:
        """Look once."""
        self.most = max(self.most, len(named(self._token)))
        with suppress(OSError, KeyError, ValueError):
            for pid in named(self._main)[:1]:
                self.facts = observed(pid)


def _namespace(pid: int, name: str) -> Path:
    return (_PROC / str(pid) / "ns" / name).readlink()
