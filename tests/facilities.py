"""What a test may need of the machine; a test whose facility is missing is skipped with the reason.

    @needs("bubblewrap", "root")
    def test_…

Each function below is one facility: it returns None when the machine has it, else what is missing. It is
called once per process, and only when a test needs it.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from engine.settings import Settings

ROOT = Path(__file__).parent.parent
CACHE = Settings().cache
"""Where this user keeps what was built; a test itself has a cache of its own."""


def needs(*facilities: str) -> pytest.MarkDecorator:
    """Skip the test, saying why, unless the machine has all of these."""
    unknown = set(facilities) - FACILITIES.keys()
    assert not unknown, f"unknown facilities: {sorted(unknown)}"
    return pytest.mark.machine(*facilities)


@cache
def missing(facility: str) -> str | None:
    """Why this machine lacks a facility; None if it has it."""
    return FACILITIES[facility]()


def _runs(*command: str) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, check=False, cwd=ROOT).returncode == 0


def _bubblewrap() -> str | None:
    from admission_adapters.sandbox.machine import missing as lacks

    return lacks()


def _gvisor() -> str | None:
    from admission_adapters.sandbox.gvisor.backend import Gvisor

    return Gvisor(CACHE / "sandbox").available()


def _wasmtime() -> str | None:
    from admission_adapters.sandbox.wasm.backend import Wasmtime

    return Wasmtime().available()


def _memory_cgroup() -> str | None:
    from admission_adapters.sandbox.run.cgroup import memory_mode

    return "this process may make no memory cgroup" if memory_mode() == "none" else None


def _root() -> str | None:
    return None if os.geteuid() == 0 else "run the tests as root"


def _not_root() -> str | None:
    return "the superuser may read every file: run the tests as an ordinary user" if os.geteuid() == 0 else None


def _x86_64() -> str | None:
    return None if platform.machine() == "x86_64" else f"this machine is {platform.machine()}"


def _node() -> str | None:
    return None if shutil.which("node", path="/usr/bin") else "/usr/bin/node is missing"


def _curl() -> str | None:
    return None if shutil.which("curl", path="/usr/bin") else "/usr/bin/curl is missing"


def _git() -> str | None:
    return None if shutil.which("git", path="/usr/bin") else "/usr/bin/git is missing"


def _npm() -> str | None:
    return None if shutil.which("npm", path="/usr/bin") else "/usr/bin/npm is missing"


def _system_pip() -> str | None:
    return None if _runs("/usr/bin/python3", "-c", "import pip") else "the system's Python has no pip"


def _wrk() -> str | None:
    return None if shutil.which("wrk") else "wrk is not installed"


def _chromium() -> str | None:
    return None if shutil.which("chromium") or shutil.which("google-chrome") else "chromium is not installed"


def _playwright() -> str | None:
    return None if find_spec("playwright") else "install the package playwright"


def _sarif_multitool() -> str | None:
    lack = "put Sarif.Multitool of the npm package @microsoft/sarif-multitool-linux on the PATH"
    return None if shutil.which("Sarif.Multitool") else lack


def _package_index() -> str | None:
    """Nothing is installed by this; what pip is configured to use is asked for one small package."""
    asked = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "0", "attrs")
    with tempfile.TemporaryDirectory() as folder:
        return None if _runs(*asked, "--dest", folder) else "pip reaches no package index"


def _systemd_analyze() -> str | None:
    return None if shutil.which("systemd-analyze") else "systemd-analyze is not installed"


def _promtool() -> str | None:
    return None if shutil.which("promtool") else "promtool is not installed"


def _kubectl() -> str | None:
    return None if shutil.which("kubectl") else "kubectl is not installed"


def _strace() -> str | None:
    return None if _runs("strace", "-f", "-e", "trace=none", "true") else "strace is not installed or may not trace"


def _immutable_files() -> str | None:
    with tempfile.NamedTemporaryFile(dir=ROOT) as file:
        if not _runs("chattr", "+i", file.name):
            return "`chattr +i` is not permitted"
        _runs("chattr", "-i", file.name)
    return None


def _mounts() -> str | None:
    script = 'folder=$(mktemp -d) && mount -t tmpfs -o size=64k none "$folder" && umount "$folder" && rmdir "$folder"'
    rights = "-m" if os.geteuid() == 0 else "-rm"
    return None if _runs("unshare", rights, "sh", "-c", script) else f"`unshare {rights}` with mounts is not permitted"


def _network_namespace() -> str | None:
    return None if _runs("unshare", "-rn", "true") else "`unshare -rn` is not permitted"


def _ip() -> str | None:
    return None if shutil.which("ip") else "install the package iproute2 (Debian): ip is not on PATH"


def _other_users() -> str | None:
    probe = ("setpriv", "--reuid=54321", "--clear-groups", sys.executable, "-c", "import engine")
    return None if _runs(*probe) else "`setpriv --reuid` is not permitted, or other users cannot read this tree"


def _postgresql() -> str | None:
    from tests.postgres import binaries

    return None if binaries() else "install the package postgresql (Debian): there is no /usr/lib/postgresql/*/bin"


def _pgbouncer() -> str | None:
    return None if shutil.which("pgbouncer") else "install the package pgbouncer (Debian): pgbouncer is not on PATH"


FACILITIES: dict[str, Callable[[], str | None]] = {
    "bubblewrap": _bubblewrap,
    "gvisor": _gvisor,
    "wasmtime": _wasmtime,
    "memory_cgroup": _memory_cgroup,
    "root": _root,
    "not_root": _not_root,
    "x86_64": _x86_64,
    "node": _node,
    "curl": _curl,
    "git": _git,
    "npm": _npm,
    "system_pip": _system_pip,
    "wrk": _wrk,
    "chromium": _chromium,
    "playwright": _playwright,
    "sarif-multitool": _sarif_multitool,
    "package_index": _package_index,
    "systemd_analyze": _systemd_analyze,
    "promtool": _promtool,
    "kubectl": _kubectl,
    "postgresql": _postgresql,
    "pgbouncer": _pgbouncer,
    "strace": _strace,
    "immutable_files": _immutable_files,
    "mounts": _mounts,
    "network_namespace": _network_namespace,
    "ip": _ip,
    "other_users": _other_users,
}
