"""From a request to facts: the first verb. What is missing is left out of the facts, never guessed.

Each decision point gathers its own facts; see engine/points/. What the engine's state knows is added in
engine/flow.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from engine.documents.canonical import RawJson, canonical, digest
from engine.documents.validation import validate
from engine.drive import Call, Steps
from engine.errors import EngineError, GatherError
from engine.model import Caller, Pace, Via
from engine.points import STATE_FACTS, GatherContext, Gathered, Point

FROM_STATE: Final = ("approvals", "budgets", "flows", "quotas", "stops", *STATE_FACTS)
"""Lists of every input that the engine's state fills; a point without such facts has them empty."""

HEAVY_BYTES: Final = 64 << 10
"""Size of JSON text above which reading it would block an event loop too long: about two milliseconds."""

_VOLATILE = frozenset({"now", "elapsed_ms", "probes", *FROM_STATE})
"""Fields of the input that its digest does not cover: a retry, or one with an approval, is the same request."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a request is decided on, and its digest; what the state knows is not in the document yet."""

    gathered: Gathered
    document: dict[str, Any]
    input_digest: str


def gathering(point: Point, request: Any, caller: Caller, context: GatherContext) -> Steps[Facts]:
    """`gather`, in a thread where it reads files or the request is large. Raises GatherError."""
    text = as_json(request)
    heavy = len(text.data) > HEAVY_BYTES
    pace = point.pace or (Pace.HEAVY if heavy else None)
    if pace is None:
        return gather(point, text, caller, context)
    found: Facts = yield Call(lambda: gather(point, text, caller, context), pace)
    return found


def gather(point: Point, request: Any, caller: Caller, context: GatherContext) -> Facts:
    """Turn a request into the input of its point. Raises GatherError."""
    text = as_json(request).data
    try:
        parsed = validate(point.request, text, f"point `{point.name}`", _schema_of(point.name, caller), context.read)
    except (ValueError, RecursionError) as error:
        raise _not_json() from error
    now = context.clock()
    gathered = point.gather(parsed, context)
    try:
        document = point.document(gathered, now)
        document["caller"] = caller.model_dump(mode="json", exclude_none=True)
        covered = {key: value for key, value in document.items() if key not in _VOLATILE}
        document.update({name: [] for name in FROM_STATE})
        return Facts(gathered, document, digest(canonical(covered)))
    except BaseException:  # otherwise the receiver of the facts closes what was opened
        gathered.close()
        raise


def as_json(request: Any) -> RawJson:
    """A request as JSON text. Raises GatherError, or the error from reading it."""
    if isinstance(request, EngineError):
        raise request
    try:
        return request if isinstance(request, RawJson) else RawJson(canonical(request))
    except (ValueError, TypeError, RecursionError) as error:
        raise _not_json() from error


def _schema_of(point: str, caller: Caller) -> str:
    """How a caller gets the schema of the requests of a point."""
    if caller.via is Via.PROCESS:
        return f"`engine decide {point} --schema` prints the schema of its requests"
    return f"GET /v1/schemas/{point} has the schema of its requests"


def _not_json() -> GatherError:
    return GatherError(
        "the request is not plain JSON",
        remedy="send objects, lists, text without lone surrogates and finite numbers, and nothing else",
        code="engine.request_invalid",
    )
