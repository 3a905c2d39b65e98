"""The workbench as one object: accepts a request by its headers, has it answered, and never raises.

Whatever is not proven to come from a page of a logged-in browser of this machine gets no page: the host must be of
this machine, the cookie one that a login has set, and a form must come from the same origin and bring its key back.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import partial
from urllib.parse import parse_qsl, unquote

from engine.api.headers import HeaderError, check_media_type, read_request_id, read_trace
from engine.api.limits import ApiLimits
from engine.api.load import Shares
from engine.api.messages import Access as Openness
from engine.api.messages import Exchange, Head, Operation, Peer, Response, Routes, methods_of
from engine.api.origin import Site
from engine.api.problems import status_of
from engine.drive import off_loop
from engine.errors import EngineError, GatherError, PolicyError, fault_inside, stack_of
from engine.model import Pace
from engine.workbench import pages
from engine.workbench.access import Access, AccessError, Session
from engine.workbench.desk import Desk
from engine.workbench.visit import Visit

_LIMITS = ApiLimits(connections=64, body_bytes=8 << 20, all_bodies_bytes=32 << 20, stop_seconds=5.0)
"""For a few browsers: a file of values in a form has at most three times its size."""

_FORM = (b"application/x-www-form-urlencoded",)
_MOST_FIELDS = 64

Handler = Callable[[Visit], Response]


@dataclass(slots=True)
class Workbench:
    """What connections pass their requests to."""

    desk: Desk
    access: Access
    routes: Routes
    announce: Callable[[str], None]
    """Called with a new link, once the one before was used."""
    limits: ApiLimits = _LIMITS
    site: Site = field(default_factory=Site)
    connections: Shares = field(init=False)
    bodies: Shares = field(init=False)
    active: int = 0
    stopping: bool = False
    date: bytes = field(default_factory=lambda: formatdate(usegmt=True).encode("ascii"))

    def __post_init__(self) -> None:
        self.connections, self.bodies = Shares(self.limits.connections), Shares(self.limits.all_bodies_bytes)

    def open(self, head: Head, peer: Peer) -> Exchange:
        """Accept or refuse a request by its headers; a refused one keeps no body."""
        trace = read_trace(head)
        exchange = Exchange(
            head=head,
            peer=peer,
            operation=_NOWHERE,
            request_id=read_request_id(head) or trace.trace_id,
            trace=trace,
            started=time.monotonic_ns(),
            limit=0,
            account=peer.account,
        )
        try:
            self.site.check(head, peer)
            exchange.operation = self._operation(head)
            if head.method == "POST":
                _check_own(head)
                check_media_type(exchange, _FORM)
                exchange.limit = self.limits.body_bytes
        except EngineError as refusal:
            exchange.refuse(refusal)
        return exchange

    async def answer(self, exchange: Exchange) -> Response:
        """Answer a request whose body is complete, or that was refused."""
        self.active += 1
        try:
            if exchange.refusal is not None:
                return refused(exchange.refusal, self.access.session(exchange.head))
            return await exchange.operation.handler(self, exchange)
        except EngineError as error:
            return refused(error, self.access.session(exchange.head))
        except Exception as crash:  # noqa: BLE001  (a fault of ours is a page without details)
            sys.stderr.write(f"{stack_of(crash)}\n")
            fault = fault_inside("request", "report what the terminal of `engine workbench` shows")
            return refused(fault, self.access.session(exchange.head))
        finally:
            self.active -= 1

    def broken(self, status: int) -> None:
        """A request that could not be parsed needs nothing more."""

    def _operation(self, head: Head) -> Operation:
        methods = methods_of(self.routes, head.path)
        if methods is None:
            raise EngineError("there is no such page", remedy="follow a link of the menu", code="engine.not_found")
        found = methods.get("GET" if head.method == "HEAD" else head.method)
        if found is None:
            raise EngineError(
                "this page does not accept this request",
                remedy="open it from the menu",
                code="engine.method_not_allowed",
            )
        return found


def refused(error: EngineError, session: Session | None) -> Response:
    """The page of an error: what, where, and what to do."""
    status = error.status if isinstance(error, pages.PageError) else status_of(error)[0]
    problems = error.problems if isinstance(error, PolicyError) else ()
    return pages.page("error.html", status, session=session, here="", error=error, problems=problems)


def operation(name: str, handler: Handler) -> Operation:
    """A page for browsers that are logged in, or what becomes of a form of one."""

    async def handle(workbench: Workbench, exchange: Exchange) -> Response:
        session, form = _logged_in(workbench, exchange)
        visit = Visit(workbench.desk, session, _name_in(exchange.head.path), _fields(exchange.head.query), form)
        return await off_loop(partial(handler, visit), Pace.SLOW)

    return Operation(name, handle, Openness.OPEN)


def _logged_in(workbench: Workbench, exchange: Exchange) -> tuple[Session, dict[str, str]]:
    """The session of a request, and its form, which a page of this session has sent. Raises AccessError."""
    session = workbench.access.session(exchange.head)
    if session is None:
        raise AccessError(
            "this browser is not logged in", remedy="open the newest link in the terminal of `engine workbench`"
        )
    form = _form(exchange)
    if exchange.head.method == "POST":
        session.check(form.get("form_key", ""))
    return session, form


async def show_login(_: Workbench, exchange: Exchange) -> Response:
    """The page that a link leads to. Its form spends the link: a program that follows links does not."""
    return pages.page("login.html", session=None, here="", token=_fields(exchange.head.query).get("token", ""))


async def log_in(workbench: Workbench, exchange: Exchange) -> Response:
    """Spend a link."""
    cookie = workbench.access.log_in(_form(exchange).get("token", ""))
    workbench.announce(workbench.access.link)
    return pages.moved("/decisions", cookie)


async def log_out(workbench: Workbench, exchange: Exchange) -> Response:
    """End a session."""
    session, _ = _logged_in(workbench, exchange)
    return pages.moved("/login", workbench.access.log_out(session))


async def asset(_: Workbench, exchange: Exchange) -> Response:
    """A file that pages load; it says nothing of this machine."""
    return pages.asset(exchange.head.path.rpartition("/")[2])


def _check_own(head: Head) -> None:
    """Refuse a form that does not state the origin that it comes from; `Site` has compared it. Raises HeaderError."""
    if b"origin" not in head.headers:
        raise HeaderError(
            "origin", "is missing", remedy="send the form from a page of the workbench", code="engine.origin_foreign"
        )


def _form(exchange: Exchange) -> dict[str, str]:
    try:
        return _fields(exchange.body.decode("ascii"))
    except UnicodeDecodeError as error:
        raise _unreadable() from error


def _fields(text: str) -> dict[str, str]:
    """The fields of a form or query. Raises GatherError for one that is repeated or no text."""
    try:
        found = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict", separator="&")
    except ValueError as error:
        raise _unreadable() from error
    if len(found) > len(dict(found)):
        raise _unreadable()
    return dict(found)


def _unreadable() -> GatherError:
    return GatherError("the form cannot be read", remedy="send it from a page of the workbench")


def _name_in(path: str) -> str:
    """The part of a path that a route leaves open: `/decisions/{id}/…`."""
    parts = path.split("/")
    return unquote(parts[2]) if len(parts) > 2 else ""  # noqa: PLR2004


async def _nowhere(_: Workbench, exchange: Exchange) -> Response:
    raise exchange.refusal or _unreadable()


_NOWHERE = Operation("none", _nowhere, Openness.OPEN)
