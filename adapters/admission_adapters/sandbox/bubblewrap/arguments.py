"""The arguments of bubblewrap: everything is closed, then what a program needs is opened, read-only where possible.

The order is the recipe: the root becomes read-only after every path is made. Each protection has a name under which
the probe may leave it out to show that it has an effect (`without`); nothing else does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from admission_adapters.sandbox.model import Bounds
from engine.errors import UnenforceableError, WorkError

BWRAP = "/usr/bin/bwrap"
PYTHON = "/usr/bin/python3"
NODE = "/usr/bin/node"
WORK = "/work"
"""The one place that a program can write to; its working folder is below it, /tmp and /dev/shm are links into it."""

PACKAGES = "/packages"
"""Where a program finds the packages of its environment."""

_ALTERNATIVES = "/etc/alternatives"
_LINKS = "/alternatives"
"""Where a program finds the links of Debian to programs such as awk: /usr/bin/awk leads to /etc, which is not there."""

_TEMPORARY = "/tmp"  # noqa: S108  (the sandbox's own)
NAMESPACES = ("user", "ipc", "pid", "net", "uts", "cgroup")
SYSTEM = ("lib", "lib64", "bin")
"""Folders of the loader and of programs, which are links into /usr where the machine has merged them."""

_SMALL = "4096"
_MOST = 1 << 60
_WALKING = 20
"""Open files needed to return artifacts: one per level of folders, and a few."""

_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
_FIXED = {"PATH": f"/usr/bin:{_LINKS}", "LANG": "C.UTF-8", "HOME": WORK}

PROTECTIONS = (
    *(f"unshare_{namespace}" for namespace in NAMESPACES),
    *("disable_userns", "cap_drop", "new_session", "clearenv", "ro_usr", "dev", "private_tmp", "private_job"),
    *("remount_root", "seccomp", "rlimit_as", "rlimit_nproc", "rlimit_nofile", "rlimit_fsize"),
    *("rlimit_cpu", "memory_cgroup", "output_cap", "wall_clock", "kill_tree", "close_fds", "drop_uid"),
)
"""The protections that `without` can disable."""


def arguments(
    bounds: Bounds,
    environment: Mapping[str, str],
    descriptors: Mapping[str, int],
    without: frozenset[str],
    job: Path | None = None,
    packages: str = "",
) -> bytes:
    """All arguments except the command, each ended by a null byte, as `--args` expects.

    `descriptors` has those of the filter (`seccomp`) and of the status (`status`); `job` is a folder of the
    host that replaces the private one, for the probe only; `packages` is a folder of the host. Raises WorkError for
    an environment that no process can have.
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
    for name, value in variables(environment, packages).items():
        words += ["--setenv", name, value]
    words += ["--bind" if "ro_usr" in without else "--ro-bind", "/usr", "/usr"]
    words += ["--size", _SMALL, "--tmpfs", "/usr/local", "--remount-ro", "/usr/local"]
    words += [*system(), "--ro-bind-try", _ALTERNATIVES, _LINKS]
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
    if "dev" not in without:
        words += ["--dir", f"{WORK}/shm", "--symlink", f"{WORK}/shm", "/dev/shm"]  # noqa: S108
    if packages:
        words += ["--ro-bind", packages, PACKAGES]
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


def variables(environment: Mapping[str, str], packages: str = "") -> dict[str, str]:
    """All there is of an environment. Raises WorkError for one that no process can have."""
    for name, value in environment.items():
        if not name or "=" in name or not is_word(name) or not is_word(value):
            raise WorkError(
                "the environment of a program has an invalid name or value",
                remedy="use names without `=`, and text without null bytes or lone surrogates",
            )
    return {**_FIXED, **environment} | ({"PYTHONPATH": PACKAGES} if packages else {})


def identity(path: str) -> str:
    """Identifies the current file: target, size, change time, inode; `none` if it does not exist."""
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
        raise UnenforceableError(
            f"a limit is not valid: `{(loose or ['open_files'])[0]}`",
            remedy=f"set every limit above 0, and at least {_WALKING} open files if artifacts are collected",
        )


def _unless(without: frozenset[str], name: str, *words: str) -> tuple[str, ...]:
    return () if name in without else words


def folders() -> list[str]:
    """The folders of the loader that are no links into /usr on this machine."""
    return [folder for folder in SYSTEM if Path("/", folder).is_dir() and not Path("/", folder).is_symlink()]


def system() -> list[str]:
    """Where the loader looks: links into /usr, or on a machine that has not merged them the folders themselves."""
    words: list[str] = []
    for folder in SYSTEM:
        words += ["--ro-bind", f"/{folder}"] if folder in folders() else ["--symlink", f"usr/{folder}"]
        words.append(f"/{folder}")
    return words


def is_word(text: str) -> bool:
    """Whether it can be an argument of a process."""
    try:
        return b"\0" not in text.encode("utf-8")
    except UnicodeEncodeError:
        return False
