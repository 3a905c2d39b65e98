"""Many processes on one state folder: servers, commands and writers that are killed, all of them at once.

`ENGINE_KILL_ROUNDS=50 pytest --all tests/record/test_many_processes.py` kills as often as wanted.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.record.chain import Entry
from engine.record.chains import chain_folders, held_chains
from engine.record.reader import Filter, entries
from engine.record.verify_chains import verify_chains
from engine.settings import Settings
from engine.state import open_store
from tests.api.serving import ALLOWED, Serving, serving
from tests.command import Command, Run
from tests.conftest import BUNDLES, ROOT
from tests.facilities import needs

OWN: dict[str, str] = {}
"""Has a command run in a process of its own: the one that forks commands runs them one after another."""

CALL = {"name": "nothing_known", "arguments": {}}


@pytest.fixture
def command(tmp_path: Path, cache: Path) -> Command:
    return Command.of(tmp_path, cache)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A folder of values of this test alone."""
    return Path(shutil.copytree(Settings().policy, tmp_path / "policy"))


@contextmanager
def two_servers(command: Command, cache: Path, folder: Path, policy: Path) -> Iterator[tuple[Serving, Serving]]:
    for name in ("one", "two"):
        (folder / name).mkdir()
    more = ("--state", command.state, "--policy", policy)
    with serving(folder / "one", cache, *more) as first, serving(folder / "two", cache, *more) as second:
        yield first, second


def decided(state: Path) -> Counter[str]:
    """How often each decision is in the record."""
    found = Counter[str]()
    for entry in entries(state, Filter()):
        assert isinstance(entry, Entry), entry
        if entry.body.kind == "decision":
            found[entry.body.decision_id] += 1
    return found


def intact(state: Path) -> bool:
    with closing(open_store(state)) as store:
        heads = store.record_heads()
    found = verify_chains(state, heads)
    assert [(number, chain.breaks) for number, chain in found.items() if not chain.ok] == []
    return True


@pytest.mark.full
@needs("bubblewrap")
@pytest.mark.parametrize("times", [1, 4])
def test_everything_at_once(times: int, command: Command, cache: Path, tmp_path: Path, policy: Path) -> None:
    """Two servers under load, and `times` commands of each kind, twenty in parallel: no lock, an exact budget."""
    limit = 12 * times
    budgets = policy / "budgets.yaml"
    before = "license: {principal: unlimited, run: unlimited, all: unlimited}"
    text = budgets.read_text(encoding="utf-8")
    assert before in text
    ceiling = f"{{limit: {limit}, window_seconds: 0}}"
    budgets.write_text(text.replace(before, before.replace("all: unlimited", f"all: {ceiling}")), encoding="utf-8")
    values = ("--policy", policy)
    request = json.dumps(ALLOWED)
    commands: list[tuple[tuple[Any, ...], str]] = [
        (("check", BUNDLES / "offline_fixture", *values), ""),
        (("decide", "license", *values), request),
        (("tools", "call", "-i", "-", *values), json.dumps(CALL)),
        (("record", "retain", "--keep-days", "30", *values), ""),
        (("code", "run", ROOT / "fixtures" / "code" / "incident_metrics.json", *values), ""),
        (("doctor",), ""),
        (("record", "verify"), ""),
    ]
    answered: list[tuple[str, str]] = []
    done = threading.Event()

    def load(server: Serving) -> None:
        while not done.is_set():
            reply = server.decide("license", ALLOWED).json
            answered.append((reply["decision_id"], reply["outcome"]))

    with (
        two_servers(command, cache, tmp_path, policy) as servers,
        ThreadPoolExecutor(2) as load_pool,
        ThreadPoolExecutor(20) as pool,
    ):
        loads = [load_pool.submit(load, server) for server in servers]
        try:
            runs = list(pool.map(lambda one: (one[0], command(*one[0], stdin=one[1], env=OWN)), commands * times))
        finally:
            done.set()
        for one in loads:
            one.result()
        assert held_chains(command.state) == [1, 2]
        assert command("record", "verify").code == 0
        while len(answered) <= limit:
            load_once = servers[0].decide("license", ALLOWED).json
            answered.append((load_once["decision_id"], load_once["outcome"]))
    for arguments, run in runs:
        expected = 1 if arguments[0] == "tools" else 0
        assert "record_locked" not in run.stdout + run.stderr
        assert run.code == expected or (arguments[0] == "decide" and run.code == 1), (arguments, run)
    answered += [
        (found["decision_id"], found["outcome"])
        for arguments, run in runs
        if arguments[0] == "decide" and (found := json.loads(run.stdout))
    ]
    assert Counter(outcome for _, outcome in answered)["allow"] == limit
    there = decided(command.state)
    assert [id_ for id_, _ in answered if there[id_] != 1] == []
    assert intact(command.state)


@pytest.mark.full
def test_acts_go_to_a_server_that_is_there_and_an_activation_to_all(
    command: Command, cache: Path, tmp_path: Path, policy: Path
) -> None:
    issue = ("tokens", "issue", "--principal", "bot", "--point", "license", "--days", "1")
    with two_servers(command, cache, tmp_path, policy) as (first, second):
        approvals = policy / "approvals.yaml"
        approvals.write_text(approvals.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
        run = command("policy", "activate")
        assert (run.code, run.stdout.count("server on chain"), run.stderr) == (0, 2, "")
        for server in (first, second):
            assert [line["event"] for line in server.log_lines()].count("policy_activated") == 1
        assert _issued(command, issue) == 1
        assert first.stop() == 0
        assert _issued(command, issue) == 2
        approvals.write_text("valid_seconds: soon\n", encoding="utf-8")
        assert command("policy", "activate").code == 5
    assert _issued(command, issue) == 0  # without a server it is done here, under the policy of the package
    assert intact(command.state)


def _issued(command: Command, issue: tuple[str, ...]) -> int:
    """Issue a token; the chain that holds the decision, 0 if the command had to take the first one."""
    held = held_chains(command.state)
    run: Run = command(*issue)
    assert run.code == 0, run.stderr
    *_, last = (one for one in entries(command.state, Filter(point="administration")) if isinstance(one, Entry))
    assert last.chain in (held or [1])
    return last.chain if held else 0


WRITERS = """
import itertools, os, sys
from pathlib import Path
from engine.record.model import utc_now
from engine.record.standing import StandingLog
from engine.state import open_store
from tests.record.samples import decision, event

def write(state, first):
    store = open_store(state)
    log = StandingLog(state, lambda: store, clock=utc_now)
    for number in itertools.count(first):
        log.append(decision(number), (event(number),) * (number % 3 == 0))
        os.write(1, b"%d\\n" % number)

for line in sys.stdin:
    state, first, count = line.rsplit(" ", 2)
    for child in range(int(count)):
        if (pid := os.fork()) == 0:
            write(Path(state), int(first) + child * 100_000)
        os.write(1, b"pid %d\\n" % pid)
    for _ in range(int(count)):
        os.wait()
    os.write(1, b"dead\\n")
"""
WRITING = 4  # processes at once


@pytest.mark.full(after=1)
@pytest.mark.parametrize("rounds", [5, int(os.environ.get("ENGINE_KILL_ROUNDS", "25"))])
def test_kill_while_several_processes_append_loses_and_doubles_nothing(rounds: int, tmp_path: Path) -> None:
    chance, state, answered = random.Random(29), tmp_path / "state", set[int]()  # noqa: S311  (when to kill is no secret)
    process = subprocess.Popen(
        [sys.executable, "-c", WRITERS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
    )
    try:
        for round_ in range(rounds):
            answered |= _killed(process, f"{state} {1 + round_ * 1_000_000} {WRITING}\n", chance)
            assert intact_after_kill(state)
            there = Counter(int(id_, 16) for id_ in decided(state).elements())
            assert max(there.values()) == 1
            assert answered <= there.keys()
    finally:
        process.communicate()
    assert 2 <= len(chain_folders(state)) <= WRITING


def _killed(process: subprocess.Popen[str], line: str, chance: random.Random) -> set[int]:
    """What writers answered that were killed one after another."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line)
    process.stdin.flush()
    answered, living = set[int](), list[int]()
    more = chance.randrange(1, 60)
    while (told := process.stdout.readline().strip()) != "dead":
        if told.startswith("pid "):
            living.append(int(told[4:]))
            continue
        answered.add(int(told))
        more -= 1
        if more <= 0 and living:
            os.kill(living.pop(chance.randrange(len(living))), signal.SIGKILL)
            more = chance.randrange(1, 30)
    return answered


def intact_after_kill(state: Path) -> bool:
    """Whether nothing is broken but torn tails, which the next start cuts."""
    with closing(open_store(state)) as store:
        heads = store.record_heads()
    breaks = [broken for chain in verify_chains(state, heads).values() for broken in chain.breaks]
    return all(broken.repairable for broken in breaks)


@pytest.mark.full
def test_of_many_processes_one_uses_an_approval(command: Command) -> None:
    request = json.dumps({"path": str(BUNDLES / "license_review_required"), "digest": None})
    ask = ("decide", "source", "--principal", "pipeline-7")
    asked = command(*ask, stdin=request)
    assert asked.code == 3, asked
    id_ = asked.json["approval"]["id"]
    assert command("approvals", "grant", id_).code == 0
    with ThreadPoolExecutor(6) as pool:
        runs = list(pool.map(lambda _: command(*ask, "--approval", id_, stdin=request, env=OWN), range(6)))
    assert Counter(run.json["outcome"] for run in runs)["allow"] == 1
    assert len(chain_folders(command.state)) > 1
    assert intact(command.state)
