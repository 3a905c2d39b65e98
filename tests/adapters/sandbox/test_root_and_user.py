"""Started by root or by an ordinary user, on a machine that has what it takes or not: the same, or nothing."""

from __future__ import annotations

import ctypes
import os
import pwd
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from admission_adapters.sandbox import machine
from admission_adapters.sandbox.bubblewrap import arguments
from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap
from admission_adapters.sandbox.launcher import launch as launcher
from admission_adapters.sandbox.model import Status
from admission_adapters.sandbox.run import cgroup, user
from admission_adapters.sandbox.run.proc import status_of
from admission_adapters.sandbox.run.process import run_in, run_once
from admission_adapters.sandbox.run.recipe import Setup
from admission_adapters.sandbox.run.start import start
from tests.adapters.sandbox.programs import BOUNDS, ENVIRONMENT, bounds, program, ran
from tests.expect import there
from tests.facilities import needs

ORDINARY = 61_999
"""Nobody's, and not the sandbox's own."""

_NEW_USER_NAMESPACE = 0x10000000


def elsewhere(work: Callable[[], None], *, as_user: int | None = None, namespace: bool = False) -> str:
    """Do the work in a forked engine, as another user or in a user namespace; what went wrong there."""
    launcher.code()
    launcher.work(program("1"), bounds(artifact_files=1), frozenset())
    here, there = os.pipe()
    ready_out, ready = os.pipe()
    child = os.fork()
    if child:
        os.close(there)
        if namespace:
            os.read(ready_out, 1)
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{child}/{name}").write_text("0 0 65536", encoding="ascii")
        os.kill(child, 18)
        with os.fdopen(here, encoding="utf-8") as said:
            text = said.read()
        os.waitpid(child, 0)
        os.close(ready)
        os.close(ready_out)
        return text
    try:
        if namespace:
            assert ctypes.CDLL(None).unshare(_NEW_USER_NAMESPACE) == 0
            os.write(ready, b"1")
            while not Path("/proc/self/gid_map").read_text(encoding="ascii").strip():
                pass
        if as_user is not None:
            os.setgroups([])
            os.setgid(as_user)
            os.setuid(as_user)
        user.sandbox_user.cache_clear()
        user.swept.cache_clear()
        cgroup._hierarchy.cache_clear()
        work()
        os._exit(0)
    except BaseException:  # noqa: BLE001  (whatever it is belongs into the parent's report)
        os.write(there, traceback.format_exc().encode())
        os._exit(1)


@needs("bubblewrap", "root")
def test_root_runs_a_sandbox_as_a_user_without_an_account() -> None:
    own = user.sandbox_user()
    assert own.uid not in {0, 65534, os.geteuid()}
    with pytest.raises(KeyError):
        pwd.getpwuid(own.uid)
    with closing(start(Setup(BOUNDS, ENVIRONMENT))) as sandbox:
        seen = status_of(sandbox.child)
    assert set(seen["Uid"].split()) == set(seen["Gid"].split()) == {str(own.uid)}
    assert seen["Groups"] in {"", str(own.uid), "65534"}
    assert int(seen["CapPrm"], 16) == int(seen["CapEff"], 16) == int(seen["CapBnd"], 16) == 0
    assert (seen["NoNewPrivs"], seen["Seccomp"]) == ("1", "2")


@needs("bubblewrap")
def test_a_program_runs_as_uid_65534_inside_the_sandbox() -> None:
    assert ran("import os; print(os.getuid(), os.getgid(), os.geteuid(), os.getgroups())").stdout.startswith(
        b"65534 65534 65534 "
    )


@needs("bubblewrap", "root")
def test_an_ordinary_user_runs_a_sandbox_under_its_own_uid() -> None:
    def work() -> None:
        assert user.sandbox_user() == user.User(ORDINARY, ORDINARY, own=True)
        assert Bubblewrap().available() is None
        sandbox = start(Setup(BOUNDS, ENVIRONMENT))
        assert set(status_of(sandbox.child)["Uid"].split()) == {str(ORDINARY)}
        assert run_in(sandbox, program("import os; print(os.getuid())")).stdout == b"65534\n"
        assert ran("while True: pass", within=bounds(wall_seconds=0.3)).status is Status.TIMEOUT_WALL
        assert ran("print(len(b'x' * (300 << 20)))").limit == "memory"
        forks = "import os, time\ntry:\n    for n in range(30): os.fork() or time.sleep(60)\nexcept OSError: print(n)"
        assert ran(forks, within=bounds(processes=3)).stdout.startswith(b"2")
        assert ran("open('artifacts/a', 'w')", within=bounds(artifact_files=1)).artifacts[0].path == "a"

    assert elsewhere(work, as_user=ORDINARY) == ""


@needs("bubblewrap", "root")
def test_files_of_the_user_are_out_of_reach(shared: Path) -> None:
    secret = shared / "id_ed25519"
    secret.write_text("canary-secret", encoding="utf-8")
    secret.chmod(0o644)
    code = f"print(open({str(secret)!r}).read())"
    assert b"FileNotFoundError" in ran(code).stderr
    control = run_once(program(code), BOUNDS, None, frozenset({"private_tmp"}))
    assert control.stdout == b"canary-secret\n"


@needs("bubblewrap", "root")
def test_without_user_namespaces_nothing_runs() -> None:
    def work() -> None:
        assert ran("print(1)").status is Status.OK  # nested, and still whole
        Path("/proc/sys/user/max_user_namespaces").write_text("0", encoding="ascii")
        ended = ran("print(1)")
        assert (ended.status, ended.stdout) == (Status.SANDBOX_ERROR, b"")
        assert ended.stderr
        assert "user.max_user_namespaces" in there(Bubblewrap().available())

    assert elsewhere(work, namespace=True) == ""


@needs("root")
def test_root_that_has_no_other_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user, "_mapped", lambda _name: [range(1)])
    user.sandbox_user.cache_clear()
    try:
        assert "as an ordinary user" in there(Bubblewrap().available())
        with pytest.raises(Exception, match="no unprivileged user"):
            ran("print(1)")
    finally:
        user.sandbox_user.cache_clear()


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder in the place of `private_tmp` that every user may read; those of tests are their owner's only."""
    with tempfile.TemporaryDirectory(prefix="sandbox-test-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def stand_in(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another bubblewrap."""
    path = folder / "bwrap"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setattr(arguments, "BWRAP", str(path))


# covers: E33.1
def test_without_bubblewrap_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "BWRAP", "/usr/bin/no-bwrap-here")
    assert Bubblewrap().available() == "bubblewrap is missing: install it, 0.8.0 or newer, as /usr/bin/no-bwrap-here"
    ended = ran("print(1)")
    assert (ended.status, ended.stdout) == (Status.SANDBOX_ERROR, b"")


def test_an_older_bubblewrap_runs_nothing(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(shared, "echo 'bwrap: Unknown option --disable-userns' >&2; exit 1", monkeypatch)
    assert there(Bubblewrap().available()).startswith("bubblewrap is too old")
    ended = ran("print(1)")
    assert (ended.status, ended.stderr) == (Status.SANDBOX_ERROR, b"bwrap: Unknown option --disable-userns")


@pytest.mark.full(after=1)
@needs("bubblewrap")
@pytest.mark.parametrize(
    "text",
    [
        'first=$2; shift 2; exec /usr/bin/bwrap --args $first --share-net "$@"',  # shares the network, silently
        "exit 0",
        "echo '{}' >&2; sleep 0.1",
        'while :; do shift; [ "$1" = -- ] && break; done; shift; exec "$@"',  # no sandbox at all
    ],
)
def test_a_tampered_bubblewrap_runs_no_program(text: str, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(shared, text, monkeypatch)
    ended = ran("print('ran')")
    assert (ended.status, ended.stdout) == (Status.SANDBOX_ERROR, b"")


def test_the_machine_digest_is_stable_and_covers_every_component(monkeypatch: pytest.MonkeyPatch) -> None:
    first = machine.digest()
    assert first == machine.digest()
    assert first.startswith("sha256:")
    for target, name, value in (
        (arguments, "BWRAP", "/usr/bin/true"),
        (arguments, "PYTHON", "/usr/bin/true"),
        (machine, "memory_mode", lambda: "other"),
        (machine, "_code", lambda: "other"),
        (machine, "_filter", lambda: b"other"),
        (machine, "_user", lambda: "other"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(target, name, value)
            assert machine.digest() != first
