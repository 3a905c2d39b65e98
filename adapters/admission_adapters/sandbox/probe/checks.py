"""The evidence for each boundary: acts of the probe program, with their expected results inside and outside.

Words are those of the acts after `words.py` has compared them with what the host saw. An act counts where it
is blocked inside and its positive control did the harm outside; a call that the filter kills (`signal:31`) is
evidence by itself, and so is the kernel's status of a process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from admission_adapters.sandbox.bubblewrap.seccomp import KILLED

DID = ("did",)
KILLED_BY_FILTER = ("signal:31",)
REFUSED = ("refused:", *KILLED_BY_FILTER)
READ_ONLY = ("refused:EROFS",)


@dataclass(frozen=True, slots=True)
class Check:
    """One act. `expected` and `harm` are prefixes of words; without `harm` the act needs no control.

    `needed` is False where some machines refuse the act outside too: it then counts for nothing there.
    """

    act: str
    expected: tuple[str, ...] = REFUSED
    harm: tuple[str, ...] = DID
    needed: bool = True

    def verdict(self, inside: str, outside: str) -> bool | None:
        """Whether the boundary was enforced; None if the control could not do it either, which proves nothing."""
        if not inside.startswith(self.expected):
            return False
        if inside.startswith(KILLED_BY_FILTER) or not self.harm or outside.startswith(self.harm):
            return True
        return False if self.needed else None


def _refused(*acts: str) -> tuple[Check, ...]:
    return tuple(Check(act) for act in acts)


def own(*namespaces: str) -> tuple[Check, ...]:
    """Checks of the namespaces that a program has to itself."""
    return tuple(Check(f"namespace_{name}", ("own",), ("shared",)) for name in namespaces)


def same_facts(**facts: str) -> tuple[Check, ...]:
    """Checks of the kernel's status of the program's process, read from outside; they need no control."""
    return tuple(Check(f"outside_{name}", (word,), ()) for name, word in facts.items())


WORK = (
    Check("work_write", DID),
    Check("work_child", DID),
    Check("work_compute", DID),
    Check("work_environment", DID),
)
"""What a program must be able to do, or no boundary counts: a sandbox that runs nothing blocks everything."""

SOCKETS = ("inet6", "datagram", "raw", "mptcp", "unix", "unix_datagram", "packet", "alg")
"""Kinds of sockets that no program may make, beside those that have an act of their own."""

KERNEL: Mapping[str, tuple[Check, ...]] = {
    "files": (
        *_refused("file_secret", "file_ssh_key", "file_cloud", "file_browser", "file_personal"),
        *_refused("outside_write", "accounts", "own_memory", "core_pattern"),
        *(Check(f"{place}_write", READ_ONLY, ("did", "refused:EACCES")) for place in ("usr", "root", "dev")),
        *own("mnt"),
    ),
    "network": (
        *_refused("tcp", "udp", "dns", "unix_path", "unix_abstract"),
        *(Check(act, needed=False) for act in ("netlink", "vsock", *(f"socket_{name}" for name in SOCKETS))),
        *own("net"),
    ),
    "processes": (*_refused("process_seen", "process_killed", "shared_memory"), *own("pid", "ipc")),
    "environment": (Check("secret_variable", ("none",)), Check("variables", ("none",)), Check("process_environment")),
    "descriptors": (Check("inherited"), Check("descriptors", ("none",))),
    "capabilities": (
        Check("mounted", needed=False),
        *same_facts(user="unprivileged", groups="unprivileged", capabilities="none", new_privileges="refused"),
        *same_facts(session="own"),
    ),
    "namespaces": (
        *(Check(act, needed=False) for act in ("new_user_namespace", "new_namespaces", "cloned_namespace")),
        Check("cloned3_namespace", needed=False),
        Check("host_name", ("other",)),
        *own("user", "uts", "cgroup"),
    ),
    "syscalls": (
        *(Check(f"call_{name}", KILLED_BY_FILTER) for name in sorted(KILLED)),
        Check("call_inotify_init1", ("refused:EPERM",)),
        *same_facts(filter="refused"),
    ),
    "memory_process": (Check("memory", ("refused:ENOMEM",)),),
    "process_count": (Check("forks", ("refused:EAGAIN",)),),
    "open_files": (Check("opens", ("refused:EMFILE",)),),
    "file_size": (Check("large_file", ("refused:EFBIG", "signal:25")),),
    "disk": (Check("disk", ("refused:ENOSPC",)),),
}
"""Boundaries that the kernel enforces."""

EGRESS: Mapping[str, tuple[Check, ...]] = {**KERNEL, "network": (*KERNEL["network"], Check("listener", DID, ()))}
"""Those of a sandbox with a way out, whose listener has to be reached."""

SUPERVISED: Mapping[str, tuple[Check, ...]] = {
    "output": (Check("stdout", ("output_limit",)), Check("stderr", ("output_limit",))),
    "time": (Check("sleep", ("timeout_wall",)),),
}
"""Boundaries that the engine enforces while a program runs."""

SURVIVORS = (Check("left_at_exit", ("none",)), Check("left_at_kill", ("none",)))
"""No process outlives the answer; enforced by the kernel if the program had its own process namespace."""

CPU = {"kernel": ("signal:24",), "supervised": ("timeout_cpu",)}
"""Who ended a program that used up its processor time, by the word of the act: SIGXCPU is the kernel's."""

MEMORY = (Check("memory_tree", ("oom",)),)
INODES = (Check("inode_flood", ("oom",)),)
"""By the kernel with a memory cgroup; without one bounded by the limits of a process and their number."""

BOUNDED: Mapping[str, tuple[str, ...]] = {
    "memory": ("memory_process", "process_count", "disk"),
    "inodes": ("cpu", "process_count", "time", "disk"),
}
"""Boundaries without a kernel limit of their own are bounded by the product of these."""

MACHINE_CALLS: Mapping[str, tuple[Check, ...]] = {
    "x86_64": (Check("foreign_call", KILLED_BY_FILTER), Check("x32_call", KILLED_BY_FILTER)),
}
"""Acts that only one architecture has; they belong to `syscalls`."""


def acts_of(checks: Iterable[Check]) -> list[str]:
    """The names of what is tried."""
    return [check.act for check in checks]
