"""One run with its slot and its idempotency key: runs once; a repetition returns the first result (C69).

A replay returns the whole first result and runs nothing. If it is unknown whether the first request ran,
the answer is a fault, never a second run. The end of each run is kept for its caller, with or without a key, with the
result for as long as its permit says.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any

from engine.code.asking import Machine
from engine.code.gateway import Run, crashed, refused
from engine.code.request import CodeRunRequest, read
from engine.code.result import CodeRun
from engine.code.running import RunWatcher, Ticket
from engine.documents.canonical import RawJson, canonical, digest
from engine.drive import Call, Steps, Work
from engine.errors import EngineError, Exit
from engine.flow import Context, Services
from engine.gather import HEAVY_BYTES
from engine.idempotency import NEW_KEY, ClaimedKey, facts_to_ask, replayed, still_allowed, take
from engine.model import Pace, Revisions
from engine.secrets.redaction import redact
from engine.state.rows import Begun, CodeRunRow, StateLimits

_RESULT_BYTES = 1 << 20
"""The largest result that is kept; a permit lets a program print less."""

_DAY = 86_400


def run_code(
    request_data: Any,
    services: Services,
    machine: Machine,
    context: Context,
    watch: RunWatcher,
) -> Steps[CodeRun]:
    """Take one run from its request to its result; never raises an EngineError.

    `request_data` is plain JSON, checked JSON text, or the error of its reader.
    """
    try:
        heavy = isinstance(request_data, RawJson) and len(request_data.data) > HEAVY_BYTES
        request: CodeRunRequest = (yield Call(lambda: read(request_data), Pace.HEAVY)) if heavy else read(request_data)
        run_id = request.run_id or str(uuid.uuid4())
        now = services.gather_context.clock()
        with machine.running.slot(run_id, context.caller, watch, now) as ticket:
            if ticket.place:
                yield Work(lambda: machine.running.begin(ticket))
            if context.idempotency_key is None:
                done = yield from Run(request, ticket, services, machine, context).steps()
            else:
                done = yield from _once(context.idempotency_key, request, ticket, services, machine, context)
            if not done.replayed:
                yield from _keep_for_caller(done, ticket, services)
            return done
    except EngineError as error:
        fault = error
    except Exception as error:  # noqa: BLE001  (a fault of ours is on_phase, and nothing runs)
        fault = crashed(error, services)
    return (yield from refused(fault, services, machine, context))


def _once(
    key: str, request: CodeRunRequest, ticket: Ticket, services: Services, machine: Machine, context: Context
) -> Steps[CodeRun]:
    caller = context.caller.model_dump(mode="json")
    same = digest(canonical([request.model_dump(mode="json"), sorted(request.model_fields_set), caller, context.run]))
    taken = yield from take("code_run", key, same, services, context)
    if taken.begun.kind == "done":
        return (yield from _replay(taken.begun, services, context))
    revisions = services.revisions
    first = yield from Run(request, ticket, services, machine, context).steps()
    try:
        yield Call(lambda: _keep(taken, first, revisions))
    except EngineError as error:  # the key stays taken: nothing may run twice
        return replace(first, fault=first.fault or error, exit=Exit.FAILED_CLOSED)
    return first


def _keep(taken: ClaimedKey, first: CodeRun, revisions: Revisions | None) -> None:
    """Store the whole result; a fault before anything was started leaves nothing to replay."""
    if first.fault is not None and not first.ran:
        taken.keep(None, revisions)
        return
    decision = None if first.answer is None else first.answer.decision.decision_id
    answer_stored = {"document": first.document, "exit": int(first.exit), "decision_id": decision}
    answer_stored["asked"] = facts_to_ask(first.answer)
    taken.keep(json.dumps(answer_stored), revisions)


def _replay(known: Begun, services: Services, context: Context) -> Steps[CodeRun]:
    """Replay the first result, under the policy of that time, unless a stop applies to it."""
    first_answer: dict[str, Any] = json.loads(known.answer or "{}")
    yield from still_allowed(known, first_answer["asked"], services, context)
    yield replayed(services, context, first_answer["decision_id"] or "")
    exit_ = Exit(first_answer["exit"])
    fault = None
    if exit_ is Exit.FAILED_CLOSED:
        fault = EngineError(
            "the first run with this idempotency key ended in an engine fault",
            remedy=NEW_KEY,
            code=first_answer["document"]["stop_reason"].removeprefix("engine_fault:"),
        )
    return CodeRun(first_answer["document"], exit_, fault, replayed=True)


def _keep_for_caller(done: CodeRun, ticket: Ticket, services: Services) -> Steps[None]:
    """Keep the end of a run. If that fails, it is logged: the run itself is in the record."""

    def store() -> None:
        now = services.gather_context.clock()
        result = _result(done.document) if done.keep_days else None
        services.store().add_code_run(
            CodeRunRow(
                id=ticket.run_id,
                owner=ticket.owner,
                status=done.document["status"],
                stop_reason=done.stop_reason,
                decision_id=None if done.answer is None else done.answer.decision.decision_id,
                result=result,
                started_at=ticket.started_at,
                ended_at=now,
                expires_at=now + (done.keep_days * _DAY or StateLimits().run_seconds),
            )
        )

    try:
        yield Call(store, Pace.SLOW)
    except Exception as error:  # noqa: BLE001  (the run has ended, and is recorded)
        crashed(error, services)


def _result(document: dict[str, Any]) -> str | None:
    """The result without secrets and without the content of files, as JSON; None if it is too large."""
    files = [{name: value for name, value in one.items() if name != "content"} for one in document.get("artifacts", ())]
    text = canonical(redact({**document, **({"artifacts": files} if files else {})})[0])
    return text.decode("utf-8") if len(text) <= _RESULT_BYTES else None
