"""What gVisor is told: the container it makes, and the bubblewrap that it stands in itself.

Two layers, and the program has to break out of both. The outer one is bubblewrap without its system call filter:
it shows runsc nothing of the machine but /usr, gives it no network, and its death is the death of everything.
The inner one is gVisor's own kernel, with our filter and our limits inside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from adapters.sandbox import arguments
from adapters.sandbox.model import Bounds

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


def container(bounds: Bounds, environment: Mapping[str, str], command: list[str]) -> bytes:
    """The bundle's config.json. Raises WorkError for an environment that no process can have."""
    mounts = [_memory(path, 4096, "ro", "mode=0555") for path in _EMPTY]
    mounts += [_read_only(path) for path in ("/usr", *(f"/{folder}" for folder in _folders()))]
    mounts.append(_memory(_WRITABLE, bounds.disk_bytes, "mode=0700", "uid=65534", "gid=65534"))
    return json.dumps(
        {
            "ociVersion": "1.0.2",
            "process": {
                "terminal": False,
                "user": {"uid": 65534, "gid": 65534},
                "args": command,
                "env": [f"{name}={value}" for name, value in arguments.variables(environment).items()],
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


def outside(config: int, status: int) -> bytes:
    """The arguments of bubblewrap but for the command, as `--args` reads them: everything closed but /usr."""
    words = [f"--unshare-{namespace}" for namespace in arguments.NAMESPACES]
    words += ["--uid", "65534", "--gid", "65534", "--cap-drop", "ALL", "--die-with-parent", "--new-session"]
    words += ["--hostname", "sandbox", "--clearenv", "--ro-bind", "/usr", "/usr"]
    words += ["--size", "4096", "--tmpfs", "/usr/local", "--remount-ro", "/usr/local"]
    words += ["--proc", "/proc", "--dev", "/dev", "--size", "4096", "--tmpfs", "/dev/shm"]  # noqa: S108
    words += ["--size", str(_OWN_BYTES), "--perms", "0700", "--tmpfs", STATE, "--dir", _MOUNT_POINT]
    for folder in ("usr", "dev", *(path.strip("/") for path in (*_EMPTY, _WRITABLE)), *_folders()):
        words += ["--dir", f"{_ROOT}/{folder}"]
    words += ["--symlink", _WRITABLE.strip("/"), f"{_ROOT}{arguments.WORK}"]
    for folder in arguments.SYSTEM:
        words += arguments.system(folder)
        if folder not in _folders():
            words += ["--symlink", f"usr/{folder}", f"{_ROOT}/{folder}"]
    words += ["--ro-bind-data", str(config), f"{BUNDLE}/config.json", "--chdir", "/"]
    words += ["--remount-ro", "/dev", "--remount-ro", "/", "--json-status-fd", str(status)]
    return b"".join(word.encode() + b"\0" for word in words)


def _folders() -> list[str]:
    """The folders of the loader that are no links into /usr on this machine."""
    places = {folder: Path("/", folder) for folder in arguments.SYSTEM}
    return [folder for folder, place in places.items() if place.is_dir() and not place.is_symlink()]


def _read_only(path: str) -> dict[str, object]:
    return {"destination": path, "type": "bind", "source": path, "options": ["rbind", "ro", "nosuid", "nodev"]}


def _memory(path: str, size: int, *options: str) -> dict[str, object]:
    return {
        "destination": path,
        "type": "tmpfs",
        "source": "tmpfs",
        "options": ["nosuid", "nodev", f"size={size}", *options],
    }
