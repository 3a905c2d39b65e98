"""The system call filter, simulated for both architectures and loaded for real on this one."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import pytest

from admission_adapters.sandbox.bubblewrap import seccomp
from admission_adapters.sandbox.bubblewrap.syscalls import NEWEST, numbers
from admission_adapters.sandbox.model import Status
from engine.errors import WorkError
from tests.adapters.sandbox.bpf import answer, checked
from tests.adapters.sandbox.programs import ran
from tests.facilities import needs

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
WORDS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
COLUMNS = {"x86_64": 1, "aarch64": 2}
HEADERS = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
GENERIC = Path("/usr/include/asm-generic/unistd.h")


@pytest.fixture(autouse=True)
def _assembled_anew() -> None:
    """The filter is kept once it is made; each test is of the one that is made now."""
    seccomp.assemble.cache_clear()


both = pytest.mark.parametrize("machine", ["x86_64", "aarch64"])


@both
def test_the_filter_is_valid_for_the_kernel(machine: str) -> None:
    assert len(checked(seccomp.assemble(machine))) < 400


# covers: C58
@both
def test_every_call_number_has_the_action_of_its_name(machine: str) -> None:
    code, word = seccomp.assemble(machine), WORDS[machine]
    table = {number: name for name, number in numbers(COLUMNS[machine]).items()}
    for number in [*range(NEWEST + 200), 0x3FFFFFFF]:
        name = table.get(number)
        wanted = EPERM if number <= NEWEST else ENOSYS
        if name in seccomp.ALLOWED:
            wanted = ALLOW
        elif name in seccomp.KILLED:
            wanted = KILL
        elif name in {"clone", "prlimit64", "sendto", "recvfrom"}:
            wanted = ALLOW  # of the process itself, and without a flag
        elif name == "clone3":
            wanted = ENOSYS
        elif name in seccomp.ATTRIBUTES:
            wanted = seccomp.ENOTSUP
        assert answer(code, word, number) == wanted, (number, name)


@both
def test_a_search_beyond_the_jump_range_finds_every_number(machine: str) -> None:
    table = numbers(COLUMNS[machine])
    code = seccomp.assemble(machine, lambda name: [seccomp.give(table.get(name or "", 999))] * 3)
    assert 0x05 in {kind for kind, *_ in checked(code)}  # a jump that is always taken
    for name, number in table.items():
        assert answer(code, WORDS[machine], number) == number, name


@both
def test_another_architecture_is_killed(machine: str) -> None:
    code = seccomp.assemble(machine)
    for word in (0x40000003, 0xC0000028, *(word for name, word in WORDS.items() if name != machine), 0):
        for number in (0, 1, 59, NEWEST + 1):
            assert answer(code, word, number) == KILL


def test_x32_calls_are_killed() -> None:
    code, word = seccomp.assemble("x86_64"), WORDS["x86_64"]
    for number in (0x40000000, 0x40000001, 0x40000208, 0x7FFFFFFF, 0xFFFFFFFF):
        assert answer(code, word, number) == KILL


@both
def test_clone_makes_no_namespace(machine: str) -> None:
    code, word, clone = seccomp.assemble(machine), WORDS[machine], numbers(COLUMNS[machine])["clone"]
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(code, word, clone, (flag | 17,)) == KILL
    threads = 0x003D0F00
    assert answer(code, word, clone, (threads,)) == ALLOW
    assert answer(code, word, clone, (0x4111,)) == ALLOW


@both
@pytest.mark.parametrize(
    ("name", "place", "good", "bad"),
    [
        ("ioctl", 1, seccomp.IOCTLS, (0x5412, 0x541C, 0x5402, 0)),  # TIOCSTI, TIOCLINUX, TCSETS
        ("prctl", 0, seccomp.PRCTLS, (4, 8, 22, 23, 24, 36, 0x53564D41)),  # dumpable, seccomp, capabilities, subreaper
        ("prlimit64", 0, (0,), (1, 2, 4_000_000_000)),
    ],
)
def test_guarded_calls_are_allowed_only_with_listed_arguments(
    machine: str, name: str, place: int, good: tuple[int, ...], bad: tuple[int, ...]
) -> None:
    code, word, number = seccomp.assemble(machine), WORDS[machine], numbers(COLUMNS[machine])[name]
    for values, wanted in ((good, ALLOW), (bad, EPERM)):
        for value in values:
            arguments = tuple(value if at == place else 7 for at in range(6))
            assert answer(code, word, number, arguments) == wanted


@both
def test_an_event_loop_gets_a_pair_of_streams_and_nothing_with_an_address(machine: str) -> None:
    code, word, by_name = seccomp.assemble(machine), WORDS[machine], numbers(COLUMNS[machine])
    for kind in (0x80001, 0x80801):
        assert answer(code, word, by_name["socketpair"], (1, kind, 0, 0)) == ALLOW
        assert answer(code, word, by_name["socketpair"], (2, kind, 0, 0)) == EPERM
    for kind in (1, 2, 0x80002, 0x80005):
        assert answer(code, word, by_name["socketpair"], (1, kind, 0, 0)) == EPERM
    for name in ("sendto", "recvfrom"):
        assert answer(code, word, by_name[name], (3, 7, 1, 0, 0, 0)) == ALLOW
        for address in (1, 1 << 32, (1 << 47) + 16):
            assert answer(code, word, by_name[name], (3, 7, 1, 0, address, 0)) == EPERM


@both
def test_a_way_out_is_a_tcp_socket_over_ipv4_and_no_other(machine: str) -> None:
    code, word, by_name = seccomp.assemble(machine, seccomp.EGRESS), WORDS[machine], numbers(COLUMNS[machine])
    assert len(checked(code)) < 450
    ordinary = seccomp.assemble(machine)
    for kind in (1, 0x80001, 0x80801, 0x801):
        for protocol in (0, 6):
            assert answer(code, word, by_name["socket"], (2, kind, protocol)) == ALLOW
    every = [
        (family, kind, protocol) for family in range(64) for kind in range(16) for protocol in (0, 1, 6, 17, 132, 262)
    ]
    found = {one for one in every if answer(code, word, by_name["socket"], one) == ALLOW}
    assert found == {(2, 1, 0), (2, 1, 6)}
    for level, wanted in ((1, ALLOW), (6, ALLOW), (0, EPERM), (41, EPERM), (255, EPERM), (270, EPERM)):
        assert answer(code, word, by_name["setsockopt"], (3, level, 1, 7, 4)) == wanted
    for name in seccomp.SOCKETS:
        assert answer(code, word, by_name[name]) == ALLOW
    for name in {*seccomp.SOCKETS, "socket", "setsockopt"}:
        assert answer(ordinary, word, by_name[name], (2, 1, 0)) == EPERM


@both
def test_the_egress_filter_changes_only_socket_calls(machine: str) -> None:
    ways = {"socket", "setsockopt", *seccomp.SOCKETS}
    table = {number: name for name, number in numbers(COLUMNS[machine]).items()}
    ordinary, egress = seccomp.assemble(machine), seccomp.assemble(machine, seccomp.EGRESS)
    for number in range(NEWEST + 2):
        if table.get(number) not in ways:
            assert answer(ordinary, WORDS[machine], number) == answer(egress, WORDS[machine], number)


def test_every_system_call_is_in_exactly_one_list() -> None:
    guarded = {"clone", "clone3", "ioctl", "prctl", "prlimit64", "socketpair", "sendto", "recvfrom"}
    guarded |= seccomp.ATTRIBUTES
    assert not seccomp.ALLOWED & seccomp.KILLED
    assert not guarded & (seccomp.ALLOWED | seccomp.KILLED)
    ways_out = seccomp.SOCKETS | {"socket", "setsockopt"}
    assert not ways_out & (seccomp.ALLOWED | seccomp.KILLED | guarded)
    assert seccomp.ALLOWED | seccomp.KILLED | guarded | ways_out == set(numbers(1))
    assert (len(seccomp.ALLOWED), len(seccomp.KILLED)) == (142, 58)


@pytest.mark.skipif(not HEADERS.is_file(), reason=f"{HEADERS} is missing: install the headers of the kernel")
def test_numbers_of_x86_64_are_those_of_the_kernel() -> None:
    known = dict(re.findall(r"#define __NR_(\w+) (\d+)", HEADERS.read_text(encoding="utf-8")))
    ours = numbers(1)
    later = {"statmount", "listmount"}  # newer than the headers may be
    assert {name: int(known[name]) for name in ours if name in known} == {
        name: ours[name] for name in ours if name in known
    }
    assert set(ours) - set(known) <= later


@pytest.mark.skipif(not GENERIC.is_file(), reason=f"{GENERIC} is missing: install the headers of the kernel")
def test_generic_numbers_are_those_of_the_kernel() -> None:
    text = GENERIC.read_text(encoding="utf-8")
    known = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)", text)}
    known |= {"newfstatat": known["fstatat"], "umount2": known["umount2"]}
    ours = {name: number for name, number in numbers(2).items() if name in known}
    assert len(ours) > 150
    assert ours == {name: known[name] for name in ours}


def test_other_machines_have_no_filter() -> None:
    with pytest.raises(WorkError, match="no system call filter for `riscv64`"):
        seccomp.assemble("riscv64")
    assert platform.machine() in seccomp.ARCHITECTURES


CALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
result = libc.syscall({call})
print(result, ctypes.get_errno())
"""


@needs("bubblewrap")
def test_an_event_loop_runs() -> None:
    code = "import asyncio\nasync def two():\n    return await asyncio.to_thread(lambda: 2)\nprint(asyncio.run(two()))"
    assert ran(code).stdout == b"2\n"


# covers: C58.1
@needs("bubblewrap", "x86_64")
@pytest.mark.parametrize(
    "call",
    [
        "101, 0, 0, 0, 0",  # ptrace
        "272, 0x10000000",  # unshare
        "425, 8, 0",  # io_uring_setup
        "165, 0, 0, 0, 0, 0",  # mount
        "321, 0, 0, 0",  # bpf
        "56, 0x10000011, 0, 0, 0, 0",  # clone with a user namespace
        "0x40000001, 1, 0, 0",  # x32 write
    ],
)
def test_a_forbidden_system_call_kills_the_program(call: str) -> None:
    ended = ran(CALL.format(call=call))
    assert (ended.status, ended.signal, ended.stdout) == (Status.FORBIDDEN_SYSCALL, 31, b"")


@needs("bubblewrap", "x86_64")
@pytest.mark.parametrize(
    ("call", "errno"),
    [
        ("41, 2, 1, 0", 1),  # socket
        ("53, 1, 2, 0, 0", 1),  # socketpair of datagrams, which could carry descriptors
        ("53, 2, 0x80001, 0, 0", 1),  # socketpair of the network
        ("44, 0, 0, 0, 0, 1, 0", 1),  # sendto with an address
        ("46, 0, 0, 0", 1),  # sendmsg
        ("435, 0, 0", 38),  # clone3
        ("133, 0, 0, 0", 1),  # mknod
        ("302, 1, 7, 0, 0", 1),  # prlimit64 of the first process
        ("157, 22, 0, 0, 0, 0", 1),  # prctl: a filter of its own
        ("600", 38),  # a number that nobody has given out
    ],
)
def test_a_refused_system_call_returns_an_error(call: str, errno: int) -> None:
    ended = ran(CALL.format(call=call))
    assert (ended.status, ended.stdout) == (Status.OK, f"-1 {errno}\n".encode())
