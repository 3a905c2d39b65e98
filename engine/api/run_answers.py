"""What `POST /run` answers besides the runner's own JSON: always `ok` and `error`, never a stack, path or secret.

The stack of what went wrong here goes to standard error and nowhere else (D44).
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adapters.runner_errors import UnsupportedBoundaryError, raise_unsupported
from engine.api.messages import Response
from engine.api.problems import problem, status_of
from engine.errors import EngineError
from engine.model import Decision
from engine.record.redaction import redact_text

if TYPE_CHECKING:
    from engine.api.messages import Exchange

_BAD_GATEWAY, _GATEWAY_TIMEOUT, _OUR_FAULT = 502, 504, 500
_STATUSES = {
    "engine.runner_unreachable": _BAD_GATEWAY,
    "engine.runner_answer": _BAD_GATEWAY,
    "engine.runner_late": _GATEWAY_TIMEOUT,
}
_NO_FAULT = frozenset({"engine.overloaded", "engine.stopping"})
_REPLAYED = "this run was taken on before under this idempotency key, and its output is not kept"


def went_well(data: bytes, decision: Decision) -> Response:
    """The runner's own answer, as it came."""
    return Response(200, data, outcome=decision.outcome.value, decision_id=decision.decision_id)


def failed(error: str, decision: Decision, status: int = 200, codes: tuple[str, ...] = ()) -> Response:
    """A run that was allowed and failed."""
    return _response({"ok": False, "error": redact_text(error)}, decision, codes, status)


def faulted(fault: EngineError, decision: Decision) -> Response:
    """A run that was allowed and could not be taken to its runner, or whose result could not be recorded."""
    return failed(fault.message, decision, status(fault), (fault.code,))


def refused(decision: Decision, *, replayed: bool) -> Response:
    """A run that was not allowed."""
    document: dict[str, Any] = {"ok": False, "error": redact_text(_reason(decision))}
    return _decided(document, decision, replayed=replayed)


def repeated(decision: Decision) -> Response:
    """A run that was allowed before, under the same idempotency key: nothing is forwarded again.

    What came of it is content and not kept, so this does not say that it went well.
    """
    return _decided({"ok": False, "error": _REPLAYED}, decision, replayed=True)


def undecided(fault: EngineError, exchange: Exchange, decision: Decision | None) -> Response:
    """The problem of a broken request or engine, with `ok` and `error` for callers of a runner."""
    response = problem(fault, exchange, decision)
    document = json.loads(response.body)
    document = {"ok": False, "error": document["detail"], **document}
    return replace(response, body=json.dumps(document, ensure_ascii=False).encode("utf-8"))


def status(fault: EngineError) -> int:
    """The HTTP status of a fault."""
    return _STATUSES.get(fault.code) or status_of(fault)[0]


def is_ours(fault: EngineError) -> bool:
    """Whether a fault is one of the engine or the runner, whose stack somebody may have to read."""
    return status(fault) >= _OUR_FAULT and fault.code not in _NO_FAULT


def tell_stack(error: BaseException) -> None:
    """Write the stack of an error to standard error; blocks while nobody reads there."""
    view = memoryview(redact_text(f"[sandbox-agent] run error: {_stack(error)}\n").encode("utf-8", "replace"))
    with suppress(OSError, ValueError):
        descriptor = sys.stderr.fileno()
        while view:
            view = view[os.write(descriptor, view) :]


def _stack(error: BaseException) -> str:
    """Where an error and its causes arose. Messages of errors that are not ours may hold content: types only."""
    parts: list[str] = []
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        said = f" {at.code}: {at.message}" if isinstance(at, EngineError) else ""
        parts.append(f"{type(at).__name__}{said}\n{''.join(traceback.format_tb(at.__traceback__))}".rstrip())
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return "\ncaused by ".join(parts)


def _reason(decision: Decision) -> str:
    """Why not, in the words that callers of a runner compare where there are such."""
    try:
        raise_unsupported(decision)
    except UnsupportedBoundaryError as error:
        return error.text
    of_outcome = [finding for finding in decision.findings if finding.level.value == decision.outcome.value]
    first = next(iter(of_outcome or decision.findings), None)
    return "it is not allowed" if first is None else f"{first.code}: required: {first.message}"


def _decided(document: dict[str, Any], decision: Decision, *, replayed: bool) -> Response:
    codes = tuple(finding.code for finding in decision.findings)
    again = {"replayed": True} if replayed else {}
    return _response({**document, **again, "decision": decision.model_dump(mode="json")}, decision, codes)


def _response(document: dict[str, Any], decision: Decision, codes: tuple[str, ...], status_: int = 200) -> Response:
    body = json.dumps(document, ensure_ascii=False).encode("utf-8")
    return Response(status_, body, outcome=decision.outcome.value, codes=codes, decision_id=decision.decision_id)
