"""How a sandbox is started: each protection that the engine itself holds is there, unless it is left out."""

from __future__ import annotations

import os
import signal
import tempfile
from contextlib import closing, suppress
from pathlib import Path

import pytest

from admission_adapters.sandbox.model import NotStartedError
from admission_adapters.sandbox.run import cgroup
from admission_adapters.sandbox.run import start as starting
from admission_adapters.sandbox.run.cgroup import Hierarchy, memory_place
from admission_adapters.sandbox.run.proc import status_of
from admission_adapters.sandbox.run.process import run_in, run_once
from admission_adapters.sandbox.run.recipe import Setup
from admission_adapters.sandbox.run.start import Sandbox, start
from admission_adapters.sandbox.run.user import User, sandbox_user
from tests.adapters.sandbox.programs import (
    BOUNDS,
    ENVIRONMENT,
    emptied,
    inhabitants,
    namespace_of,
    program,
)
from tests.expect import there
from tests.facilities import needs
from tests.processes import leaks, opened_by, until

pytestmark = needs("bubblewrap")


def started(*without: str) -> closing[Sandbox]:
    return closing(start(Setup(BOUNDS, ENVIRONMENT, frozenset(without))))


def _launcher(found: Sandbox) -> int:
    children = Path(f"/proc/{found.child}/task/{found.child}/children")
    return int(children.read_text(encoding="ascii"))


@pytest.mark.parametrize(
    ("without", "job"), [({"private"}, False), ({"private_job"}, False), (set(), True), ({"private_job", ""}, True)]
)
def test_an_invalid_set_of_omitted_protections_starts_nothing(without: set[str], job: object, tmp_path: Path) -> None:
    def refused() -> None:
        with pytest.raises(ValueError, match="unknown protections"):
            start(Setup(BOUNDS, ENVIRONMENT, frozenset(without), tmp_path if job else None))

    assert not leaks(refused)


def test_the_probe_can_supply_the_work_folder() -> None:
    with tempfile.TemporaryDirectory(prefix="sandbox-test-") as name:  # the folders of tests are their owner's only
        folder = Path(name)
        folder.chmod(0o777)
        given = program("open('/work/left', 'w').write('x')")
        ended = run_once(given, BOUNDS, None, frozenset({"private_job"}), folder)
        assert (ended.stderr, (folder / "left").exists()) == (b"", True)


def test_a_host_process_that_ignores_sigchld_starts_nothing() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(NotStartedError, match="ignores SIGCHLD"):
            start(Setup(BOUNDS, ENVIRONMENT))
    finally:
        signal.signal(signal.SIGCHLD, before)


@needs("root")
@pytest.mark.parametrize("without", [(), ("drop_uid",)])
def test_root_drops_to_the_sandbox_user_unless_drop_uid_is_omitted(without: tuple[str, ...]) -> None:
    uid = 0 if without else sandbox_user().uid
    with started(*without) as found:
        for process in (found.process.pid, found.child):
            assert status_of(process)["Uid"].split()[0] == str(uid)


@needs("root")
def test_a_sandbox_under_the_engine_user_keeps_its_uid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "sandbox_user", lambda: User(os.geteuid(), os.getegid(), own=True))
    with started() as found:
        assert status_of(found.child)["Uid"].split()[0] == str(os.geteuid())


@pytest.mark.parametrize("without", [(), ("clearenv",)])
def test_nothing_of_the_environment_reaches_even_the_monitor(
    monkeypatch: pytest.MonkeyPatch, without: tuple[str, ...]
) -> None:
    monkeypatch.setenv("OF_THE_ENGINE", "1")
    with started(*without) as found:
        told = Path(f"/proc/{found.process.pid}/environ").read_bytes()
        assert (b"OF_THE_ENGINE=1" in told.split(b"\0")) is bool(without)


@pytest.mark.parametrize("without", [(), ("close_fds",)])
def test_no_descriptor_of_the_engine_reaches_even_the_first_process(without: tuple[str, ...]) -> None:
    out, into = os.pipe()
    try:
        os.set_inheritable(out, True)  # noqa: FBT003  (it takes no keyword)
        ours = Path(f"/proc/self/fd/{out}").readlink()
        with started(*without) as found:
            until(lambda: (ours in opened_by(_launcher(found))) is bool(without))  # they are closed one by one
    finally:
        os.close(out)
        os.close(into)


@needs("memory_cgroup")
@pytest.mark.parametrize("without", [(), ("memory_cgroup",)])
def test_the_whole_sandbox_is_in_its_group(without: tuple[str, ...]) -> None:
    with started(*without) as found:
        if without:
            assert found.group is None
            return
        assert found.group is not None
        name = "tasks" if found.group.place.version == 1 else "cgroup.procs"
        inside = (found.group._folder / name).read_text(encoding="ascii").split()
        assert str(found.child) in inside


def test_a_sandbox_starts_without_a_cgroup_if_none_can_be_created(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "memory_place", lambda: None)
    with started() as found:
        assert found.group is None


def test_a_version_2_group_contains_the_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "_REMOVAL_SECONDS", 0.1)
    monkeypatch.setattr(starting, "memory_place", lambda: Hierarchy(tmp_path, 2))
    with started() as found:
        assert (there(found.group)._folder / "cgroup.procs").read_text(encoding="ascii") == str(_launcher(found))


def test_a_closed_sandbox_leaves_no_process_or_descriptor() -> None:
    memory_place()

    def closed() -> None:
        with started() as found:
            processes = (found.process.pid, found.child)
        assert not any(Path(f"/proc/{process}").exists() for process in processes)

    assert not leaks(closed)


def test_without_the_tree_kill_child_processes_survive() -> None:
    given = program("import os, time\nif not os.fork():\n    os.close(1)\n    time.sleep(600)")
    sandbox = start(Setup(BOUNDS, ENVIRONMENT, frozenset({"kill_tree"})))
    namespace = namespace_of(sandbox.child)
    try:
        run_in(sandbox, given)
        assert inhabitants(namespace)
    finally:
        for process in inhabitants(namespace):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    assert emptied(namespace)
