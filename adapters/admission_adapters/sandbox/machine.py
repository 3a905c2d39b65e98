"""What this machine lacks for a sandbox, and a digest of everything that a probe result depends on."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from functools import cache
from pathlib import Path

from admission_adapters.digests import json_digest
from admission_adapters.sandbox.bubblewrap import arguments, seccomp
from admission_adapters.sandbox.run.cgroup import memory_mode
from admission_adapters.sandbox.run.user import SETPRIV, sandbox_user
from engine.errors import WorkError

_FLAGS = ("--disable-userns", "--assert-userns-disabled", "--json-status-fd", "--unshare-cgroup", "--size", "--perms")
"""Options that an older bubblewrap lacks; all exist since 0.8.0."""

_KERNEL = ("osrelease", "random/boot_id")
_VERSION_SECONDS = 5.0


def missing() -> str | None:
    """None, or the first thing that this machine lacks, as a sentence with a remedy."""
    for look in (_system, without_bubblewrap, _python, _namespaces, _unprivileged_user):
        lacks = look()
        if lacks is not None:
            return lacks
    return None


def _system() -> str | None:
    if platform.system() == "Linux" and platform.machine() in seccomp.ARCHITECTURES:
        return None
    return "a sandbox needs Linux on x86_64 or aarch64: run generated code on such a machine"


def without_bubblewrap() -> str | None:
    """None, or what is wrong with the bubblewrap of this machine, as a sentence with a remedy."""
    if not os.access(arguments.BWRAP, os.X_OK):
        return f"bubblewrap is missing: install it, 0.8.0 or newer, as {arguments.BWRAP}"
    try:
        options = _help(arguments.identity(arguments.BWRAP))
    except (OSError, subprocess.SubprocessError) as error:
        return f"bubblewrap does not run ({type(error).__name__}): see whether `{arguments.BWRAP} --help` does"
    absent = sorted(flag for flag in _FLAGS if flag not in options)
    return f"bubblewrap is too old: it lacks {absent[0]}; install 0.8.0 or newer" if absent else None


def _python() -> str | None:
    if not os.access(arguments.PYTHON, os.X_OK):
        return f"the system's Python is missing: install it as {arguments.PYTHON}"
    if os.path.realpath(arguments.PYTHON).startswith("/usr/") and "/usr/local/" not in os.path.realpath(
        arguments.PYTHON
    ):
        return None
    return f"{arguments.PYTHON} leads out of what a sandbox sees of /usr: install the system's own"


def _namespaces() -> str | None:
    if _kernel_value("/proc/sys/user/max_user_namespaces") == "0":
        return "user namespaces are switched off: set user.max_user_namespaces above 0 with sysctl"
    if _kernel_value("/proc/sys/kernel/unprivileged_userns_clone") == "0":
        return "user namespaces are root's only: set kernel.unprivileged_userns_clone to 1 with sysctl"
    return None


def _unprivileged_user() -> str | None:
    if os.geteuid() == 0 and not os.access(SETPRIV, os.X_OK):
        return f"root cannot become another user: install setpriv (package util-linux) as {SETPRIV}"
    return without_user()


def without_user() -> str | None:
    """None, or why there is no user to run a sandbox as."""
    try:
        sandbox_user()
    except WorkError as error:
        return f"{error.message}: {error.remedy}"
    return None


def digest() -> str:
    """Kernel, boot, bubblewrap, interpreters, filter, the sandbox's own code, user and cgroup mode in one."""
    user = _user()
    facts = {
        "kernel": [_kernel_value(f"/proc/sys/kernel/{name}") for name in _KERNEL],
        "namespaces": _kernel_value("/proc/sys/user/max_user_namespaces"),
        "programs": [arguments.identity(path) for path in (arguments.BWRAP, arguments.PYTHON, arguments.NODE, SETPRIV)],
        "filter": hashlib.sha256(_filter()).hexdigest(),
        "code": _code(),
        "user": user,
        "cgroup": memory_mode(),
    }
    return json_digest(facts)


def _user() -> str:
    try:
        user = sandbox_user()
    except WorkError:
        return "none"
    return f"{user.uid}:{user.gid}:{os.geteuid()}"


def _filter() -> bytes:
    try:
        return seccomp.here()
    except WorkError:
        return b""


@cache
def _code() -> str:
    """The digest of these files, as this process has them."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@cache
def _help(_identity: str) -> str:
    """The version output of a program. Raises OSError and SubprocessError, which may not recur."""
    done = subprocess.run(
        [arguments.BWRAP, "--help"], env={}, capture_output=True, timeout=_VERSION_SECONDS, check=False
    )
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def _kernel_value(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
