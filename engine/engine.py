"""The engine put together: settings, policy, OPA, record, state and clock make one object that answers."""

from __future__ import annotations

import asyncio
import hashlib
import math
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from adapters.artifacts import ArtifactDirectory
from adapters.resolver import Resolver
from engine import __version__
from engine.canonical import RawJson
from engine.control import Control
from engine.drive import Steps, ended, own_thread, run, run_all, run_all_async, run_async
from engine.errors import EngineError, Exit, GatherError, Location, RecordError, StateError
from engine.flow import Answer, Context, Parts
from engine.look import Look
from engine.model import Boundary, Caller, Decision, Gate, Mode, Permit, Result, Revisions
from engine.once import answer_once
from engine.opa.binary import find_binary
from engine.opa.generation import Generation
from engine.opa.supervisor import Supervisor
from engine.points import World
from engine.points.registry import POINTS, find
from engine.policy_bundle.build import PolicyBundle, build
from engine.policy_bundle.sources import PolicySources
from engine.record.model import PolicyRecord, RecoveryRecord, timestamp
from engine.record.patterns import know
from engine.record.standing import StandingLog
from engine.record_heads import StateHeads
from engine.serving import Down, Served
from engine.settings import CONTROL, Settings
from engine.users import bearer_of
from engine.work import Hand, Job

if TYPE_CHECKING:
    from engine.administration import Administered
    from engine.code.asking import Machine
    from engine.code.once import Watch
    from engine.code.repair import Repair, RepairAsync
    from engine.code.result import CodeRun
    from engine.sandboxes import Sandboxes
    from engine.state.store import Store

T = TypeVar("T")

_ANYBODY = Context()
_PROBE_SECONDS = 0.5
"""For a decision of a fraction of a millisecond, on a loaded machine."""

_AGAIN_SECONDS = 1.0
"""Between two tries to open a state or a control socket: each may wait for another process."""


@dataclass(frozen=True, slots=True)
class Activated:
    """What is served now, and what was served before; `gone` are the codes that only the latter has."""

    revisions: Revisions
    previous: Revisions
    gone: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """Whether each part can do its work now; `revisions` are those of the policy being served."""

    opa: bool
    record: bool
    state: bool
    revisions: Revisions | None
    opa_pid: int | None
    opa_restarts: int
    state_age: float
    """Seconds since the state was last looked at: a look that takes long is not waited for."""

    @property
    def ready(self) -> bool:
        """Whether anything can be allowed."""
        return self.opa and self.record and self.state


class _Open:
    """What both engines are: parts that are opened together, replaced and closed.

    Nothing here raises for a policy, OPA, record or state that cannot be used: every request is then
    answered by a deny with the reserved code of that fault, and recorded where a record can be.
    """

    def __init__(  # noqa: PLR0913  (each is optional and named)
        self,
        settings: Settings,
        *,
        values: tuple[str, ...] = (),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_id: Callable[[], str] = lambda: secrets.token_hex(16),
        progress: Callable[[str, int, int], None] = lambda *_: None,
        gate: Gate = Gate(),  # noqa: B008  (frozen)
        on_event: Callable[[str, Mapping[str, Any]], None] = lambda *_: None,
        observe: Callable[[Decision, Mapping[str, int]], None] = lambda *_: None,
        control: bool = True,
    ) -> None:
        """`values` are overrides `key=value` on policy/; `now` is the clock that rules see.

        `gate` says how the listener in front of this engine is guarded, `on_event` is told what happens
        to OPA and to the policy, `observe` every decision once it is durable. With `control` the command line
        can have this engine take administrative acts, from when it first needs its state.
        """
        self.settings = settings
        self.parts: Parts | None = None
        self._values = values
        self._now = now
        self._new_id = new_id
        self._progress = progress
        self._gate = gate
        self._on_event = on_event
        self._observe = observe
        self._control: Control | None = None
        self._control_again = 0.0 if control else math.inf
        self._boundaries: tuple[Boundary, ...] | None = None
        self._sandboxes: Sandboxes | None = None
        self._supervisor: Supervisor[PolicyBundle] | Down
        self._log: StandingLog
        self._store: Store | None = None
        self._machine: Machine | None = None
        self._resolver: Resolver
        self._opening = threading.Lock()
        self._opening_store = threading.Lock()
        self._store_fault: EngineError | None = None
        self._store_again = 0.0
        self._state_look = Look(self._state_works)
        self._walking: set[asyncio.Task[Any]] = set()

    @property
    def policy(self) -> PolicyBundle | None:
        """The policy being served; None where none could be."""
        return self._supervisor.current.policy if isinstance(self._supervisor, Supervisor) else None

    @property
    def opa(self) -> Generation[PolicyBundle] | Down:
        """The OPA that answers now, or what stands in its place."""
        return self._supervisor.current if isinstance(self._supervisor, Supervisor) else self._supervisor

    @property
    def recovered(self) -> tuple[RecoveryRecord, ...]:
        """What a crash had left unfinished in the record, and was cut and kept when it was opened."""
        return self._log.recovered

    def _open(self) -> None:
        self._supervisor, version = self._start_opa()
        try:
            self._log = self._open_log()
        except BaseException:
            self._supervisor.close()
            raise
        self._resolver = Resolver()
        self.parts = Parts(
            serving=self._serving,
            log=self._log,
            store=self._state,
            world=World(
                clock=self._seconds,
                boundaries=self._probe,
                sandbox_facts=lambda backend, seconds: self._open_sandboxes().facts(backend, seconds),
                read=self.settings.read,
                progress=self._progress,
                gate=self._gate,
                addresses=self._resolver.addresses,
                approval=lambda id_: self._open_store().approval(id_),
                last_policy=self._last_policy,
                root=self.settings.root,
            ),
            clock=lambda: datetime.now(UTC),
            new_id=self._new_id,
            versions={"engine": __version__} | ({} if version is None else {"opa": version}),
            observe=self._observe,
        )

    def _close(self) -> None:
        with ExitStack() as parts:  # each part is closed whatever happens to the others; the last one here first
            parts.callback(self._close_store)
            parts.callback(self._log.close)  # uses the state
            parts.callback(self._supervisor.close)
            if self._sandboxes is not None:
                parts.callback(self._sandboxes.close)
            parts.callback(self._resolver.close)
            if self._control is not None:
                parts.callback(self._control.close)

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()

    def _activate(self, by: Context, reason: str | None) -> Activated:
        """Switch to the policy as it stands now; the record has a line of it first, and one of a refusal."""
        supervisor = self._supervisor
        before: PolicyBundle | None = None
        fresh: PolicyBundle | None = None

        def told(outcome: Literal["activated", "refused"], code: str | None) -> PolicyRecord:
            return PolicyRecord(
                time=timestamp(datetime.now(UTC)),
                outcome=outcome,
                principal=by.caller.principal,
                reason=reason,
                previous=None if before is None else before.revisions,
                revisions=None if fresh is None else fresh.revisions,
                code=code,
                request_id=by.request_id,
                trace=by.trace,
            )

        def check(generation: Generation[PolicyBundle]) -> None:
            nonlocal before
            if isinstance(supervisor, Supervisor):
                before = supervisor.current.policy  # one activation at a time, and this is it
            _answers(generation)
            self._log.append(told("activated", None))
            self._accept(generation)

        try:
            if not isinstance(supervisor, Supervisor):
                raise supervisor.fault
            before = supervisor.current.policy
            fresh = self._build()
            supervisor.activate(fresh, check)
        except EngineError as error:
            with suppress(RecordError):  # then nothing is allowed anyway
                self._log.append(told("refused", error.code))
            raise
        return Activated(fresh.revisions, before.revisions, before.catalogue.without(fresh.catalogue))

    def _status(self) -> Status:
        revisions = pid = None
        opa, restarts = False, 0
        if isinstance(self._supervisor, Supervisor):
            generation = self._supervisor.current
            revisions, pid, restarts = generation.policy.revisions, generation.pid, self._supervisor.restarts
            opa = _proves_itself(generation)
        state = self._state_look.last()
        return Status(opa, self._log.usable, state.good, revisions, pid, restarts, state.age)

    def _state_works(self) -> bool:
        try:
            return self._open_store().writable()
        except EngineError:
            return False

    def _steps(self, point: str, request: Any, mode: Mode, context: Context, hand: Hand | None) -> Steps[Answer]:
        if self.parts is None:
            raise _not_open()
        asked = find(point)
        if asked.act and mode is Mode.ENFORCE and not isinstance(request, EngineError):
            request = GatherError(  # the record lists no act that nobody takes
                "an administrative act is decided and taken in one",
                remedy="take it with `administer`, or POST it to /v1/administration; a dry run only decides",
                code="engine.request_invalid",
            )
        return answer_once(asked, request, mode, self.parts, context, hand)

    def _administer_steps(self, asked: Any, by: Context) -> Steps[Administered]:
        if self.parts is None:
            raise _not_open()
        from engine.administration import administer

        return administer(asked, self.parts, by)

    def _code_steps(self, asked: Any, context: Context, watch: Watch | None) -> Steps[CodeRun]:
        if self.parts is None:
            raise _not_open()
        from engine.code.once import Watch, run_code

        return run_code(asked, self.parts, self.code_machine(), context, watch or Watch())

    def code_machine(self) -> Machine:
        """What runs of generated code need of this machine; its `running` knows those under way."""
        from adapters.artifact_store import ArtifactStore
        from engine.code.asking import Machine
        from engine.code.running import Running

        sandboxes = self._open_sandboxes()
        with self._opening:
            if self._machine is None:
                store = ArtifactStore(self.settings.state / "artifacts")
                self._machine = Machine(sandboxes.backend, store, Running(self.settings.code_runs))
            return self._machine

    def _serving(self) -> Served | Down:
        if isinstance(self._supervisor, Down):
            return self._supervisor
        return Served(self._supervisor.acquire(), self._supervisor)

    def _build(self) -> PolicyBundle:
        chosen = self.settings
        if chosen.release is not None:
            from engine.policy_bundle.last_release import read_last
            from engine.policy_bundle.release import load_release

            if chosen.release_key is None and not chosen.unsigned_release_for_development:
                raise EngineError(
                    "a release is served only when its signature can be verified",
                    remedy="give the public key with `--release-key`",
                    where=Location(str(chosen.release)),
                    code="engine.policy_invalid",
                )
            return load_release(
                chosen.release, chosen.release_key, find_binary(), chosen.cache, read_last(chosen.state)
            )
        sources = PolicySources(self.settings.rego, self.settings.policy, self.settings.recipe, self._values)
        return build(sources, POINTS, find_binary(), self.settings.cache)

    def _start_opa(self) -> tuple[Supervisor[PolicyBundle] | Down, str | None]:
        version = revisions = None
        try:
            binary = find_binary()
            version = binary.version
            policy = self._build()
            revisions = policy.revisions
            key = self.settings.release_key if self.settings.release is not None else None
            supervisor = Supervisor.start(binary, policy, self.settings.opa, self._on_event, verification_key=key)
        except EngineError as error:
            return Down(error, revisions), version
        try:
            self._accept(supervisor.current)
        except EngineError as error:
            supervisor.close()
            return Down(error, revisions), version
        except BaseException:
            supervisor.close()
            raise
        return supervisor, version

    def _accept(self, generation: Generation[PolicyBundle]) -> None:
        """Look at a new OPA before it is asked, and remember the release that it serves. Raises EngineError."""
        policy = generation.policy
        know(policy.secret_forms)
        missing = POINTS.keys() - policy.catalogue.points.keys()
        if missing:
            raise EngineError(
                f"the policy has no rules for the point `{min(missing)}`",
                remedy="build the policy with this version of the engine",
                code="engine.policy_invalid",
            )
        if self.settings.release is not None:
            from engine.policy_bundle.last_release import write_last
            from engine.policy_bundle.release import Release

            if isinstance(policy, Release):
                write_last(self.settings.state, policy.statement.last)

    def _open_log(self) -> StandingLog:
        return StandingLog(
            self.settings.state,
            StateHeads(self.settings.state, self._open_store),
            lock_seconds=self.settings.record_lock_seconds,
            clock=lambda: datetime.now(UTC),
            on_event=self._on_event,
        )

    def _open_store(self) -> Store:
        from engine.state import open_store  # most dry runs need none

        with self._opening_store:
            failed = self._store
            if failed is not None and not failed.failed:
                return failed
            if self._store_fault is not None and time.monotonic() < self._store_again:
                raise self._store_fault
            try:
                if failed is not None:
                    failed.close()
                self._store = open_store(self.settings.state, after_fault=failed is not None)
                self._store_fault = None
            except EngineError as error:  # callers that waited here meanwhile do not wait for it once more
                self._store_fault, self._store_again = error, time.monotonic() + _AGAIN_SECONDS
                raise
            return self._store

    def _state(self) -> Store:
        """The state for a request. Others may wait for a person from now on, so the command line can reach us."""
        store = self._open_store()
        if self._control is None and time.monotonic() >= self._control_again and self._log.usable:
            with self._opening:
                if self._control is None:
                    self._control_again = time.monotonic() + _AGAIN_SECONDS
                    with suppress(GatherError):  # then acts wait
                        self._control = Control(self.settings.state / CONTROL, self._act)
        return store

    def _act(self, asked: bytes | EngineError, user: Caller, token: str | None) -> tuple[int, dict[str, Any]]:
        """One act from the control socket, as this user or as the principal of the token."""
        stated = asked if isinstance(asked, EngineError) else RawJson(asked)
        try:
            if token is not None:
                user = bearer_of(token, self._open_store(), self._seconds())
        except EngineError as error:
            stated = error  # recorded as an attempt of this user
        done = run(self._administer_steps(stated, Context(caller=user)))
        if (fault := done.answer.fault) is not None:
            status = {Exit.DENY: 409, Exit.UNREADABLE: 422}.get(fault.exit, 503)
            status = 401 if fault.code == "unauthorized" else status
            return status, {"code": fault.code, "detail": fault.message, "remedy": fault.remedy}
        return 200, {"decision": done.answer.decision.model_dump(mode="json"), "done": done.done}

    def _open_sandboxes(self) -> Sandboxes:
        from engine.sandboxes import Sandboxes, registered  # most requests need none

        with self._opening:
            if self._sandboxes is None:
                backends = partial(registered, self.settings.cache, self.settings.warm_sandboxes)
                self._sandboxes = Sandboxes(self.settings.state, self._seconds, backends, self._progress)
            return self._sandboxes

    def _seconds(self) -> int:
        return int(self._now().timestamp())

    def _last_policy(self) -> Revisions | None:
        from engine.record.retention import last_policy

        return last_policy(self.settings.state)

    def _probe(self) -> tuple[Boundary, ...]:
        if self._boundaries is None:
            with tempfile.TemporaryDirectory(prefix="admission-probe-") as folder:
                self._boundaries = (ArtifactDirectory.prove(Path(folder)),)
        return self._boundaries


class Engine(_Open):
    """Decides, in process, for callers that block. A context manager; threads may share it.

    OPA and the record live as long as it does.

        with Engine(Settings()) as engine:
            answer = engine.check("source", {"path": "bundle/", "digest": None})
    """

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def check(self, point: str, request: Any, context: Context = _ANYBODY) -> Answer:
        """A dry run: gather, decide, record as `check`. Nothing is enforced and nothing runs."""
        return run(self._steps(point, request, Mode.CHECK, context, None))

    def decide(self, point: str, request: Any, hand: Hand | None = None, context: Context = _ANYBODY) -> Answer:
        """The real thing. With `hand`, approved work runs under the permit after the record is durable."""
        return run(self._steps(point, request, Mode.ENFORCE, context, hand))

    def decide_many(
        self, point: str, requests: Sequence[Any], context: Context = _ANYBODY, mode: Mode = Mode.ENFORCE
    ) -> list[Answer]:
        """Decide many requests of one point side by side: one question to OPA, each with its own record."""
        return run_all([self._steps(point, request, mode, context, None) for request in requests])

    def admit(self, path: Path, into: Path, digest: str | None = None, context: Context = _ANYBODY) -> Answer:
        """Decide a source bundle and, on an allow, copy exactly the admitted records below `into`.

        `digest` is what an earlier check gave for the bundle; null in the request when there was none.
        The records stand in `into/<bundle digest in hex>/<record id>`, all of them or none.
        """
        from engine.points.source import SourceLimits

        artifacts = ArtifactDirectory(Path(into))

        def stage(permit: Permit, job: Job) -> Result:
            return artifacts.stage_source(permit, job.input_digest, SourceLimits, job.opened.content)

        return self.decide("source", {"path": str(path), "digest": digest}, stage, context)

    def retain(self, keep_days: int, reason: str | None = None, context: Context = _ANYBODY) -> Answer:
        """Decide how long the record is kept and, on an allow, remove whole segments that are older.

        The record names who removed them, and `reason`.
        """
        from engine.points.observation import MOST_DAYS, ObservationLimits
        from engine.record.retention import RETENTION_POINT, begin, retain

        if self.parts is None:
            raise _not_open()
        log, now = self._log, self.parts.clock()

        def shorten(permit: Permit, job: Job) -> Result:
            days = permit.demand(RETENTION_POINT, job.input_digest, ObservationLimits).retention_days
            done = retain(log.usable_log(), days, permit.decision_id, now, context.caller.principal, reason)
            return Result("nothing_old", {}) if done is None else Result("removed", asdict(done))

        if 0 <= keep_days <= MOST_DAYS:
            with suppress(RecordError):  # then the decision cannot be recorded either
                begin(log.usable_log(), keep_days, now)
        return self.decide(RETENTION_POINT, {"detail": "decisions", "retention_days": keep_days}, shorten, context)

    def run_code(self, asked: Any, context: Context = _ANYBODY, watch: Watch | None = None) -> CodeRun:
        """Run generated code: decide, run in a sandbox, validate, record. `asked` is a CodeRunRequest as JSON.

        Always a result, which says why it stopped. `watch` cancels the run, and is told of its phases.
        """
        return run(self._code_steps(asked, context, watch))

    def repair_code(
        self, asked: Any, repair: Repair, context: Context = _ANYBODY, watch: Watch | None = None
    ) -> CodeRun:
        """`run_code`, and again with what `repair` gives in the place of rejected code, as often as policy lets it."""
        from engine.code.repair import repaired

        own = replace(context, idempotency_key=None)  # a key is for one run
        return repaired(lambda document: self.run_code(document, own, watch), asked, repair)

    def settle(self, decision_id: str, amounts: Mapping[str, int]) -> None:
        """Tell what an allowed request really used of its budgets, such as `{"source.run": 0}`. Raises StateError."""
        self._open_store().settle(decision_id, amounts)

    def activate(self, by: Context = _ANYBODY, reason: str | None = None) -> Activated:
        """Build the policy again from its folders and switch to it, all or nothing.

        Recorded with who and why. Raises PolicyError or DecideError, and then the policy that was served before
        is served on.
        """
        return self._activate(by, reason)

    def store(self) -> Store:
        """Budgets, approvals, tokens. Raises StateError."""
        return self._open_store()

    def now(self) -> int:
        """The engine's clock, in seconds since 1970 UTC."""
        return self._seconds()

    def administer(self, asked: Any, by: Context) -> Administered:
        """Take an administrative act: decide, record, do. `asked` is an AdministrationRequest as JSON."""
        return run(self._administer_steps(asked, by))

    def status(self) -> Status:
        """Whether each part can do its work now."""
        return self._status()


class AsyncEngine(_Open):
    """The same verbs for an event loop, which is never blocked. An async context manager.

    async with AsyncEngine(Settings()) as engine:
        answer = await engine.decide("license", {...})

    A caller that is cancelled leaves its request to be decided and recorded all the same.
    """

    async def __aenter__(self) -> Self:
        opening = own_thread(self._enter)
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:  # the thread goes on, and nobody else would close what it opens
            await ended(opening)
            await ended(own_thread(self._close))
            raise
        return self

    def _enter(self) -> None:
        self._open()
        with suppress(EngineError):  # what needs the state is refused until it can be opened
            self._open_store()

    async def __aexit__(self, *_: object) -> None:
        try:
            await asyncio.gather(*self._walking, return_exceptions=True)
            if isinstance(self._supervisor, Supervisor):
                await self._supervisor.leave()
        finally:
            await asyncio.to_thread(self._close)

    async def check(self, point: str, request: Any, context: Context = _ANYBODY) -> Answer:
        """`Engine.check`."""
        return await self._walk(run_async(self._steps(point, request, Mode.CHECK, context, None)))

    async def decide(self, point: str, request: Any, hand: Hand | None = None, context: Context = _ANYBODY) -> Answer:
        """`Engine.decide`; a hand runs in a thread."""
        return await self._walk(run_async(self._steps(point, request, Mode.ENFORCE, context, hand)))

    async def decide_many(
        self, point: str, requests: Sequence[Any], context: Context = _ANYBODY, mode: Mode = Mode.ENFORCE
    ) -> list[Answer]:
        """`Engine.decide_many`."""
        return await self._walk(
            run_all_async([self._steps(point, request, mode, context, None) for request in requests])
        )

    async def decide_upload(self, path: Path, context: Context = _ANYBODY, mode: Mode = Mode.ENFORCE) -> Answer:
        """Decide a source bundle that this process itself has put at `path`, whatever root requests are held to."""
        if self.parts is None:
            raise _not_open()
        parts = replace(self.parts, world=replace(self.parts.world, root=path.parent))
        request = {"path": path.name, "digest": None}
        steps = answer_once(find("source"), request, mode, parts, context, body=lambda: _digest_of(path))
        return await self._walk(run_async(steps))

    async def run_code(self, asked: Any, context: Context = _ANYBODY, watch: Watch | None = None) -> CodeRun:
        """`Engine.run_code`; programs run in threads of their own."""
        return await self._walk(run_async(self._code_steps(asked, context, watch)))

    async def repair_code(
        self, asked: Any, repair: RepairAsync, context: Context = _ANYBODY, watch: Watch | None = None
    ) -> CodeRun:
        """`Engine.repair_code`."""
        from engine.code.repair import repaired_async

        own = replace(context, idempotency_key=None)
        return await repaired_async(lambda document: self.run_code(document, own, watch), asked, repair)

    async def _walk(self, path: Coroutine[Any, Any, T]) -> T:
        """Walk a path to its end, also when the caller is cancelled: what it takes it gives back or records."""
        walking = asyncio.get_running_loop().create_task(path)
        self._walking.add(walking)
        walking.add_done_callback(self._walking.discard)
        return await asyncio.shield(walking)

    async def settle(self, decision_id: str, amounts: Mapping[str, int]) -> None:
        """`Engine.settle`."""
        await asyncio.to_thread(lambda: self._open_store().settle(decision_id, amounts))

    async def activate(self, by: Context = _ANYBODY, reason: str | None = None) -> Activated:
        """`Engine.activate`; requests go on meanwhile."""
        return await asyncio.to_thread(self._activate, by, reason)

    async def administer(self, asked: Any, by: Context) -> Administered:
        """`Engine.administer`."""
        return await self._walk(run_async(self._administer_steps(asked, by)))

    def store(self) -> Store:
        """Budgets, approvals, tokens. Never waits; raises StateError while the state is not open."""
        if self._store is None:
            raise self._store_fault or StateError("the state is not open yet", remedy="ask again in a second")
        return self._store

    async def status(self) -> Status:
        """`Engine.status`."""
        return await own_thread(self._status)  # threads of a pool may all wait for the state


def _proves_itself(generation: Generation[PolicyBundle]) -> bool:
    """Whether OPA answers, soon and from its revisions."""
    try:
        generation.server.probe(_PROBE_SECONDS)
    except EngineError:
        return False
    return True


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _not_open() -> EngineError:
    return EngineError("the engine is not open", remedy="use it as `with Engine(settings) as engine:`")


def _answers(generation: Generation[PolicyBundle]) -> None:
    """A new OPA must give a decision at every point, and refuse an input without facts."""
    from engine.decide import read

    for point in POINTS.values():
        verdict = read(point, generation.ask("decision", {"point": point.name}), generation.policy.catalogue)
        if verdict.limits is not None:
            raise EngineError(
                f"the new policy allows a request without any fact at `{point.name}`",
                remedy="correct the rules of this point; the policy before is served on",
            )
