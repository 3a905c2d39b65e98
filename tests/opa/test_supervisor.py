"""OPA dies, hangs, grows and changes its policy.

While it is down there are only reserved codes, then it answers again by itself; a switch fails no call.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
import uvloop

from engine.binaries import find_binary
from engine.errors import DecideError
from engine.opa.generation import Generation
from engine.opa.supervisor import HealthHistory, SupervisionLimits, Supervisor
from engine.policy_bundle.build import Archive, PolicyBundle
from engine.settings import OpaLimits
from tests.expect import refused, there
from tests.opa.served import DENIED, DOCUMENT, LIMITS, Events, files, leased, policy_of, revisions, serving, supervised
from tests.opa.test_client import in_fork
from tests.processes import alive, gone, stop, until

CALLERS = 32
LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
QUICK: dict[str, Any] = {"look_seconds": 0.1, "probe_seconds": 5, "probe_failures": 2}
PATIENT = replace(LIMITS, answer_seconds=60)


@pytest.fixture(scope="module")
def other(cache: Path, policy: PolicyBundle) -> PolicyBundle:
    made = policy_of(cache, "licenses.licenses.MIT.decision=review")
    assert made.revisions != policy.revisions
    return made


@dataclass
class Load:
    """32 callers of one event loop that ask without a pause, and what each of their calls came to."""

    supervisor: Supervisor[PolicyBundle]
    answered: list[tuple[float, float, str]] = field(default_factory=list)  # begun, ended, revision of the values
    refused: list[tuple[float, float, str]] = field(default_factory=list)  # begun, ended, code
    stopped: bool = False

    async def call(self) -> None:
        while not self.stopped:
            begun = time.monotonic()
            generation = self.supervisor.acquire()
            try:
                reply = await generation.ask_async("decision", DOCUMENT)
                assert reply.result == DENIED
                assert reply.body["provenance"]["bundles"] == revisions(generation)
                self.answered.append((begun, time.monotonic(), generation.policy.values.revision))
            except DecideError as error:
                self.refused.append((begun, time.monotonic(), error.code))
                await asyncio.sleep(0.005)
            finally:
                self.supervisor.release(generation)

    def more(self, count: int = 200) -> None:
        """Wait until so many more were answered."""
        before = len(self.answered)
        until(lambda: len(self.answered) >= before + count)


def under_load(
    supervisor: Supervisor[PolicyBundle], what: Callable[[Load], None], run: Callable[..., None] = asyncio.run
) -> Load:
    """Do it in another thread while the callers ask, and tell what became of their calls."""
    load = Load(supervisor)

    def work() -> None:
        try:
            load.more()
            what(load)
            load.more()
        finally:
            load.stopped = True

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(work))
            for _ in range(CALLERS):
                group.create_task(load.call())
        await supervisor.leave()

    run(main())
    return load


def pid_of(supervisor: Supervisor[PolicyBundle]) -> int:
    return there(supervisor.current.pid)


# it dies


@LOOPS
def test_killed_under_load_it_is_refused_with_the_reserved_code_and_answers_again(
    run: Callable[..., None], policy: PolicyBundle
) -> None:
    with supervised(policy, PATIENT) as (supervisor, events):
        first = pid_of(supervisor)

        def kill(_: Load) -> None:
            os.kill(first, signal.SIGKILL)
            events.wait("opa_restarted")

        load = under_load(supervisor, kill, run)
        assert {code for _, _, code in load.refused} == {"policy_unavailable"}
        assert max(ended - begun for begun, ended, _ in load.refused) < PATIENT.answer_seconds / 2
        assert supervisor.restarts == 1
        assert pid_of(supervisor) != first
        assert gone(first)
        assert supervisor.current.ask("decision", DOCUMENT).result == DENIED
    assert Counter(name for name, _ in events.seen) == {"opa_started": 2, "opa_exited": 1, "opa_restarted": 1}
    assert events.of("opa_exited")[0]["pid"] == first


def test_while_it_is_down_every_call_is_refused_at_once(policy: PolicyBundle) -> None:
    async def ask(generation: Generation[PolicyBundle]) -> None:
        await generation.ask_async("decision", DOCUMENT)

    with supervised(policy, PATIENT, restart_first_seconds=600) as (supervisor, events):
        dead = supervisor.current
        shares = [dead.shared is not None]
        os.kill(pid_of(supervisor), signal.SIGKILL)
        events.wait("opa_exited")
        shares.append(dead.shared is not None)
        assert (dead.alive, shares) == (False, [True, False])
        started = time.monotonic()
        for _ in range(50):
            with refused(DecideError, "policy_unavailable"):
                supervisor.current.ask("decision", DOCUMENT)
            with refused(DecideError, "policy_unavailable"):
                asyncio.run(ask(supervisor.current))
        assert time.monotonic() - started < PATIENT.answer_seconds  # for a hundred
        assert supervisor.restarts == 0


def test_opa_is_restarted_after_every_crash(policy: PolicyBundle) -> None:
    with supervised(policy) as (supervisor, events):
        pids = [pid_of(supervisor)]
        for count in range(1, 4):
            os.kill(pids[-1], signal.SIGKILL)
            events.wait("opa_restarted", count)
            pids.append(pid_of(supervisor))
            assert supervisor.current.ask("decision", DOCUMENT).result == DENIED
        assert len(set(pids)) == 4
        assert supervisor.restarts == 3


def test_each_start_that_does_not_last_doubles_the_wait(policy: PolicyBundle) -> None:
    with supervised(policy) as (supervisor, _):
        watch = HealthHistory(SupervisionLimits())
        assert watch.new_death(supervisor.current)
        assert [watch.wait_seconds() for _ in range(9)] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
        assert not watch.new_death(supervisor.current)
        assert watch.wait_seconds() == 5.0
        assert watch.new_death(Generation(policy, supervisor.current.server, 4, 4))
        assert watch.wait_seconds() == 5.0
        steady = Generation(policy, supervisor.current.server, 4, 4)
        steady.since -= 11  # it lasted
        assert watch.new_death(steady)
        assert watch.wait_seconds() == 0.05


def test_it_starts_again_from_the_very_archives_that_it_served(policy: PolicyBundle, tmp_path: Path) -> None:
    rules = tmp_path / "r.tar.gz"
    shutil.copyfile(policy.rules.path, rules)
    with supervised(replace(policy, rules=Archive(rules, policy.rules.revision))) as (supervisor, events):
        rules.write_bytes(b"something else")
        os.kill(pid_of(supervisor), signal.SIGKILL)
        events.wait("opa_restarted")
        assert supervisor.current.ask("decision", DOCUMENT).result == DENIED


def test_a_start_that_fails_is_tried_until_it_succeeds(policy: PolicyBundle, tmp_path: Path) -> None:
    with supervised(policy, restart_longest_seconds=0.1) as (supervisor, events):
        rules = supervisor.current.server.served.rules
        shutil.move(rules, tmp_path / "kept")
        os.kill(pid_of(supervisor), signal.SIGKILL)
        assert events.wait("opa_restart_failed", 3) == {"code": "policy_unavailable"}
        with pytest.raises(DecideError):
            supervisor.current.ask("decision", DOCUMENT)
        shutil.move(tmp_path / "kept", rules)
        events.wait("opa_restarted")
        assert supervisor.current.ask("decision", DOCUMENT).result == DENIED
        assert len(events.of("opa_exited")) == 1


def test_another_binary_is_not_started_in_the_place_of_the_one_that_was_verified(
    policy: PolicyBundle, tmp_path: Path
) -> None:
    real, path = find_binary(), tmp_path / "opa"
    shutil.copy(real.path, path)
    with supervised(policy, binary=replace(real, path=path), restart_longest_seconds=0.1) as (supervisor, events):
        path.replace(tmp_path / "kept")
        path.write_text(f"#!/bin/sh\ntouch {tmp_path}/evil\n")
        path.chmod(0o755)
        os.kill(pid_of(supervisor), signal.SIGKILL)
        assert events.wait("opa_restart_failed", 3) == {"code": "engine.opa_binary"}
        with pytest.raises(DecideError):
            supervisor.current.ask("decision", DOCUMENT)
        (tmp_path / "kept").replace(path)
        events.wait("opa_restarted")
        assert supervisor.current.ask("decision", DOCUMENT).result == DENIED
    assert not (tmp_path / "evil").exists()


def test_an_observer_that_fails_does_not_stop_the_supervision(policy: PolicyBundle) -> None:
    def broken(name: str, fields: dict[str, Any]) -> NoReturn:
        event.append((name, fields))
        raise ValueError(name)

    event: list[tuple[str, dict[str, Any]]] = []
    with closing(Supervisor(find_binary(), policy, files, LIMITS, broken)) as supervisor:
        os.kill(pid_of(supervisor), signal.SIGKILL)
        until(lambda: supervisor.restarts == 1)
        assert supervisor.current.ask("decision", DOCUMENT).result == DENIED
        assert "opa_exited" in dict(event)


def test_one_supervisor_closes_while_another_keeps_running(policy: PolicyBundle) -> None:
    with supervised(policy) as (other, _):
        begun = time.monotonic()
        with supervised(policy) as (supervisor, _):
            assert supervisor.current.ask("decision", DOCUMENT).result == DENIED
        assert time.monotonic() - begun < 30  # and does not wait for the threads of the other
        assert other.current.ask("decision", DOCUMENT).result == DENIED


# it hangs


def hang(supervisor: Supervisor[PolicyBundle], monkeypatch: pytest.MonkeyPatch) -> int:
    """Stop OPA, whose probes now take less time than those of any other; its process id."""
    server, pid = supervisor.current.server, pid_of(supervisor)
    probe = server.probe
    monkeypatch.setattr(server, "probe", lambda _: probe(0.3))
    stop(pid)
    return pid


def test_stopped_under_load_it_is_replaced_without_being_continued(
    policy: PolicyBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = OpaLimits(start_seconds=60, answer_seconds=0.5)
    with supervised(policy, limits, **QUICK) as (supervisor, events):
        first = pid_of(supervisor)

        def hung(_: Load) -> None:
            hang(supervisor, monkeypatch)
            events.wait("opa_restarted")

        load = under_load(supervisor, hung)
        assert {code for _, _, code in load.refused} == {"policy_unavailable"}
        assert gone(first)
        assert events.of("opa_hung") == [{"pid": first}]
        assert supervisor.restarts == 1


def test_stopped_while_idle_it_is_replaced_too(policy: PolicyBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    with supervised(policy, **QUICK) as (supervisor, events):
        first = hang(supervisor, monkeypatch)
        events.wait("opa_restarted")
        assert gone(first)
        assert supervisor.current.ask("decision", DOCUMENT).result == DENIED


@pytest.mark.full
def test_an_opa_that_answers_callers_is_not_probed(policy: PolicyBundle) -> None:
    """Each probe fails here, as it has no time: only the answers to others show that OPA works."""
    with supervised(policy) as (supervisor, _):
        watch = HealthHistory(SupervisionLimits(probe_seconds=1e-9, probe_failures=3))
        for _look in range(10):
            supervisor.current.ask("decision", DOCUMENT)
            assert not watch.hangs(supervisor.current)
        assert [watch.hangs(supervisor.current) for _look in range(3)] == [False, False, True]  # no caller asks


@pytest.mark.full
def test_a_single_failed_probe_does_not_count_as_a_hang(policy: PolicyBundle) -> None:
    with supervised(policy) as (supervisor, _):
        generation = supervisor.current
        watch = HealthHistory(SupervisionLimits(probe_seconds=0.2, probe_failures=2))
        pid = pid_of(supervisor)
        assert not watch.hangs(generation)  # the first look only remembers
        stop(pid)
        assert not watch.hangs(generation)
        os.kill(pid, signal.SIGCONT)
        until(lambda: not watch.hangs(generation) and watch._misses == 0)
        stop(pid)
        assert not watch.hangs(generation)
        assert watch.hangs(generation)


# it grows


def test_too_large_it_is_replaced_under_load_and_no_call_fails(policy: PolicyBundle) -> None:
    with supervised(policy, look_seconds=0.1, memory_bytes=1) as (supervisor, events):

        def grow(_: Load) -> None:
            events.wait("opa_replaced")

        load = under_load(supervisor, grow)
        assert load.refused == []
        event = events.wait("opa_replaced")
        until(lambda: gone(event["replaced"]))
        assert event["pid"] == pid_of(supervisor) != event["replaced"]
        assert event["resident_bytes"] > 10 << 20
        assert len(events.of("opa_replaced")) == 1  # and not again at once, however large the new one is
        assert supervisor.restarts == 0


# its policy changes


@pytest.mark.full(after=1)
@LOOPS
def test_a_switch_under_load_fails_no_call_and_mixes_no_revisions(
    run: Callable[..., None], policy: PolicyBundle, other: PolicyBundle
) -> None:
    with supervised(policy) as (supervisor, events):
        switches: list[tuple[float, float, str]] = []  # asked for, acknowledged, revision

        def switch(load: Load) -> None:
            for target in (other, policy, other):
                begun = time.monotonic()
                supervisor.activate(target, lambda fresh: checked.append(fresh.ask("decision", DOCUMENT).result))
                switches.append((begun, time.monotonic(), target.values.revision))
                load.more(50)

        checked: list[Any] = []
        load = under_load(supervisor, switch, run)
        assert load.refused == []
        assert checked == [DENIED] * 3
        ends = [begun for begun, _, _ in switches[1:]] + [float("inf")]
        for (_, acknowledged, revision), end in zip(switches, ends, strict=True):
            assert {found for _, ended, found in load.answered if acknowledged < ended < end} == {revision}
        assert {found for _, _, found in load.answered} == {policy.values.revision, other.values.revision}
        assert supervisor.current.policy is other
        assert len(events.of("activated")) == 3


def broken(policy: PolicyBundle, folder: Path) -> PolicyBundle:
    path = folder / "broken.tar.gz"
    path.write_bytes(policy.rules.path.read_bytes()[:1000])
    return replace(policy, rules=Archive(path, policy.rules.revision))


def of_another_revision(policy: PolicyBundle, _: Path) -> PolicyBundle:
    return replace(policy, values=Archive(policy.values.path, "sha256:" + "0" * 64))


def missing(policy: PolicyBundle, folder: Path) -> PolicyBundle:
    return replace(policy, values=Archive(folder / "nowhere", policy.values.revision))


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("fault", "code"),
    [(broken, "policy_unavailable"), (of_another_revision, "policy_stale"), (missing, "policy_unavailable")],
)
def test_a_policy_that_cannot_be_served_is_refused_and_the_old_one_keeps_answering(
    fault: Callable[[PolicyBundle, Path], PolicyBundle],
    code: str,
    policy: PolicyBundle,
    other: PolicyBundle,
    tmp_path: Path,
) -> None:
    with supervised(policy) as (supervisor, events):
        before = supervisor.current

        def activate(_: Load) -> None:
            with refused(DecideError, code):
                supervisor.activate(fault(other, tmp_path), lambda _: pytest.fail("it was asked"))

        load = under_load(supervisor, activate)
        assert load.refused == []
        assert supervisor.current is before
        assert [event["code"] for event in events.of("activation_refused")] == [code]
        assert not events.of("activated")
        supervisor.activate(other, lambda _: None)  # the control: it is not the switch that fails
        assert supervisor.current.policy is other


def test_a_check_that_fails_keeps_the_old_policy(policy: PolicyBundle, other: PolicyBundle) -> None:
    class CaseFailed(Exception):  # noqa: N818 - as a case file would raise it
        pass

    def check(fresh: Generation[PolicyBundle]) -> NoReturn:
        assert fresh.ask("decision", DOCUMENT).result == DENIED
        tried.append(fresh)
        raise CaseFailed

    tried: list[Generation[PolicyBundle]] = []
    with supervised(policy) as (supervisor, events):
        before = supervisor.current
        with pytest.raises(CaseFailed):
            supervisor.activate(other, check)
        assert supervisor.current is before
        assert before.ask("decision", DOCUMENT).result == DENIED
        assert not tried[0].alive
        assert [event["code"] for event in events.of("activation_refused")] == ["engine.internal"]


def test_a_leased_generation_survives_a_switch(policy: PolicyBundle, other: PolicyBundle) -> None:
    with supervised(policy) as (supervisor, events), ThreadPoolExecutor(1) as pool:
        with leased(supervisor) as held:
            activation = pool.submit(supervisor.activate, other, lambda _: None)
            events.wait("activated")
            assert held.ask("decision", DOCUMENT).body["provenance"]["bundles"] == revisions(held)
            assert held.policy is policy
            with leased(supervisor) as fresh:
                assert fresh.policy is other
                assert fresh.ask("decision", DOCUMENT).body["provenance"]["bundles"] == revisions(fresh)
            assert not activation.done()  # it waits for us
        activation.result(60)
        assert not held.alive
        with refused(DecideError, "policy_unavailable"):
            held.ask("decision", DOCUMENT)


def test_a_lease_that_is_never_returned_ends_with_the_drain(policy: PolicyBundle, other: PolicyBundle) -> None:
    with supervised(policy, drain_seconds=0.1) as (supervisor, _):
        held = supervisor.acquire()
        supervisor.activate(other, lambda _: None)
        assert not held.alive
        assert gone(there(held.pid))
        supervisor.release(held)


@pytest.mark.full
def test_activations_take_turns(policy: PolicyBundle, other: PolicyBundle) -> None:
    together = threading.Barrier(4)
    first = threading.Event()

    def check(_: Generation[PolicyBundle]) -> None:
        if not first.is_set():
            first.set()
            overtaken.append(events.comes("opa_started", 3, 2))  # a start takes a fifth of a second

    def activate(target: PolicyBundle) -> None:
        together.wait(60)
        supervisor.activate(target, check)

    overtaken: list[bool] = []
    with supervised(policy) as (supervisor, events), ThreadPoolExecutor(4) as pool:
        list(pool.map(activate, [other, policy, other, policy]))
        assert overtaken == [False]
        assert [name for name, _ in events.seen] == ["opa_started", *["opa_started", "activated"] * 4]
        assert supervisor.current.policy.values.revision == events.of("activated")[-1]["values"]
        started = [event["pid"] for event in events.of("opa_started")]
        assert [pid for pid in started if alive(pid)] == [supervisor.current.pid]


def test_killed_in_the_middle_of_an_activation_the_new_policy_is_served_at_last(
    policy: PolicyBundle, other: PolicyBundle
) -> None:
    with supervised(policy) as (supervisor, events):

        def check(_: Generation[PolicyBundle]) -> None:
            os.kill(pid_of(supervisor), signal.SIGKILL)
            events.wait("opa_restarted")
            assert supervisor.current.policy is policy

        supervisor.activate(other, check)
        assert supervisor.current.policy is other
        assert supervisor.current.ask("decision", DOCUMENT).result == DENIED


def test_a_new_opa_that_dies_before_the_switch_is_refused(policy: PolicyBundle, other: PolicyBundle) -> None:
    def check(fresh: Generation[PolicyBundle]) -> None:
        os.kill(there(fresh.pid), signal.SIGKILL)
        until(lambda: not fresh.alive)

    with supervised(policy) as (supervisor, _):
        with refused(DecideError, "policy_unavailable"):
            supervisor.activate(other, check)
        assert supervisor.current.ask("decision", DOCUMENT).result == DENIED


def test_every_answer_must_come_from_the_revisions_that_are_served(policy: PolicyBundle, other: PolicyBundle) -> None:
    """Not only the first: another OPA takes over the socket while ours runs."""

    async def main() -> str:
        try:
            await supervisor.current.ask_async("decision", DOCUMENT)
        except DecideError as error:
            return error.code
        finally:
            await supervisor.leave()
        return ""

    with supervised(policy) as (supervisor, _), serving(files(other)) as foreign:
        assert asyncio.run(main()) == ""  # the control
        Path(foreign.path).replace(supervisor.current.server.path)
        assert asyncio.run(main()) == "policy_stale"
        with refused(DecideError, "policy_stale"):
            supervisor.current.ask("decision", DOCUMENT)


# it ends


def test_a_policy_of_another_revision_is_not_served_at_all(policy: PolicyBundle, tmp_path: Path) -> None:
    events, others = Events(), set(threading.enumerate())
    with refused(DecideError, "policy_stale"):
        Supervisor(find_binary(), of_another_revision(policy, tmp_path), files, LIMITS, events)
    assert not events.seen
    assert not [one for one in set(threading.enumerate()) - others if one.name == "opa-supervisor"]


def test_closing_ends_an_activation_under_way(policy: PolicyBundle, other: PolicyBundle) -> None:
    checking = threading.Event()

    def check(fresh: Generation[PolicyBundle]) -> None:
        while True:  # until it cannot be asked any more
            fresh.ask("decision", DOCUMENT)
            checking.set()

    with supervised(policy) as (supervisor, events), ThreadPoolExecutor(1) as pool:
        activation = pool.submit(supervisor.activate, other, check)
        assert checking.wait(60)
        supervisor.close()
        assert isinstance(activation.exception(60), DecideError)
        assert not events.of("activated")
        supervisor.close()  # once more does nothing
        with pytest.raises(DecideError):
            supervisor.current.ask("decision", DOCUMENT)


@pytest.mark.full
def test_closing_ends_one_that_hangs_and_one_that_waits_to_start(policy: PolicyBundle) -> None:
    with supervised(policy) as (supervisor, _):
        stop(pid_of(supervisor))
    with supervised(policy, restart_first_seconds=600) as (supervisor, events):
        os.kill(pid_of(supervisor), signal.SIGKILL)
        events.wait("opa_exited")
        started = time.monotonic()
        supervisor.close()
        assert time.monotonic() - started < 60


def test_a_fork_may_neither_ask_nor_end_it(policy: PolicyBundle) -> None:
    def child() -> None:
        supervisor.close()
        generation = supervisor.acquire()
        supervisor.release(generation)
        generation.server.kill()
        generation.server.close()
        assert generation.shared is None
        with suppress(DecideError):
            asyncio.run(generation.ask_async("decision", DOCUMENT))
            os._exit(3)
        generation.ask("decision", DOCUMENT)

    with supervised(policy) as (supervisor, _):
        assert in_fork(child)
        assert supervisor.current.ask("decision", DOCUMENT).result == DENIED


def test_sync_and_async_calls_return_the_same_answer(policy: PolicyBundle) -> None:
    async def main(rule: str, document: dict[str, Any]) -> dict[str, Any]:
        body = (await supervisor.current.ask_async(rule, document)).body
        await supervisor.leave()
        return body

    items: dict[str, Any] = {"items": [DOCUMENT, {"point": "source"}]}
    asked: list[tuple[str, dict[str, Any]]] = [("decision", DOCUMENT), ("decisions", items), ("nothing", {})]
    with supervised(policy) as (supervisor, _):
        for rule, document in asked:
            reply = supervisor.current.ask(rule, document)
            assert asyncio.run(main(rule, document)) == reply.body
            assert reply.defined == (rule != "nothing")
        assert len(supervisor.current.ask("decisions", items).result) == 2


def test_no_event_loop_is_tied_to_another(policy: PolicyBundle) -> None:
    async def main() -> None:
        with leased(supervisor) as generation:
            assert (await generation.ask_async("decision", DOCUMENT)).result == DENIED
        await supervisor.leave()

    with supervised(policy) as (supervisor, _):
        asyncio.run(main())
        asyncio.run(main())
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: asyncio.run(main()), range(4)))
        assert not supervisor.current._clients
