"""`POST /v1/fetch` and `/v1/build`: material over HTTPS into a new source bundle, and environments of source bundles.

Only below the folder that the operator configured (`--fetch-root`, `--build-root`), there in a folder of the caller's
own. Each step is decided and recorded. A refused request returns 200 with its decisions; an invalid one or an engine
fault returns a problem.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from engine.api.answers import BuildAnswer, FetchAnswer
from engine.api.bodies import Build, Fetch
from engine.api.decide import request_of
from engine.api.load import Load
from engine.api.messages import Exchange, Response
from engine.api.problems import decided, problem
from engine.documents.validation import validate
from engine.errors import EngineError
from engine.fetching import FetchOrder
from engine.model import Caller, Model

if TYPE_CHECKING:
    from engine.api.app import App

MOST_FETCHES, MOST_BUILDS = 8, 4
"""Those in progress; each occupies a thread and the memory of its material. More are refused with 503."""

BodyT = TypeVar("BodyT", bound=Model)

_UNNAMED = "+unnamed"
"""The folder of callers without a name; no quoted name has a `+`."""


class Making:
    """Answers requests that make a folder. For one event loop."""

    def __init__(self, make: Callable[[App, Exchange], Awaitable[Response]], most: int) -> None:
        """At most `most` at a time. `make` raises EngineError before anything was decided."""
        self._make, self._turns = make, Load(most, 0)

    async def make(self, api: App, exchange: Exchange) -> Response:
        """One request, to its end; a client that hangs up does not end it."""
        point = exchange.operation.point or ""
        async with self._turns.turn(exchange.account):
            try:
                return await self._make(api, exchange)
            except EngineError as error:
                return decided(await api.engine.decide(point, error, context=exchange.context), exchange)


async def fetch(api: App, exchange: Exchange) -> Response:
    """`POST /v1/fetch`. Raises EngineError."""
    if (root := api.engine.settings.fetch_root) is None:
        raise EngineError(
            "this server has no folder for what is fetched",
            remedy="start it with `engine serve --fetch-root DIR`, or use `engine fetch`",
            code="engine.fetch_disabled",
        )
    body = await body_of(api, exchange, Fetch, "the fetch")
    order = FetchOrder(**dict(body) | {"into": own_folder(root, exchange.caller) / body.into})
    done = await api.engine.fetch(order, exchange.context)
    last = done.answers[-1].decision
    if done.fault is not None:
        return problem(done.fault, exchange, last)
    folder = None if done.folder is None else str(done.folder.relative_to(root))
    answer = FetchAnswer(folder=folder, decisions=tuple(one.decision for one in done.answers))
    return Response.of(answer, decision=last, headers=((b"idempotent-replayed", b"true"),) if done.replayed else ())


async def build(api: App, exchange: Exchange) -> Response:
    """One build. Raises EngineError before anything was decided."""
    if (root := api.engine.settings.build_root) is None:
        raise EngineError(
            "this server has no folder for what is built",
            remedy="start it with `engine serve --build-root DIR`, or use `engine build`",
            code="engine.build_disabled",
        )
    body = await body_of(api, exchange, Build, "the build")
    into = own_folder(root, exchange.caller) / body.into
    answer = await api.engine.build(Path(body.path), into, body.digest, exchange.context)
    decision = answer.decision
    if answer.fault is not None:
        return problem(answer.fault, exchange, decision)
    built = None if answer.result is None else answer.result.facts
    made = BuildAnswer(
        folder=None if built is None else str((into / built["environment"]).relative_to(root)),
        environment=built,
        decision=decision,
    )
    headers = ((b"idempotent-replayed", b"true"),) if answer.gathered is None else ()
    return Response.of(made, decision=decision, headers=headers)


async def body_of(api: App, exchange: Exchange, model: type[BodyT], what: str) -> BodyT:
    """The body as its model. Raises EngineError."""
    body = await request_of(api, exchange)
    if isinstance(body, EngineError):
        raise body
    read = api.engine.settings.read
    return validate(model, body.data, what, "GET /openapi.json has the schema of the body", read)


def own_folder(root: Path, caller: Caller) -> Path:
    """The folder of a caller: no other caller learns what is in it, or can take a name there."""
    return root / (_UNNAMED if caller.principal is None else quote(caller.principal, safe="").replace(".", "%2E"))
