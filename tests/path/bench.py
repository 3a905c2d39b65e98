"""A bench for the path of one request: a policy, a record and a machine that do what a test says, on a real state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

from engine.drive import run
from engine.errors import Location, StateError
from engine.flow import Answer, Context, Services, answer
from engine.model import Caller, Limits, Mode, Permit, Result, Revisions, Via
from engine.points import GatherContext, Gathered, Point
from engine.points.registry import POINTS
from engine.policy_bundle.catalogue import Catalogue, Entries, Words
from engine.policy_bundle.lookups import Lookups
from engine.record.model import DecisionRecord
from engine.running import Running
from engine.state.store import Store
from engine.work import Job
from tests.conftest import case

ACCEPTED: Any = case("license", "accepted").case.request
NOW = int(datetime(2026, 11, 21, tzinfo=UTC).timestamp())
LIMITS = {"purpose": "train", "export": {"allowed": True}}
ALLOW: dict[str, Any] = {"outcome": "allow", "findings": [], "limits": LIMITS}
ONE = {"code": "one", "level": "confirm", "subject": None}
DENY: dict[str, Any] = {"outcome": "deny", "findings": [{**ONE, "level": "deny"}]}
CONFIRM: dict[str, Any] = {"outcome": "confirm", "findings": [ONE], "approval_seconds": 60}
APPROVED: dict[str, Any] = {**ALLOW, "findings": [ONE], "approved": True}
REVISIONS = Revisions(rules="sha256:" + "1" * 64, values="sha256:" + "2" * 64)
CATALOGUE = Catalogue(
    points={"license": Entries(requirements={}, generated={"one": Words(code="one", title="one", remedy="mend")})}
)
WHO = Context(caller=Caller(via=Via.PROCESS, principal="pipeline"), run="run-1")


@dataclass(frozen=True, slots=True)
class Answered:
    result: Any
    defined: bool = True
    source: None = None


@dataclass
class Policy:
    """What is served: gives `answer` to whatever it is asked, and keeps the questions."""

    answer: Any = field(default_factory=lambda: ALLOW)
    revisions: Revisions | None = REVISIONS
    catalogue: Catalogue | None = CATALOGUE
    counted: Mapping[str, int] = field(default_factory=dict)
    windows: Mapping[str, int] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    asked: list[dict[str, Any]] = field(default_factory=list)
    released: int = 0
    ends_badly: bool = False
    shared: None = None
    digest: str | None = None

    @property
    def opa(self) -> Any:
        return self

    def ask(self, rule: str, document: dict[str, Any]) -> Answered:
        assert rule == "decision"
        self.asked.append(document)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return Answered(self.answer)

    @property
    def lookups(self) -> Lookups:
        return Lookups(budgets={"license": self.counted}, quotas={"license": self.windows}, probe_seconds=7)

    def backend_of(self, *_: str | None) -> None:
        return None

    def looks_up(self, _point: str, host: str) -> bool:
        return host in self.known

    def authored(self, served: Location) -> Location:
        return Location("author.rego", served.line)

    def release(self) -> None:
        self.released += 1
        if self.ends_badly:
            raise OSError("canary")


@dataclass
class Record:
    """The record: keeps lines, and raises `fails` for those from number `from_line` on."""

    fails: Exception | None = None
    from_line: int = 0
    bodies: list[Any] = field(default_factory=list)
    events: list[tuple[Any, ...]] = field(default_factory=list)

    def append(self, body: Any, events: tuple[Any, ...] = ()) -> None:
        if self.fails is not None and len(self.bodies) >= self.from_line:
            raise self.fails
        self.bodies.append(body)
        self.events.append(events)


@dataclass
class Opened:
    closed: int = 0

    def close(self) -> None:
        self.closed += 1


@dataclass
class Bench:
    """A request on its way through parts of which each can be changed."""

    store: Store
    policy: Policy = field(default_factory=Policy)
    record: Record = field(default_factory=Record)
    point: Point = POINTS["license"]
    world: dict[str, Any] = field(default_factory=dict)
    now: int = NOW
    stateless: bool = False
    observed: list[Mapping[str, int]] = field(default_factory=list)
    events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def parts(self) -> Services:
        world = GatherContext(clock=lambda: self.now, boundaries=lambda: (), **self.world)
        ids = iter(range(100, 200))
        return Services(
            serving=lambda: cast("Any", self.policy),
            log=cast("Any", self.record),
            store=self._store,
            running=Running(lambda: None if self.stateless else self.store, self._store),
            gather_context=world,
            clock=lambda: datetime.fromtimestamp(self.now, UTC),
            new_id=lambda: f"{len(self.record.bodies)}-{next(ids)}",
            versions={"engine": "1", "opa": "1"},
            observe=lambda _, durations: self.observed.append(durations),
            on_event=lambda name, fields: self.events.append((name, fields)),
        )

    def _store(self) -> Store:
        if self.stateless:
            raise StateError("no state", remedy="none")
        return self.store

    def gathering(self, change: Callable[[Gathered, GatherContext], Gathered]) -> None:
        own = self.point.gather
        self.point = replace(self.point, gather=lambda request, world: change(own(request, world), world))

    def ask(
        self, request: Any = ACCEPTED, context: Context = WHO, mode: Mode = Mode.ENFORCE, executor: Any = None
    ) -> Answer:
        return run(answer(self.point, request, mode, self.parts(), context, executor))


class Bound(Limits):
    backend: str | None

    def boundaries(self) -> frozenset[str]:
        return frozenset({"files"})

    def on_backend(self) -> str | None:
        return self.backend


def done(_permit: Permit, _job: Job) -> Result:
    return Result("done", {"files": 1})


def decided(bench: Bench) -> DecisionRecord:
    body = bench.record.bodies[0]
    assert isinstance(body, DecisionRecord)
    return body
