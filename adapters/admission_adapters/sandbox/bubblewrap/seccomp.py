"""The system call filter: a BPF program in pure Python, for x86_64 and aarch64.

Whatever is not allowed is refused: what no honest program needs kills the process, a call that is newer than
our table is unknown (ENOSYS), the rest is not permitted (EPERM). The program is a binary search over the
number, so that it stays short and every number has exactly one answer. Tested with a simulator of BPF.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from admission_adapters.sandbox.bubblewrap.syscalls import NEWEST, numbers
from engine.errors import UnenforceableError

ALLOW = 0x7FFF0000
KILL = 0x80000000
EPERM = 0x00050001
ENOSYS = 0x00050026
ENOTSUP = 0x0005005F


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALLOWED = _names(
    """
    read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 close close_range lseek dup dup2 dup3
    pipe pipe2 fcntl flock fsync fdatasync ftruncate truncate fallocate open openat creat stat fstat lstat
    newfstatat statx access faccessat faccessat2 readlink readlinkat chdir fchdir mkdir mkdirat rmdir unlink
    unlinkat rename renameat renameat2 link linkat symlink symlinkat chmod fchmod fchmodat utimensat statfs
    fstatfs umask copy_file_range sendfile mmap mprotect munmap mremap madvise brk msync mincore membarrier poll
    ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2 timerfd_create
    timerfd_settime timerfd_gettime rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait
    rt_sigsuspend sigaltstack kill tgkill futex set_robust_list get_robust_list set_tid_address rseq setsid
    setpgid fork vfork execve exit exit_group wait4 waitid getcwd getdents64 gettid getpid getppid getpgrp getpgid
    getsid getuid geteuid getgid getegid getresuid getresgid getgroups getrlimit getrusage getcpu getrandom
    gettimeofday getitimer getpriority setitimer times sysinfo uname arch_prctl sched_yield sched_getaffinity
    clock_gettime clock_getres clock_nanosleep nanosleep time alarm restart_syscall
    """
)
"""What an interpreter and an honest program use; none of these reaches past what the namespaces show."""

KILLED = _names(
    """
    ptrace process_vm_readv process_vm_writev process_madvise kcmp mount umount2 pivot_root move_mount open_tree
    fsopen fsconfig fsmount fspick mount_setattr statmount listmount setns unshare chroot bpf kexec_load
    kexec_file_load init_module finit_module delete_module add_key request_key keyctl userfaultfd perf_event_open
    io_uring_setup io_uring_enter io_uring_register open_by_handle_at name_to_handle_at pidfd_getfd swapon swapoff
    reboot settimeofday clock_settime clock_adjtime adjtimex acct quotactl quotactl_fd iopl ioperm modify_ldt
    syslog fanotify_init lookup_dcookie nfsservctl vhangup sethostname setdomainname personality
    """
)
"""What only an attack uses; the process dies of SIGSYS, which the probe reads as evidence."""

ATTRIBUTES = _names(
    """
    setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr
    lremovexattr fremovexattr
    """
)
"""Extended attributes, answered as by a file system that has none: copying a file goes on without them."""

NAMESPACE_BITS = 0x7E020000
"""The flags of clone that make a namespace."""

IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX."""

PRCTLS = (3, 15, 16, 21, 38, 39)
"""PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_GET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS."""

_LOAD, _JEQ, _JGE, _JGT, _JSET, _JA, _RET, _AND = 0x20, 0x15, 0x35, 0x25, 0x45, 0x05, 0x06, 0x54
_NUMBER, _ARCH, _ARGUMENT = 0, 4, 16
_X32_BIT = 0x40000000
_FAR = 255

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, value: one `struct sock_filter`."""


def _load(offset: int) -> Instruction:
    return (_LOAD, 0, 0, offset)


def give(action: int) -> Instruction:
    """The end of an answer: ALLOW, KILL, EPERM or ENOSYS."""
    return (_RET, 0, 0, action)


def one_of(argument: int, values: tuple[int, ...]) -> list[Instruction]:
    """Allowed when the low word of the argument is one of the values: the kernel reads no more of these."""
    tests = [(_JEQ, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [_load(_ARGUMENT + 8 * argument), *tests, give(EPERM), give(ALLOW)]


THREAD_ONLY = [_load(_ARGUMENT), (_JSET, 1, 0, 0x00010000), give(EPERM), give(ALLOW)]
"""CLONE_THREAD: without it, clone makes a process."""

_ADDRESS = _ARGUMENT + 8 * 4
WITHOUT_ADDRESS = [_load(_ADDRESS), (_JEQ, 0, 3, 0), _load(_ADDRESS + 4), (_JEQ, 0, 1, 0), give(ALLOW), give(EPERM)]
"""Sending and receiving through a socket that is connected: the address, the fifth argument, is a null pointer."""

STREAM_PAIR = [
    *(_load(_ARGUMENT), (_JEQ, 0, 4, 1)),  # AF_UNIX
    *(_load(_ARGUMENT + 8), (_JEQ, 1, 0, 0x80001), (_JEQ, 0, 1, 0x80801)),  # SOCK_STREAM, close on exec, non-blocking
    *(give(ALLOW), give(EPERM)),
]
"""An event loop wakes itself up through a pair of sockets. It connects nowhere, and passes no descriptor on."""

SOCKETS = _names(
    """
    accept accept4 bind connect getpeername getsockname getsockopt listen recvmmsg recvmsg sendmmsg sendmsg shutdown
    """
)
"""What else a program uses that may connect within its own network namespace."""

SOCKET_LEVELS = (1, 6)
"""Levels of options that may be set: SOL_SOCKET, IPPROTO_TCP."""

TCP_SOCKET = [
    *(_load(_ARGUMENT), (_JEQ, 1, 0, 2), give(EPERM)),  # AF_INET
    *(_load(_ARGUMENT + 8), (_AND, 0, 0, 0xF), (_JEQ, 0, 3, 1)),  # SOCK_STREAM, with any flags
    *(_load(_ARGUMENT + 16), (_JEQ, 2, 0, 0), (_JEQ, 1, 0, 6)),  # TCP; any other protocol, such as MPTCP, is none
    *(give(EPERM), give(ALLOW)),
]
"""The one kind of socket of a sandbox with a way out."""

Answer = Callable[[str | None], list[Instruction]]
"""What is done with a call by its name, or with a number that has none in the table."""

CLONE3 = [give(ENOSYS)]
"""Its flags are behind a pointer; a C library falls back to clone."""

_GUARDED: Mapping[str, list[Instruction]] = {
    "clone": [_load(_ARGUMENT), (_JSET, 0, 1, NAMESPACE_BITS), give(KILL), give(ALLOW)],
    "clone3": CLONE3,
    "ioctl": one_of(1, IOCTLS),
    "prctl": one_of(0, PRCTLS),
    "prlimit64": one_of(0, (0,)),  # of the process itself only
    "socketpair": STREAM_PAIR,
    "sendto": WITHOUT_ADDRESS,
    "recvfrom": WITHOUT_ADDRESS,
    **{name: [give(ENOTSUP)] for name in ATTRIBUTES},
}
"""The calls whose answer depends on an argument."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """The word of seccomp for an architecture, the table of its numbers, and whether x32 calls exist on it."""

    word: int
    column: int
    x32: bool


ARCHITECTURES: Mapping[str, Architecture] = {
    "x86_64": Architecture(0xC000003E, 1, x32=True),
    "aarch64": Architecture(0xC00000B7, 2, x32=False),
}


def answering(
    allowed: frozenset[str], guarded: Mapping[str, list[Instruction]], killed: frozenset[str] = frozenset()
) -> Answer:
    """What is done with each call: what is in none of the tables is not permitted."""
    table = {**guarded} | {name: [give(KILL)] for name in killed} | {name: [give(ALLOW)] for name in allowed}
    return lambda name: table.get(name or "", [give(EPERM)])


_ORDINARY = answering(ALLOWED, _GUARDED, KILLED)
EGRESS = answering(
    ALLOWED | SOCKETS, {**_GUARDED, "socket": TCP_SOCKET, "setsockopt": one_of(1, SOCKET_LEVELS)}, KILLED
)
"""The rules for programs that may connect to the listener of their sandbox: TCP over IPv4, and no other family."""


@cache
def assemble(machine: str, answer: Answer = _ORDINARY) -> bytes:
    """The filter for a machine as the kernel names it. Raises WorkError for one that has no table.

    `answer` maps a call's name to its action, replacing the rules for ordinary programs.
    """
    if machine not in ARCHITECTURES:
        raise UnenforceableError(
            f"there is no system call filter for `{machine[:40]}`", remedy="run generated code on x86_64 or aarch64"
        )
    return b"".join(struct.pack("=HBBI", *line) for line in program(ARCHITECTURES[machine], answer))


def here(*, egress: bool = False) -> bytes:
    """The filter for this machine: for ordinary programs, or for those of a sandbox with a way out."""
    return assemble(platform.machine(), EGRESS if egress else _ORDINARY)


def program(architecture: Architecture, answer: Answer) -> list[Instruction]:
    """The instructions: the architecture's word, the x32 bit, then the search."""
    begin = [_load(_ARCH), (_JEQ, 1, 0, architecture.word), give(KILL), _load(_NUMBER)]
    if architecture.x32:
        begin += [(_JGE, 0, 1, _X32_BIT), give(KILL)]
    return begin + _search(_spans(numbers(architecture.column), answer))


Span = tuple[int, list[Instruction]]
"""From which number on, and what is done with it."""


def _spans(table: Mapping[str, int], answer: Answer) -> list[Span]:
    """Every number's answer, in order, equal neighbors as one span; the first begins at 0."""
    by_number = {number: name for name, number in table.items()}
    spans: list[Span] = []
    for number in range(NEWEST + 2):
        block = answer(by_number.get(number)) if number <= NEWEST else [give(ENOSYS)]
        if not spans or spans[-1][1] != block:
            spans.append((number, block))
    return spans


def _search(spans: list[Span]) -> list[Instruction]:
    """A binary search for the span of the number in the accumulator."""
    if len(spans) == 1:
        return spans[0][1]
    middle = len(spans) // 2
    below, above = _search(spans[:middle]), _search(spans[middle:])
    if len(below) <= _FAR:
        return [(_JGE, len(below), 0, spans[middle][0]), *below, *above]
    return [(_JGE, 0, 1, spans[middle][0]), (_JA, 0, 0, len(below)), *below, *above]
