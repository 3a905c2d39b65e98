"""Test cases as YAML files: a request with the expected decision and record.

Run by the tests and by `engine policy test --cases`, always on a real OPA.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from engine.cases.state import CaseApproval, CaseState, Moment
from engine.documents.files import load, printable, read_bytes, unreadable
from engine.drive import run
from engine.engine import Engine
from engine.errors import GatherError, Location, Problem
from engine.facts.archives.source_bundle import DOCUMENT
from engine.facts.release.git import Change
from engine.flow import Answer, Context, Services, answer
from engine.model import (
    AdapterFacts,
    AdmittedSource,
    Boundary,
    Caller,
    Digest,
    Gate,
    HeldEnvironment,
    Mode,
    Model,
    Outcome,
    Probe,
    ProviderSettings,
    Revisions,
    SandboxFacts,
    Via,
    is_reserved,
)
from engine.points import GatherContext, Probed
from engine.points.registry import find
from engine.policy_bundle import explain
from engine.running import Running
from engine.settings import ReadLimits, Settings
from engine.state import open_store
from engine.state.store import Store


class Want(Model):
    """The expected outcome, exactly these finding codes, sorted, and the ids of the waivers that covered some."""

    outcome: Annotated[Outcome, Field(strict=False)]
    codes: tuple[str, ...] = ()
    subjects: tuple[str, ...] | None = None
    waivers: tuple[str, ...] = ()

    def __str__(self) -> str:
        about = "" if self.subjects is None else f" for {', '.join(self.subjects) or 'the whole request'}"
        waived = f" waived by {', '.join(self.waivers)}" if self.waivers else ""
        return f"{self.outcome.value} [{', '.join(self.codes)}]{about}{waived}"


class ProbedHarness(Model):
    """The capabilities of a harness; `source` is `probed`, or `static` if they are only assumed."""

    source: Literal["probed", "static"]
    capabilities: dict[str, bool]


class CaseWorld(Model):
    """The machine facts of a case: sandbox boundaries, the listener's gate, harness capabilities.

    `boundaries` include those of sandboxes, with `probes` as their evidence.

    `approvals` are those of the state, `addresses` those of each host, and no other host has any. `last_policy` is
    that of the record's last enforced decision. `admitted` is what point `source` has permitted, `held` the open
    environments by id. `adapters` has the switch and what was admitted, `provider` what the variables of the remote
    model state, `change` what git says of a project, `packages` the digest of each package environment. `root` is
    the folder that limits requests, beside the case file; `links` are created in a copy of it, as path and target.
    """

    boundaries: tuple[Boundary, ...] | None = None
    probes: tuple[Probe, ...] = ()
    gate: Gate = Gate()
    capabilities: dict[str, ProbedHarness] = Field(default_factory=dict)
    addresses: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    approvals: tuple[CaseApproval, ...] = ()
    last_policy: Revisions | None = None
    admitted: AdmittedSource | None = None
    held: dict[str, HeldEnvironment] = Field(default_factory=dict)
    adapters: AdapterFacts = AdapterFacts()
    provider: ProviderSettings = ProviderSettings()
    change: Change | None = None
    packages: dict[str, Digest] = Field(default_factory=dict)
    root: str | None = None
    links: dict[str, str] = Field(default_factory=dict)

    @field_validator("root")
    @classmethod
    def _beside_the_case(cls, root: str | None, info: ValidationInfo) -> str | None:
        beside: Path = (info.context or {}).get("folder", Path())
        return None if root is None else str((beside / root).absolute())

    def over(self, own: GatherContext) -> GatherContext:
        """The facts of this machine, replaced by those that the case states."""
        harnesses = {name: Probed(harness.capabilities, harness.source) for name, harness in self.capabilities.items()}
        listed, change = self.boundaries, self.change
        boundaries = own.boundaries if listed is None else lambda: listed
        return replace(
            own,
            boundaries=boundaries,
            sandbox_facts=own.sandbox_facts if listed is None else lambda *_: SandboxFacts(listed, self.probes),
            gate=self.gate,
            capabilities=harnesses.get,
            addresses=self.addresses.get,
            approval={one.id: one.row() for one in self.approvals}.get,
            last_policy=lambda: self.last_policy,
            admitted=self.admitted,
            held=lambda name, _: self.held.get(name),
            adapters=lambda: self.adapters,
            provider=lambda: self.provider,
            packages=self.packages.get,
            change=own.change if change is None else lambda *_: change,
            root=own.root if self.root is None else Path(self.root),
        )


class Case(Model):
    """One case file. `bundle` names a source bundle beside it, `drop` and `set` change its document.

    `run` is the id of its run, null for none; without it, the case is a run of its own.
    `values` override policy/, and a key such as `+docs` adds a whole row; `covers` names rows of
    fixtures/acceptance.yaml. `world`, `state` and `caller` replace what the engine would gather.
    """

    description: Annotated[str, Field(min_length=1)]
    covers: tuple[str, ...] = ()
    point: str
    request: Any = None
    bundle: str | None = None
    drop: tuple[str, ...] = ()
    set: dict[str, Any] = Field(default_factory=dict)
    values: dict[str, Any] = Field(default_factory=dict)
    world: CaseWorld = CaseWorld()
    state: CaseState = CaseState()
    caller: Annotated[Caller, Field(strict=False)] = Caller(via=Via.PROCESS)
    run: str | None = ""
    now: Moment
    mode: Annotated[Mode, Field(strict=False)] = Mode.ENFORCE
    want: Want
    want_record: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A case and its file."""

    path: Path
    case: Case


def read_case(path: Path) -> CaseFile:
    """Read one case. Raises GatherError with file:line."""
    limits = ReadLimits()
    document = load(read_bytes(path, limits.document_bytes), str(path), limits)
    found: list[Problem] = []
    case = explain.validated(Case, document, found, context={"folder": path.parent})
    if case is None:
        remedy = f"{found[0].remedy}; see `Cases` in docs/rules.md and CONTRIBUTING.md"
        raise GatherError(found[0].message, remedy=remedy, where=found[0].where)
    return CaseFile(path, case)


def read_cases(folder: Path) -> list[CaseFile]:
    """Every case below a folder, sorted by path."""
    return [read_case(path) for path in case_paths(folder)]


def case_paths(folder: Path) -> list[Path]:
    """The case files below a folder, sorted; documents of source bundles are none."""
    found = []
    for root, folders, names in os.walk(folder):
        if DOCUMENT in names:
            folders.clear()
            continue
        found += [Path(root, name) for name in names if name.endswith(".yaml")]
    return sorted(found)


_OPEN = 32
"""Engines with values of their own that are kept open; each has an OPA of 50 to 100 MB."""


class Runner(ExitStack):
    """Runs cases; one engine for all without values of their own, and one for each point and overlay of values.

    Each is started on first use; of those with values, the ones that were not used for longest are closed.
    """

    def __init__(self, settings: Settings, scratch: Path, values: tuple[str, ...] = ()) -> None:
        """`scratch` is a folder for states and changed bundles; each case's own values override `values`."""
        super().__init__()
        self._settings = settings
        self._values = values
        self._scratch = scratch
        self._now = datetime.now(UTC)
        self._engines: dict[tuple[tuple[str, ...], frozenset[str] | None], Engine] = {}
        self._own: dict[int, Services] = {}
        self._names = count()
        self.callback(self._close_engines)
        self._states: dict[Path, Store] = {}
        self._roots: dict[Path, Path] = {}

    def overlay(self, values: dict[str, Any]) -> tuple[str, ...]:
        """These values as `key=value`, over those of every case."""
        return (*self._values, *_flat(values))

    def engine(self, values: dict[str, Any]) -> Engine:
        """The engine whose policy has these overrides, with the machine and clock reset after earlier cases."""
        engine = self._engine(values)
        self._now = datetime.now(UTC)
        engine.services = self._own.get(id(engine), engine.services)
        return engine

    def _engine(self, values: dict[str, Any], point: str | None = None) -> Engine:
        key = self.overlay(values), frozenset({point}) if point and values else None
        opened = self._engines.pop(key, None)
        if opened is None:
            state = self._scratch / f"state-{next(self._names)}"
            settings = replace(self._settings, state=state, database=None)
            opened = Engine(settings, values=key[0], now=lambda: self._now, points=key[1])
            opened.__enter__()
            for idle in [one for one in self._engines if one[1]][:-_OPEN]:
                self._close_engine(self._engines.pop(idle))
        self._engines[key] = opened  # the last one used
        return opened

    def close_others(self) -> None:
        """Close the engines with values of their own; each is started again when it is used."""
        for key in [key for key in self._engines if key[0] != self._values]:
            self._close_engine(self._engines.pop(key))

    def _close_engine(self, engine: Engine) -> None:
        self._own.pop(id(engine), None)
        engine.__exit__()

    def _close_engines(self) -> None:
        with ExitStack() as each:
            for engine in self._engines.values():
                each.callback(self._close_engine, engine)
            self._engines.clear()

    def _engine_of(self, file: CaseFile) -> Engine:
        return self._engine(file.case.values, file.case.point)

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
        self._now = datetime.fromtimestamp(file.case.now, UTC)
        engine = self._engine_of(file)
        own = self._own.setdefault(id(engine), engine.opened)
        world = file.case.world.over(own.gather_context)
        if world.root is not None and file.case.world.links:
            world = replace(world, root=self._linked(file, world.root))
        engine.services = replace(own, gather_context=world)
        if file.case.state != CaseState():
            store = partial(self._state, file)
            world = replace(world, sources=store)
            running = Running(lambda: None, store)
            engine.services = replace(own, gather_context=world, store=store, running=running)
        return engine

    def _linked(self, file: CaseFile, root: Path) -> Path:
        """A copy of the root with the links of a case; reused when the case runs again."""
        if file.path not in self._roots:
            copy = self._scratch / f"root-of-case-{len(self._roots)}"
            shutil.copytree(root, copy)
            for path, target in file.case.world.links.items():
                (copy / path).symlink_to(target)
            self._roots[file.path] = copy
        return self._roots[file.path]

    def _state(self, file: CaseFile) -> Store:
        """The store with the state of a case; reused when the case runs again."""
        if file.path not in self._states:
            store = open_store(self._scratch / f"state-of-case-{len(self._states)}")
            self.callback(store.close)
            try:
                file.case.state.write(store)
            except ValueError as error:
                raise GatherError(
                    f"the case has an invalid state: {error}",
                    remedy="see `Cases` in docs/rules.md and CONTRIBUTING.md",
                    where=Location(str(file.path)),
                ) from error
            self._states[file.path] = store
        return self._states[file.path]

    def answer(self, file: CaseFile) -> Answer:
        """The engine's answer to this case."""
        parts, case = self.at(file).opened, file.case
        context = Context(caller=case.caller, run=file.path.stem if case.run == "" else case.run)
        return run(answer(find(case.point), self.request(file), case.mode, parts, context))

    def differences(self, file: CaseFile, answer: Answer) -> list[str]:
        """Every difference between the engine's answer and its record and what the case expects."""
        want, decision = file.case.want, answer.decision
        got = Want(
            outcome=decision.outcome,
            codes=tuple(sorted({finding.code for finding in decision.findings})),
            subjects=None
            if want.subjects is None
            else tuple(sorted({finding.subject for finding in decision.findings if finding.subject})),
            waivers=tuple(sorted({finding.waiver for finding in decision.findings if finding.waiver})),
        )
        reasons = "".join(f": {finding.requirement}" for finding in decision.findings if is_reserved(finding.code))
        differences = [] if got == want else [f"expected {want}; got {got}{reasons}"]
        record = self._record(file, decision.decision_id) if file.case.want_record else {}
        for key, value in (file.case.want_record or {}).items():
            if record.get(key) != value:
                differences.append(
                    f"record field `{key}`: expected {json.dumps(value)}; got {json.dumps(record.get(key))}"
                )
        return differences

    def _record(self, file: CaseFile, decision_id: str) -> dict[str, Any]:
        folder = self._engine_of(file).settings.state / "records"
        for path in sorted(folder.glob("decisions.*.jsonl"), reverse=True):
            for line in reversed(path.read_text(encoding="utf-8").splitlines()):
                record: dict[str, Any] = json.loads(line) if decision_id in line else {}
                if record.get("decision_id") == decision_id:
                    return record
        return {}


def changed(bundle: Path, copy: Path, drop: tuple[str, ...], set_: dict[str, Any]) -> Path:
    """A copy of a source bundle with fields of its document dropped or set; returns the copy. Raises GatherError."""
    shutil.rmtree(copy, ignore_errors=True)
    try:
        shutil.copytree(bundle, copy)
    except OSError as error:
        raise unreadable(str(bundle), error) from error
    limits = ReadLimits()
    document = load((copy / DOCUMENT).read_bytes(), DOCUMENT, limits).value
    path = ""
    try:
        for path in drop:
            parent, key = _parent(document, path)
            del parent[key]
        for path, value in set_.items():
            parent, key = _parent(document, path)
            parent[key] = value
    except (LookupError, TypeError, ValueError) as error:
        message = f"{DOCUMENT} has no field `{printable(path)}`"
        raise GatherError(message, remedy="name one that `drop` or `set` can change, such as records.0.url") from error
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
