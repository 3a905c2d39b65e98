"""The system call filter of the process that a WebAssembly module runs in: it can open, connect and start nothing.

The same search over numbers as for a sandbox of its own, with far fewer answers: the streams are read and
written, memory and threads are managed, everything else is not permitted. So a module that breaks out of the
runtime still holds nothing but three pipes.
"""

from __future__ import annotations

import platform

from adapters.sandbox import seccomp

ALLOWED = frozenset(
    """
    read write readv writev close lseek fcntl mmap mprotect munmap mremap madvise brk futex set_robust_list rseq
    rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2
    poll ppoll gettid getpid getuid geteuid getrandom clock_gettime clock_getres clock_nanosleep nanosleep
    sched_yield sched_getaffinity exit exit_group restart_syscall
    """.split()  # noqa: SIM905  (a table of names, as of the other filter)
)
"""What the runtime and the interpreter around it use once they are loaded."""

_THREAD = 0x00010000
"""CLONE_THREAD: without it, clone makes a process."""

_PRCTLS = (15,)  # PR_SET_NAME, which the runtime gives its threads
_IOCTLS = (0x5401,)  # TCGETS: whether a stream is a terminal


def here() -> bytes:
    """The filter for this machine. Raises WorkError for one that has no table."""
    return seccomp.assemble(platform.machine(), answer)


def answer(name: str | None) -> list[seccomp.Instruction]:
    """What is done with one call."""
    if name in ALLOWED:
        return [seccomp.give(seccomp.ALLOW)]
    match name:
        case "clone":
            return seccomp.has_bit(0, _THREAD)
        case "clone3":  # its flags are behind a pointer; a C library falls back to clone
            return [seccomp.give(seccomp.ENOSYS)]
        case "prctl":
            return seccomp.one_of(0, _PRCTLS)
        case "ioctl":
            return seccomp.one_of(1, _IOCTLS)
    return [seccomp.give(seccomp.EPERM)]
