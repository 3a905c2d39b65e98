"""Looking at the processes of a program from outside, by the name that they give themselves (proc(5))."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

_PROC = Path("/proc")
_POLL_SECONDS = 0.004  # well below a start
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
_SETS = ("CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd")


def named(token: str) -> list[int]:
    """Processes of this name that are alive. A dead one that nobody has waited for is not."""
    return sorted(_living().get(token.encode("ascii"), ()))


def _living() -> dict[bytes, list[int]]:
    """Living processes by name."""
    found: dict[bytes, list[int]] = {}
    for entry in os.scandir(_PROC):
        if entry.name.isdigit():
            with suppress(OSError):
                name, _, rest = (_PROC / entry.name / "stat").read_bytes().rpartition(b")")
                if rest[1:2] not in {b"Z", b"X"}:
                    found.setdefault(name.partition(b"(")[2], []).append(int(entry.name))
    return found


def observed(pid: int) -> dict[str, str]:
    """Who a process is as the kernel tells it: user, capabilities, filter, session, namespaces. Raises OSError."""
    status = dict(_fields((_PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace")))
    held = {int(status[name], 16) for name in _SETS}
    own = {name for name in _NAMESPACES if _namespace(pid, name) != _namespace(os.getpid(), name)}
    return {
        "outside_user": "root" if "0" in status["Uid"].split() else "unprivileged",
        "outside_groups": "root" if "0" in [*status["Gid"].split(), *status["Groups"].split()] else "unprivileged",
        "outside_capabilities": "none" if held == {0} else "some",
        "outside_new_privileges": "refused" if status["NoNewPrivs"] == "1" else "did",
        "outside_filter": "refused" if status["Seccomp"] == "2" else "did",
        "outside_session": "shared" if os.getsid(pid) == os.getsid(0) else "own",
        **{f"namespace_{name}": "own" if name in own else "shared" for name in _NAMESPACES},
    }


class Watch:
    """Watches in a thread for processes of two names until it is told that the program ended.

    `facts` are of the process named `main`, `most` is how many named `token` were alive at once.
    """

    def __init__(self, main: str, token: str, count: int) -> None:
        self.facts: dict[str, str] = {}
        self.most = 0
        self._main, self._token, self._count = main, token, count
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="sandbox-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def complete(self) -> bool:
        """Whether all that is watched for was seen."""
        return bool(self.facts) and self.most >= self._count

    def _look(self) -> None:
        while not self._over.is_set() and not self.complete:
            self.most = max(self.most, len(named(self._token)))
            with suppress(OSError, KeyError, ValueError):
                for pid in named(self._main)[:1]:
                    self.facts = observed(pid)
            self._over.wait(_POLL_SECONDS)


def _namespace(pid: int, name: str) -> Path:
    return (_PROC / str(pid) / "ns" / name).readlink()


def _fields(status: str) -> Iterator[tuple[str, str]]:
    for line in status.splitlines():
        name, _, value = line.partition(":")
        yield name, value.strip()
