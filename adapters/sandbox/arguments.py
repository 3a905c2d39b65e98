"""The arguments of bubblewrap: everything closed, then what a program needs, read-only where it can be.

The order is the recipe: the root becomes read-only after every path is made. Each protection has a name under which
the probe may leave it out to show what it is worth (`without`); nothing else ever does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from adapters.sandbox.model import Bounds
from engine.errors import WorkError

BWRAP = "/usr/bin/bwrap"
PYTHON = "/usr/bin/python3"
NODE = "/usr/bin/node"
WORK = "/work"
"""The one place that a program can write to; its working folder is below it, and /tmp is a link into it."""

_TEMPORARY = "/tmp"  # noqa: S108  (the sandbox's own)
NAMESPACES = ("user", "ipc", "pid", "net", "uts", "cgroup")
SYSTEM = ("lib", "lib64", "bin")
"""Folders of the loader and of programs, which are links into /usr where the machine has merged them."""

_SMALL = "4096"
_MOST = 1 << 60
_WALKING = 20
"""Open files that handing out artifacts takes: one a folder's depth, and a few."""

_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
_FIXED = {"PATH": "/usr/bin", "LANG": "C.UTF-8", "HOME": WORK}

PROTECTIONS = (
    *(f"unshare_{namespace}" for namespace in NAMESPACES),
    *("disable_userns", "cap_drop", "new_session", "clearenv", "ro_usr", "dev", "private_tmp", "private_job"),
    *("remount_root", "seccomp", "rlimit_as", "rlimit_nproc", "rlimit_nofile", "rlimit_fsize"),
    *("rlimit_cpu", "memory_cgroup", "output_cap", "wall_clock", "kill_tree", "close_fds", "drop_uid"),
)
"""The names that `without` knows."""


def arguments(
    bounds: Bounds,
    environment: Mapping[str, str],
    descriptors: Mapping[str, int],
    without: frozenset[str],
    job: Path | None = None,
) -> bytes:
    """All of them but the command, each ended by a zero byte, as `--args` reads them.

    `descriptors` has those of the filter (`seccomp`) and of the status (`status`); `job` is a folder of the
    host that stands for the private one, for the probe only. Raises WorkError for an environment that no
    process can have.
    """
    _check(bounds)
    words: list[str] = []
    for namespace in NAMESPACES:
        words += _unless(without, f"unshare_{namespace}", f"--unshare-{namespace}")
    if "unshare_user" not in without:
        words += _unless(without, "disable_userns", "--disable-userns", "--assert-userns-disabled")
        words += ["--uid", "65534", "--gid", "65534"]
    words += ["--cap-add" if "cap_drop" in without else "--cap-drop", "ALL"]  # saying neither drops them too
    words += _unless(without, "kill_tree", "--die-with-parent")
    words += _unless(without, "new_session", "--new-session")
    words += _unless(without, "unshare_uts", "--hostname", "sandbox")
    words += _unless(without, "clearenv", "--clearenv")
    for name, value in variables(environment).items():
        words += ["--setenv", name, value]
    words += ["--bind" if "ro_usr" in without else "--ro-bind", "/usr", "/usr"]
    words += ["--size", _SMALL, "--tmpfs", "/usr/local", "--remount-ro", "/usr/local"]
    for folder in SYSTEM:
        words += system(folder)
    if "dev" in without:
        words += ["--dev-bind", "/dev", "/dev"]
    else:
        for device in _DEVICES:
            words += ["--dev-bind", device, device]
    words += ["--size", str(bounds.disk_bytes), "--perms", "0700", "--tmpfs", WORK]
    if job is not None:
        words += ["--bind", str(job), WORK]
    inner = f"{WORK}{_TEMPORARY}"
    words += ["--dir", inner]
    if "private_tmp" in without:
        words += ["--bind", _TEMPORARY, _TEMPORARY]
    else:
        words += ["--symlink", inner.removeprefix("/"), _TEMPORARY]
    words += ["--chdir", WORK]
    words += _unless(without, "remount_root", "--remount-ro", "/")
    words += _unless(without, "seccomp", "--seccomp", str(descriptors["seccomp"]))
    words += ["--json-status-fd", str(descriptors["status"])]
    return b"".join(word.encode("utf-8") + b"\0" for word in words)


def interpreter() -> list[str]:
    """The system's Python without user and site packages, without bytecode, without the script's folder (H01)."""
    path = os.path.realpath(PYTHON)
    safe_path = [] if path.endswith(("python3.9", "python3.10")) else ["-P"]  # older ones leave it to the launcher
    return [path, "-s", "-S", "-B", *safe_path]


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """All there is of an environment. Raises WorkError for one that no process can have."""
    return {**_FIXED, **_stated(environment)}


def identity(path: str) -> str:
    """Which file this is now: what it leads to, size, time of its last change, place; `none` where there is none."""
    try:
        real = os.path.realpath(path)
        status = Path(real).stat()
    except OSError:
        return "none"
    return f"{real}:{status.st_size}:{status.st_mtime_ns}:{status.st_ino}:{status.st_mode}"


def _check(bounds: Bounds) -> None:
    """Refuse bounds that would bound nothing: for the kernel a size of 0 is no limit."""
    numbers = {name: getattr(bounds, name) for name in Bounds.__slots__}
    loose = [name for name, number in numbers.items() if not 0 < number < _MOST and not name.startswith("artifact_")]
    files = range(bounds.open_files) if bounds.artifact_files <= 0 else range(_WALKING, bounds.open_files + 1)
    if loose or not files or bounds.artifact_files < 0 or bounds.artifact_bytes < 0:
        raise WorkError(
            f"a bound is no bound: `{(loose or ['open_files'])[0]}`",
            remedy=f"state every bound above 0, and {_WALKING} open files where artifacts are wanted",
            code="engine.limit_unenforceable",
        )


def _unless(without: frozenset[str], name: str, *words: str) -> tuple[str, ...]:
    return () if name in without else words


def system(folder: str) -> list[str]:
    """Where the loader looks: a link into /usr, or on a machine that has not merged them the folder itself."""
    place = Path("/", folder)
    if place.is_dir() and not place.is_symlink():
        return ["--ro-bind", str(place), str(place)]
    return ["--symlink", f"usr/{folder}", str(place)]


def _stated(environment: Mapping[str, str]) -> dict[str, str]:
    for name, value in environment.items():
        if not name or "=" in name or not is_word(name) or not is_word(value):
            raise WorkError(
                "the environment of a program has a name or a value that no process can have",
                remedy="give names without `=`, and both as text without zero bytes or lone surrogates",
            )
    return dict(environment)


def is_word(text: str) -> bool:
    """Whether it can be handed to a process."""
    try:
        return b"\0" not in text.encode("utf-8")
    except UnicodeEncodeError:
        return False
