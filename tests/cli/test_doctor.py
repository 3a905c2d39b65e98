"""The doctor on this machine as it is, and on machines that lack one thing each."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

import engine
from admission_adapters.sandbox.bubblewrap import arguments
from admission_adapters.sandbox.run import cgroup
from engine.binaries import Binary, find_binary
from engine.cli.machine.doctor import examine, run
from engine.cli.machine.machine import Check, State, bubblewrap, cgroups, display_path, tried
from engine.engine import Engine
from engine.errors import DecideError, Exit
from engine.record import chains
from engine.record.storage import make_folder
from engine.settings import OpaLimits, Settings
from tests.conftest import ROOT
from tests.facilities import needs
from tests.processes import gone

ORDER = [
    ["python", "engine", "platform", "opa", "opa answers", "state"],
    ["disk", "record lock", "temp folder", "cache", "bwrap", "user namespaces", "memory cgroup"],
]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state=tmp_path / "state", cache=tmp_path / "cache", opa=OpaLimits(start_seconds=60.0))


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder that others may enter, short enough for a socket: those of pytest are neither."""
    with tempfile.TemporaryDirectory(prefix="doctor-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def program(path: Path, text: str) -> Binary:
    """A program in the place of OPA, whose digest was right."""
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return Binary(path, "1.22.2", "0" * 64)


def test_this_machine_has_what_check_needs(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(settings, "json") is Exit.ALLOW
    document = json.loads(capsys.readouterr().out)
    assert (document["format"], document["exit"]) == (1, 0)
    assert [check["name"] for check in document["checks"]] == [*ORDER[0], *ORDER[1]]
    assert all(check["state"] == "ok" for check in document["checks"] if check["needed"])
    assert all(check["remedy"] or check["state"] == "ok" for check in document["checks"])
    opa = next(check for check in document["checks"] if check["name"] == "opa")
    assert opa["detail"].startswith("engine/_bundled/opa, version ")


def test_text_output_lists_every_check_and_leaves_no_files(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(settings) is Exit.ALLOW
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "everything `engine check` needs is available; exit 0"
    assert [line[9:25].strip() for line in lines[:-1] if line[:8].strip()] == [*ORDER[0], *ORDER[1]]
    assert [*tmp_path.iterdir()] == []


def test_text_of_a_machine_without_anything(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arguments, "BWRAP", "/usr/bin/no-bwrap-here")

    def no_opa() -> Binary:
        raise DecideError("the bundled OPA is missing or cannot be read", remedy="reinstall the package")

    blocked = tmp_path / "file"
    blocked.touch()
    settings = Settings(state=blocked / "state", cache=blocked / "cache")
    assert run(settings, find_opa=no_opa) is Exit.FAILED_CLOSED
    out = capsys.readouterr().out.replace(str(tmp_path), "TMP")
    names = {"opa", "state", "record lock", "cache", "bwrap", "user namespaces"}
    told, shown_now = [], False
    for line in out.splitlines():
        shown_now = line[9:25].strip() in names if line[:8].strip() else shown_now
        told += [line] if shown_now else []
    assert told == snapshot


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("exit 1", "ends with 1"),
        ("echo Version: 1.22.20", "does not report version 1.22.2"),
        ("sleep 600 & sleep 600", "gives no answer within 0.3 seconds"),
        ("head -c 9000000 /dev/zero", "does not report"),
        ("kill -9 $$", "ends with -9"),
    ],
    ids=["fails", "other_version", "hangs", "floods", "dies"],
)
def test_opa_that_does_not_answer_is_fatal(settings: Settings, tmp_path: Path, text: str, detail: str) -> None:
    opa = program(tmp_path / "opa", text)
    slow = Settings(state=settings.state, cache=settings.cache, opa=OpaLimits(start_seconds=0.3))
    limits = slow if "sleep" in text else settings
    started = time.monotonic()
    found = by_name(examine(limits, lambda: opa))
    assert found["opa answers"].state is State.FAILED
    assert detail in found["opa answers"].detail
    assert time.monotonic() - started < 300  # it waits for no `sleep`
    assert run(limits, find_opa=lambda: opa) is Exit.FAILED_CLOSED


def test_opa_of_another_platform_cannot_be_started(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "opa").write_bytes(b"\x7fELF\x01 not for this machine")
    (tmp_path / "opa").chmod(0o755)
    found = by_name(examine(settings, lambda: Binary(tmp_path / "opa", "1.22.2", "0" * 64)))
    assert "cannot be started: exec format error" in found["opa answers"].detail


def test_opa_gets_no_environment(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", "secret")
    opa = program(tmp_path / "opa", 'echo "Version: 1.22.2"; test -z "$PLANTED"')
    assert by_name(examine(settings, lambda: opa))["opa answers"].state is State.OK
    shows = program(tmp_path / "shows", 'echo "Version: 1.22.2"; test -n "$PLANTED"')
    assert by_name(examine(settings, lambda: shows))["opa answers"].state is State.FAILED


@pytest.mark.full(after=1)
@pytest.mark.parametrize("fault", ["replaced", "missing"])
def test_installed_copy_with_a_broken_opa_ends_with_4(tmp_path: Path, fault: str) -> None:
    source = Path(engine.__file__).parent
    shutil.copytree(source, tmp_path / "engine", ignore=shutil.ignore_patterns("__pycache__", "opa", "bundles"))
    shutil.copytree(source / "opa", tmp_path / "engine" / "opa", ignore=shutil.ignore_patterns("__pycache__"))
    if fault == "replaced":
        (tmp_path / "engine" / "_bundled" / "opa").write_bytes(b"#!/bin/sh\necho Version: 1.22.2\n")
    call = "from pathlib import Path; from engine.cli.machine.doctor import run; from engine.settings import Settings; "
    call += f"raise SystemExit(run(Settings(state=Path({str(tmp_path / 'state')!r}))))"
    done = subprocess.run(
        [sys.executable, "-c", call], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 4
    assert done.stderr == ""
    reason = "differs from the file that was built" if fault == "replaced" else "is missing or cannot be read"
    assert f"failed   opa              the bundled OPA {reason}" in done.stdout
    assert done.stdout.splitlines()[-1] == "`engine check` cannot work until this is fixed: opa; exit 4"


def test_existing_state_is_checked_and_left_unchanged(settings: Settings) -> None:
    records = settings.state / "records"
    make_folder(records)
    (records / "decisions.000001.jsonl").write_text("{}\n", encoding="utf-8")
    found = by_name(examine(settings, find_binary))
    assert (found["state"].state, found["records"].state) == (State.OK, State.OK)
    assert [path.name for path in settings.state.rglob("*")] == ["records", "decisions.000001.jsonl"]


def _shortened(state: Path) -> str:
    lines = state / "records" / "decisions.000001.jsonl"
    lines.write_bytes(lines.read_bytes()[:-1])
    return "the record is broken: before_checkpoint"


def _without_key(state: Path) -> str:
    (state / "keys" / "record.key").unlink()
    return "the record is broken: bad_signature"


def _open_to_others(state: Path) -> str:
    state.chmod(0o777)
    return "other users can change the state folder"


def _readable_by_others(state: Path) -> str:
    (state / "state.sqlite3").chmod(0o644)
    return "other users can read the state"


def _of_a_later_version(state: Path) -> str:
    with closing(sqlite3.connect(state / "state.sqlite3")) as later:
        later.execute("PRAGMA user_version = 1000")
    return "it has version 1000"


def _damaged(state: Path) -> str:
    (state / "state.sqlite3").write_bytes(b"no database" * 1_000)
    return "it is not a state file"


CHANGES = [_shortened, _without_key, _open_to_others, _readable_by_others, _of_a_later_version, _damaged]


@pytest.mark.parametrize("change", CHANGES)
def test_state_or_record_that_no_engine_uses_is_fatal(settings: Settings, change: Callable[[Path], str]) -> None:
    with Engine(settings) as used:
        used.decide("license", json.loads((ROOT / "docs/examples/license.json").read_text(encoding="utf-8")))
    assert by_name(examine(settings))["record"].state is State.OK
    files = sorted(settings.state.rglob("*"))
    said = change(settings.state)
    (failed,) = (check for check in examine(settings) if check.needed and check.state is State.FAILED)
    assert said in failed.detail
    assert failed.remedy
    assert {*settings.state.rglob("*")} <= {*files}


def test_disk_that_accepts_no_writes_is_fatal(settings: Settings) -> None:
    call = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); from pathlib import Path; "
    call += "from engine.cli.machine.doctor import examine; from engine.settings import Settings; "
    call += (
        f"print([c.state.value for c in examine(Settings(state=Path({str(settings.state)!r}))) if c.name == 'state'])"
    )
    done = subprocess.run([sys.executable, "-B", "-c", call], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "['failed']\n"
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 0


def test_a_full_disk_is_reported_with_its_own_remedy(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    found = by_name(examine(settings))["state"]
    assert (found.state, found.remedy) == (State.FAILED, "free disk space")
    assert found.detail.endswith("cannot be written: no space left on device")


@contextmanager
def held(lock: Path) -> Iterator[None]:
    lock.parent.mkdir(parents=True)
    handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(handle)


def test_a_held_lock_is_fatal_only_when_every_chain_is_in_use(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held(settings.state / "records" / "lock"):
        found = by_name(examine(settings, find_binary))["record lock"]
        assert (found.state, found.detail) == (State.OK, "1 of 64 chains in use")
        monkeypatch.setattr(chains, "MOST_CHAINS", 1)
        found = by_name(examine(settings, find_binary))["record lock"]
        assert (found.state, found.needed, found.detail) == (State.FAILED, True, "1 engines use all chains")
    assert by_name(examine(settings, find_binary))["record lock"].detail == "free"


def test_long_temp_folder_is_fatal(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 80)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    found = by_name(examine(settings, find_binary))["temp folder"]
    assert (found.state, found.needed) == (State.FAILED, True)
    assert "too long for the path of a socket" in found.detail


def test_temp_folder_that_others_prepared_is_fatal(
    settings: Settings, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = short / f"admission-engine-{os.getuid()}"
    base.mkdir()
    base.chmod(0o777)
    monkeypatch.setattr("tempfile.tempdir", str(short))
    assert "not a private folder" in by_name(examine(settings, find_binary))["temp folder"].detail
    base.chmod(0o700)
    assert by_name(examine(settings, find_binary))["temp folder"].state is State.OK


def test_unwritable_cache_and_missing_tools_are_reported_but_not_fatal(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arguments, "BWRAP", "/usr/bin/no-bwrap-here")
    (tmp_path / "file").touch()
    lacking = Settings(state=settings.state, cache=tmp_path / "file" / "cache")
    found = by_name(examine(lacking, find_binary))
    assert found["cache"].state is State.FAILED
    assert found["bwrap"].state is State.MISSING
    assert "install" in found["bwrap"].remedy
    assert run(lacking) is Exit.ALLOW


@needs("bubblewrap")
def test_namespaces_are_probed_and_not_assumed(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bwrap that has a version and its options, and cannot make a namespace."""
    text = "case $1 in --version) echo bubblewrap 9;; --help) bwrap --help;; *) echo No permissions >&2; exit 1;; esac"
    fake = program(short / "bwrap", f"PATH=/usr/bin:/bin\n{text}")
    monkeypatch.setattr(arguments, "BWRAP", str(fake.path))
    found = by_name([*bubblewrap()])
    assert found["bwrap"].detail.endswith("bubblewrap 9")
    assert found["user namespaces"].state is State.FAILED
    assert f"uid {os.geteuid() or 65534}" in found["user namespaces"].detail


def test_an_old_bubblewrap_is_no_sandbox(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = program(short / "bwrap", "[ $1 = --version ] && echo bubblewrap 0.4.1 || echo --unshare-user")
    monkeypatch.setattr(arguments, "BWRAP", str(fake.path))
    found = by_name([*bubblewrap()])
    assert found["bwrap"].state is State.FAILED
    assert "0.8.0 or newer" in found["bwrap"].remedy


@needs("bubblewrap")
def test_real_bubblewrap_is_found_and_tried() -> None:
    found = by_name([*bubblewrap()])
    assert found["bwrap"].state is State.OK
    assert found["user namespaces"].state in {State.OK, State.FAILED}


def test_check_that_breaks_does_not_end_the_others(settings: Settings) -> None:
    def broken() -> Binary:
        raise ZeroDivisionError

    found = by_name(examine(settings, broken))
    assert found["opa"] == Check(
        "opa", State.FAILED, "cannot be determined: ZeroDivisionError", found["opa"].remedy, needed=True
    )
    assert "memory cgroup" in found


@pytest.mark.parametrize("version", [1, 2])
def test_a_memory_cgroup_of_either_version_counts_as_sandboxes_use_it(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup, "memory_place", lambda: cgroup.Hierarchy(tmp_path, version))
    assert [*cgroups()] == [Check("memory cgroup", State.OK, f"version {version}: {tmp_path}")]
    monkeypatch.setattr(cgroup, "memory_place", lambda: None)
    (found,) = cgroups()
    assert found.state is State.MISSING
    assert "until then memory is limited per process" in found.remedy


def test_home_folder_is_shown_as_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert display_path(Path("/home/someone/.local/state")) == "~/.local/state"
    assert display_path(Path("/home/someone")) == "~"
    assert display_path(Path("/home/someoneelse/x")) == "/home/someoneelse/x"
    monkeypatch.setenv("HOME", "/")
    assert display_path(Path("/var")) == "/var"


def test_probe_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    pid.touch()
    for seconds in (0.5, 5.0, 50.0):
        assert tried(["/bin/sh", "-c", f"sleep 600 & echo $! > {pid}; wait"], seconds)[0] is None
        if started := pid.read_text(encoding="ascii"):
            break
    assert gone(int(started))


def test_module_is_light() -> None:
    call = (
        "import sys, engine.cli.machine.doctor; print([m for m in ('pydantic', 'rich', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
