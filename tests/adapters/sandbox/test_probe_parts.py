"""The parts of the probe by themselves: what is made of words, of ends, and of what the kernel says of a process."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from admission_adapters.sandbox.model import Bounds, Program, RunResult, Status
from admission_adapters.sandbox.probe.canaries import ALLOWED, FILES, Canaries, Victim, compared, words_of
from admission_adapters.sandbox.probe.checks import (
    INODES,
    KERNEL,
    MACHINE_CALLS,
    MEMORY,
    SUPERVISED,
    SURVIVORS,
    WORK,
    Check,
    acts_of,
)
from admission_adapters.sandbox.probe.control import Control
from admission_adapters.sandbox.probe.rows import Row, rows
from admission_adapters.sandbox.probe.trial import BOUNDS, Trial, _Flood, _left, _Probe, _word, tried
from admission_adapters.sandbox.probe.watch import ProcessWatcher, named, observed
from admission_adapters.sandbox.run.proc import status_of
from admission_adapters.sandbox.run.user import sandbox_user
from tests.expect import there
from tests.facilities import needs
from tests.processes import in_child

OTHER = 61_997
"""Nobody's, and not the sandbox's own."""


@contextmanager
def cat(*before: str, name: str = "/bin/cat") -> Iterator[subprocess.Popen[bytes]]:
    """A process that is up, behind a command that makes it what it is."""
    with subprocess.Popen([*before, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert there(process.stdout).read(1) == b"\n"
        yield process
        process.kill()


# --- words ---


@pytest.fixture
def laid(tmp_path: Path) -> Canaries:
    """Canaries of which two were reached and one file was written."""
    found = Canaries(None, "s3cret")
    found.folder = tmp_path
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "token").touch()
    found.reached = {"tcp:token", "udp:other"}
    return found


@pytest.fixture
def victim() -> Iterator[Victim]:
    with cat() as process:
        yield Victim(process)


@pytest.mark.parametrize(
    ("act", "word", "seen"),
    [
        ("file_secret", "read:s3cret", "did"),
        ("file_secret", "read:", "none"),
        ("file_secret", "read:other", "failed:other"),
        ("file_secret", "refused:ENOENT", "refused:ENOENT"),
        ("secret_variable", "value:", "none"),
        ("secret_variable", "value:other", "failed:other"),
        ("tcp", "refused:EPERM", "did"),
        ("tcp", "did", "did"),
        ("udp", "did", "failed:unseen"),
        ("udp", "refused:EPERM", "refused:EPERM"),
        ("outside_write", "refused:EROFS", "did"),
        ("process_killed", "refused:ESRCH", "refused:ESRCH"),
        ("variables", f"names:HOME,PATH,{ALLOWED}", "none"),
        ("variables", "names:HOME,TOKEN", "did"),
        ("variables", "names:", "none"),
        ("descriptors", "fds:", "none"),
        ("descriptors", "fds:3", "did"),
        ("host_name", f"value:{os.uname().nodename}", "did"),
        ("host_name", "value:sandbox", "other"),
        ("work_environment", "value:terc3s", "did"),
        ("work_environment", "value:", "failed:value"),
        ("mounted", "refused:EPERM", "refused:EPERM"),
    ],
)
def test_a_reported_act_is_verified_against_host_observations(
    laid: Canaries, victim: Victim, act: str, word: str, seen: str
) -> None:
    assert compared({act: word}, "token", laid, victim)[act] == seen


def test_an_unreported_act_is_missing(laid: Canaries, victim: Victim) -> None:
    found = compared({}, "nothing", laid, victim)
    assert set(found.values()) == {"missing"}
    assert {"tcp", "variables", "descriptors", "host_name", "work_environment", *FILES} <= found.keys()


@pytest.mark.parametrize(
    ("output", "words"),
    [(b'{"tcp": "did", "udp": 1}', {"tcp": "did", "udp": "1"}), (b"[1]", {}), (b"", {}), (b"\xff", {})],
)
def test_probe_results_come_only_from_a_json_object(output: bytes, words: dict[str, str]) -> None:
    assert words_of(output) == words


# --- ends ---


def end(status: Status, stdout: bytes = b"", **fields: object) -> RunResult:
    plain = RunResult(status, None, None, 1.0, None, stdout, b"", len(stdout), 0)
    return replace(plain, **fields)  # type: ignore[arg-type]


FLOOD = _Flood({}, replace(BOUNDS, stdout_bytes=4, stderr_bytes=2), b"flood")


@pytest.mark.parametrize(
    ("ended", "word"),
    [
        (end(Status.OK, b"did"), "did"),
        (end(Status.OK, b""), "failed:answer"),
        (end(Status.TIMEOUT_CPU, signal=24), "signal:24"),
        (end(Status.TIMEOUT_CPU, b"flood", signal=9), "timeout_cpu"),
        (end(Status.SIGNAL, b"flood", signal=24), "signal"),
        (end(Status.OUTPUT_LIMIT, b"xxxx", limit="stdout"), "output_limit"),
        (end(Status.OUTPUT_LIMIT, b"xxx", limit="stdout"), "failed:3"),
        (end(Status.OUTPUT_LIMIT, limit="stderr", stderr=b"xx"), "output_limit"),
        (end(Status.OUTPUT_LIMIT, limit="stderr", stderr=b"xxx"), "failed:3"),
        (end(Status.OOM, b"flood", limit="memory"), "oom"),
        (end(Status.OOM, b"", limit="memory"), "failed:oom"),
    ],
)
def test_each_end_past_a_limit_is_classified(ended: RunResult, word: str) -> None:
    assert _word(ended, FLOOD) == word


def test_a_survivor_is_reported_and_ended(tmp_path: Path) -> None:
    shutil.copy("/bin/cat", tmp_path / "apleft")
    watch = ProcessWatcher("apmain", "apleft", 3)
    with cat(name=str(tmp_path / "apleft")) as process:
        watch.most = 2
        assert _left("apleft", watch) == "failed:unseen"
        assert process.poll() is None
        watch.most = 3
        assert _left("apleft", watch) == "did"
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert named("apleft") == []  # it is dead, and nobody has waited for it
        assert _left("apleft", watch) == "none"


@pytest.mark.parametrize(
    ("facts", "most", "complete"),
    [({}, 3, False), ({"a": "b"}, 2, False), ({"a": "b"}, 3, True), ({"a": "b"}, 4, True)],
)
def test_a_process_watch_is_complete_once_everything_was_seen(facts: dict[str, str], most: int, complete: bool) -> None:  # noqa: FBT001
    watch = ProcessWatcher("main", "token", 3)
    watch.facts, watch.most = facts, most
    assert watch.complete is complete


def silent(program: Program, bounds: Bounds) -> RunResult:  # noqa: ARG001
    """A launcher that runs nothing and says that all is well."""
    return end(Status.OK, wall_seconds=bounds.wall_seconds)


def test_controls_that_are_known_are_not_run_again() -> None:
    assert tried(silent, None, {"tcp": "did"}).outside == {"tcp": "did"}


@pytest.mark.parametrize(
    ("status", "early", "words"),
    [
        (Status.TIMEOUT_WALL, 0.0, ("timeout_wall", "timeout_wall")),
        (Status.TIMEOUT_WALL, 0.1, ("failed:early", "timeout_wall")),
        (Status.OK, 0.0, ("ok", "failed:unseen")),
    ],
)
def test_a_sleeper_counts_when_it_lived_until_its_end(status: Status, early: float, words: tuple[str, str]) -> None:
    def run(program: Program, bounds: Bounds) -> RunResult:  # noqa: ARG001
        return end(status, wall_seconds=bounds.wall_seconds - early)

    probe = _Probe(run, Control(None, {}, -1), Canaries(None))
    probe._sleeper(probe.trial.inside, run, Status.TIMEOUT_WALL)
    assert (probe.trial.inside["sleep"], probe.trial.inside["left_at_exit"]) == words


def test_probe_retries_wait_increasingly_long() -> None:
    slept: dict[bool, list[float]] = {True: [], False: []}

    def run(program: Program, bounds: Bounds) -> RunResult:
        slept[bounds == BOUNDS].append(json.loads(program.stdin)["seconds"])
        return end(Status.OK, wall_seconds=bounds.wall_seconds)

    probe = _Probe(run, Control(None, {}, -1), Canaries(None))
    probe._sleeper(probe.trial.inside, run, Status.TIMEOUT_WALL)
    assert all(tries == sorted(tries) and tries[0] < 2 and tries[-1] >= 5 for tries in slept.values())


# --- rows ---

CHECKS = {**KERNEL, **SUPERVISED, "survivors": SURVIVORS, "memory": MEMORY, "inodes": INODES}


def held(**inside: str) -> Mapping[str, Row]:
    """The table of a machine on which everything is held, but for these words."""
    checks: list[Check] = [check for found in (*CHECKS.values(), WORK, *MACHINE_CALLS.values()) for check in found]
    trial = Trial(
        {check.act: check.expected[0] for check in checks}, {check.act: "".join(check.harm[:1]) for check in checks}
    )
    for words in (trial.inside, trial.outside):
        words["work_hash_seed"] = "value:1"
    trial.inside["cpu"], trial.outside["cpu"] = "signal:24", "did"
    trial.inside |= inside
    return {row.boundary: row for row in rows(trial)}


def test_a_passing_probe_enforces_every_boundary() -> None:
    kinds = {name: row.kind for name, row in held().items()}
    assert set(kinds.values()) == {"kernel", "supervised"}
    assert {name for name, kind in kinds.items() if kind == "supervised"} == SUPERVISED.keys()
    assert all(row.enforced and row.red == () for row in held().values())


def test_each_boundary_has_its_own_acts() -> None:
    here = acts_of(MACHINE_CALLS.get(platform.machine(), ()))
    for name, checks in CHECKS.items():
        wanted = acts_of(checks) + (here if name == "syscalls" else [])
        assert [act.name for act in held()[name].acts] == wanted


def test_without_a_process_namespace_only_the_engine_ends_survivors() -> None:
    assert held()["survivors"].kind == "kernel"
    assert held(namespace_pid="shared")["survivors"].kind == "supervised"


def test_one_unblocked_act_makes_its_boundary_unsupported() -> None:
    found = held(udp="did")["network"]
    assert (found.kind, found.enforced, [act.name for act in found.red]) == ("unsupported", False, ["udp"])


@pytest.mark.parametrize(
    ("word", "kind"), [("signal:24", "kernel"), ("timeout_cpu", "supervised"), ("did", "unsupported")]
)
def test_the_evidence_states_what_ends_a_program_that_uses_up_its_processor_time(word: str, kind: str) -> None:
    assert held(cpu=word)["cpu"].kind == kind


# --- what the kernel says of a process ---

HERE = observed(os.getpid())


@pytest.mark.parametrize(
    ("before", "facts"),
    [
        ((), {}),
        (("setsid",), {"outside_session": "own"}),
        (("setpriv", "--no-new-privs"), {"outside_new_privileges": "refused"}),
    ],
    ids=["plain", "session", "privileges"],
)
def test_session_and_privilege_facts_of_a_process_are_observed(before: tuple[str, ...], facts: dict[str, str]) -> None:
    with cat(*before) as process:
        assert observed(process.pid) == HERE | facts


@needs("root")
@pytest.mark.parametrize(
    ("before", "facts"),
    [
        ((), {"user": "root", "groups": "root", "capabilities": "some", "session": "shared"}),
        ((f"--reuid={OTHER}",), {"user": "unprivileged", "groups": "root"}),
        ((f"--regid={OTHER}", "--clear-groups"), {"user": "root", "groups": "unprivileged"}),
        ((f"--regid={OTHER}", "--groups=0"), {"groups": "root"}),
        ((f"--reuid={OTHER}", "--inh-caps=-all"), {"capabilities": "some"}),
        ((f"--reuid={OTHER}", "--inh-caps=-all", "--bounding-set=-all"), {"capabilities": "none"}),
    ],
    ids=["root", "user", "group", "groups", "bounding", "none"],
)
def test_remaining_root_privileges_are_detected(before: tuple[str, ...], facts: dict[str, str]) -> None:
    with cat("setpriv", "--ambient-caps=-all", *before) as process:
        found = observed(process.pid)
    assert {name: found[f"outside_{name}"] for name in facts} == facts


@needs("root", "mounts")
def test_a_namespace_of_its_own_is_seen() -> None:
    with cat("unshare", "--uts") as process:
        found = observed(process.pid)
    assert {name for name, word in found.items() if word == "own"} == {"namespace_uts"}
    assert {name for name, word in found.items() if name.startswith("namespace_") and word == "shared"} == {
        f"namespace_{name}" for name in ("cgroup", "ipc", "mnt", "net", "pid", "user")
    }


def test_a_filter_is_seen() -> None:
    own = dict(line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    assert HERE["outside_filter"] == ("refused" if own["Seccomp"] == "2" else "did")


# --- canaries and the control ---


def test_canaries_cover_every_location_that_acts_inspect() -> None:
    with Canaries(None) as laid:
        places = {"segment", "folder", "tcp", "udp", "dns", "unix", "abstract"}
        assert laid.places.keys() == {*FILES, *places}


def test_a_victim_without_a_stream_is_ended_too() -> None:
    with cat() as process:
        Victim(process).end()
    assert process.returncode is not None
    alone = Victim(subprocess.Popen(["/bin/sleep", "600"]))
    alone.end()
    assert alone.process.returncode == -9


_CONTROL = "import os; print(os.getuid(), os.getgid(), sorted(os.getgroups()))"


@pytest.fixture
def grouped() -> Iterator[None]:
    """This process has a group to lose."""
    before = os.getgroups()
    os.setgroups([OTHER])
    yield
    os.setgroups(before)


@needs("root")
@pytest.mark.usefixtures("grouped")
@pytest.mark.parametrize("other", [False, True], ids=["this user", "another"])
def test_a_process_of_another_user_has_no_groups_of_this_process(other: bool) -> None:  # noqa: FBT001
    user, kept = (sandbox_user().uid, []) if other else (None, [OTHER])
    victim = Canaries(user).victim()
    assert status_of(victim.process.pid)["Groups"].split() == [str(one) for one in kept]
    victim.end()
    with Path("/dev/null").open("rb") as nothing:
        done = Control(user, {}, nothing.fileno()).run(Program("python", _CONTROL, b"", {}, 0, ""), BOUNDS)
    assert done.stdout.decode().strip() == f"{user or 0} {user or 0} {kept}"


_NEW_IPC, _NEW_MOUNTS = 0x08000000, 0x00020000
_READ_ONLY = 0o10000


def _segment(laid: Canaries) -> tuple[int, bytes]:
    """The number of the canary's segment and what is in it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    number = libc.shmget(ctypes.c_int(int(str(laid.places["segment"]))), ctypes.c_size_t(0), ctypes.c_int(0))
    address = libc.shmat(ctypes.c_int(number), None, ctypes.c_int(_READ_ONLY)) if number >= 0 else None
    return number, b"" if address is None else ctypes.string_at(address, len(laid.secret))


@needs("root", "mounts")
@pytest.mark.parametrize("most", [1, 0])
def test_a_shared_memory_canary_is_created_only_if_there_is_room(most: int) -> None:
    """In an IPC namespace of its own, whose first segment has the number 0."""
    with Canaries(None) as here:
        assert _segment(here)[1] == here.secret.encode()

    def laid_there() -> bool:
        assert ctypes.CDLL(None).unshare(ctypes.c_int(_NEW_IPC | _NEW_MOUNTS)) == 0
        for mounted in (["--make-rprivate", "/"], ["-t", "proc", "proc", "/proc"]):
            subprocess.run(["/usr/bin/mount", *mounted], check=True)
        Path("/proc/sys/kernel/shmmni").write_text(str(most))
        with Canaries(None) as laid:
            return _segment(laid) == ((0, laid.secret.encode()) if most else (-1, b""))

    assert in_child(laid_there)
