"""Every single protection is worth something: leave it out, and the probe sees it.

Where the filter of system calls covers for a protection, both are left out, and what shows is more than what
shows without the filter alone.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from admission_adapters.sandbox.bubblewrap.arguments import PROTECTIONS
from admission_adapters.sandbox.bubblewrap.backend import BubblewrapEgress
from admission_adapters.sandbox.bubblewrap.probe import probe_bubblewrap
from admission_adapters.sandbox.model import Program
from admission_adapters.sandbox.probe.checks import SOCKETS
from admission_adapters.sandbox.probe.rows import Row
from admission_adapters.sandbox.probe.trial import BOUNDS, tried
from admission_adapters.sandbox.run.cgroup import memory_mode
from admission_adapters.sandbox.run.process import run_once
from admission_adapters.sandbox.run.recipe import BUBBLEWRAP, Recipe
from admission_adapters.sandbox.run.user import sandbox_user
from tests.facilities import needs

pytestmark = needs("bubblewrap")

COVERED = {"unshare_user", "disable_userns"}
"""What the filter covers: a namespace that nobody can make needs no other guard."""

SHOWS = {
    "unshare_user": "mounted",
    "disable_userns": "mounted",
    "unshare_ipc": "namespace_ipc",
    "unshare_pid": "process_killed",
    "unshare_net": "namespace_net",
    "unshare_uts": "host_name",
    "unshare_cgroup": "namespace_cgroup",
    "cap_drop": "outside_capabilities",
    "new_session": "outside_session",
    "clearenv": "secret_variable",
    "ro_usr": "usr_write",
    "dev": "dev_write",
    "private_tmp": "file_secret",
    "private_job": "disk",
    "remount_root": "root_write",
    "seccomp": "call_ptrace",
    "rlimit_as": "memory",
    "rlimit_nproc": "forks",
    "rlimit_nofile": "opens",
    "rlimit_fsize": "large_file",
    "rlimit_cpu": "cpu",
    "memory_cgroup": "memory_tree",
    "output_cap": "stdout",
    "wall_clock": "sleep",
    "kill_tree": "left_at_kill",
    "close_fds": "inherited",
    "drop_uid": "outside_user",
}
"""The act in which each protection shows first."""

UNCOVERED = {
    "unshare_net": "tcp",
    "unshare_ipc": "shared_memory",
    "unshare_pid": "process_seen",
}
"""What else shows once the filter is off: what it covered."""


@pytest.fixture(scope="module")
def outside() -> dict[str, str]:
    """The positive controls, run once for all of these tests."""
    return tried(run_once, sandbox_user().other).outside


@pytest.fixture(scope="module")
def unfiltered(outside: dict[str, str]) -> set[tuple[str, str]]:
    """What shows without the filter alone."""
    return red(outside, "seccomp")


@pytest.fixture(autouse=True)
def _nobody_stays() -> Iterator[None]:
    """Without a process namespace of its own, what a launcher started lives on; nobody else's launcher is outside."""
    yield
    own = Path("/proc/self/ns/pid").readlink()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (folder / "cmdline").read_bytes()
            launcher = command.startswith(b"/usr/bin/python") and b"n['launch']" in command  # and not its monitor
            if launcher and (folder / "ns/pid").readlink() == own:
                os.kill(int(folder.name), signal.SIGKILL)


def red(outside: dict[str, str], *without: str, recipe: Recipe = BUBBLEWRAP) -> set[tuple[str, str]]:
    """Boundaries that are open or only bounded, each with what was not held."""
    return {(row.boundary, act) for row in probe_bubblewrap(frozenset(without), outside, recipe) for act in _red(row)}


def _red(row: Row) -> list[str]:
    weaker = [act.name for act in row.acts if row.kind == "bounded" and act.enforced is None]
    return [act.name for act in row.red] + weaker


def test_every_protection_has_a_detecting_act() -> None:
    assert set(SHOWS) == set(PROTECTIONS)


@pytest.mark.full
def test_with_every_protection_no_act_succeeds(outside: dict[str, str]) -> None:
    assert red(outside) == (
        set() if memory_mode() != "none" else {("memory", "memory_tree"), ("inodes", "inode_flood")}
    )


# covers: C58 C59 C60
@pytest.mark.full(after=1)
@pytest.mark.parametrize("protection", sorted(set(PROTECTIONS) - COVERED))
def test_an_omitted_protection_is_detected(protection: str, outside: dict[str, str]) -> None:
    if protection == "drop_uid" and sandbox_user().own:
        pytest.skip("NOT TRIED: there is no other user to become; run as root")
    if protection == "memory_cgroup" and memory_mode() == "none":
        pytest.skip("NOT TRIED: this process may make no memory cgroup")
    assert SHOWS[protection] in {act for _, act in red(outside, protection)}


@pytest.mark.full
@pytest.mark.parametrize(
    ("protection", "act"), sorted({**{name: SHOWS[name] for name in COVERED}, **UNCOVERED}.items())
)
def test_an_omitted_protection_covered_by_the_filter_is_detected_without_it(
    protection: str, act: str, outside: dict[str, str], unfiltered: set[tuple[str, str]]
) -> None:
    """A namespace is not only another one: without it and the filter the canary is reached."""
    assert act in {shown for _, shown in red(outside, protection, "seccomp") - unfiltered}


# covers: C60 D08
def test_a_sandbox_with_egress_keeps_every_boundary(outside: dict[str, str]) -> None:
    bounded = set() if memory_mode() != "none" else {("memory", "memory_tree"), ("inodes", "inode_flood")}
    assert red(outside, recipe=BubblewrapEgress()) == bounded


# covers: C60
@pytest.mark.full
def test_without_the_filter_every_supported_socket_type_is_detected(outside: dict[str, str]) -> None:
    """The control did it, the filter alone refuses it: a namespace of its own has all of these too."""
    acts = {"netlink", "vsock", *(f"socket_{name}" for name in SOCKETS)}
    had = {act for act in acts if outside[act] == "did"}
    assert had >= {"netlink", "socket_inet6", "socket_datagram", "socket_unix", "socket_unix_datagram"}
    shown = {act for boundary, act in red(outside, "seccomp", recipe=BubblewrapEgress()) if boundary == "network"}
    assert shown == had


CONNECTS = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.stdin.read()))) as one:
    print(one.recv(4).decode())
"""


# covers: C60.3
@pytest.mark.full
@pytest.mark.parametrize(("without", "wanted"), [((), b""), (("unshare_net",), b"seen\n")])
def test_with_egress_the_network_namespace_blocks_host_listeners(without: tuple[str, ...], wanted: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        server.settimeout(5)
        program = Program("python", CONNECTS, str(server.getsockname()[1]).encode())
        running = pool.submit(run_once, program, BOUNDS, None, frozenset(without), None, BubblewrapEgress())
        if wanted:
            with server.accept()[0] as client:
                client.send(b"seen")
        assert running.result().stdout == wanted
