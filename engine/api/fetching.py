"""`POST /v1/fetch`: material over HTTPS into a new source bundle, each step decided and recorded.

Only below the folder that the operator configured (`--fetch-root`), there in a folder of the caller's own. A refused
fetch returns 200 with its decisions; an invalid request or an engine fault returns a problem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from engine.api.answers import FetchAnswer
from engine.api.bodies import Fetch
from engine.api.decide import asked_of, respond
from engine.api.load import Load
from engine.api.messages import Response
from engine.api.problems import problem
from engine.documents.validation import validate
from engine.errors import EngineError
from engine.fetching import FetchOrder

if TYPE_CHECKING:
    from pathlib import Path

    from engine.api.app import App
    from engine.api.messages import Exchange
    from engine.fetching import Fetched
    from engine.model import Caller

MOST_FETCHES = 8
"""Fetches in progress; each occupies a thread and the memory of its body. More are refused with 503."""

_UNNAMED = "+unnamed"
"""The folder of callers without a name; no quoted name has a `+`."""


class Fetches:
    """Answers `/v1/fetch`. For one event loop."""

    def __init__(self) -> None:
        self._turns = Load(MOST_FETCHES, 0)

    async def fetch(self, api: App, exchange: Exchange) -> Response:
        """One fetch, to its end; a client that hangs up does not end it."""
        refusal, point = exchange.refusal, exchange.operation.point or ""
        if refusal is not None and not exchange.identified:
            return respond(await api.refuse(exchange, point, refusal), exchange)
        async with self._turns.turn(exchange.account):
            try:
                root = _root(api)
                order = await _order(api, exchange, root)
                done = await api.engine.fetch(order, exchange.context)
            except EngineError as error:  # before anything was decided
                return respond(await api.engine.decide(point, error, context=exchange.context), exchange)
        return _respond(done, root, exchange)


def _root(api: App) -> Path:
    if (root := api.engine.settings.fetch_root) is not None:
        return root
    raise EngineError(
        "this server has no folder for what is fetched",
        remedy="start it with `engine serve --fetch-root DIR`, or use `engine fetch`",
        code="engine.fetch_disabled",
    )


async def _order(api: App, exchange: Exchange, root: Path) -> FetchOrder:
    """The order in the body. Raises EngineError."""
    asked = await asked_of(api, exchange)
    if isinstance(asked, EngineError):
        raise asked
    read = api.engine.settings.read
    body = validate(Fetch, asked.data, "the fetch", "GET /openapi.json has the schema of the body", read)
    return FetchOrder(
        urls=tuple(body.urls),
        into=root / _folder(exchange.caller) / body.into,
        license=body.license,
        hosts=tuple(body.hosts),
        alias=body.alias,
        max_requests=body.max_requests,
    )


def _folder(caller: Caller) -> str:
    """The folder of a caller: no other caller learns what is in it, or can take a name there."""
    return _UNNAMED if caller.principal is None else quote(caller.principal, safe="").replace(".", "%2E")


def _respond(done: Fetched, root: Path, exchange: Exchange) -> Response:
    last = done.answers[-1].decision
    if done.fault is not None:
        return problem(done.fault, exchange, last)
    folder = None if done.folder is None else str(done.folder.relative_to(root))
    answer = FetchAnswer(folder=folder, decisions=tuple(one.decision for one in done.answers))
    return Response.of(answer, decision=last, headers=((b"idempotent-replayed", b"true"),) if done.replayed else ())
