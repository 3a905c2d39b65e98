"""The parts of an engine, opened together, replaced and closed: policy, OPA, record, state, sandboxes."""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

from engine.adapter_admissions import AdapterAdmissions
from engine.administration.control import Control
from engine.administration.users import bearer_of
from engine.binaries import find_binary
from engine.decide import read
from engine.documents.canonical import RawJson
from engine.drive import Steps, run
from engine.errors import DecideError, EngineError, Exit, GatherError, Location, RecordError, fault_inside, stack_of
from engine.executors import Executors
from engine.flow import Context, Services, checked
from engine.model import Caller, Decision, Gate, HeldEnvironment, Revisions, Via
from engine.opa.generation import Generation
from engine.opa.server import Served as ServedFiles
from engine.opa.supervisor import Supervisor
from engine.points import GatherContext
from engine.points.registry import POINTS
from engine.policy_bundle.build import PolicyBundle, build
from engine.policy_bundle.serving import Served, Unavailable
from engine.policy_bundle.sources import PolicySources
from engine.record.chains import chain_folder
from engine.record.log import RecordLog
from engine.record.model import DecisionRecord, PolicyRecord, RecordedRelease, RecoveryRecord
from engine.record.retention import last_policy
from engine.record.standing import StandingLog
from engine.running import Running, Stops
from engine.secrets.patterns import know
from engine.settings import CONTROL, Settings
from engine.state import open_state, open_store
from engine.state.health import HealthCheck
from engine.state.opening import Opener
from engine.state.rows import ActivationRow
from engine.times import timestamp
from engine.version import __version__

if TYPE_CHECKING:
    from engine.administration.act import Administered
    from engine.agreement.follower import Follower
    from engine.state.store import LocalStore, Store

_PROBE_SECONDS = 0.5
"""For a decision of a fraction of a millisecond, on a loaded machine."""

_AGAIN_SECONDS = 1.0
"""Between two tries to open a control socket, which may wait for another process."""


@dataclass(frozen=True, slots=True)
class Activated:
    """What is served now, and what was served before; `removed_codes` are the codes that only the latter has."""

    revisions: Revisions
    previous: Revisions
    removed_codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """Whether each part can do its work now; `revisions` are those of the policy being served."""

    opa: bool
    record: bool
    state: bool
    revisions: Revisions | None
    opa_restarts: int
    state_age: float
    """Seconds since the state was last checked; a slow check is not waited for."""
    agreed: bool = True
    """Whether it serves the release that was activated for the engines of its state, if one was."""

    @property
    def ready(self) -> bool:
        """Whether anything can be allowed."""
        return self.opa and self.record and self.state and self.agreed


class Assembly:
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
        recorded: Callable[[DecisionRecord, dict[str, Any] | None], None] = lambda *_: None,
        control: bool = True,
        points: frozenset[str] | None = None,
        enable_mcp_adapter: bool = False,
        own_files: bool = False,
        follow: bool = True,
        try_policy: bool = False,
    ) -> None:
        """`values` are overrides `key=value` on policy/; `now` is the clock that rules see.

        `gate` states how the listener of this engine is guarded, `on_event` is called with events of OPA
        and the policy and with crashes, `observe` with every durable decision, `recorded` with
        its line and input. With `control`, the command line
        can send administrative acts to this engine once it has opened its state.
        With `points`, only these decision points are decided, after a faster start; every other one is denied.
        Adapters are off unless `enable_mcp_adapter` is True itself. With `own_files`, findings name the files of
        values that are edited for this policy, for callers that do not see its folders. With `releases` in the
        settings it serves the release that was activated last in its state, and with `follow` each later one. With
        `try_policy`, dry runs are decided under the policy of the settings whatever the engines of the state agreed on.
        """
        self.settings = settings
        self.services: Services | None = None
        self._values = values
        self._points = points and points | {"administration"}  # acts may come over the control socket
        self._now = now
        self._new_id = new_id
        self._progress = progress
        self._gate = gate
        self._on_event = on_event
        self._observe = observe
        self._recorded = recorded
        self._control: Control | None = None
        self._control_again = 0.0 if control else math.inf
        self._supervisor: Supervisor[PolicyBundle] | Unavailable
        self._log: StandingLog
        self._store: Opener[Store] = Opener(lambda failed: open_state(settings, after_fault=failed))
        self._local_store: Opener[LocalStore] = Opener(lambda failed: open_store(settings.state, after_fault=failed))
        self._running: Running
        self.executors: Executors
        self._opening = threading.Lock()
        self._state_look = HealthCheck(self._state_works)
        self._held: dict[str, Callable[[str | None], HeldEnvironment]] = {}
        self._walking: set[asyncio.Task[Any]] = set()
        self._adapters = AdapterAdmissions(enable_mcp_adapter)
        self._own_files = own_files
        self._follow = follow and settings.releases is not None
        self._try_policy = try_policy
        self._follower: Follower | None = None

    def __getstate__(self) -> NoReturn:
        raise TypeError("an engine is not copied or pickled; open one in each process, as in docs/pipelines.md")

    @property
    def opened(self) -> Services:
        """The services for requests. Raises EngineError before the engine is opened."""
        if self.services is None:
            raise EngineError("the engine is not open", remedy="use it as `with Engine(settings) as engine:`")
        return self.services

    @property
    def policy(self) -> PolicyBundle | None:
        """The policy being served; None if none could be loaded."""
        return self._supervisor.current.policy if isinstance(self._supervisor, Supervisor) else None

    @property
    def opa(self) -> Generation[PolicyBundle] | Unavailable:
        """The current OPA, or its stand-in."""
        return self._supervisor.current if isinstance(self._supervisor, Supervisor) else self._supervisor

    @property
    def recovered(self) -> tuple[RecoveryRecord, ...]:
        """Unfinished lines of a crash, which were cut from the record and saved when it was opened."""
        return self._log.recovered

    @property
    def control_path(self) -> Path:
        """The control socket: one for each chain, so that each engine on a state folder has its own."""
        return chain_folder(self.settings.state, self._log.chain) / CONTROL

    def _open(self) -> None:
        if self.services is not None:
            raise EngineError("this engine was opened before", remedy="make a new engine for each `with`")
        self._supervisor, version = self._start_opa()
        try:
            self._log = StandingLog(
                self.settings.state, self._heads, clock=lambda: datetime.now(UTC), on_event=self._on_event
            )
        except BaseException:
            self._supervisor.close()
            raise
        self.executors = executors = Executors(self.settings, self.now, self._progress)
        follows = self.settings.releases is not None
        self._running = Running(self._store_now, self._open_store, follows=follows, try_policy=self._try_policy)
        self.services = Services(
            serving=self._serving,
            log=self._log,
            store=self._state,
            running=self._running,
            gather_context=GatherContext(
                clock=self.now,
                boundaries=executors.boundaries,
                sandbox_facts=lambda backend, seconds: executors.sandboxes().facts(backend, seconds),
                packages=executors.packages_tree,
                read=self.settings.read,
                progress=self._progress,
                gate=self._gate,
                addresses=executors.resolver.addresses,
                approval=lambda id_: self._open_store().approval(id_),
                last_policy=lambda: last_policy(self.settings.state),
                sources=self._open_store,
                held=self._held_environment,
                root=self.settings.root,
                adapters=self._adapters.facts,
                provider=lambda: executors.remote_model().provider.settings,
            ),
            clock=lambda: datetime.now(UTC),
            new_id=self._new_id,
            versions={"engine": __version__} | ({} if version is None else {"opa": version}),
            observe=self._observe,
            recorded=self._recorded,
            on_event=self._on_event,
        )
        if self._follow and isinstance(self._supervisor, Supervisor):
            self._follower = self._new_follower(self._supervisor)
            try:
                self._follower.start()
            except EngineError:
                self._close()
                raise

    def _close(self) -> None:
        with ExitStack() as parts:  # each part is closed even if others fail; the last one first
            parts.callback(self._local_store.close)
            parts.callback(self._store.close)
            parts.callback(self._log.close)  # uses the state
            if self._follower is not None:
                parts.callback(self._follower.join)
            parts.callback(self._supervisor.close)
            parts.callback(self.executors.close)
            if self._control is not None:
                parts.callback(self._control.close)
            parts.callback(self._running.close)
            parts.callback(self.executors.stop_waiting)
            if self._follower is not None:
                parts.callback(self._follower.close)

    def in_force(self) -> Stops:
        """The stops in force.

        Raises DecideError unless the policy that is served may decide here, StateError.
        """
        return run(self._running.stops(None if self.policy is None else self.policy.digest))

    @contextmanager
    def recording(self, log: RecordLog) -> Iterator[None]:
        """Record the decisions of the block in this log in place of the engine's own chain.

        One block at a time, and nothing else is asked of the engine meanwhile. The log is not reopened after a fault.
        """
        own = self.opened
        self.services = replace(own, log=log)
        try:
            yield
        finally:
            self.services = own

    def _store_now(self) -> Store | None:
        """The store, if its stops can be read without waiting."""
        with suppress(EngineError):
            store = self._store.now()
            if not store.failed and (self.settings.database is None or store.at_hand()):
                return store
        return None

    def hold(self, held: Callable[[str | None], HeldEnvironment]) -> str:
        """An id for an open environment; decisions that name it ask `held` what can be undone there."""
        name = secrets.token_hex(16)
        self._held[name] = held
        return name

    def forget_environment(self, name: str) -> None:
        """Forget an open environment."""
        self._held.pop(name, None)

    def _held_environment(self, name: str, checkpoint: str | None) -> HeldEnvironment | None:
        held = self._held.get(name)
        return None if held is None else held(checkpoint)

    def _activate(self, by: Context, reason: str | None) -> Activated:
        """Activate the current policy of the folders; it is recorded first, and so is a refusal."""
        fresh: PolicyBundle | None = None
        checked(by)
        try:
            self._demand_own_policy()
            fresh = self._build()
            return self._serve(fresh, by, reason)
        except EngineError as error:
            self._record_refusal(by, reason, fresh, error)
            raise
        except Exception as error:
            self._on_event("crash", {"stack": stack_of(error)})
            fault = fault_inside("activation", "the log of `engine serve` shows where it failed (`crash`)")
            self._record_refusal(by, reason, fresh, fault)
            raise fault from error

    def _demand_own_policy(self) -> None:
        """Raise EngineError where the policy is that of all engines of the state."""
        if self.settings.releases is not None:
            raise EngineError(
                "this engine serves the release that was activated for all engines of its state",
                remedy="activate another one for all of them: `engine policy activate DIR`",
                code="engine.policy_invalid",
            )

    def _serve(
        self, fresh: PolicyBundle, by: Context, reason: str | None, await_switch: Callable[[], None] = lambda: None
    ) -> Activated:
        """Start OPA with another policy, check it, wait, record the activation, and switch. Raises EngineError."""
        supervisor = self._supervisor
        if not isinstance(supervisor, Supervisor):
            raise supervisor.fault
        before = supervisor.current.policy

        def check(generation: Generation[PolicyBundle]) -> None:
            nonlocal before
            before = supervisor.current.policy  # one activation at a time, and this is it
            _answers(generation)
            await_switch()
            if not generation.alive:
                raise DecideError("OPA ended before its policy was switched to", remedy="activate the policy again")
            self._accept(
                generation, lambda: self._log.append(_policy_record("activated", by, reason, before, fresh, None))
            )

        supervisor.activate(fresh, check)
        return Activated(fresh.revisions, before.revisions, before.catalogue.without(fresh.catalogue))

    def _record_refusal(self, by: Context, reason: str | None, fresh: PolicyBundle | None, error: EngineError) -> None:
        with suppress(RecordError):  # then nothing is allowed anyway
            self._log.append(_policy_record("refused", by, reason, self.policy, fresh, error.code))

    def _new_follower(self, supervisor: Supervisor[PolicyBundle]) -> Follower:
        from engine.agreement.follower import Follower, Follows
        from engine.agreement.release import agreed_release

        def serve(row: ActivationRow, await_switch: Callable[[], None]) -> None:
            fresh = agreed_release(row, self.settings, find_binary())
            done = self._serve(fresh, _activator(row), row.reason, await_switch)
            fields = {**done.revisions.model_dump(), "removed_codes": done.removed_codes, "release": row.sequence}
            self._on_event("policy_activated", fields)

        def refused(row: ActivationRow, error: EngineError) -> None:
            self._record_refusal(_activator(row), row.reason, None, error)
            self._on_event("release_refused", {"release": row.sequence, "code": error.code, "detail": error.one_line()})

        follows = Follows(self._open_store, lambda: supervisor.current.policy.digest, serve, refused, self.now)
        return Follower(f"{socket.gethostname()}:{os.getpid()}", follows)

    def record_start(self, by: Context) -> None:
        """Record with which policy a server begins, if it has one. Raises RecordError."""
        if self.policy is not None:
            self._log.append(_policy_record("started", by, None, None, self.policy, None))

    def _status(self) -> Status:
        revisions = None
        opa, restarts = False, 0
        if isinstance(self._supervisor, Supervisor):
            generation = self._supervisor.current
            revisions, restarts = generation.policy.revisions, self._supervisor.restarts
            with suppress(EngineError):  # it does not answer soon, or not from its revisions
                generation.server.probe(_PROBE_SECONDS)
                opa = True
        state, age = self._state_look.last()
        agreed = self._running.agreed(None if self.policy is None else self.policy.digest)
        return Status(opa, self._log.usable, state, revisions, restarts, age, agreed)

    def _state_works(self) -> bool:
        try:
            store = self._open_store()
            self._running.last = store.in_force()
            return store.writable()
        except EngineError:
            return False

    def _administer_steps(self, request: Any, by: Context) -> Steps[Administered]:
        from engine.administration.act import administer

        return administer(request, self.opened, checked(by))

    def _serving(self) -> Served | Unavailable:
        if isinstance(self._supervisor, Unavailable):
            return self._supervisor
        return Served(self._supervisor.acquire(), self._supervisor, self._own_files)

    def _build(self) -> PolicyBundle:
        chosen = self.settings
        if chosen.releases is not None:
            from engine.agreement.release import release_at_start

            return release_at_start(self._open_store().agreement(), chosen, find_binary())
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

    def _start_opa(self) -> tuple[Supervisor[PolicyBundle] | Unavailable, str | None]:
        version = revisions = None
        try:
            binary = find_binary()
            version = binary.version
            policy = self._build()
            revisions = policy.revisions
            key = self.settings.release_key if self.settings.release or self.settings.releases else None
            with ExitStack() as refused:
                supervisor = Supervisor(
                    binary,
                    policy,
                    lambda one: ServedFiles(one.rules.path, one.values.path, one.revisions, key, self._points),
                    self.settings.opa,
                    self._on_event,
                )
                refused.callback(supervisor.close)
                self._accept(supervisor.current)
                refused.pop_all()
        except EngineError as error:
            return Unavailable(error, revisions), version
        return supervisor, version

    def _accept(self, generation: Generation[PolicyBundle], record: Callable[[], object] = lambda: None) -> None:
        """Check a new OPA before it is used, record it, and remember the release that it serves. Raises EngineError."""
        policy = generation.policy
        know(policy.lookups.forms)
        missing = POINTS.keys() - policy.catalogue.points.keys()
        if missing:
            raise EngineError(
                f"the policy has no rules for the point `{min(missing)}`",
                remedy="build the policy with this version of the engine",
                code="engine.policy_invalid",
            )
        if self.settings.release or self.settings.releases:
            from engine.policy_bundle.last_release import write_last
            from engine.policy_bundle.release import Release

            if isinstance(policy, Release):
                write_last(self.settings.state, policy.statement.last, record)
                return
        record()

    def _open_store(self) -> Store:
        return self._store.get()

    def _heads(self) -> LocalStore:
        """What is known of the record, which is in the state folder: it is in the file there, never in a database."""
        store = self._store.get() if self.settings.database is None else self._local_store.get()
        return cast("LocalStore", store)

    def _state(self) -> Store:
        """The state for a request. Others may wait for a person from now on, so the command line can reach us."""
        store = self._open_store()
        if self._control is None and time.monotonic() >= self._control_again and self._log.usable:
            with self._opening:
                if self._control is None:
                    self._control_again = time.monotonic() + _AGAIN_SECONDS
                    with suppress(GatherError):  # then acts wait
                        self._control = Control(self.control_path, self._act)
        return store

    def _act(self, request: bytes | EngineError, user: Caller, token: str | None) -> tuple[int, dict[str, Any]]:
        """One act from the control socket, as this user or as the principal of the token."""
        stated = request if isinstance(request, EngineError) else RawJson(request)
        try:
            if token is not None:
                user = bearer_of(token, self._open_store(), self.now())
        except EngineError as error:
            stated = error  # recorded as an attempt of this user
        done = run(self._administer_steps(stated, Context(caller=user)))
        if (fault := done.answer.fault) is not None:
            status = {Exit.DENY: 409, Exit.UNREADABLE: 422}.get(fault.exit, 503)
            status = 401 if fault.code == "unauthorized" else status
            return status, {"code": fault.code, "detail": fault.message, "remedy": fault.remedy}
        return 200, {"decision": done.answer.decision.model_dump(mode="json"), "done": done.done}

    def now(self) -> int:
        """The engine's clock, in seconds since 1970 UTC."""
        return int(self._now().timestamp())


def _policy_record(
    outcome: Literal["started", "activated", "refused"],
    by: Context,
    reason: str | None,
    before: PolicyBundle | None,
    fresh: PolicyBundle | None,
    code: str | None,
) -> PolicyRecord:
    return PolicyRecord(
        time=timestamp(datetime.now(UTC)),
        outcome=outcome,
        principal=by.caller.principal,
        reason=reason,
        previous=None if before is None else before.revisions,
        revisions=None if fresh is None else fresh.revisions,
        code=code,
        release=None if fresh is None or fresh.release is None else RecordedRelease(**fresh.release),
        request_id=by.request_id,
        trace=by.trace,
    )


def _activator(row: ActivationRow) -> Context:
    return Context(caller=Caller(via=Via.PROCESS, principal=row.actor))


def _answers(generation: Generation[PolicyBundle]) -> None:
    """A new OPA must return a decision at every point, and refuse an input without facts."""
    for point in POINTS.values():
        verdict = read(point, generation.ask("decision", {"point": point.name}), generation.policy.catalogue)
        if verdict.limits is not None:
            raise EngineError(
                f"the new policy allows a request without facts at point `{point.name}`",
                remedy="correct the rules of this point; the previous policy stays active",
            )
