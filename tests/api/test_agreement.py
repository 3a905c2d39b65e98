"""Three servers over one PostgreSQL serve the release that was activated once for all of them, or nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine.binaries import find_binary
from engine.errors import Exit
from engine.points.registry import POINTS
from engine.policy_bundle.build import build
from engine.policy_bundle.release_folder import Statement
from engine.policy_bundle.sources import PolicySources
from engine.state import open_shared
from engine.state.rows import ActivationRow
from tests.api.serving import ALLOWED, Serving, refused, serving
from tests.command import Command, Run, lines
from tests.conftest import ROOT
from tests.expect import there
from tests.policy_bundle.releases import Keys, released
from tests.postgres import SERVING, Server
from tests.processes import opa_of, opas_of, stop, until

pytestmark = pytest.mark.own_opa

DECIDED = {1: "allow", 2: "deny license_incompatible", 3: "allow"}
"""What each release decides on the same request: the outcome and its codes."""

VALUES: dict[int, tuple[str, ...]] = {
    1: (),
    2: ("licenses.licenses.MIT.decision=refuse",),
    3: ("licenses.licenses.ISC.decision=refuse",),
}
"""The values of each release that are others than ours."""


@dataclass(frozen=True, slots=True)
class Made:
    """Releases of the policy, by number, and the keys that they are signed with."""

    keys: Keys
    folders: dict[int, Path]

    def statement(self, number: int) -> Statement:
        return Statement.model_validate_json((self.folders[number] / "release.json").read_bytes())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Made:
    folder = tmp_path_factory.mktemp("made")
    keys = Keys.make(folder / "keys")
    folders = {}
    for number, values in VALUES.items():
        sources = PolicySources(ROOT / "rego", ROOT / "policy", ROOT / "bundles" / "default", values)
        bundle = build(sources, POINTS, find_binary(), cache)
        folders[number] = released(bundle, folder / str(number), keys, number)
    return Made(keys, folders)


def decision(engine: Serving) -> dict[str, Any]:
    """What an engine decides now."""
    document: dict[str, Any] = engine.decide("license", ALLOWED).json
    found: dict[str, Any] = document.get("decision", document)
    return found


def told(found: dict[str, Any]) -> tuple[str, list[str]]:
    """The outcome and the codes of a decision."""
    return found["outcome"], [finding["code"] for finding in found["findings"]]


@dataclass(slots=True)
class Fleet:
    """Engines with one state, each with a state folder and a folder of releases of its own."""

    folder: Path
    cache: Path
    made: Made
    address: str
    command: Command
    stack: ExitStack
    engines: dict[str, Serving] = field(default_factory=dict)
    patient: bool = False  # engines that are started from now on wait for the state as long as it takes

    def releases(self, name: str) -> Path:
        return self.folder / name / "releases"

    def give(self, number: int, *names: str) -> None:
        """Put a release where these engines look."""
        for name in names or self.engines:
            shutil.copytree(self.made.folders[number], self.releases(name) / f"release-{number}")

    def start(self, name: str, *numbers: int) -> Serving:
        """Start an engine that has these releases."""
        self.releases(name).mkdir(parents=True)
        self.give(1, name)
        for number in numbers:
            self.give(number, name)
        return self.again(name)

    def again(self, name: str) -> Serving:
        """Start an engine again that has ended."""
        started = serving(*self.starting(name), env=self._database, patient=self.patient)
        self.engines[name] = self.stack.enter_context(started)
        return self.engines[name]

    def refused(self, name: str) -> tuple[int, str]:
        """Exit code and words of an engine that has release 1 only, and should not start."""
        self.releases(name).mkdir(parents=True)
        self.give(1, name)
        return refused(*self.starting(name), env=self._database)

    @property
    def _database(self) -> dict[str, str]:
        return {"ENGINE_STATE_DATABASE": self.address}

    def options(self, name: str) -> tuple[str | Path, ...]:
        """The options that name the releases and their key, for engines and commands."""
        return ("--releases", self.releases(name), "--release-key", self.made.keys.public)

    def starting(self, name: str) -> tuple[Any, ...]:
        return (self.folder / name, self.cache, *self.options(name))

    def activate(self, number: int, folder: Path | None = None) -> Run:
        """Activate a release for all engines, as a person with a terminal beside the database."""
        given = (folder or self.made.folders[number], "--release-key", self.made.keys.public)
        return self.command("policy", "activate", *given, "--reason", f"to {number}", "--state", self.address)

    def status(self) -> Run:
        return self.command("policy", "status", "--format", "json", "--state", self.address)

    def decided(self) -> dict[str, tuple[str, list[str]]]:
        """What each engine decides now: the outcome and its codes."""
        return {name: told(decision(engine)) for name, engine in self.engines.items()}

    def outcomes(self) -> list[str]:
        return [outcome for outcome, _ in self.decided().values()]


def activation_of(fleet: Fleet, number: int) -> ActivationRow:
    """The activation of a release, as the command proposes it."""
    stated = fleet.made.statement(number)
    return ActivationRow(stated.name, number, stated.digest, stated.author, "approver@example.org", "user:lee", None, 0)


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    path = tmp_path / "request.json"
    path.write_text(json.dumps(ALLOWED))
    return path


@pytest.fixture
def fleet(tmp_path: Path, cache: Path, made: Made, postgres: Server, command: Command) -> Iterator[Fleet]:
    """Nothing runs yet; release 1 is active."""
    with ExitStack() as stack:
        address = postgres.address(postgres.database(), SERVING)
        fleet = Fleet(tmp_path, cache, made, address, command, stack)
        assert fleet.activate(1).code == 0
        yield fleet


def ready(engine: Serving) -> bool:
    return engine.ask("GET", "/ready").status == 200


@dataclass(slots=True)
class Load:
    """Callers that ask every engine without a pause: what they were answered, from when to when."""

    fleet: Fleet
    answers: list[tuple[float, float, str, str]] = field(default_factory=list)
    """Seconds before and after a request, the digest of values that it was decided with, and outcome with codes."""
    _over: threading.Event = field(default_factory=threading.Event)

    def _ask(self, engine: Serving) -> None:
        while not self._over.is_set():
            before = time.monotonic()
            found = decision(engine)
            outcome, codes = told(found)
            values = (found["policy"] or {}).get("values", "")
            self.answers.append((before, time.monotonic(), values, " ".join([outcome, *codes])))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Ask within the block, one caller an engine: more would leave too little of a busy machine to OPA."""
        with ThreadPoolExecutor(len(self.fleet.engines)) as pool:
            asking = [pool.submit(self._ask, engine) for engine in self.fleet.engines.values()]
            try:
                yield
            finally:
                self._over.set()
        for one in asking:
            one.result()

    def under(self, number: int, since: float) -> set[tuple[bool, str]]:
        """Whether what was asked since then was decided with this release, and how."""
        values = self.fleet.made.statement(number).values
        return {(found == values, how) for before, _, found, how in self.answers if before > since}


def test_one_activation_changes_all_at_once_under_load(fleet: Fleet) -> None:
    """Nothing is refused, each answer is that of one release, and none asked after the activation is the old one's."""
    fleet.patient = True
    for name in ("one", "two", "three"):
        fleet.start(name, 2, 3)
    assert fleet.outcomes() == ["allow"] * 3
    load = Load(fleet)
    with load.running():
        for number in (2, 3):
            done = fleet.activate(number)
            ended = time.monotonic()
            assert (done.code, done.stderr) == (0, ""), done.stderr
            assert fleet.made.statement(number).digest in done.stdout
            asked = len(load.answers)
            until(lambda asked=asked: len(load.answers) > asked + 100)  # type: ignore[misc]
            assert load.under(number, ended) == {(True, DECIDED[number])}
    revisions = {fleet.made.statement(number).values: how for number, how in DECIDED.items()}
    assert {(values, how) for _, _, values, how in load.answers} == set(revisions.items())
    told = fleet.status()
    assert told.code == 0
    assert [(row["sequence"], row["state"], row["reason"]) for row in told.json["activations"]] == [
        (number, "active", f"to {number}") for number in (3, 2, 1)
    ]
    assert {row["serving"] for row in told.json["engines"]} == {fleet.made.statement(3).digest}
    for engine in fleet.engines.values():
        assert engine.stop() == 0
        found = [line for line in lines(engine.state) if line["kind"] == "policy"]
        assert [(line["outcome"], line["release"]["sequence"], line["reason"]) for line in found] == [
            ("started", 1, None),
            ("activated", 2, "to 2"),
            ("activated", 3, "to 3"),
        ]
    assert fleet.status().json["engines"] == []


def test_an_engine_that_cannot_load_a_release_blocks_its_activation(fleet: Fleet) -> None:
    fleet.start("one", 2)
    two = fleet.start("two")
    done = fleet.activate(2)
    done.refused("is not here: no release in this folder has its digest", "put the release", code=Exit.POLICY_INVALID)
    assert fleet.outcomes() == ["allow", "allow"]
    assert [ready(engine) for engine in fleet.engines.values()] == [True, True]
    fleet.give(2, "two")
    signature = fleet.releases("two") / "release-2" / ".signatures.json"
    signature.write_text(signature.read_text().replace(".", "x", 1))
    fleet.activate(2).refused("the signature is not valid", code=Exit.POLICY_INVALID)
    unsigned = fleet.folder / "unsigned"
    shutil.copytree(fleet.made.folders[2], unsigned)
    (unsigned / "approval.json").unlink()
    fleet.activate(2, unsigned).refused("no other person than the author", code=Exit.POLICY_INVALID)
    assert [row["state"] for row in fleet.status().json["activations"]] == ["withdrawn", "withdrawn", "active"]
    shutil.rmtree(fleet.releases("two") / "release-2")
    fleet.give(2, "two")
    assert fleet.activate(2).code == 0
    assert fleet.outcomes() == ["deny", "deny"]
    fleet.activate(1).refused("this is a rollback: release 1 is older than 2", code=Exit.POLICY_INVALID)
    own = two.ask("POST", "/v1/policy/activate", control=True)
    assert (own.status, fleet.outcomes()) == (409, ["deny", "deny"])


def test_an_opa_that_dies_while_it_loads_a_release_is_started_again(fleet: Fleet) -> None:
    """The activation waits for it, as one of a busy machine that starts too slowly."""
    one, two = fleet.start("one", 2), fleet.start("two", 2)
    stop(one.process.pid)  # the activation waits for it too, so that nothing is switched to meanwhile
    serving = opa_of(two.process.pid)
    arguments = ("policy", "activate", fleet.made.folders[2], "--release-key", fleet.made.keys.public)
    line = fleet.command.argv(*arguments, "--state", fleet.address)
    with subprocess.Popen(line, env=fleet.command.environment(), stderr=subprocess.PIPE, text=True) as caller:
        until(lambda: opas_of(two.process.pid) - {serving})
        os.kill(opa_of(two.process.pid, {serving}), signal.SIGKILL)
        os.kill(one.process.pid, signal.SIGCONT)
        _, said = caller.communicate()
    assert (caller.returncode, said) == (0, "")
    assert fleet.outcomes() == ["deny", "deny"]
    assert one.stop() == two.stop() == 0


def test_a_dead_replica_does_not_block_an_activation(fleet: Fleet) -> None:
    """One engine is killed, one is stopped and goes on later, without the release, one is started later."""
    fleet.start("one", 2)
    two, three = fleet.start("two"), fleet.start("three", 2)
    stop(two.process.pid)
    three.process.kill()
    assert fleet.activate(2).code == 0
    del fleet.engines["two"], fleet.engines["three"]
    assert fleet.outcomes() == ["deny"]
    code, said = fleet.refused("four")
    assert (code, "is not here" in said) == (Exit.POLICY_INVALID, True)
    os.kill(two.process.pid, signal.SIGCONT)
    fleet.engines = {"two": two}
    assert fleet.decided() == {"two": ("deny", ["policy_stale"])}
    until(lambda: not ready(two))
    assert two.ask("GET", "/ready").json["policy"] is False
    until(lambda: "is not here" in fleet.status().stdout)
    assert fleet.status().code == Exit.FAILED_CLOSED
    fleet.give(2, "two")
    until(lambda: ready(two))
    assert fleet.decided() == {"two": ("deny", ["license_incompatible"])}
    fleet.again("three")
    assert fleet.outcomes() == ["deny", "deny"]
    assert fleet.status().code == 0


def test_a_caller_that_is_killed_leaves_all_on_one_release(fleet: Fleet) -> None:
    """Before the switch all go on with the old one; after it all end on the new one, without that caller."""
    one, two = fleet.start("one", 2, 3), fleet.start("two", 2, 3)
    arguments = ("policy", "activate", fleet.made.folders[2], "--release-key", fleet.made.keys.public)
    line = fleet.command.argv(*arguments, "--state", fleet.address)
    stop(two.process.pid)  # the other one waits for it
    with subprocess.Popen(line, env=fleet.command.environment()) as caller:
        until(lambda: any(row["state"] == "proposed" for row in fleet.status().json["activations"]))
        caller.kill()
    os.kill(two.process.pid, signal.SIGCONT)
    with closing(open_shared(fleet.address)) as store:
        proposed = there(store.agreement().next)
        until(lambda: all(row.wanted == proposed.id and row.ready for row in store.replicas()))
        assert fleet.outcomes() == ["allow", "allow"]
        assert store.move(proposed, "switching", 0) is not None  # as that caller would have done, and nothing after it
        until(lambda: store.agreement().next is None)
        active = there(store.agreement().active)
        assert (active.id, fleet.outcomes()) == (proposed.id, ["deny", "deny"])
    assert fleet.activate(3).code == 0
    assert [ready(one), ready(two), *fleet.outcomes()] == [True, True, "allow", "allow"]


def test_without_a_sound_agreement_nothing_is_allowed(
    fleet: Fleet, postgres: Server, tmp_path: Path, cache: Path
) -> None:
    """The database is gone, the row is malformed, or an engine serves another policy than was agreed on."""
    one = fleet.start("one", 2)
    (tmp_path / "other").mkdir()
    code, said = refused(tmp_path / "other", cache, env={"ENGINE_STATE_DATABASE": fleet.address})
    assert (code, "agreed on another release" in said) == (Exit.FAILED_CLOSED, True)
    postgres.kill()
    assert fleet.decided() == {"one": ("deny", ["engine.state_unavailable"])}
    assert fleet.activate(2).code == Exit.FAILED_CLOSED
    postgres.start()
    until(lambda: ready(one))
    assert fleet.outcomes() == ["allow"]
    database = fleet.address.partition("@/")[2].partition("?")[0]
    sound = fleet.made.statement(1).digest
    change = "UPDATE admission_engine.activations SET digest = '{}' WHERE state = 'active'"
    for digest, codes in (("sha256:1", ["engine.state_unavailable"]), ("sha256:" + "0" * 64, ["policy_stale"])):
        postgres.administer(change.format(digest), database=database)
        until(lambda codes=codes: fleet.decided() == {"one": ("deny", codes)})  # type: ignore[misc]
        until(lambda: not ready(one))
    postgres.administer(change.format(sound), database=database)
    until(lambda: ready(one))
    assert fleet.outcomes() == ["allow"]


def test_an_agreement_is_left_while_engines_answer(
    fleet: Fleet, tmp_path: Path, cache: Path, request_file: Path
) -> None:
    """None is interrupted: those that follow keep the release, also when they start again, and others decide again."""
    fleet.patient = True
    one = fleet.start("one", 2)
    fleet.start("two", 2)
    assert fleet.activate(2).code == 0
    own = {"ENGINE_STATE_DATABASE": fleet.address}
    alone = fleet.command("decide", "license", "-i", request_file, "--state", fleet.address)
    assert (alone.code, "policy_stale" in alone.stdout) == (Exit.FAILED_CLOSED, True)
    load = Load(fleet)
    with load.running():
        left = fleet.command(
            "policy", "leave", "--reason", "each its own", "--state", fleet.address, *fleet.options("one")
        )
        assert left.code == 0, left.stderr
        asked = len(load.answers)
        until(lambda: len(load.answers) > asked + 50)
    assert {how for _, _, _, how in load.answers} == {DECIDED[2]}
    assert fleet.command("decide", "license", "-i", request_file, "--state", fleet.address).code == 0
    (tmp_path / "own").mkdir()
    with serving(tmp_path / "own", cache, env=own) as third:
        assert told(decision(third)) == ("allow", [])
        one.stop()
        fleet.again("one")
        assert fleet.outcomes() == ["deny", "deny"]
        fleet.give(3)
        assert fleet.activate(3).code == 0
        assert fleet.outcomes() == ["allow", "allow"]
        assert told(decision(third)) == ("deny", ["policy_stale"])


def test_an_engine_that_hangs_between_loading_and_switching_decides_nothing_under_the_old_release(fleet: Fleet) -> None:
    fleet.start("one", 2)
    two = fleet.start("two", 2)
    with closing(open_shared(fleet.address)) as store:
        proposed = activation_of(fleet, 2)
        store.propose(proposed, lambda _: None)
        until(lambda: all(row.wanted == proposed.id and row.ready for row in store.replicas()))
        stop(two.process.pid)
        assert store.move(proposed, "switching", 0) is not None
        until(lambda: store.agreement().next is None)
        del fleet.engines["two"]
        assert fleet.outcomes() == ["deny"]
        os.kill(two.process.pid, signal.SIGCONT)
        answers = set()

        def both() -> bool:
            outcome, codes = told(decision(two))
            answers.add(" ".join([outcome, *codes]))
            return DECIDED[2] in answers

        until(both)
        assert answers <= {DECIDED[2], "deny policy_stale", "deny engine.state_unavailable"}


def test_concurrent_activations_leave_every_engine_on_one_release(fleet: Fleet) -> None:
    for name in ("one", "two"):
        fleet.start(name, 2, 3)
    with ThreadPoolExecutor(2) as pool:
        done = [one.result() for one in [pool.submit(fleet.activate, number) for number in (2, 3)]]
    with closing(open_shared(fleet.address)) as store:
        agreement = store.agreement()
    assert agreement.next is None
    assert agreement.active is not None
    won = agreement.active.sequence
    assert done[won - 2].code == 0, done[won - 2].stderr
    other = done[3 - won]
    assert other.code == 0 or "another activation took its place" in other.stderr or "rollback" in other.stderr
    until(lambda: fleet.status().code == 0)
    assert [" ".join([outcome, *codes]) for outcome, codes in fleet.decided().values()] == [DECIDED[won]] * 2


@pytest.mark.parametrize("phase", ["proposed", "switching"])
def test_the_database_is_gone_while_a_release_is_activated(fleet: Fleet, postgres: Server, phase: str) -> None:
    """Nothing is decided without it; afterwards all go on with one release, and it can be activated again."""
    one, two = fleet.start("one", 2), fleet.start("two", 2)
    with closing(open_shared(fleet.address)) as store:
        proposed = activation_of(fleet, 2)
        store.propose(proposed, lambda _: None)
        until(lambda: all(row.wanted == proposed.id and row.ready for row in store.replicas()))
        if phase == "switching":
            store.move(proposed, "switching", 0)
    postgres.kill()
    assert fleet.decided() == dict.fromkeys(("one", "two"), ("deny", ["engine.state_unavailable"]))
    postgres.start()
    until(lambda: ready(one) and ready(two))
    if phase == "proposed":
        assert fleet.outcomes() == ["allow", "allow"]
        assert fleet.activate(2).code == 0
    until(lambda: fleet.status().code == 0 and "switching" not in fleet.status().stdout)
    assert fleet.decided() == dict.fromkeys(("one", "two"), ("deny", ["license_incompatible"]))


def test_a_state_from_an_older_backup_brings_back_no_older_release(fleet: Fleet, postgres: Server) -> None:
    """Engines refuse until what they served is activated again; without any activation those that follow refuse too."""
    fleet.start("one", 2)
    assert fleet.activate(2).code == 0
    database = fleet.address.partition("@/")[2].partition("?")[0]
    postgres.administer("DELETE FROM admission_engine.activations WHERE sequence = 2", database=database)
    until(lambda: fleet.decided() == {"one": ("deny", ["policy_stale"])})
    until(lambda: "this is a rollback: release 1 is older than 2" in fleet.status().stdout)
    assert fleet.activate(2).code == 0
    assert fleet.decided() == {"one": ("deny", ["license_incompatible"])}
    postgres.administer("DELETE FROM admission_engine.activations", database=database)
    until(lambda: fleet.decided() == {"one": ("deny", ["policy_stale"])})
    until(lambda: not ready(fleet.engines["one"]))
    assert fleet.status().code == Exit.FAILED_CLOSED
    assert fleet.activate(2).code == 0
    assert fleet.decided() == {"one": ("deny", ["license_incompatible"])}


def test_an_engine_goes_on_without_the_folder_of_the_release_that_it_serves(fleet: Fleet) -> None:
    """Its copy was verified; it loads no other one, and does not start again."""
    one = fleet.start("one")
    shutil.rmtree(fleet.releases("one"))
    assert fleet.outcomes() == ["allow"]
    fleet.activate(2).refused("cannot read", code=Exit.POLICY_INVALID)
    assert (fleet.outcomes(), ready(one)) == (["allow"], True)
    one.stop()
    fleet.releases("one").mkdir()
    code, said = refused(*fleet.starting("one"), env={"ENGINE_STATE_DATABASE": fleet.address})
    assert (code, "is not here" in said) == (Exit.POLICY_INVALID, True)


def test_engines_on_one_folder_agree_too(tmp_path: Path, cache: Path, made: Made, command: Command) -> None:
    """An engine that serves its own policy decides nothing any more once a release is active."""
    state, releases = tmp_path / "state", tmp_path / "releases"
    for number in (1, 2):
        shutil.copytree(made.folders[number], releases / str(number))
    key = ("--release-key", made.keys.public)

    def activate(number: int) -> None:
        done = command("policy", "activate", releases / str(number), *key, "--state", state)
        assert done.code == 0, done.stderr

    with ExitStack() as stack:

        def start(name: str, *options: str | Path) -> Serving:
            (tmp_path / name).mkdir()
            return stack.enter_context(serving(tmp_path / name, cache, *options, "--state", state))

        own = start("own")
        assert told(decision(own)) == ("allow", [])
        activate(1)
        assert told(decision(own)) == ("deny", ["policy_stale"])
        until(lambda: not ready(own))
        engines = [start(name, "--releases", releases, *key) for name in ("one", "two")]
        assert [told(decision(one)) for one in engines] == [("allow", [])] * 2
        activate(2)
        assert [told(decision(one)) for one in engines] == [("deny", ["license_incompatible"])] * 2
        status = command("policy", "status", "--state", state).stdout
        assert status.count(" serves release 2, last seen ") == 2
        assert ("  active  release 2 of " in status, "  was active  release 1 of " in status) == (True, True)
    command("serve", "--releases", releases).refused("give --releases and --release-key together")
    both = ("--release", releases / "1", "--releases", releases, *key)
    command("serve", *both).refused("give one release, or a folder of several")
