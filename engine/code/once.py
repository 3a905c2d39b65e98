"""One run from the outside: it takes a place, and with an idempotency key it is run once and told again (C69).

What is told again is the whole result. Nothing is run for it, and where nobody knows whether something
was, that is a fault and never a second run.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from engine.canonical import RawJson, canonical, digest
from engine.code.asking import Machine
from engine.code.gateway import begun, internal, refused
from engine.code.request import CodeRunRequest, read
from engine.code.result import CodeRun
from engine.code.running import Phase, Ticket
from engine.drive import Append, Call, Steps
from engine.errors import DecideError, EngineError, Exit
from engine.flow import HEAVY_BYTES, Context, Parts
from engine.model import Pace, Revisions
from engine.once import NEW_KEY, begin, refusal
from engine.record.model import ReplayRecord, timestamp
from engine.state.store import Begun, Store


@dataclass(frozen=True, slots=True)
class Watch:
    """Who looks on: setting `cancel` ends the run, `told` hears of each phase that begins."""

    cancel: threading.Event | None = None
    told: Callable[[Phase], None] | None = None


def run_code(
    asked: Any,
    parts: Parts,
    machine: Machine,
    context: Context,
    watch: Watch = Watch(),
) -> Steps[CodeRun]:
    """Take one run from what was asked to its result; never raises an EngineError.

    `asked` is plain JSON, checked JSON text, or the error that kept it from being read.
    """
    try:
        heavy = isinstance(asked, RawJson) and len(asked.data) > HEAVY_BYTES
        request: CodeRunRequest = (yield Call(lambda: read(asked), Pace.HEAVY)) if heavy else read(asked)
        with _place(request, machine, context, watch) as ticket:
            if context.idempotency_key is None:
                return (yield from begun(request, ticket, parts, machine, context))
            return (yield from _once(context.idempotency_key, request, ticket, parts, machine, context))
    except EngineError as error:
        fault = error
    except Exception as error:  # noqa: BLE001  (a fault of ours is told, and nothing runs)
        fault = internal(error)
    return (yield from refused(fault, parts, machine, context))


@contextmanager
def _place(request: CodeRunRequest, machine: Machine, context: Context, watch: Watch) -> Iterator[Ticket]:
    run_id = request.run_id or machine.new_run()
    ticket = machine.running.begin(run_id, context.caller, watch.cancel, watch.told)
    try:
        yield ticket
    finally:
        machine.running.end(ticket)


def _once(
    key: str, request: CodeRunRequest, ticket: Ticket, parts: Parts, machine: Machine, context: Context
) -> Steps[CodeRun]:
    caller = context.caller.model_dump(mode="json")
    same = digest(canonical([request.model_dump(mode="json"), sorted(request.model_fields_set), caller, context.run]))
    scope = f"code_run/{context.caller.via}/{context.caller.principal or ''}"
    store: Store = yield Call(parts.store)
    known: Begun = yield Call(lambda: begin(store, scope, key, same, int(parts.clock().timestamp())))
    if known.kind == "done":
        return (yield from _again(known, parts, context))
    if known.kind != "new":
        raise refusal(known)
    revisions = _revisions(parts)
    first = yield from begun(request, ticket, parts, machine, context)
    try:
        yield Call(lambda: _keep(store, scope, key, first, revisions))
    except EngineError as error:  # the key stays taken: nothing may run twice
        return replace(first, fault=first.fault or error, exit=Exit.FAILED_CLOSED)
    return first


def _keep(store: Store, scope: str, key: str, first: CodeRun, revisions: Revisions | None) -> None:
    """Keep the whole result; a fault before anything was started leaves nothing to tell again."""
    if revisions is None or (first.fault is not None and not first.ran):
        store.abandon(scope, key)
        return
    decision = None if first.answer is None else first.answer.decision.decision_id
    kept = {"document": first.document, "exit": int(first.exit), "decision_id": decision}
    store.finish(scope, key, json.dumps(kept), revisions.rules, revisions.values)


def _again(known: Begun, parts: Parts, context: Context) -> Steps[CodeRun]:
    """The first result again, under the policy that was served then."""
    revisions = _revisions(parts)
    if revisions is None or (revisions.rules, revisions.values) != (known.rules, known.values):
        raise DecideError(
            "the policy has changed since this idempotency key was used",
            remedy=NEW_KEY,
            code="engine.idempotency_stale",
        )
    kept: dict[str, Any] = json.loads(known.answer or "{}")
    line = ReplayRecord(
        time=timestamp(parts.clock()),
        decision_id=kept["decision_id"] or "",
        principal=context.caller.principal,
        request_id=context.request_id,
        trace=context.trace,
    )
    yield Append(parts.log, line)
    exit_ = Exit(kept["exit"])
    fault = _fault(kept["document"]["stop_reason"]) if exit_ is Exit.FAILED_CLOSED else None
    return CodeRun(kept["document"], exit_, fault, replayed=True)


def _fault(reason: str) -> EngineError:
    return EngineError(
        "the first run with this idempotency key ended in a fault of the engine",
        remedy=NEW_KEY,
        code=reason.removeprefix("engine_fault:"),
    )


def _revisions(parts: Parts) -> Revisions | None:
    serving = parts.serving()
    try:
        return serving.revisions
    finally:
        serving.release()
