"""The API as one object: accepts a request by its headers, has it answered, counts and logs it. Never raises."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from engine.administration.users import unauthorized
from engine.api.headers import check_media_type, read_headers, read_query, read_request_id, read_trace
from engine.api.load import Load, Shares, overloaded
from engine.api.messages import Access, Body, Exchange, Head, Operation, Peer, Response, Routes, methods_of
from engine.api.origin import Site, is_forwarded
from engine.api.problems import decided, problem
from engine.api.refusals import Refusals
from engine.api.uploads import ARCHIVES, Upload
from engine.drive import off_loop
from engine.errors import EngineError, fault_inside, stack_of
from engine.flow import Answer
from engine.model import Caller, Gate, Pace, Via
from engine.state.rows import StateLimits
from engine.steps import own_thread

if TYPE_CHECKING:
    from engine.api.identity import Identity
    from engine.api.limits import ApiLimits
    from engine.api.metrics import Metrics
    from engine.api.oplog import OperationalLog
    from engine.api.tracing import Tracing
    from engine.assembly import Status
    from engine.engine import AsyncEngine
    from engine.replay.shadow import Shadow

_DECIDE = "/v1/decide/"
_REFUSED_BYTES = 0
_STATUS_SECONDS = 0.5
_RECENT = int(StateLimits().recent_seconds * 1e9)
"""Nanoseconds after which a caller is identified again; a revocation is answered later than that."""
_WHO_SECONDS = 0.25
"""How long `/health` waits for identification; an identified caller gets a longer answer."""
_JSON = (b"application/json",)


@dataclass(slots=True)
class App:
    """What handlers use, and where connections pass their requests."""

    engine: AsyncEngine
    limits: ApiLimits
    identity: Identity
    metrics: Metrics
    log: OperationalLog
    gate: Gate
    site: Site
    routes: Routes
    uploads: Path
    tracing: Tracing | None = None
    shadow: Shadow | None = None
    load: Load = field(init=False)
    batches: Load = field(init=False)
    bodies: Shares = field(init=False)
    """Bytes of bodies in memory."""
    refusals: Refusals = field(init=False)
    connections: Shares = field(init=False)
    archives: Shares = field(init=False)
    """Archives being received."""
    programs: Shares = field(init=False)
    """Programs in sandboxes."""
    active: int = 0
    """Requests in progress, including those of disconnected clients."""
    stopping: bool = False
    _status: tuple[float, asyncio.Future[Status]] | None = None
    date: bytes = field(default_factory=lambda: formatdate(usegmt=True).encode("ascii"))

    def __post_init__(self) -> None:
        limits = self.limits
        self.load = Load(limits.running, limits.waiting)
        self.batches = Load(limits.batches, limits.waiting // 8)
        self.bodies = Shares(limits.all_bodies_bytes)
        self.refusals = Refusals(self.engine, limits.refusal_seconds, time.monotonic)
        self.connections = Shares(limits.connections)
        self.archives = Shares(limits.uploads)
        self.programs = Shares(self.engine.settings.code_runs)

    def open(self, head: Head, peer: Peer) -> Exchange:
        """Accept or refuse a request by its headers; a refused one keeps no body."""
        operation, error = self._operation(head)
        exchange = Exchange(
            head=head,
            peer=peer,
            operation=operation,
            request_id="",
            trace=read_trace(head),
            started=time.monotonic_ns(),
            limit=_REFUSED_BYTES,
            account=peer.account,
            own_files=self._own_files,
        )
        request_id = read_request_id(head)
        exchange.named = request_id is not None
        exchange.request_id = request_id or exchange.trace.trace_id[:16] + exchange.trace.span_id
        try:
            self.site.check(head, peer)
            if self._is_open(exchange):
                exchange.identified = True
            elif self.identity.waits(head, peer):
                exchange.identifying = asyncio.get_running_loop().create_task(self._identify(exchange))
            else:
                self._accept(exchange, self.identity.caller(head, peer))
            if error is not None:
                exchange.refuse(error)
            read_headers(exchange)
            if exchange.operation is not _NOTHING:
                read_query(exchange)
            self._take_body(exchange)
        except EngineError as refusal:
            self._refuse(exchange, refusal)
        except Exception as crash:  # noqa: BLE001  (a fault of ours refuses one request)
            exchange.refuse(self.crashed(exchange, crash))
        return exchange

    async def answer(self, exchange: Exchange) -> Response:
        """Answer a request whose body is complete, or that was refused."""
        self.active += 1
        try:
            if exchange.identifying is not None:
                await exchange.identifying
            await self._identify_again(exchange)
            response = await self._answer(exchange)
        except EngineError as error:
            response = problem(error, exchange)
        except Exception as crash:  # noqa: BLE001  (a fault of ours is an answer without details)
            response = problem(self.crashed(exchange, crash), exchange)
        finally:
            self.active -= 1
            if exchange.upload is not None:
                exchange.upload.close()
        nanoseconds = time.monotonic_ns() - exchange.started
        self.metrics.answered(exchange.operation.name, response.status, nanoseconds)
        if exchange.identified or exchange.refusal is None:  # the others share one line
            self.log.answered(exchange, response, nanoseconds)
        if self.tracing is not None:
            self.tracing.answered(exchange, response, nanoseconds)
        return response

    async def refuse(self, exchange: Exchange, point: str, error: EngineError) -> Answer:
        """The recorded deny of a request that cannot be decided on; one for all callers that are not identified."""
        if not exchange.identified:
            return await self.refusals.answer(point, error, exchange.context)
        return await self.engine.decide(point, error, context=exchange.context)

    async def status(self) -> Status:
        """The engine's status, looked at twice a second at most: it tries to write."""
        now = time.monotonic()
        if self._status is None or now - self._status[0] > _STATUS_SECONDS:
            self._status = now, asyncio.ensure_future(self.engine.status())
        return await asyncio.shield(self._status[1])

    def _own_files(self, text: str) -> str:
        with suppress(Exception):  # an answer about a fault is sent, whatever the engine is like
            if (policy := self.engine.policy) is not None:
                return policy.sources.with_own_files(text, opens=False)
        return text

    def broken(self, status: int) -> None:
        """Count a request that could not be parsed."""
        self.metrics.answered("none", status, 0)

    async def _answer(self, exchange: Exchange) -> Response:
        operation, refusal = exchange.operation, exchange.refusal
        if refusal is not None and (operation.point is None or not exchange.recorded):
            return problem(refusal, exchange, headers=_allow(operation, self.routes, exchange.head.path))
        if exchange.identified or operation.refuses:
            return await operation.handler(self, exchange)
        return decided(await self.refuse(exchange, operation.point or "", refusal or unauthorized()), exchange)

    def _operation(self, head: Head) -> tuple[Operation, EngineError | None]:
        methods = methods_of(self.routes, head.path)
        if methods is None:
            return _NOTHING, _not_found(head.path)
        method = "GET" if head.method == "HEAD" else head.method
        operation = methods.get(method)
        if operation is not None:
            return operation, None
        return _NOTHING, EngineError(
            f"this path accepts {', '.join(sorted(methods))}",
            remedy="use another method",
            code="engine.method_not_allowed",
        )

    def _is_open(self, exchange: Exchange) -> bool:
        """Whether every caller may ask this."""
        access = exchange.operation.access
        return access is Access.OPEN or (
            access is Access.LOCAL and self.site.loopback and not is_forwarded(exchange.head)
        )

    def _accept(self, exchange: Exchange, caller: Caller) -> None:
        exchange.caller = caller
        if exchange.operation.access is Access.CONTROL and not exchange.peer.control:
            raise EngineError(
                "only the control socket accepts this",
                remedy="use `engine policy activate` on the machine of the engine",
                code="engine.control_only",
            )
        exchange.identified = True
        if caller.principal is not None:
            exchange.account = f"{caller.via}:{caller.principal}"

    def _refuse(self, exchange: Exchange, refusal: EngineError) -> None:
        exchange.refuse(refusal, recorded=refusal.code != "engine.too_many_failures")
        if not exchange.identified:
            self.metrics.unidentified[refusal.code] += 1

    async def _identify(self, exchange: Exchange) -> None:
        """Ask the state in a thread. What has arrived of the body meanwhile is counted for the caller, or dropped."""
        account, held = exchange.account, 0
        try:
            caller = await off_loop(partial(self.identity.caller, exchange.head, exchange.peer), Pace.SHORT)
            held = len(exchange.stored)
            self._accept(exchange, caller)
        except EngineError as refusal:
            exchange.refusal = None  # who asks comes first
            self._refuse(exchange, refusal)
        except Exception as crash:  # noqa: BLE001  (a fault of ours refuses one request)
            exchange.refuse(self.crashed(exchange, crash))
        if not exchange.identified:
            exchange.release(self.bodies)
        elif held and account != exchange.account:
            self.bodies.give(account, held)
            if not self.bodies.take(exchange.account, held):
                exchange.stored = b""
                exchange.refuse(overloaded(), recorded=False)

    async def _identify_again(self, exchange: Exchange) -> None:
        """Refuse a request whose token ended, or that needs one by now, while its body or its turn was awaited."""
        waited = time.monotonic_ns() - exchange.started > _RECENT
        if not waited or exchange.refusal is not None or exchange.caller.via not in {Via.TOKEN, Via.LOOPBACK}:
            return
        identify = partial(self.identity.caller, exchange.head, exchange.peer, again=True)
        try:
            if self.identity.waits(exchange.head, exchange.peer):
                await off_loop(identify, Pace.SHORT)
            else:
                identify()
        except EngineError as refusal:
            exchange.identified = False
            self._refuse(exchange, refusal)

    def _take_body(self, exchange: Exchange) -> None:
        kind = exchange.operation.body
        if exchange.refusal is not None:
            return
        if kind is Body.NONE:
            exchange.limit = 64 << 10  # read and ignored
            return
        accepted = _JSON + ARCHIVES if kind is Body.SOURCE else _JSON
        media_type = check_media_type(exchange, accepted, exchange.operation.media_code)
        exchange.limit = self.limits.batch_bytes if kind is Body.BATCH else self.limits.body_bytes
        if media_type in ARCHIVES:
            exchange.limit = self.limits.upload_bytes
            exchange.upload = Upload.start(self.archives, self.uploads, media_type, exchange.account)

    def crashed(self, exchange: Exchange, crash: Exception) -> EngineError:
        """The refusal for a fault of ours; the stack goes to the operational log alone (D44)."""
        self.log.crash(request_id=exchange.request_id, stack=stack_of(crash))
        return fault_inside("request", "report the request id; the operational log shows where it failed (`crash`)")

    async def who(self, exchange: Exchange) -> Caller | None:
        """The caller of an open path; None if it is not identified, or not at once: probes do not wait for a state."""
        try:
            identified = own_thread(partial(self.identity.caller, exchange.head, exchange.peer))
            caller = await asyncio.wait_for(identified, _WHO_SECONDS)
        except (EngineError, TimeoutError):
            return None
        return None if caller.via is Via.LOOPBACK and not self.site.loopback else caller


def _not_found(path: str) -> EngineError:
    if path.startswith(_DECIDE) and path.count("/") <= _DECIDE.count("/") + 1:
        return EngineError(
            "there is no such decision point", remedy="GET /openapi.json lists them", code="engine.point_unknown"
        )
    return EngineError(
        "nothing is served at this path", remedy="GET /openapi.json lists paths", code="engine.not_found"
    )


async def _nothing(_app: App, exchange: Exchange) -> NoReturn:
    raise exchange.refusal or _not_found(exchange.head.path)


_NOTHING = Operation("none", _nothing, Access.OPEN)


def _allow(operation: Operation, routes: Routes, path: str) -> tuple[tuple[bytes, bytes], ...]:
    methods = methods_of(routes, path)
    if operation is not _NOTHING or methods is None:
        return ()
    names = set(methods) | ({"HEAD"} if "GET" in methods else set())
    return ((b"allow", ", ".join(sorted(names)).encode("ascii")),)
