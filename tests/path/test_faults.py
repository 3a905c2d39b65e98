"""What fails around the engine is a deny with a reserved code and exit 4, recorded where a record can be written.

OPA killed or stopped, the disk full, the state unusable or held by another engine, the engine itself killed.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.opa.generation import Generation
from engine.opa.server import Server
from engine.opa.supervisor import SupervisionLimits
from engine.record.layout import DECISIONS
from engine.record.log import RecordLog
from engine.record.model import utc_now
from engine.record.reader import Filter, select
from engine.record.storage import Storage
from engine.record.verify import verify
from engine.settings import OpaLimits, Settings, bundled
from engine.state import open_store
from tests.command import Command, codes, decisions, events, measured
from tests.conftest import BUNDLES, NOW, ROOT
from tests.expect import there
from tests.facilities import needs
from tests.processes import alive, gone, opa_of, stop, until
from tests.record.samples import decision

GOOD = BUNDLES / "offline_fixture"
REQUEST = {"path": str(GOOD), "digest": None}
MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
MANY = 150
"""Source bundles of one command: enough that it can be caught in the middle of them."""


@pytest.fixture
def short() -> Iterator[Path]:
    """A temporary folder of its own for the private folders of OPA; a socket path has to be short."""
    with tempfile.TemporaryDirectory(prefix="faults-", dir="/tmp") as folder:
        yield Path(folder)


def pid_of(engine: Engine) -> int:
    """The OPA of an engine."""
    assert isinstance(engine.opa, Generation)
    return there(engine.opa.pid)


def recorded(state: Path, decision_id: str) -> dict[str, Any]:
    (found,) = [one for one in decisions(state) if one["decision_id"] == decision_id]
    return found


# OPA


@pytest.mark.own_opa
@pytest.mark.full(after=1)
@pytest.mark.parametrize("fault", ["killed", "stopped"])
def test_opa_that_does_not_answer_denies_and_is_recorded(
    fault: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_again = partial(SupervisionLimits, restart_first_seconds=600)
    monkeypatch.setattr("engine.opa.supervisor.SupervisionLimits", never_again)
    with Engine(settings, now=lambda: MOMENT) as engine:
        pid = pid_of(engine)
        assert engine.decide("source", REQUEST).exit == 0  # the control: it does answer
        if fault == "killed":
            os.kill(pid, signal.SIGKILL)
        else:
            stop(pid)
            assert isinstance(engine.opa, Generation)
            monkeypatch.setattr(there(engine.opa.server._client), "_limits", OpaLimits(answer_seconds=0.3))
        got = engine.decide("source", REQUEST)
    found = [one.code for one in got.decision.findings]
    assert (got.exit, got.decision.outcome, found) == (4, "deny", ["policy_unavailable"])
    assert got.decision.limits is None
    assert got.decision.findings[0].remedy
    assert recorded(settings.state, got.decision.decision_id)["findings"][0]["code"] == "policy_unavailable"
    assert gone(pid)


@pytest.mark.full
def test_a_deadline_that_is_over_leaves_no_socket_open(settings: Settings) -> None:
    """An unclosed socket would be told when it is collected, and each would cost a descriptor until then."""
    with Engine(replace(settings, opa=OpaLimits(answer_seconds=1e-9))) as engine:
        late = [engine.decide("source", REQUEST).decision.findings[0].code for _ in range(3)]
        gc.collect()  # an answer keeps its fault, and a fault the frames that it came through
    assert late == ["policy_unavailable"] * 3


@pytest.mark.own_opa
@pytest.mark.full(after=1)
@pytest.mark.parametrize("fault", ["killed", "stopped"])
def test_opa_that_fails_while_it_starts_denies_in_time(
    fault: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = Server.ready

    def disturbed(self: Server) -> None:
        assert self.pid is not None
        os.kill(self.pid, signal.SIGKILL) if fault == "killed" else stop(self.pid)
        ready(self)

    monkeypatch.setattr(Server, "ready", disturbed)
    with Engine(replace(settings, opa=OpaLimits(start_seconds=0.5))) as engine:
        got = engine.decide("source", REQUEST)
    assert (got.exit, got.decision.findings[0].code) == (4, "policy_unavailable")
    assert len(decisions(settings.state)) == 1


@pytest.mark.parametrize("fault", ["missing", "not executable", "another binary", "no note of its digest"])
def test_opa_that_is_not_the_one_that_was_built_is_never_run(
    fault: str, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(bundled("opa"), tmp_path / "opa")
    shutil.copy(bundled("opa.json"), tmp_path / "opa.json")
    monkeypatch.setattr("engine.binaries.bundled", lambda name: tmp_path / name)
    if fault == "missing":
        (tmp_path / "opa").unlink()
    elif fault == "not executable":
        (tmp_path / "opa").chmod(0o600)
    elif fault == "another binary":
        shutil.copy("/bin/true", tmp_path / "opa")
    else:
        (tmp_path / "opa.json").unlink()
    with Engine(settings) as engine:
        got = engine.decide("source", REQUEST)
    assert (got.exit, got.decision.findings[0].code) == (4, "engine.opa_binary")
    assert "scripts/run" in got.decision.findings[0].remedy
    (decision,) = decisions(settings.state)
    assert (decision["outcome"], decision["policy"], decision["versions"]["opa"]) == ("deny", None, None)


@contextmanager
def checking(command: Command, short: Path, count: int = MANY) -> Iterator[subprocess.Popen[bytes]]:
    """`engine check` on many source bundles, stopped by a signal when it has decided some of them."""
    process = subprocess.Popen(
        command.argv("check", *[GOOD] * count, "--now", NOW, "--format", "json"),
        cwd=ROOT,
        env=command.environment({"TMPDIR": str(short)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    log = command.state / DECISIONS
    try:
        until(lambda: process.poll() is not None or (log.exists() and log.read_bytes().count(b"\n") >= 3))
        stop(process.pid)
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.full
def test_opa_killed_during_checks_denies_until_it_is_restarted(command: Command, short: Path) -> None:
    with checking(command, short) as process:
        opa = opa_of(process.pid)
        os.kill(opa, signal.SIGKILL)
        os.kill(process.pid, signal.SIGCONT)
        out, err = process.communicate(timeout=60)
    assert b"Traceback" not in err
    reports = json.loads(out)["reports"]
    exits = [report["exit"] for report in reports]
    assert process.returncode == 4
    assert exits[:3] == [0, 0, 0]
    assert 4 in exits
    assert exits.count(0) + exits.count(4) == MANY
    assert {code for report in reports if report["exit"] == 4 for code in codes(report)} == {"policy_unavailable"}
    assert [one["outcome"] for one in decisions(command.state)] == [one["decision"]["outcome"] for one in reports]
    assert not left_over(short)


def left_over(short: Path) -> list[Path]:
    """Private folders of OPA that are still there."""
    base = short / f"admission-engine-{os.getuid()}"
    return [path for path in base.iterdir() if path.is_dir()] if base.exists() else []


# the engine


@pytest.mark.full
def test_an_engine_killed_midway_leaves_an_intact_record_and_no_lasting_files(command: Command, short: Path) -> None:
    with checking(command, short) as process:
        opa = opa_of(process.pid)
        assert alive(opa)
        assert len(left_over(short)) == 1
        os.kill(process.pid, signal.SIGCONT)
        process.kill()
        process.communicate()
    assert gone(opa)
    found = verify(command.state)
    assert found.ok or found.repairable
    before = found.records
    assert before >= 3
    assert command.check(GOOD, env={"TMPDIR": str(short)}).code == 0
    assert len(decisions(command.state)) >= before + 1
    assert not left_over(short)
    run = command("record", "verify")
    assert (run.code, "record intact" in run.stdout) == (0, True)


@pytest.mark.full(after=1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_terminated_engine_cleans_up_at_once(number: signal.Signals, command: Command, short: Path) -> None:
    with checking(command, short) as process:
        opa = opa_of(process.pid)
        os.kill(process.pid, number)
        os.kill(process.pid, signal.SIGCONT)
        out, err = process.communicate(timeout=60)
    assert process.returncode not in {0, 1, 3}
    assert b"Traceback" not in err
    assert out == b""
    assert gone(opa)
    assert decisions(command.state)
    assert not left_over(short)


# the record


def test_two_engines_on_one_state_folder_have_a_chain_each(settings: Settings) -> None:
    with Engine(settings, now=lambda: MOMENT) as first, Engine(settings, now=lambda: MOMENT) as second:
        asked = [engine.decide("source", REQUEST) for engine in (first, second, first)]
    assert [one.exit for one in asked] == [0, 0, 0]
    found = select(settings.state, Filter(), 9).entries
    assert [entry.chain for entry in found] == [1, 2, 1]
    assert [getattr(entry.body, "decision_id", None) for entry in found] == [one.decision.decision_id for one in asked]


def test_an_engine_that_finds_no_free_chain_denies(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.record.chains.MOST_CHAINS", 1)
    with Engine(settings), Engine(settings) as second:
        refused = second.decide("source", REQUEST)
    assert (refused.exit, refused.decision.outcome) == (4, "deny")
    assert [one.code for one in refused.decision.findings] == ["engine.record_locked"]
    assert "--state" in refused.decision.findings[0].remedy


@pytest.mark.full
def test_commands_at_the_same_time_all_decide(command: Command) -> None:
    processes = [
        subprocess.Popen(
            command.argv("check", GOOD, "--now", NOW), cwd=ROOT, env=command.environment(), stdout=subprocess.DEVNULL
        )
        for _ in range(3)
    ]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert len(select(command.state, Filter(point="source"), 9).entries) == 3


def test_threads_share_one_engine(settings: Settings) -> None:
    with Engine(settings, now=lambda: MOMENT) as engine, ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: engine.decide("source", REQUEST), range(40)))
    assert {one.exit for one in answers} == {0}
    ids = [one.decision.decision_id for one in answers]
    assert len(set(ids)) == 40
    assert sorted(ids) == sorted(one["decision_id"] for one in decisions(settings.state))


UNUSABLE: dict[str, Callable[[Path], Path]] = {
    "a-file": lambda root: file(root / "state"),
    "below-a-file": lambda root: file(root / "file") / "state",
    "a-link-to-nothing": lambda root: link(root / "state", root / "nothing" / "deeper"),
    "where-no-folder-can-be": lambda _: Path("/proc/admission-engine-state"),
    "records-is-a-file": lambda root: file(root / "state" / "records").parent,
    "a-damaged-installation": lambda root: file(root / "state" / "installation.json").parent,
}


def file(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("not what the engine left here", encoding="utf-8")
    return path


def link(path: Path, target: Path) -> Path:
    path.symlink_to(target)
    return path


@pytest.mark.full(after=1)
@pytest.mark.parametrize("fault", UNUSABLE)
def test_a_state_that_cannot_be_used_denies(fault: str, tmp_path: Path, cache: Path) -> None:
    state = UNUSABLE[fault](tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with Engine(Settings(state=state, cache=cache)) as engine:
        got = engine.decide("source", REQUEST)
    assert (got.exit, got.decision.outcome, got.decision.limits) == (4, "deny", None)
    (finding,) = got.decision.findings
    assert finding.code.startswith("engine.record_")
    assert finding.remedy
    assert str(state) in finding.requirement
    made = {path.name for path in set(tmp_path.rglob("*")) - set(before)}
    made -= {"state.sqlite3", "state.sqlite3-wal", "state.sqlite3-shm"}  # every decision asks the state for stops first
    assert made <= {"records", "lock", "nothing", "deeper"}  # nothing that a later start could take for a record


def test_a_tampered_record_stops_every_decision_until_it_is_restored(command: Command) -> None:
    assert command.check(GOOD, GOOD).code == 0
    log = command.state / DECISIONS
    whole = log.read_bytes()
    log.write_bytes(whole.replace(b'"outcome":"allow"', b'"outcome":"deny!"'))
    (report,) = (run := command.check(GOOD, "--format", "json")).json["reports"]
    assert (run.code, codes(report)) == (4, ["engine.record_broken"])
    assert command("record", "verify").code == 4
    log.write_bytes(whole)
    assert command.check(GOOD).code == 0
    assert len(select(command.state, Filter(point="source"), 9).entries) == 3


LIMITED = """
import resource, runpy, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.argv[:2] = ["engine"]
runpy.run_module("engine", run_name="__main__")
"""


# covers: H11.2
@pytest.mark.parametrize("room", [400, 3000])
def test_a_full_disk_denies_from_the_first_decision_that_does_not_fit(
    room: int, command: Command, shared_settings: Settings
) -> None:
    """A limit on the size of files stands for a full disk; the record is large enough for nothing else to meet it."""
    with Engine(shared_settings):
        pass  # the policy is built, and takes no room any more
    with RecordLog.open(Storage(command.state), lock_seconds=0.0, clock=utc_now) as log:
        for number in range(1, 9):
            log.append(decision(number, {"point": "source", "filler": ["x" * 1000] * 300}))
    size = (command.state / DECISIONS).stat().st_size
    limited = (sys.executable, "-c", LIMITED, str(size + room))
    unmeasured = {k: v for k, v in command.environment().items() if k not in measured()}  # nor has that data room
    done = subprocess.run(
        [*limited, "check", *[str(GOOD)] * 3, "--now", NOW, "--format", "json"],
        cwd=ROOT,
        env=unmeasured,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode == 4
    reports = json.loads(done.stdout)["reports"]
    exits = [report["exit"] for report in reports]
    fitting = exits.count(0)
    assert exits == [0] * fitting + [4] * (3 - fitting)
    assert fitting == {400: 0, 3000: 1}[room], reports[0]["findings"]
    assert {code for report in reports[fitting:] for code in codes(report)} == {"engine.record_unavailable"}
    said = reports[fitting]["findings"][0]["requirement"]
    assert "file too large" in said or "no space left" in said  # whether nothing or a part of the line was written
    assert command.check(GOOD).code == 0  # with room again it goes on
    assert len(decisions(command.state)) == 8 + fitting + 1
    assert len(events(command.state)) == fitting + 1


CHECK = ("check", GOOD, GOOD, "--now", NOW, "--format", "json")
READ_ONLY = "mount --bind $STATE $STATE && mount -o remount,ro,bind $STATE"


def mounted(script: str, command: Command, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run `engine check`, or another command, in a mount namespace after a script that mounts something at `$STATE`."""
    rights = ["-m"] if os.geteuid() == 0 else ["-rm"]
    env = command.environment({"STATE": str(command.state)})
    command.state.mkdir(parents=True, exist_ok=True)
    engine = command.argv(*(words or CHECK))
    return subprocess.run(
        ["unshare", *rights, "sh", "-c", f'{script} && exec "$@"', "sh", *engine],  # noqa: S607
        cwd=ROOT,
        env=env,
        capture_output=True,
        check=False,
        timeout=60,
    )


# covers: H11.2
@needs("mounts")
def test_a_file_system_without_room_denies(command: Command) -> None:
    script = "mount -t tmpfs -o size=16k,mode=700 none $STATE"
    done = mounted(script, command)
    assert (done.returncode, b"Traceback" in done.stderr) == (4, False)
    for report in json.loads(done.stdout)["reports"]:
        assert codes(report) == ["engine.record_unavailable"]


@pytest.mark.full
@needs("mounts")
def test_a_read_only_file_system_denies_and_the_record_stays_as_it_was(command: Command) -> None:
    assert command.check(GOOD).code == 0
    before = (command.state / DECISIONS).read_bytes()
    done = mounted(READ_ONLY, command)
    assert (done.returncode, b"Traceback" in done.stderr) == (4, False)
    for report in json.loads(done.stdout)["reports"]:
        assert codes(report) == ["engine.record_unavailable"]
        assert "read-only" in report["findings"][0]["requirement"]
    assert (command.state / DECISIONS).read_bytes() == before
    assert len(decisions(command.state)) == 1


@needs("mounts")
@pytest.mark.parametrize("words", [("record", "verify"), ("approvals", "list")])
def test_read_only_commands_work_on_a_read_only_file_system(words: tuple[str, ...], command: Command) -> None:
    assert command.check(GOOD).code == 0
    done = mounted(READ_ONLY, command, *words)
    assert (done.returncode, done.stderr) == (0, b"")


@needs("mounts")
def test_a_state_that_an_engine_has_open_is_read_through_a_read_only_mount(command: Command) -> None:
    with closing(open_store(command.state)) as store:
        assert store.writable()
        done = mounted(READ_ONLY, command, "approvals", "list")
    assert (done.returncode, done.stderr) == (0, b"")


# the policy cache and the private folder


@pytest.mark.full
def test_a_cache_that_cannot_be_used_denies_and_says_how_to_choose_another(command: Command, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    (report,) = (run := command.check(GOOD, "--format", "json", env={"XDG_CACHE_HOME": str(tmp_path / "cache")})).json[
        "reports"
    ]
    assert (run.code, codes(report)) == (4, ["engine.policy_cache"])
    assert "XDG_CACHE_HOME" in report["findings"][0]["remedy"]
    assert len(decisions(command.state)) == 1


@pytest.mark.full
def test_a_damaged_cache_is_built_again(command: Command, tmp_path: Path) -> None:
    assert command.check(GOOD).code == 0
    own = Command(command.home, tmp_path / "xdg" / "admission-engine")
    shutil.copytree(command.cache, own.cache, ignore=shutil.ignore_patterns(".*"))  # what others just build
    for archive in own.cache.rglob("*.tar.gz"):
        archive.write_bytes(archive.read_bytes()[:-20])
    assert own.check(GOOD).code == 0


@pytest.mark.own_opa
def test_no_room_for_the_private_folder_of_opa_denies(command: Command, short: Path) -> None:
    (short / f"admission-engine-{os.getuid()}").write_text("a file", encoding="utf-8")
    (report,) = (run := command.check(GOOD, "--format", "json", env={"TMPDIR": str(short)})).json["reports"]
    assert (run.code, codes(report)) == (4, ["policy_unavailable"])
    assert len(decisions(command.state)) == 1


@needs("other_users")
def test_without_a_home_folder_the_error_names_the_variable_to_set(command: Command) -> None:
    """As in a container that is given a user id that no one has."""
    unset = [word for name in ("HOME", "XDG_CACHE_HOME", "COVERAGE_PROCESS_CONFIG") for word in ("-u", name)]
    nobody = ("env", *unset, "setpriv", "--reuid=54321", "--clear-groups")
    run = command.check(GOOD, prefix=nobody)
    assert run.code in {2, 4}
    assert "unexpected" not in run.stderr
    assert "XDG_CACHE_HOME" in run.stdout + run.stderr
