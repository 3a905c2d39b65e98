"""The probe: the table of this machine, and that nothing is claimed without a positive control."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from admission_adapters.sandbox.bubblewrap.probe import probe_bubblewrap
from admission_adapters.sandbox.model import Bounds, Program, RunResult, Status
from admission_adapters.sandbox.probe.canaries import Canaries, Victim, compared
from admission_adapters.sandbox.probe.checks import KERNEL, SUPERVISED, SURVIVORS, WORK, Check
from admission_adapters.sandbox.probe.control import WORDING, Control
from admission_adapters.sandbox.probe.rows import REQUESTED, Row, rows
from admission_adapters.sandbox.probe.trial import BOUNDS, Trial, tried
from admission_adapters.sandbox.probe.watch import named
from admission_adapters.sandbox.run.cgroup import memory_mode
from admission_adapters.sandbox.run.process import run_once
from admission_adapters.sandbox.run.user import sandbox_user
from engine.errors import WorkError
from tests.facilities import needs
from tests.processes import leaks

CHECKS = {**KERNEL, **SUPERVISED, "survivors": SURVIVORS}


def user() -> int | None:
    return sandbox_user().other


@pytest.fixture(scope="module")
def trial() -> Trial:
    """One probe of this machine; the tests below look at it or at changed copies."""
    return tried(run_once, user())


def table(trial: Trial) -> dict[str, Row]:
    return {row.boundary: row for row in rows(trial)}


def changed(trial: Trial, side: str, act: str, word: str) -> dict[str, Row]:
    words = {**getattr(trial, side), act: word}
    return table(replace(trial, **{side: words}))


# covers: A03.1-5 C58.1 C58.3 C59.1 C60.1-4 C65 H05
@needs("bubblewrap")
def test_every_boundary_of_this_machine_is_proven(trial: Trial) -> None:
    found = table(trial)
    assert {
        name: [(act.name, act.inside, act.outside) for act in row.red] for name, row in found.items() if row.red
    } == {}
    by_memory = "bounded" if memory_mode() == "none" else "kernel"
    special = {"output": "supervised", "time": "supervised", "memory": by_memory, "inodes": by_memory}
    assert {name: row.kind for name, row in found.items()} == {name: special.get(name, "kernel") for name in REQUESTED}
    assert all(row.enforced for row in found.values())


@needs("bubblewrap")
def test_the_control_succeeds_in_the_acts_blocked_inside(trial: Trial) -> None:
    done = {act for act, word in trial.outside.items() if word == "did"}
    assert {"file_secret", "file_ssh_key", "file_cloud", "file_browser", "file_personal", "outside_write"} <= done
    assert {"tcp", "udp", "dns", "unix_path", "unix_abstract", "process_seen", "process_killed"} <= done
    assert {"shared_memory", "secret_variable", "process_environment", "inherited"} <= done
    assert {"memory", "forks", "opens", "large_file", "disk", "cpu", "memory_tree", "inode_flood"} <= done
    assert {"stdout", "stderr", "sleep", "left_at_kill", "left_at_exit"} <= done
    bounded = set() if memory_mode() != "none" else {"memory_tree", "inode_flood"}  # by a product of other limits
    assert {act for act, word in trial.inside.items() if act in done - acts(WORK) and word == "did"} <= bounded


def acts(checks: tuple[Check, ...]) -> set[str]:
    return {check.act for check in checks}


@needs("bubblewrap")
@pytest.mark.parametrize("boundary", CHECKS)
def test_any_unblocked_or_unclear_act_makes_its_boundary_unsupported(trial: Trial, boundary: str) -> None:
    for check in CHECKS[boundary]:
        for word in ("did", "shared", "root", "missing", "", "failed:OSError"):
            found = changed(trial, "inside", check.act, word)[boundary]
            assert (found.kind, found.enforced) == ("unsupported", False), (check.act, word)
            assert check.act in {act.name for act in found.red}


# covers: H05
@needs("bubblewrap")
@pytest.mark.parametrize("boundary", CHECKS)
def test_without_a_control_only_kernel_reported_evidence_counts(trial: Trial, boundary: str) -> None:
    """A call that the filter kills is evidence by itself; so is the class of a process as the kernel tells it."""
    work = {act: word for act, word in trial.outside.items() if act.startswith("work_")}
    found = table(replace(trial, outside=work))[boundary]
    killed = all(
        trial.inside[check.act].startswith("signal:31") or not check.harm or not check.needed
        for check in CHECKS[boundary]
    )
    assert found.enforced is killed
    assert killed is (boundary == "capabilities")


@needs("bubblewrap")
def test_memory_without_a_cgroup_is_bounded_only_while_other_limits_hold(trial: Trial) -> None:
    found = changed(trial, "inside", "memory_tree", "did")
    assert (found["memory"].kind, found["memory"].enforced) == ("bounded", True)
    opened = {**trial.inside, "memory_tree": "did", "forks": "did"}
    found = table(replace(trial, inside=opened))
    assert (found["memory"].kind, found["memory"].enforced) == ("unsupported", False)


@needs("bubblewrap")
def test_cpu_time_enforced_only_by_the_engine_is_supervised(trial: Trial) -> None:
    assert changed(trial, "inside", "cpu", "timeout_cpu")["cpu"].kind == "supervised"
    assert changed(trial, "inside", "cpu", "did")["cpu"].kind == "unsupported"


@needs("bubblewrap")
@pytest.mark.parametrize("act", [*sorted(acts(WORK)), "work_hash_seed"])
def test_a_sandbox_that_fails_ordinary_work_enforces_no_boundary(trial: Trial, act: str) -> None:
    for word in ("missing", "refused:EPERM", "signal:31", "value:1"):
        assert not any(row.enforced for row in changed(trial, "inside", act, word).values())


# covers: H01
@needs("bubblewrap")
def test_evidence_is_reproducible_and_depends_on_the_observations(trial: Trial) -> None:
    again = table(tried(run_once, user(), trial.outside))
    assert {name: row.evidence for name, row in again.items()} == {
        name: row.evidence for name, row in table(trial).items()
    }
    other = changed(trial, "inside", "udp", "refused:EACCES")["network"]
    assert other.enforced
    assert other.evidence != again["network"].evidence


@pytest.mark.full
@needs("bubblewrap")
def test_omitting_the_private_folder_fails_only_the_disk_act(trial: Trial) -> None:
    """The folder of the host that stands for the private one is the program's, so that it still runs."""
    whole, without = (probe_bubblewrap(left, trial.outside) for left in (frozenset(), frozenset({"private_job"})))
    assert {act.name for row in whole for act in row.red} == set()
    assert {act.name for row in without for act in row.red} == {"disk"}


def test_a_sandbox_start_failure_is_reported_with_its_stderr() -> None:
    def refused(_program: Program, _bounds: Bounds) -> RunResult:
        return RunResult(Status.SANDBOX_ERROR, None, None, 0.0, None, b"", b"bwrap: no permissions\n", 0, 22)

    with pytest.raises(WorkError, match="sandbox_error: bwrap: no permissions"):
        tried(refused, user(), {})


@pytest.mark.full
def test_a_launcher_without_protection_enforces_no_boundary(canaries: Canaries) -> None:
    """The words come from what the host saw: a launcher that runs the program plainly holds next to nothing."""

    def plain(program: Program, bounds: Bounds) -> RunResult:
        done = Control(user(), {canaries.secret_name: canaries.secret}, canaries.descriptor).run(program, BOUNDS)
        return RunResult(Status.OK, 0, None, bounds.wall_seconds, None, done.stdout, done.stderr, 0, 0)

    found = rows(tried(plain, user()))
    assert [row.boundary for row in found if row.enforced] == []
    assert {act.name for row in found for act in row.red} >= {"tcp", "outside_write", "process_killed", "left_at_kill"}


@pytest.fixture
def canaries() -> Iterator[Canaries]:
    with Canaries(user()) as laid:
        yield laid


def test_canaries_leave_nothing_behind() -> None:
    assert not leaks(_laid_and_removed)


def _laid_and_removed() -> None:
    with Canaries(user()) as laid:
        folder, name = laid.folder, laid.secret_name
        victim = laid.victim()
        assert not victim.hurt(0)
        assert os.environ[name] == laid.secret
        victim.end()
    assert not folder.exists()
    assert name not in os.environ


def test_a_victim_dying_shortly_after_the_kill_counts_as_killed(canaries: Canaries) -> None:
    dying = Victim(subprocess.Popen(["/bin/sleep", "0.3"]))
    assert compared({"process_killed": "refused:EPERM"}, "token", canaries, dying)["process_killed"] == "refused:EPERM"
    assert compared({"process_killed": "did"}, "token", canaries, dying)["process_killed"] == "did"


def test_canaries_ignore_unrelated_packets(canaries: Canaries) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b"", ("127.0.0.1", int(str(canaries.places["dns"]))))
        stranger.sendto(b"\xff" * 12, ("127.0.0.1", int(str(canaries.places["dns"]))))
        stranger.settimeout(10)
        stranger.sendto(b"token", ("127.0.0.1", int(str(canaries.places["udp"]))))
        assert stranger.recv(16) == b"seen"
    assert "udp:token" in canaries.reached


def test_processes_are_matched_by_their_whole_name(canaries: Canaries) -> None:
    victim = canaries.victim()
    try:
        assert victim.process.pid in named("cat")
        assert victim.process.pid not in named("at")
    finally:
        victim.end()
    assert victim.process.pid not in named("cat")


# covers: C80.1
def test_the_control_is_labelled_as_no_security_sandbox() -> None:
    assert WORDING == "a separate subprocess boundary (best-effort, not a security sandbox)"
