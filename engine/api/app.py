"""The API put together: takes a request by its headers, has it answered, counts and logs it. Never raises."""

from __future__ import annotations

import asyncio
import time
import traceback
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import parse_qsl

from engine.api.decide import context_of
from engine.api.headers import check_media_type, read_headers, read_request_id, read_trace
from engine.api.load import Shares
from engine.api.messages import Exchange, Head, Peer, Response
from engine.api.origin import Site, is_forwarded
from engine.api.problems import problem
from engine.api.refusals import Refusals
from engine.api.routes import Access, Body, Operation, Routes, methods_of
from engine.api.uploads import ARCHIVES, Upload
from engine.errors import EngineError, GatherError
from engine.model import Caller, Gate, Via

if TYPE_CHECKING:
    from engine.api.connection import Connection
    from engine.api.identity import Identity
    from engine.api.limits import ApiLimits
    from engine.api.load import Load
    from engine.api.metrics import Metrics
    from engine.api.oplog import OperationalLog
    from engine.api.tracing import Tracing
    from engine.engine import AsyncEngine, Status
    from engine.flow import Answer

_DECIDE = "/v1/decide/"
_REFUSED_BYTES = 0
_STATUS_SECONDS = 0.5
_JSON = (b"application/json",)


@dataclass(slots=True)
class Api:
    """What handlers stand on; also what connections hand their requests to."""

    engine: AsyncEngine
    limits: ApiLimits
    load: Load
    batches: Load
    identity: Identity
    metrics: Metrics
    log: OperationalLog
    gate: Gate
    site: Site
    routes: Routes
    uploads: Path
    tracing: Tracing | None = None
    refusals: Refusals = field(init=False)
    places: Shares = field(init=False)
    """Connections by whom they come from."""
    archives: Shares = field(init=False)
    """Archives being received."""
    programs: Shares = field(init=False)
    """Programs in sandboxes."""
    connections: set[Connection] = field(default_factory=set)
    active: int = 0
    """Calls being answered, also of clients that are gone."""
    stopping: bool = False
    _status: tuple[float, asyncio.Future[Status]] | None = None
    date: bytes = field(default_factory=lambda: formatdate(usegmt=True).encode("ascii"))

    def __post_init__(self) -> None:
        self.refusals = Refusals(self.engine, self.limits.refusal_seconds, time.monotonic)
        self.places = Shares(self.limits.connections)
        self.archives = Shares(self.limits.uploads)
        self.programs = Shares(self.engine.settings.code_runs)

    def open(self, head: Head, peer: Peer) -> Exchange:
        """Take or refuse a request by its headers; what is refused keeps no body."""
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
        )
        given = read_request_id(head)
        exchange.named = given is not None
        exchange.request_id = given or exchange.trace.trace_id[:16] + exchange.trace.span_id
        try:
            self.site.check(head, peer)
            self._identify(exchange)
            exchange.identified = True
            if exchange.caller.principal is not None:
                exchange.account = f"{exchange.caller.via}:{exchange.caller.principal}"
            if error is not None:
                exchange.refuse(error)
            read_headers(exchange)
            _check_query(exchange)
            self._take_body(exchange)
        except EngineError as refusal:
            exchange.refuse(refusal, recorded=refusal.code != "engine.too_many_failures")
            if not exchange.identified:
                self.metrics.unidentified[refusal.code] += 1
        except Exception as crash:  # noqa: BLE001  (a fault of ours refuses one request)
            exchange.refuse(self._crashed(exchange, crash))
        return exchange

    async def answer(self, exchange: Exchange) -> Response:
        """Answer a request whose body is there, or that was refused."""
        self.active += 1
        try:
            response = await self._answer(exchange)
        except EngineError as error:
            response = problem(error, exchange)
        except Exception as crash:  # noqa: BLE001  (a fault of ours is an answer without details)
            response = problem(self._crashed(exchange, crash), exchange)
        finally:
            self.active -= 1
            if exchange.upload is not None:
                exchange.upload.close()
        nanoseconds = time.monotonic_ns() - exchange.started
        self.metrics.answered(exchange.operation.name, response.status, nanoseconds)
        if exchange.identified or exchange.refusal is None:  # the others are told together
            self.log.answered(exchange, response, nanoseconds)
        if self.tracing is not None:
            self.tracing.answered(exchange, response, nanoseconds)
        return response

    @property
    def loopback(self) -> bool:
        """Whether only this machine reaches the listener."""
        return self.site.loopback

    async def refuse(self, exchange: Exchange, point: str, error: EngineError) -> Answer:
        """The recorded deny of a request that cannot be decided on; one for all callers that are not identified."""
        context = context_of(exchange)
        if not exchange.identified:
            return await self.refusals.answer(point, error, context)
        return await self.engine.decide(point, error, context=context)

    @property
    def refused(self) -> int:
        """Requests turned away because too much was under way."""
        return self.load.refused + self.batches.refused

    async def status(self) -> Status:
        """The engine's status, looked at twice a second at most: it tries to write."""
        now = time.monotonic()
        if self._status is None or now - self._status[0] > _STATUS_SECONDS:
            self._status = now, asyncio.ensure_future(self.engine.status())
        return await asyncio.shield(self._status[1])

    def broken(self, status: int) -> None:
        """Count what never became a request."""
        self.metrics.answered("none", status, 0)

    async def _answer(self, exchange: Exchange) -> Response:
        operation, refusal = exchange.operation, exchange.refusal
        if refusal is not None and (operation.point is None or not exchange.recorded):
            return problem(refusal, exchange, headers=_allow(operation, self.routes, exchange.head.path))
        return await operation.handler(self, exchange)

    def _operation(self, head: Head) -> tuple[Operation, EngineError | None]:
        methods = methods_of(self.routes, head.path)
        if methods is None:
            return _NOTHING, _not_found(head.path)
        method = "GET" if head.method == "HEAD" else head.method
        operation = methods.get(method)
        if operation is not None:
            return operation, None
        return _NOTHING, EngineError(
            f"this path takes {', '.join(sorted(methods))}",
            remedy="use another method",
            code="engine.method_not_allowed",
        )

    def _identify(self, exchange: Exchange) -> None:
        access, head, peer = exchange.operation.access, exchange.head, exchange.peer
        if access is Access.OPEN or (access is Access.LOCAL and self.loopback and not is_forwarded(head)):
            return
        exchange.caller = self.identity.caller(head, peer)
        if access is Access.CONTROL and not peer.control:
            raise EngineError(
                "only the control socket takes this",
                remedy="use `engine policy activate` on the machine of the engine",
                code="engine.control_only",
            )

    def _take_body(self, exchange: Exchange) -> None:
        kind = exchange.operation.body
        if exchange.refusal is not None:
            return
        if kind is Body.NONE:
            exchange.limit = 64 << 10  # read and ignored
            return
        accepted = _JSON + ARCHIVES if kind is Body.SOURCE else _JSON
        media_type = check_media_type(exchange, accepted)
        exchange.limit = self.limits.batch_bytes if kind is Body.BATCH else self.limits.body_bytes
        if media_type in ARCHIVES:
            exchange.limit = self.limits.upload_bytes
            exchange.upload = Upload.start(self, media_type, exchange.account)

    def _crashed(self, exchange: Exchange, crash: Exception) -> EngineError:
        """What a caller is told of a fault of ours; the stack goes to the operational log alone (D44)."""
        self.log.crash(exchange.request_id, "".join(traceback.format_exception(crash)))
        return EngineError(
            f"an unexpected {type(crash).__name__} stopped the request",
            remedy="this is a fault of the engine: report it with the request id",
        )

    def who(self, exchange: Exchange) -> Caller | None:
        """Who asks at an open path, where that can be told; None for anybody else."""
        try:
            caller = self.identity.caller(exchange.head, exchange.peer)
        except EngineError:
            return None
        return None if caller.via is Via.LOOPBACK and not self.loopback else caller


def _not_found(path: str) -> EngineError:
    if path.startswith(_DECIDE) and path.count("/") <= _DECIDE.count("/") + 1:
        return EngineError(
            "there is no such decision point", remedy="GET /openapi.json lists them", code="engine.point_unknown"
        )
    return EngineError("there is nothing at this path", remedy="GET /openapi.json lists paths", code="engine.not_found")


async def _nothing(_api: Api, exchange: Exchange) -> NoReturn:
    raise exchange.refusal or _not_found(exchange.head.path)


_NOTHING = Operation("none", _nothing, Access.OPEN)


def _allow(operation: Operation, routes: Routes, path: str) -> tuple[tuple[bytes, bytes], ...]:
    methods = methods_of(routes, path)
    if operation is not _NOTHING or methods is None:
        return ()
    names = set(methods) | ({"HEAD"} if "GET" in methods else set())
    return ((b"allow", ", ".join(sorted(names)).encode("ascii")),)


class QueryError(GatherError):
    """A query that cannot be taken; `fields` names the parameter, never its value."""

    code = "engine.query_invalid"

    def __init__(self, name: str, problem_: str) -> None:
        super().__init__(
            f"the query parameter `{name}` {problem_}",
            remedy="the only parameter is `mode=check` or `mode=enforce`; credentials go into headers",
        )
        self.fields = ((name, problem_),)


def _check_query(exchange: Exchange) -> None:
    query = exchange.head.query
    if not query or exchange.operation is _NOTHING:
        return
    seen = set()
    try:
        fields = parse_qsl(query, keep_blank_values=True, max_num_fields=16, separator="&")
    except ValueError:
        exchange.refuse(QueryError("&", "has more fields than anybody reads"))
        return
    for name, _ in fields:
        if name not in exchange.operation.query:
            exchange.refuse(
                QueryError("".join(c if c.isalnum() or c in "_-" else "?" for c in name[:32]), "is unknown")
            )
            return
        if name in seen:
            exchange.refuse(QueryError(name, "is there twice"))
        seen.add(name)
