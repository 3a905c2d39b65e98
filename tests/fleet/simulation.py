"""Seven days of a fleet in virtual time: replicas that crash, a database that fails, clocks that differ.

Each replica is a process with an engine, a record and a state folder of its own; they share one PostgreSQL, which
really is killed, and reached through a proxy that really is cut off. OPA is real too: one process for each revision
of the policy, which the replicas share. The clock is what each replica is told. Everything random comes from a seed.
"""

from __future__ import annotations

import json
import multiprocessing
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from engine.binaries import find_binary
from engine.engine import Engine
from engine.policy_bundle.serving import Served as ServedPolicy
from engine.record.reader import lines
from engine.settings import Settings
from engine.state.rows import ApprovalClosedError
from engine.state.rows import Counter as Budget
from tests.api.serving import ALLOWED
from tests.fleet import replica
from tests.postgres import SERVING, Server, shared
from tests.processes import until
from tests.proxy import Proxy
from tests.shared_opa import _key

DAY, WINDOW = 86_400, 6 * 3_600
BEGIN = 1_800_057_600
"""The start of a day and of a window, in seconds since 1970."""

SKEW = 20
"""Seconds by which a clock may be wrong, either way."""

KEY_SECONDS = DAY
_HANGS_SECONDS = 300
SERVER = {"max_connections": "200"}
"""Each engine may open 8."""
REVIEWED = {**ALLOWED, "decisions": [{**ALLOWED["decisions"][0], "decision": "review_required"}]}

_RULE = """package admission.added.license.house

import future.keywords.not

# METADATA
# title: Rules and values are of one revision
# description: Each revision of this fleet changes both.
# custom:
#   code: mixed_revisions
#   remedy: Report this
#   reads: [budgets.budgets.license]
one_revision if data.policy.budgets.budgets.license.all.limit == %d
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long a step is, and what happens in seven days."""

    seed: int
    replicas: int = 8
    step: int = 3 * 3_600
    requests: int = 2
    """To each replica in a step, on average."""
    crashes: int = 6
    database: int = 2
    partitions: int = 1
    full: int = 12
    activations: int = 2

    @property
    def limit(self) -> int:
        """Of the first revision: about half of what is asked in a window."""
        return self.replicas * self.requests * (WINDOW // self.step) // 2


@dataclass(slots=True)
class Told:
    """What a caller was told, and what it had asked."""

    replica: int
    now: int
    answer: dict[str, Any]
    key: str | None
    approval: str | None


@dataclass(slots=True)
class Evidence:
    """What the checks look at: what callers were told, what the records have, and what was in force."""

    told: list[Told] = field(default_factory=list)
    records: dict[int, dict[int, dict[str, Any]]] = field(default_factory=dict)
    """Lines by replica and number, also those that retention has removed since."""
    limits: dict[tuple[str, str], int] = field(default_factory=dict)
    """The budget of a window by revision."""
    granted: dict[str, tuple[int, int]] = field(default_factory=dict)
    """When an approval was granted, and when it expires."""
    lost: Counter[int] = field(default_factory=Counter)
    """Requests whose replica was killed before it answered or gave back what they had reserved, by window."""
    used: dict[int, int] = field(default_factory=dict)
    """What the state has counted, by window, once it was over."""
    removed: int = 0
    happened: Counter[str] = field(default_factory=Counter)

    def read(self, number: int, state: Path) -> None:
        """Take over the lines of a record that are there now."""
        known = self.records.setdefault(number, {})
        for line in lines(state):
            body = json.loads(line.data)  # type: ignore[union-attr]
            assert known.setdefault(body["seq"], body) == body


class Replica:
    """The process of one replica, what it was asked and has not answered."""

    def __init__(self, fleet: Fleet, number: int) -> None:
        self.number, self._fleet = number, fleet
        self.skew = fleet.chance.randint(-SKEW, SKEW)
        self.asked: dict[int, tuple[int, str, dict[str, Any]]] = {}
        self.owed: Counter[int] = Counter()
        """Refused requests that may still have something to give back, by window."""
        self.settings = fleet.settings(f"replica-{number}", fleet.proxies[number % 2].port)
        self.end: Connection
        self.process: Any = None
        self._count = 0

    def start(self) -> None:
        context = self._fleet.context
        self.end, other = context.Pipe()
        self.process = context.Process(target=replica.main, args=(other, self.settings, self._fleet.opas), daemon=True)
        self.process.start()
        other.close()
        self.ask("open")

    def ask(self, name: str, **arguments: Any) -> int:
        self._count += 1
        now = self._fleet.moment + self.skew
        self.asked[self._count] = now, name, arguments
        self.end.send((self._count, now, name, arguments))
        return self._count

    def result(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The answer to one request, once nothing else is in progress."""
        self._fleet.collect([self])
        number = self.ask(name, **arguments)
        found: list[dict[str, Any]] = []
        self._fleet.collect([self], lambda which, answer: found.append(answer) if which == number else None)
        return found[0]

    def kill(self) -> None:
        """End the process at once; answers that it had sent are read."""
        self.process.kill()
        self.process.join()
        with suppress(EOFError, OSError):
            while self.end.poll():
                self._fleet.answered(self, *self.end.recv())
        for now, name, _ in self.asked.values():
            if name == "decide":
                self.owed[now // WINDOW] += 1
        self._fleet.evidence.lost += self.owed
        self.owed.clear()
        self.end.close()
        self.asked.clear()
        self.process = None

    def stop(self) -> None:
        """End it in order."""
        self._fleet.collect([self])
        self.end.send(None)
        self.process.join(60)
        assert self.process.exitcode == 0
        self.end.close()


class Fleet:
    """Replicas, their database, and their callers."""

    def __init__(self, plan: Plan, folder: Path, cache: Path, server: Server, stack: ExitStack) -> None:
        self.plan, self.folder, self._cache, self._server, self._stack = plan, folder, cache, server, stack
        self.chance = random.Random(plan.seed)  # noqa: S311
        self.evidence = Evidence()
        self.moment = BEGIN
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["tests.fleet.replica"])
        self.opas, self.policy = folder / "opas.json", folder / "policy"
        self.opas.write_text("{}")
        self.proxies = [stack.enter_context(closing(Proxy(server.socket))) for _ in range(2)]
        self.database = server.database()
        self._store = stack.enter_context(shared(server.address(self.database, SERVING)))
        self._revision = 0
        self._keys: list[tuple[str, str, int]] = []
        self._approvals: dict[str, tuple[str, int]] = {}
        self._behind: list[Replica] = []
        self.revise()
        self.replicas = [Replica(self, number) for number in range(plan.replicas)]
        for one in self.replicas:
            one.start()
        self.collect(self.replicas)

    def settings(self, name: str, port: int) -> Settings:
        address = self._server.address(self.database, SERVING, port)
        return Settings(state=self.folder / name, cache=self._cache, database=address, recipe=self.policy)

    def revise(self) -> None:
        """Write the next revision of the policy, whose rules and values fit together alone, and serve it by an OPA."""
        self._revision += 1
        limit = self.plan.limit + self._revision
        budget = f"{{limit: {limit}, window_seconds: {WINDOW}}}"
        for name, text in {
            "recipe.yaml": f"description: revision {self._revision} of the fleet\nowner: tests\n",
            "inventory.yaml": "license:\n  - mixed_revisions\n",
            "values/budgets.yaml": f"budgets:\n  license: {{principal: unlimited, run: unlimited, all: {budget}}}\n",
            "values/operations.yaml": "profile: controlled\n",
            "rules/license/house.rego": _RULE % limit,
        }.items():
            file = self.policy / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        settings = Settings(state=self.folder / f"opa-{self._revision}", cache=self._cache, recipe=self.policy)
        serving = self._stack.enter_context(Engine(settings, control=False))
        opa = serving._serving()
        assert isinstance(opa, ServedPolicy)
        assert serving.policy is not None
        opa.release()
        server = serving.opa.server  # type: ignore[union-attr]
        known = json.loads(self.opas.read_text())
        key = _key(find_binary(), server.served, settings.opa)
        assert key is not None
        self.opas.write_text(json.dumps(known | {key: str(server.folder)}))
        revisions = serving.policy.revisions
        self.evidence.limits[revisions.rules, revisions.values] = limit

    def run(self) -> Evidence:
        """Seven days, then a last look at every record."""
        steps = 7 * DAY // self.plan.step
        faults = self._faults(steps)
        for number in range(steps):
            self.moment = BEGIN + number * self.plan.step
            self._step(faults.get(number, []))
        self.moment += 2 * WINDOW
        self._look_at_windows()
        for one in self.replicas:
            one.stop()
            self.evidence.read(one.number, one.settings.state)
        return self.evidence

    def _faults(self, steps: int) -> dict[int, list[str]]:
        plan, found = self.plan, dict[int, list[str]]()
        kinds = {"crash": plan.crashes, "database": plan.database, "partition": plan.partitions, "full": plan.full}
        for kind, count in (kinds | {"activate": plan.activations}).items():
            for _ in range(count):
                found.setdefault(self.chance.randrange(steps // 2 if kind == "activate" else steps), []).append(kind)
        return found

    def _step(self, faults: list[str]) -> None:
        chance, quarter = self.chance, self.plan.replicas // 4
        self.evidence.happened.update(faults)
        full = chance.sample(self.replicas, faults.count("full"))
        for one in full:
            one.result("fill", left=chance.randrange(2_000))
        for _ in range(faults.count("activate")):
            self.revise()
            self._behind += chance.sample(self.replicas, self.plan.replicas)
        if "partition" in faults:
            self.proxies[1].stall()
        self._ask_all()
        for one in self._behind[:quarter]:
            one.ask("activate")  # while it decides
        del self._behind[:quarter]
        self._break(faults)
        self.collect(self.replicas)
        for one in full:
            one.result("fill", left=None)
        for one in self.replicas:
            until(lambda one=one: one.result("settled")["settled"])  # type: ignore[misc]
            one.owed.clear()
        if self.moment % DAY == 0:
            self._retain()
        self._grant()
        self._look_at_windows()

    def _break(self, faults: list[str]) -> None:
        """What happens while replicas decide."""
        chance = self.chance
        if "database" in faults:
            self.collect(self.replicas, most=chance.randrange(10))
            self._server.kill()
            self._server.start(**SERVER)
            until(self._store.writable)
        for _ in range(faults.count("crash")):
            crashed = chance.choice(self.replicas)
            self.collect([crashed], most=chance.randrange(2))
            crashed.kill()
            crashed.skew = chance.randint(-SKEW, SKEW)
            crashed.start()
        if "partition" in faults:
            cut_off = self.replicas[1::2]
            self.collect(cut_off, most=len(cut_off))
            self.proxies[1].heal()

    def _ask_all(self) -> None:
        """Requests of many kinds, each to any replica."""
        chance, moment = self.chance, self.moment
        for _ in range(self.plan.replicas * self.plan.requests):
            one = chance.choice(self.replicas)
            kind, principal = chance.random(), f"caller-{chance.randrange(12)}"
            if kind < 0.15:
                one.ask("decide", request=REVIEWED, principal=principal, key=None, approval=None)
            elif kind < 0.3 and self._approvals:
                id_ = chance.choice([*self._approvals])
                for at in chance.sample(self.replicas, 2):  # one of them may use it
                    who = self._approvals[id_][0]
                    at.ask("decide", request=REVIEWED, principal=who, key=None, approval=id_)
            elif kind < 0.6:
                if not self._keys or chance.random() < 0.4:
                    self._keys.append((f"key-{len(self._keys)}", principal, moment))
                key, principal, _ = chance.choice(self._keys[-40:])
                one.ask("decide", request=ALLOWED, principal=principal, key=key, approval=None)
            else:
                one.ask("decide", request=ALLOWED, principal=principal, key=None, approval=None)

    def collect(self, of: list[Replica], also: Any = lambda *_: None, most: int = 1 << 60) -> None:
        """Read answers until there are none left, or so many were read."""
        while most > 0 and (waiting := [one for one in of if one.asked]):
            ready = wait([one.end for one in waiting], _HANGS_SECONDS)
            assert ready, "a replica hangs"
            for one in waiting:
                if one.end in ready:
                    number, answer = one.end.recv()
                    also(number, answer)
                    self.answered(one, number, answer)
                    most -= 1

    def answered(self, one: Replica, number: int, answer: dict[str, Any]) -> None:
        """Note what a caller was told."""
        assert "failed" not in answer, answer
        now, name, asked = one.asked.pop(number)
        if name != "decide":
            return
        self.evidence.told.append(Told(one.number, now, answer, asked["key"], asked["approval"]))
        self.evidence.happened.update([answer["outcome"], *answer["codes"]])
        if answer["outcome"] != "allow":
            one.owed[now // WINDOW] += 1
        if answer["outcome"] == "confirm":
            self._approvals.setdefault(answer["approval"], (asked["principal"], now))

    def _grant(self) -> None:
        """A person grants some of what was asked for, early or late."""
        for id_, (_, asked) in [*self._approvals.items()]:
            if self.moment - asked > 2 * DAY:
                del self._approvals[id_]
            elif id_ not in self.evidence.granted and self.chance.random() < 0.1:
                with suppress(ApprovalClosedError):  # it has expired
                    row = self._store.resolve(id_, "granted", "user:lee", None, self.moment)
                    self.evidence.granted[id_] = self.moment, row.expires_at

    def _retain(self) -> None:
        """Remove what is older than two days from every record, after it was read."""
        for one in self.replicas:
            self.evidence.read(one.number, one.settings.state)
            done = one.result("retain", days=2)
            self.evidence.removed += done["removed"]

    def _look_at_windows(self) -> None:
        """What the state has counted for windows in which nobody decides any more."""
        for window in range(BEGIN // WINDOW - 1, (self.moment - SKEW - self.plan.step) // WINDOW):
            if window not in self.evidence.used:
                self.evidence.used[window] = self._store.used(Budget("license.all", "", WINDOW), window * WINDOW)


def simulate(plan: Plan, folder: Path, cache: Path, server: Server) -> Iterator[Fleet]:
    """A fleet that has run its seven days."""
    with ExitStack() as stack:
        fleet = Fleet(plan, folder, cache, server, stack)
        try:
            fleet.run()
            yield fleet
        finally:
            for one in fleet.replicas:
                if one.process is not None:
                    one.process.kill()
