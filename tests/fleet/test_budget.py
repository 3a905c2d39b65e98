"""Three servers, one budget: exact under load while PostgreSQL is killed, stopped and cut off behind TLS."""

from __future__ import annotations

import http.client
import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.record.verify_chains import verify_chains
from engine.state.rows import Counter
from tests.api.serving import ALLOWED, SECONDS, Serving, serving
from tests.command import lines
from tests.conftest import ROOT
from tests.postgres import SERVING, Server, frozen, running, shared
from tests.processes import until
from tests.proxy import Proxy
from tests.sources.https import Authority

NAME, ADDRESS = "db.example.org", "127.83.70.2"
BUDGET, WINDOW = 420, 7 * 31_536_000
CONNECTIONS = 5
"""To each engine."""
UNAVAILABLE = "engine.state_unavailable"


@dataclass
class Load:
    """Callers that ask without a pause, and what each was answered."""

    engines: list[Serving]
    allowed: list[set[str]] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.allowed = [set() for _ in self.engines]

    @property
    def count(self) -> int:
        return sum(map(len, self.allowed))

    def call(self, number: int) -> None:
        engine, body = self.engines[number], json.dumps(ALLOWED).encode()
        with closing(http.client.HTTPConnection(engine.host, engine.port, timeout=SECONDS)) as connection:
            while not self._ended.is_set():
                connection.request("POST", "/v1/decide/license", body, {"Content-Type": "application/json"})
                document: dict[str, Any] = json.loads(connection.getresponse().read())
                decision = document.get("decision", document)
                if decision["outcome"] == "allow":
                    self.allowed[number].add(decision["decision_id"])
                else:
                    self.codes += [finding["code"] for finding in decision["findings"]]

    @contextmanager
    def running(self) -> Iterator[None]:
        callers = [
            threading.Thread(target=self.call, args=(number % len(self.engines),))
            for number in range(CONNECTIONS * len(self.engines))
        ]
        for caller in callers:
            caller.start()
        try:
            yield
            assert all(caller.is_alive() for caller in callers)
        finally:
            self._ended.set()
            for caller in callers:
                caller.join(SECONDS)


def policy(folder: Path) -> Path:
    """The policy with a budget for licenses that all callers share."""
    made = Path(shutil.copytree(ROOT / "policy", folder / "policy"))
    budgets = made / "budgets.yaml"
    row = "  license: {principal: unlimited, run: unlimited, all: %s}\n"
    text = budgets.read_text(encoding="utf-8")
    assert row % "unlimited" in text
    ours = row % f"{{limit: {BUDGET}, window_seconds: {WINDOW}}}"
    budgets.write_text(text.replace(row % "unlimited", ours), encoding="utf-8")
    return made


class Faults:
    """What happens to PostgreSQL and to the network before it, one after another."""

    def __init__(self, server: Server, proxy: Proxy, settings: dict[str, str], load: Load) -> None:
        self._server, self._proxy, self._settings, self._load = server, proxy, settings, load

    def kill(self) -> None:
        self._server.kill()
        self._refusing()
        self._server.start(**self._settings)

    def reset(self) -> None:
        self._proxy.reset()

    def partition(self) -> None:
        self._proxy.stall()
        self._refusing()
        self._proxy.heal()

    def reorder(self) -> None:
        """What was sent before the partition arrives after what is sent now."""
        self._proxy.stall(answers=False)
        self._refusing()
        before = self._load.count
        self._proxy.let_new()
        until(lambda: self._load.count >= before + 5)
        self._proxy.heal()

    def freeze(self) -> None:
        with frozen(self._server):
            self._refusing()

    def _refusing(self) -> None:
        """Wait until every engine has noticed."""
        before = len(self._load.codes)
        until(lambda: self._load.codes[before:].count(UNAVAILABLE) > 20)
        for engine in self._load.engines:
            until(lambda engine=engine: engine.ask("GET", "/ready").status == 503)  # type: ignore[misc]


def test_a_budget_over_three_servers_is_exact_despite_database_faults(tmp_path: Path, cache: Path) -> None:
    authority, chosen = Authority(tmp_path), policy(tmp_path)
    with running() as server, ExitStack() as stack:
        settings = server.encrypted(authority.certificate(NAME), ADDRESS)
        server.stop()
        server.start(**settings)
        proxy = stack.enter_context(closing(Proxy((ADDRESS, 5432))))
        database = server.database()
        address = (
            f"postgresql://{SERVING}@{NAME}:{proxy.port}/{database}?hostaddr=127.0.0.1&sslrootcert={authority.path}"
        )
        engines = []
        for name in ("one", "two", "three"):
            (tmp_path / name).mkdir()
            env = {"ENGINE_STATE_DATABASE": address}
            engines.append(stack.enter_context(serving(tmp_path / name, cache, "--policy", chosen, env=env)))
        load = Load(engines)
        faults = Faults(server, proxy, settings, load)
        order = (faults.kill, faults.reset, faults.reorder, faults.kill, faults.partition, faults.freeze, faults.kill)
        with load.running():
            for number, fault in enumerate(order):
                until(lambda number=number: load.count >= (number + 1) * BUDGET // (2 * len(order)))  # type: ignore[misc]
                fault()
            until(lambda: load.count >= BUDGET)
            exhausted = len(load.codes)
            until(lambda: load.codes[exhausted:].count("budget_exhausted") > 100)
        with shared(server.address(database, SERVING)) as store:
            used = Counter("license.all", "", WINDOW)
            until(lambda: store.used(used, int(time.time())) == BUDGET)  # refused requests have given everything back
        for engine in engines:
            assert engine.stop() == 0
        for engine, allowed in zip(engines, load.allowed, strict=True):
            assert all(chain.ok for chain in verify_chains(engine.state).values())
            assert {line["decision_id"] for line in decided(engine) if line["outcome"] == "allow"} == allowed
    assert load.count == BUDGET
    assert {*load.codes} == {UNAVAILABLE, "budget_exhausted"}


def decided(engine: Serving) -> list[dict[str, Any]]:
    return [line for line in lines(engine.state) if line["kind"] == "decision" and line["point"] == "license"]
