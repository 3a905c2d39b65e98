"""The host user of a sandbox: never root, never an account of this machine."""

from __future__ import annotations

import grp
import os
import pwd
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from admission_adapters.sandbox.run.proc import every_process, status_of
from engine.errors import UnenforceableError

SETPRIV = "/usr/bin/setpriv"
"""Of util-linux, which every Debian and Ubuntu has."""

_CANDIDATES = range(60_800, 61_184)
"""User ids below systemd's range and above those of people and packages; root and `nobody` are not in it."""

_NESTED = 2
"""Minimum number of descriptors of a process in its own namespace."""


@dataclass(frozen=True, slots=True)
class User:
    """The numbers under which the kernel knows a sandbox; `own` when they are those of the engine itself."""

    uid: int
    gid: int
    own: bool

    @property
    def other(self) -> int | None:
        """The uid under which programs run as they would in a sandbox; None if it is already this process's uid."""
        return None if self.own else self.uid


@cache
def sandbox_user() -> User:
    """The engine's own user, or for root the first unused number. Raises WorkError if there is none."""
    if os.geteuid() != 0:
        return User(os.geteuid(), os.getegid(), own=True)
    uids, gids = _mapped("uid_map"), _mapped("gid_map")
    for number in _CANDIDATES:
        if _inside(number, uids) and _inside(number, gids) and not _in_use(number):
            return User(number, number, own=False)
    raise UnenforceableError(
        "root has no unprivileged user to run a sandbox as",
        remedy="start the engine as an ordinary user, or map uids 60800 to 61183 into its user namespace",
    )


@cache
def swept(_process: int) -> None:
    """Once per process: end sandboxes whose engine is dead. Only those of the unused user, so never our own."""
    user = sandbox_user()
    if user.own:
        return
    for number in every_process():
        with suppress(OSError, ValueError, KeyError):
            _end_orphan(number, user.uid)


def _end_orphan(number: int, uid: int) -> None:
    """Kill the first process of a sandbox when its parent is not a monitor of the same user any more."""
    pidfd = os.pidfd_open(number)
    try:
        facts = status_of(number)
        if is_first(facts, uid) and not _is_of(status_of(int(facts["PPid"])), uid):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)


def is_first(facts: Mapping[str, str], uid: int) -> bool:
    """Whether these are the facts of a process of this user that is the first one of a namespace within ours."""
    numbers = facts["NSpid"].split()  # in our namespace, and in its own
    return _is_of(facts, uid) and len(numbers) >= _NESTED and numbers[-1] == "1"


def _is_of(facts: Mapping[str, str], uid: int) -> bool:
    """Whether a process is this user's in every respect."""
    return set(facts["Uid"].split()) == {str(uid)}


def becoming(user: User) -> list[str]:
    """What a command of root begins with to be run as this user, without its groups.

    Python could do that itself, but only by copying this process: a start would cost more, the larger it is.
    """
    return [SETPRIV, f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups", "--"]


def _in_use(number: int) -> bool:
    for look_up in (pwd.getpwuid, grp.getgrgid):
        try:
            look_up(number)
        except KeyError:
            continue
        return True
    return False


def _mapped(name: str) -> list[range]:
    rows = (line.split() for line in Path("/proc/self", name).read_text(encoding="ascii").splitlines())
    return [range(int(first), int(first) + int(count)) for first, _, count in rows]


def _inside(number: int, ranges: list[range]) -> bool:
    return any(number in numbers for numbers in ranges)
