"""A serving engine: sockets, signals, and a stop that finishes every accepted request."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import socket
import ssl
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from admission_adapters.runner.access import RunnerAccess
from admission_adapters.runner.run import ForwardLimits
from engine.administration.unix_socket import bind_unix
from engine.administration.users import user_of
from engine.api.app import App
from engine.api.connection import Connection, sweep
from engine.api.control import log_lowered, reload
from engine.api.identity import Failures, Identity, shared_token
from engine.api.limits import ApiLimits
from engine.api.listeners import bind, serve, tls
from engine.api.metrics import Metrics
from engine.api.oplog import Level, OperationalLog
from engine.api.origin import Site
from engine.api.peers import PeerOf, control_peer, network_peer
from engine.api.routes import routes, runner_routes
from engine.api.uploads import remove_left_over
from engine.errors import EngineError, Exit, stack_of
from engine.flow import Context
from engine.model import Caller, Gate, Limits, Via
from engine.points.runner_bind import BindLimits
from engine.runner.run import RunnerSettings
from engine.settings import Settings
from engine.state import open_state

if TYPE_CHECKING:
    from engine.engine import AsyncEngine
    from engine.policy_bundle.sources import PolicySources

_WARNINGS = frozenset(
    {
        *("record_failed", "record_recovered", "retention_failed"),
        *("opa_exited", "opa_hung", "opa_restart_failed", "opa_restarted"),
        *("activation_refused", "release_refused", "shadow_refused"),
    }
)
"""Events of the engine that are faults or refusals, and the ends of faults."""

_SWITCH_SECONDS = 0.0005
"""The longest that the thread which syncs the record waits for the interpreter; by default 5 ms, many answers."""

_YOUNG_OBJECTS = 5_000
"""New objects after which garbage is looked for. All requests wait meanwhile: 250 ms for the 200,000 of commands, which
read many documents."""

_OWN_FILES = 256
"""Open files besides connections: record, state, OPA, source bundles being read, pipes of sandboxes."""

_AGAIN_SECONDS = 1.0
"""Before work beside the requests goes on after a fault of ours."""

_TALLY_SECONDS = 0.25
"""How often requests of callers that are not identified are looked at."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen and how. `names` are host names of this engine besides those of this machine.

    `audience` is the name of this server in scoped tokens that are for one server; None accepts no such token.
    `payload_days` is the retention of a log with payloads; None for a log without. `forward` has the limits of a
    runner, None for the defaults; `access` is what a runner is shown. `otlp` is the address of the collector that
    gets a span of every request; None for none. With `runner`, the API of a runner is served in place of the
    decision API. `shadow` is a candidate policy that decides live requests too; it changes no answer.
    """

    host: str = "127.0.0.1"
    port: int = 8642
    certificate: Path | None = None
    key: Path | None = None
    client_authority: Path | None = None
    log_level: Level = Level.INFO
    payload_days: int | None = None
    watch: bool = False
    names: tuple[str, ...] = ()
    audience: str | None = None
    limits: ApiLimits = field(default_factory=ApiLimits)
    forward: ForwardLimits | None = None
    access: RunnerAccess | None = None
    otlp: str | None = None
    runner: RunnerSettings | None = None
    shadow: PolicySources | None = None


class RefusedError(EngineError):
    """The policy refuses this listener; `findings` are the reasons."""

    code = "engine.start_refused"
    exit = Exit.DENY


def run(settings: Settings, listen: Listen, report: Callable[[str], None]) -> Exit:
    """Serve until a signal ends it. Raises EngineError when it cannot start."""
    import uvloop

    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(_YOUNG_OBJECTS, 10, 10)
    listen = replace(listen, limits=within_descriptors(listen.limits))
    return uvloop.run(_run(settings, listen, report))


async def _run(settings: Settings, listen: Listen, report: Callable[[str], None]) -> Exit:
    from engine.engine import AsyncEngine

    again = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, again.set)  # it would end a process that starts
    context = None
    if listen.certificate is not None and listen.key is not None:
        context = tls(listen.certificate, listen.key, listen.client_authority)
    if listen.access is not None:
        listen.access.credentials_of_run()  # files that cannot be read are reported at the start
    metrics = Metrics()
    log = OperationalLog(listen.log_level, payload=listen.payload_days is not None)
    shared = shared_token()
    gate = _gate(settings, shared, context, listen)

    def log_event(event: str, fields: Mapping[str, Any]) -> None:
        if event == "crash":
            log.crash(**fields)
        else:
            log.event(event, Level.WARNING if event in _WARNINGS else Level.INFO, **fields)
        if event == "policy_activated":  # for all engines of the state
            log_lowered(log, engine)

    before = ""
    if listen.watch:
        from engine.api.watch import content_digest, policy_folders

        with suppress(OSError):  # a file that is just being replaced: the watcher then sees a change
            before = content_digest(policy_folders(settings))
    shadow = None
    if listen.shadow is not None:
        from engine.replay.shadow import Shadow

        shadow = Shadow(listen.shadow, settings, log_event)
    engine = AsyncEngine(
        settings,
        gate=gate,
        on_event=log_event,
        observe=metrics.decided,
        recorded=(lambda *_: None) if shadow is None else shadow.offer,
        control=False,
        own_files=True,
    )
    async with AsyncExitStack() as stack:
        stack.callback(log.close)
        tracing = None
        if listen.otlp is not None:
            from engine.api.tracing import Tracing

            tracing = Tracing(listen.otlp, log)
            stack.callback(tracing.close)
        await stack.enter_async_context(engine)
        if shadow is not None:
            shadow.start(engine.opened.log)
            stack.callback(shadow.close)
        leave = await _ask_leave(engine, listen)
        limits = listen.limits
        api = App(
            engine=engine,
            limits=limits,
            identity=Identity(
                shared,
                engine.store,
                Failures(limits, time.monotonic),
                always=leave.authentication == "required",
                audience=listen.audience,
            ),
            metrics=metrics,
            log=log,
            gate=gate,
            site=Site(leave.host, leave.loopback, frozenset(listen.names)),
            routes=runner_routes(listen.runner) if listen.runner else routes(listen.forward, listen.access),
            uploads=settings.state / "uploads",
            tracing=tracing,
            shadow=shadow,
        )
        remove_left_over(api.uploads)
        log_lowered(log, engine)
        listen = replace(listen, host=leave.host, port=leave.port)
        gc.collect()
        gc.freeze()  # the code and the policy stay; no collection looks at them again
        return await Server(api, listen, context, settings, report, again, before).serve()


def within_descriptors(limits: ApiLimits) -> ApiLimits:
    """Raise the limit of open files as connections need; if that fails, lower the limit of connections.

    Otherwise connections alone could keep the record and the state from opening their files.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = limits.connections + _OWN_FILES
    if soft == resource.RLIM_INFINITY:
        return limits
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return replace(limits, connections=min(limits.connections, max(soft - _OWN_FILES, soft // 2)))


@dataclass(slots=True)
class Server:
    """Listens, and stops on a signal: no new connections, what was accepted is finished, then the end."""

    _api: App
    _listen: Listen
    _context: ssl.SSLContext | None
    _settings: Settings
    _report: Callable[[str], None]
    _again: asyncio.Event = field(default_factory=asyncio.Event)
    _before: str = ""
    """The digest of the policy's folders before the policy was read; for `--watch`."""
    _connections: set[Connection] = field(default_factory=set)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _forced: bool = False
    _background: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self) -> Exit:
        """Serve until stopped; ALLOW when all was finished, FAILED_CLOSED when it was cut short."""
        loop = asyncio.get_running_loop()
        control_path = self._api.engine.control_path
        bound = bind(self._listen.host, self._listen.port)
        try:
            control = bind_unix(control_path)
        except BaseException:
            bound.close()
            raise
        try:
            with suppress(EngineError):  # then nothing can be allowed, and the status says so
                self._api.engine.record_start(Context(caller=Caller(via=Via.PROCESS, principal=user_of(os.getuid()))))
            for name in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(name, self._signalled)
            servers = [
                await serve(self._factory(network_peer), bound, self._context),
                await serve(self._factory(control_peer), control, None),
            ]
            self._begin(lambda: sweep(self._api, self._connections))
            self._begin(self._tally)
            self._begin(self._reload)
            if self._listen.watch:
                from engine.api.watch import watch

                self._begin(lambda: watch(self._api, self._settings, self._before))
            self._announce(bound)
            await self._stop.wait()
            return await self._end(servers)
        finally:
            for task in self._background:
                task.cancel()
            control.close()
            control_path.unlink(missing_ok=True)  # ours: no other engine has this chain
            bound.close()

    def _factory(self, peer: PeerOf) -> Callable[[], Connection]:
        loop = asyncio.get_running_loop()
        return lambda: Connection(self._api, loop, peer, self._connections)

    def _begin(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do this beside the requests until the end; after a fault of ours, again."""

        async def kept() -> None:
            while True:
                try:
                    await work()
                except Exception as crash:  # noqa: BLE001
                    self._api.log.crash(stack=stack_of(crash))
                    await asyncio.sleep(_AGAIN_SECONDS)

        self._background.add(asyncio.get_running_loop().create_task(kept()))

    async def _reload(self) -> None:
        """Take a changed certificate and policy on each SIGHUP, also on one that came before this server was ready."""
        while await self._again.wait():
            self._again.clear()
            self._renew_certificate()
            await reload(self._api, "SIGHUP")

    def _renew_certificate(self) -> None:
        """Show new connections the certificate that is in the files now, if they can be used."""
        certificate, key = self._listen.certificate, self._listen.key
        if self._context is None or certificate is None or key is None:
            return
        try:
            tls(certificate, key, None)  # tried on another context: a failure could leave one without a key
            self._context.load_cert_chain(certificate, key)
        except (EngineError, OSError) as error:
            self._api.log.event("certificate_refused", Level.WARNING, detail=str(error))
        else:
            self._api.log.event("certificate_renewed")

    def _signalled(self) -> None:
        self._forced = self._stop.is_set()
        self._stop.set()

    async def _end(self, servers: list[asyncio.Server]) -> Exit:
        self._api.stopping = True
        self._api.engine.executors.stop_waiting()
        for server in servers:
            server.close()
        self._api.log.event("stopping", connections=len(self._connections))
        for connection in tuple(self._connections):
            connection.stop()
        loop = asyncio.get_running_loop()
        end = loop.time() + self._listen.limits.stop_seconds
        while not self._idle() and not self._forced and loop.time() < end:  # noqa: ASYNC110  (once, at the end)
            await asyncio.sleep(0.01)
        finished = self._idle()
        for connection in tuple(self._connections):
            connection.cut()
        await self._api.refusals.sweep(end=True)
        self._api.log.event("stopped", finished=finished)
        return Exit.ALLOW if finished else Exit.FAILED_CLOSED

    def _idle(self) -> bool:
        return not (self._connections or self._api.active)

    async def _tally(self) -> None:
        """Record and log the requests of callers that are not identified, once a window."""
        api, loop, logged, last = self._api, asyncio.get_running_loop(), Counter[str](), -inf
        while True:
            await asyncio.sleep(_TALLY_SECONDS)
            await api.refusals.sweep()
            fresh = api.metrics.unidentified - logged
            if fresh and loop.time() - last > api.limits.refusal_seconds:
                api.log.event("unidentified", Level.WARNING, **fresh)
                logged, last = logged + fresh, loop.time()

    def _announce(self, bound: socket.socket) -> None:
        host, port = bound.getsockname()[:2]
        scheme = "http" if self._context is None else "https"
        name = f"[{host}]" if ":" in host else host
        self._api.log.event("listening", host=host, port=port, scheme=scheme)
        self._report(f"{scheme}://{name}:{port}")


def _gate(settings: Settings, shared: str | None, context: ssl.SSLContext | None, listen: Listen) -> Gate:
    """What guards the listener, as facts for the policy."""
    try:
        with closing(open_state(settings)) as store:
            scoped = store.any_issued()
    except EngineError:
        scoped = False  # then nothing that needs the state is allowed anyway
    return Gate(
        shared_token=shared is not None,
        tokens=scoped,
        tls=context is not None,
        mutual_tls=context is not None and listen.client_authority is not None,
    )


async def _ask_leave(engine: AsyncEngine, listen: Listen) -> BindLimits:
    """Whether the policy lets this engine listen there, and log in that detail. Raises RefusedError."""
    if listen.payload_days is not None:
        await _demand(engine, "record", {"detail": "payload", "retention_days": listen.payload_days})
    limits = await _demand(engine, "runner_bind", {"host": listen.host, "port": listen.port, "published": False})
    if not isinstance(limits, BindLimits):
        raise RefusedError("the policy states no limits for this listener", remedy="report it to the policy owner")
    return limits


async def _demand(engine: AsyncEngine, point: str, request: dict[str, Any]) -> Limits | None:
    answer = await engine.decide(point, request)
    if answer.exit is Exit.ALLOW:
        return answer.decision.limits
    if answer.fault is not None:
        raise answer.fault
    found = answer.decision.findings
    message = "; ".join(f"{one.code}: required: {one.requirement}" for one in found)
    raise RefusedError(message, remedy="; ".join(dict.fromkeys(one.remedy for one in found)))
