"""The backend `gvisor`, the stronger tier: a kernel in user space answers the program's system calls.

It is chosen by policy only, costs about a dozen times the start of bubblewrap, and needs it. How it is watched
and ended is the same; only what is started differs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from admission_adapters.digests import digest
from admission_adapters.sandbox import machine
from admission_adapters.sandbox.bubblewrap import arguments, seccomp
from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap
from admission_adapters.sandbox.gvisor import binary as gvisor_binary
from admission_adapters.sandbox.launcher import launch as launcher
from admission_adapters.sandbox.model import Bounds, Program
from admission_adapters.sandbox.run.recipe import CommandLine, Pipes, Setup, memory_file
from engine.errors import UnenforceableError

BUNDLE, STATE = "/bundle", "/state"
_ROOT = f"{BUNDLE}/rootfs"
_WRITABLE = "/tmp"  # noqa: S108  (of the container: the one place that gVisor insists on; /work leads to it)
_MOUNT_POINT = "/tmp"  # noqa: S108  (of the outer layer: gVisor mounts its own root over it)
_OWN_BYTES = 1 << 20  # of runsc's state: some kilobytes
_EMPTY = ("/proc", "/sys")
"""Folders that gVisor would fill with its own; a program needs neither (bubblewrap has none)."""

GUEST = {"launcher": 3, "ready": 4, "go": 5, "job": 6, "report": 7}
"""The descriptors of the launcher inside."""

FROM_OUTSIDE = ("rlimit_msgqueue",)
"""Limits that nothing inside may set; the launcher sets the others."""

FLAGS = (
    f"--root={STATE}",
    "--rootless",
    "--network=none",
    "--ignore-cgroups",
    "--platform=systrap",
    "--overlay2=none",
    "--host-uds=none",
    "--host-fifo=none",
    "--host-settings=ignore",
    "--sidecar-usage-policy=LEGACY_DEPRECATED_SLOW_EMBEDDED_FALLBACK",
)
"""Of runsc, before the command. The last one: all of it is in the one binary that was verified."""


def container(bounds: Bounds, environment: Mapping[str, str], command: list[str], packages: str = "") -> bytes:
    """The config.json of the inner layer: gVisor's kernel, with our filter and limits in it.

    Raises WorkError for an environment that no process can have.
    """
    mounts = [_memory(path, 4096, "ro", "mode=0555") for path in _EMPTY]
    shown = ["/usr", *(f"/{folder}" for folder in arguments.folders()), *([arguments.PACKAGES] if packages else [])]
    mounts += [
        {"destination": path, "type": "bind", "source": path, "options": ["rbind", "ro", "nosuid", "nodev"]}
        for path in shown
    ]
    mounts.append(_memory(_WRITABLE, bounds.disk_bytes, "mode=0700", "uid=65534", "gid=65534"))
    return json.dumps(
        {
            "ociVersion": "1.0.2",
            "process": {
                "terminal": False,
                "user": {"uid": 65534, "gid": 65534},
                "args": command,
                "env": [f"{name}={value}" for name, value in arguments.variables(environment, packages).items()],
                "cwd": _WRITABLE,
                "capabilities": {},
                "noNewPrivileges": True,
                "rlimits": [{"type": limit.upper(), "soft": 0, "hard": 0} for limit in FROM_OUTSIDE],
            },
            "root": {"path": _ROOT, "readonly": True},
            "hostname": "sandbox",
            "mounts": mounts,
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
        }
    ).encode("utf-8", "surrogateescape")


def outside(config: int, status: int, packages: str = "") -> bytes:
    """The outer layer: bubblewrap's arguments as `--args` reads them, without the command and a filter.

    runsc sees only /usr of the machine and has no network; if bubblewrap dies, everything dies.
    """
    words = [f"--unshare-{namespace}" for namespace in arguments.NAMESPACES]
    words += ["--uid", "65534", "--gid", "65534", "--cap-drop", "ALL", "--die-with-parent", "--new-session"]
    words += ["--hostname", "sandbox", "--clearenv", "--ro-bind", "/usr", "/usr"]
    words += ["--size", "4096", "--tmpfs", "/usr/local", "--remount-ro", "/usr/local"]
    words += ["--proc", "/proc", "--dev", "/dev", "--size", "4096", "--tmpfs", "/dev/shm"]  # noqa: S108
    words += ["--size", str(_OWN_BYTES), "--perms", "0700", "--tmpfs", STATE, "--dir", _MOUNT_POINT]
    for folder in ("usr", "dev", *(path.strip("/") for path in (*_EMPTY, _WRITABLE)), *arguments.folders()):
        words += ["--dir", f"{_ROOT}/{folder}"]
    words += ["--symlink", _WRITABLE.strip("/"), f"{_ROOT}{arguments.WORK}"]
    if packages:
        words += ["--ro-bind", packages, arguments.PACKAGES, "--dir", f"{_ROOT}{arguments.PACKAGES}"]
    words += arguments.system()
    for folder in arguments.SYSTEM:
        if folder not in arguments.folders():
            words += ["--symlink", f"usr/{folder}", f"{_ROOT}/{folder}"]
    words += ["--ro-bind-data", str(config), f"{BUNDLE}/config.json", "--chdir", "/"]
    words += ["--remount-ro", "/dev", "--remount-ro", "/", "--json-status-fd", str(status)]
    return b"".join(word.encode() + b"\0" for word in words)


def _memory(path: str, size: int, *options: str) -> dict[str, object]:
    return {
        "destination": path,
        "type": "tmpfs",
        "source": "tmpfs",
        "options": ["nosuid", "nodev", f"size={size}", *options],
    }


_FILTER = """
def confine(program):
    import ctypes, os, struct
    libc = ctypes.CDLL(None, use_errno=True)
    lines = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(lines)))
    none = ctypes.c_ulong(0)
    if libc.prctl(38, ctypes.c_ulong(1), none, none, none) or libc.prctl(22, ctypes.c_ulong(2), header):
        os._exit(125)
"""
"""Put before the launcher's text: bubblewrap sets a filter by itself, gVisor's own knows no ENOSYS."""


class Gvisor(Bubblewrap):
    """Our launcher in gVisor, inside bubblewrap. `folder` contains the verified runsc."""

    name = "gvisor"
    spare_bytes = 48 << 20  # of gVisor's kernel, its helper and the binary itself

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def available(self) -> str | None:
        """None, or what this machine lacks, as a sentence with a remedy."""
        try:
            gvisor_binary.find(self._folder)
        except gvisor_binary.MissingError as error:
            return str(error)
        return machine.missing()

    def machine(self) -> str:
        """`sha256:…` of everything that a probe's result depends on: that of bubblewrap, and the runsc."""
        try:
            runsc = gvisor_binary.find(self._folder).sha256
        except gvisor_binary.MissingError:
            runsc = "none"
        return digest(f"{machine.digest()} gvisor {runsc}".encode())

    def line(self, ends: Pipes, setup: Setup, stack: ExitStack) -> CommandLine:
        """Bubblewrap, which runs runsc by its descriptor, which runs the launcher. Raises WorkError without runsc."""
        try:
            runsc = gvisor_binary.find(self._folder)
        except gvisor_binary.MissingError as error:
            raise UnenforceableError("gVisor cannot be used", remedy=str(error)) from error
        inside = container(setup.bounds, setup.environment, _launcher(setup.without), setup.packages)
        config, code_file = memory_file(stack, inside), memory_file(stack, launcher.code())
        outer = memory_file(stack, outside(config, ends.status, setup.packages))
        options = {"launcher": code_file, "ready": ends.ready, "go": ends.go, "job": ends.job, "report": ends.report}
        passed = [f"--pass-fd={number}:{GUEST[name]}" for name, number in options.items()]
        inner = [f"/proc/self/fd/{runsc.descriptor}", *FLAGS, "run", "--bundle", BUNDLE]
        command = [arguments.BWRAP, "--args", str(outer), "--", *inner, *passed, "program"]
        return CommandLine(command, (config, outer, code_file, runsc.descriptor))

    def work(self, program: Program, bounds: Bounds, without: frozenset[str]) -> bytes:
        """As in bubblewrap, except that the first process is the launcher itself and counts once."""
        fewer = replace(bounds, processes=bounds.processes - 1)
        return super().work(program, fewer, without.union(FROM_OUTSIDE))


def _launcher(without: frozenset[str]) -> list[str]:
    """The launcher's command, which sets the filter first."""
    *interpreter, text = launcher.command(**GUEST)
    confined = text if "seccomp" in without else f"{_FILTER}\nconfine({seccomp.here()!r})\n{text}"
    return [*interpreter, confined]
