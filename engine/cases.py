"""Cases: a request, and the decision and record it must give, as files that people read and write.

Run by the tests and by `engine policy test --cases`, always on a real OPA.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from engine.case_state import CaseApproval, CaseState, Moment, moment
from engine.drive import run
from engine.engine import Engine
from engine.errors import EngineError, GatherError, Location
from engine.facts.source_bundle import DOCUMENT
from engine.files import load, read_bytes
from engine.flow import Answer, Context, answer
from engine.model import Boundary, Caller, Gate, Mode, Model, Outcome, Probe, Revisions, Via
from engine.points import Probed, SandboxFacts, World
from engine.points.registry import find
from engine.settings import ReadLimits, Settings
from engine.state import Store, open_store


class Want(Model):
    """The expected outcome and exactly these finding codes, sorted."""

    outcome: Annotated[Outcome, Field(strict=False)]
    codes: tuple[str, ...] = ()
    subjects: tuple[str, ...] | None = None

    def __str__(self) -> str:
        about = "" if self.subjects is None else f" for {', '.join(self.subjects) or 'the whole request'}"
        return f"{self.outcome.value} [{', '.join(self.codes)}]{about}"


class ProbedHarness(Model):
    """What asking a harness gave; `source` is `probed`, or `static` when it could only be assumed."""

    source: Literal["probed", "static"]
    capabilities: dict[str, bool]


class CaseWorld(Model):
    """What the engine itself finds on the machine of a case: boundaries shown, its own gate, harnesses asked.

    `boundaries` are those of sandboxes too, tried as `probes` say.

    `approvals` are those of the state, `addresses` those of each host, and no other host has any. `last_policy` is
    that of the record's last enforced decision. `root` is the folder that requests are held to, beside the case file;
    `links` are made in a copy of it, each path with where it leads.
    """

    boundaries: tuple[Boundary, ...] | None = None
    probes: tuple[Probe, ...] = ()
    gate: Gate = Gate()
    capabilities: dict[str, ProbedHarness] = Field(default_factory=dict)
    addresses: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    approvals: tuple[CaseApproval, ...] = ()
    last_policy: Revisions | None = None
    root: str | None = None
    links: dict[str, str] = Field(default_factory=dict)

    @field_validator("root")
    @classmethod
    def _beside_the_case(cls, root: str | None, info: ValidationInfo) -> str | None:
        beside: Path = (info.context or {}).get("folder", Path())
        return None if root is None else str((beside / root).absolute())

    def over(self, own: World) -> World:
        """A machine's own world with what the case says in its place."""
        harnesses = {name: Probed(one.capabilities, one.source) for name, one in self.capabilities.items()}
        shown = self.boundaries
        boundaries = own.boundaries if shown is None else lambda: shown
        return replace(
            own,
            boundaries=boundaries,
            sandbox_facts=own.sandbox_facts if shown is None else lambda *_: SandboxFacts(shown, self.probes),
            gate=self.gate,
            capabilities=harnesses.get,
            addresses=self.addresses.get,
            approval={one.id: one.row() for one in self.approvals}.get,
            last_policy=lambda: self.last_policy,
            root=own.root if self.root is None else Path(self.root),
        )


class Case(Model):
    """One case file. `bundle` names a source bundle beside it, `drop` and `set` change its document.

    `values` is laid over policy/, and a key such as `+docs` adds a row as a whole; `covers` names rows of
    fixtures/acceptance.yaml. `world`, `state` and `caller` are what the engine would find out by itself.
    """

    description: Annotated[str, Field(min_length=1)]
    covers: tuple[str, ...]
    point: str
    request: Any = None
    bundle: str | None = None
    drop: tuple[str, ...] = ()
    set: dict[str, Any] = Field(default_factory=dict)
    values: dict[str, Any] = Field(default_factory=dict)
    world: CaseWorld = CaseWorld()
    state: CaseState = CaseState()
    caller: Annotated[Caller, Field(strict=False)] = Caller(via=Via.PROCESS)
    now: Moment
    mode: Annotated[Mode, Field(strict=False)] = Mode.ENFORCE
    want: Want
    want_record: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A case and where it is written."""

    path: Path
    case: Case


def read_case(path: Path) -> CaseFile:
    """Read one case. Raises GatherError with file:line."""
    limits = ReadLimits()
    document = load(read_bytes(path, limits.document_bytes), str(path), limits)
    try:
        return CaseFile(path, Case.model_validate_json(json.dumps(document.value), context={"folder": path.parent}))
    except ValidationError as error:
        problem = error.errors()[0]
        where = document.where(tuple(problem["loc"]))
        raise GatherError(
            f"the case does not fit its format: {problem['type'].replace('_', ' ')}",
            remedy="see the case file format in CONTRIBUTING.md",
            where=where,
        ) from error


def read_cases(folder: Path) -> list[CaseFile]:
    """Every case below a folder, sorted by path."""
    return [read_case(path) for path in sorted(folder.rglob("*.yaml"))]


class Runner:
    """Runs cases; one engine for each overlay of values, all started when first needed."""

    def __init__(self, settings: Settings, scratch: Path, values: tuple[str, ...] = ()) -> None:
        """`scratch` is a folder for states and changed bundles; `values` are laid under every case's own."""
        self._settings = settings
        self._values = values
        self._scratch = scratch
        self._now = datetime.now(UTC)
        self._engines: dict[tuple[str, ...], Engine] = {}
        self._own: dict[int, tuple[World, Callable[[], Store]]] = {}
        self._states: dict[Path, Store] = {}
        self._roots: dict[Path, Path] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def overlay(self, values: dict[str, Any]) -> tuple[str, ...]:
        """These values as `key=value`, over those of every case."""
        return (*self._values, *_flat(values))

    def engine(self, values: dict[str, Any]) -> Engine:
        """The engine whose policy has these values laid over it, on this machine and now, whatever case ran before."""
        engine = self._engine(values)
        self._now = datetime.now(UTC)
        if engine.parts is not None and id(engine) in self._own:
            world, store = self._own[id(engine)]
            engine.parts = replace(engine.parts, world=world, store=store)
        return engine

    def _engine(self, values: dict[str, Any]) -> Engine:
        overlay = self.overlay(values)
        if overlay not in self._engines:
            state = self._scratch / f"state-{len(self._engines)}"
            engine = Engine(replace(self._settings, state=state), values=overlay, now=lambda: self._now)
            self._engines[overlay] = self._stack.enter_context(engine)
        return self._engines[overlay]

    def request(self, file: CaseFile) -> Any:
        """The case's request; a bundle it changes is copied into the scratch folder first."""
        case = file.case
        if case.bundle is None:
            return case.request
        bundle = (file.path.parent / case.bundle).resolve()
        if case.drop or case.set:
            bundle = changed(bundle, self._scratch / f"bundle-{file.path.stem}", case.drop, case.set)
        return {"path": str(bundle), "digest": None, **(case.request or {})}

    def at(self, file: CaseFile) -> Engine:
        """The engine of this case, with its clock, its world and its state set to the case's."""
        self._now = moment(file.case.now)
        engine = self._engine(file.case.values)
        if engine.parts is not None:
            own, store = self._own.setdefault(id(engine), (engine.parts.world, engine.parts.store))
            if file.case.state != CaseState():
                store = partial(self._state, file)
            world = file.case.world.over(own)
            if world.root is not None and file.case.world.links:
                world = replace(world, root=self._linked(file, world.root))
            engine.parts = replace(engine.parts, world=world, store=store)
        return engine

    def _linked(self, file: CaseFile, root: Path) -> Path:
        """A copy of the root with the links of a case; the same one however often the case runs."""
        if file.path not in self._roots:
            copy = self._scratch / f"root-of-case-{len(self._roots)}"
            shutil.copytree(root, copy)
            for path, target in file.case.world.links.items():
                (copy / path).symlink_to(target)
            self._roots[file.path] = copy
        return self._roots[file.path]

    def _state(self, file: CaseFile) -> Store:
        """The store of a case that finds something there; the same one however often the case runs."""
        if file.path not in self._states:
            store = open_store(self._scratch / f"state-of-case-{len(self._states)}")
            self._stack.callback(store.close)
            try:
                file.case.state.write(store)
            except ValueError as error:
                raise GatherError(
                    f"the case has a state that cannot be: {error}",
                    remedy="see the case file format in CONTRIBUTING.md",
                    where=Location(str(file.path)),
                ) from error
            self._states[file.path] = store
        return self._states[file.path]

    def answer(self, file: CaseFile) -> Answer:
        """What the engine answers to this case."""
        parts, case = self.at(file).parts, file.case
        if parts is None:
            raise EngineError("the engine of the case is closed", remedy="run cases inside of `with Runner(…)`")
        return run(answer(find(case.point), self.request(file), case.mode, parts, Context(caller=case.caller)))

    def differences(self, file: CaseFile) -> list[str]:
        """Every difference between the answer and its record and what the case expects."""
        answer = self.answer(file)
        want, decision = file.case.want, answer.decision
        got = Want(
            outcome=decision.outcome,
            codes=tuple(sorted({finding.code for finding in decision.findings})),
            subjects=None
            if want.subjects is None
            else tuple(sorted({finding.subject for finding in decision.findings if finding.subject})),
        )
        differences = [] if got == want else [f"expected {want}; got {got}"]
        record = self._record(file, decision.decision_id)
        for key, value in (file.case.want_record or {}).items():
            if record.get(key) != value:
                differences.append(
                    f"record field `{key}`: expected {json.dumps(value)}; got {json.dumps(record.get(key))}"
                )
        return differences

    def _record(self, file: CaseFile, decision_id: str) -> dict[str, Any]:
        folder = self._engine(file.case.values).settings.state / "records"
        for path in sorted(folder.glob("decisions.*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                record: dict[str, Any] = json.loads(line)
                if record.get("decision_id") == decision_id:
                    return record
        return {}


def changed(bundle: Path, copy: Path, drop: tuple[str, ...], set_: dict[str, Any]) -> Path:
    """A copy of a source bundle with fields of its document dropped or set; returns the copy."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(bundle, copy)
    limits = ReadLimits()
    document = load((copy / DOCUMENT).read_bytes(), DOCUMENT, limits).value
    for path in drop:
        parent, key = _parent(document, path)
        del parent[key]
    for path, value in set_.items():
        parent, key = _parent(document, path)
        parent[key] = value
    (copy / DOCUMENT).write_text(json.dumps(document, indent=1), encoding="utf-8")
    return copy


def _parent(document: Any, path: str) -> tuple[Any, Any]:
    *parents, last = path.split(".")
    for part in parents:
        document = document[int(part) if isinstance(document, list) else part]
    return document, int(last) if isinstance(document, list) else last


_NEW_ROW = "+"


def _flat(values: Any, prefix: str = "") -> Iterator[str]:
    if isinstance(values, dict) and values:
        for key, value in values.items():
            if prefix and key.startswith(_NEW_ROW):
                yield f"{prefix}.{key.removeprefix(_NEW_ROW)}={json.dumps(value)}"
            else:
                yield from _flat(value, f"{prefix}.{key}" if prefix else key)
    elif prefix:
        yield f"{prefix}={json.dumps(values)}"
