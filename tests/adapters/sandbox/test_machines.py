"""A whole engine on machines with and without what a sandbox needs: everything is enforced, or nothing is claimed.

Each machine is made around a process of its own: another user, no bubblewrap, no user namespaces.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from admission_adapters.sandbox.machine import _help, missing
from admission_adapters.sandbox.probe.canaries import as_user
from admission_adapters.sandbox.probe.rows import REQUESTED
from admission_adapters.sandbox.run.cgroup import memory_mode
from tests.facilities import needs

pytestmark = needs("bubblewrap", "root")

ROOT = Path(__file__).parents[3]
ORDINARY = 61_998
"""Nobody's, and not the sandbox's own."""

NO_BWRAP = ["/usr/bin/bwrap", "--dev-bind", "/", "/", "--ro-bind", "/dev/null", "/usr/bin/bwrap", "--"]
NO_NAMESPACES = ["/usr/bin/bwrap", "--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "--"]
NONE_ALLOWED = ["/usr/bin/unshare", "-Ur", "/bin/sh", "-c"]
NONE_ALLOWED += ['echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh"]
ONLY_ROOT = ["/usr/bin/unshare", "-Ur"]

MACHINES: Mapping[str, tuple[list[str], int | None, str]] = {
    "root_without_bwrap": (NO_BWRAP, None, "bubblewrap is missing: install it"),
    "user_without_bwrap": (NO_BWRAP, ORDINARY, "bubblewrap is missing: install it"),
    "user_without_namespaces": (NO_NAMESPACES, ORDINARY, "the sandbox did not run the probe: sandbox_error: bwrap: "),
    "root_where_none_is_allowed": (NONE_ALLOWED, None, "user namespaces are switched off"),
    "user_where_none_is_allowed": (NONE_ALLOWED, ORDINARY, "user namespaces are switched off"),
    "root_without_another_user": (ONLY_ROOT, None, "root has no unprivileged user"),
    "root_by_name_only": (ONLY_ROOT, ORDINARY, "root has no unprivileged user"),
}
"""What stands around the engine, who runs it (None: root), and what it says is missing."""


@pytest.fixture(scope="module")
def python() -> list[str]:
    """An interpreter and environment that every user may run, by way of env(1)."""
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    words = [
        f"PYTHONPATH={ROOT}:{ROOT}/adapters:{packages}",
        "PYTHONDONTWRITEBYTECODE=1",
        "PATH=/usr/bin:/bin",
        "HOME=/nonexistent",
    ]
    for interpreter in (sys.executable, "/usr/bin/python3"):
        argv = ["/usr/bin/env", "-i", *words, interpreter]
        with tempfile.TemporaryFile() as said:
            tried = subprocess.run(
                [*argv, "-c", "import engine.cli, pydantic, orjson, sys; print(sys.version_info[:2])"],
                stdout=said,
                stderr=subprocess.STDOUT,
                check=False,
                cwd="/",
                **as_user(ORDINARY),
            )
        if tried.returncode == 0:
            return argv
    pytest.skip("NOT TRIED: no interpreter that another user may run sees this tree and its packages")


@pytest.fixture
def state() -> Iterator[Path]:
    """A folder that belongs to the ordinary user."""
    folder = Path(tempfile.mkdtemp(prefix="machines-"))
    os.chown(folder, ORDINARY, ORDINARY)
    yield folder
    shutil.rmtree(folder)


def ran(around: list[str], user: int | None, argv: list[str]) -> tuple[int, str]:
    done = subprocess.run(
        [*around, *argv], check=False, capture_output=True, text=True, timeout=300, cwd="/", **as_user(user)
    )
    return done.returncode, done.stdout or done.stderr


def bubblewrap(python: list[str], around: list[str], user: int | None) -> tuple[int, dict[str, Any]]:
    """The exit code of the doctor, and what it says of bubblewrap."""
    code, said = ran(around, user, [*python, "-m", "engine", "doctor", "--sandbox", "--format", "json"])
    (found,) = [one for one in json.loads(said)["backends"] if one["backend"] == "bubblewrap"]
    return code, found


# covers: E33.1 H05.1
@pytest.mark.full
@pytest.mark.parametrize("user", [None, ORDINARY], ids=["root", "ordinary"])
def test_a_complete_machine_enforces_every_boundary(python: list[str], user: int | None) -> None:
    code, found = bubblewrap(python, [], user)
    assert (code, found["missing"]) == (0, None)
    kinds = {one["boundary"]: one["class"] for one in found["boundaries"]}
    tree = "kernel" if user is None and memory_mode() != "none" else "bounded"
    special = {"output": "supervised", "time": "supervised", "memory": tree, "inodes": tree}
    assert kinds == {name: special.get(name, "kernel") for name in REQUESTED}
    assert (tree == "bounded") is bool(found["remedies"])


# covers: D19 E33.1
@pytest.mark.full
@pytest.mark.parametrize("machine", MACHINES)
def test_an_incomplete_machine_claims_no_boundary(python: list[str], machine: str) -> None:
    around, user, lack = MACHINES[machine]
    code, found = bubblewrap(python, around, user)
    assert code == 4
    assert found["boundaries"] == []
    assert lack in found["missing"]


_FACTS = """
import sys, time
from pathlib import Path
from engine.enforce import enforceable
from engine.errors import EngineError
from engine.model import Limits
from engine.sandboxes.evidence import Sandboxes
from engine.sandboxes.registry import registered

class Bound(Limits):
    def boundaries(self): return frozenset({"files"})
    def on_backend(self): return "bubblewrap"

facts = Sandboxes(Path(sys.argv[1]), lambda: int(time.time()), registered).facts("bubblewrap")
try:
    enforceable(Bound(), facts.boundaries)
    print(len(facts.boundaries), len(facts.probes), "enforceable")
except EngineError as error:
    print(len(facts.boundaries), len(facts.probes), error.code)
"""


# covers: D19 H05
@pytest.mark.full
def test_a_stored_probe_is_invalid_on_a_changed_machine(python: list[str], state: Path) -> None:
    """The same state folder, whole, then without bubblewrap, then as another user: the kept result is not used."""
    ask = [*python, "-c", _FACTS, str(state)]
    whole = f"{len(REQUESTED)} 1 enforceable"
    assert ran([], ORDINARY, ask)[1].strip() == whole
    assert (state / "sandbox" / "bubblewrap.json").exists()
    assert ran(NO_BWRAP, ORDINARY, ask)[1].strip() == "0 0 engine.limit_unenforceable"
    assert ran(NO_NAMESPACES, ORDINARY, ask)[1].strip() == "0 0 engine.limit_unenforceable"
    assert ran([], ORDINARY, ask)[1].strip() == whole


def test_the_rest_of_the_engine_works_without_a_sandbox(python: list[str]) -> None:
    code, said = ran(NO_BWRAP, ORDINARY, [*python, "-m", "engine", "decide", "license", "--schema"])
    assert (code, json.loads(said)["type"]) == (0, "object")


def test_a_failed_bubblewrap_check_is_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    _help.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", _no_descriptor_left)
        assert "bubblewrap does not run (OSError)" in str(missing())
    assert missing() is None


def _no_descriptor_left(*_: object, **__: object) -> None:
    raise OSError(errno.EMFILE, "too many open files")
