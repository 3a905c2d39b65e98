"""`POST /v1/code/run`: decide, run in a sandbox, validate, record, answer; also the status and cancellation of runs.

A run that stopped returns 200, whatever stopped it; an invalid request or an engine fault returns a problem with the
run in it. A caller sees and cancels its own runs only.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.api.answers import CodePhase
from engine.api.decide import asked_of, respond
from engine.api.messages import Response
from engine.api.problems import problem
from engine.code.running import overloaded
from engine.documents.files import printable
from engine.errors import Exit, GatherError
from engine.model import Outcome

if TYPE_CHECKING:
    from engine.api.app import App
    from engine.api.messages import Exchange
    from engine.code.result import CodeRun
    from engine.code.running import Ticket

_OUTCOMES = {Exit.ALLOW: Outcome.ALLOW, Exit.CONFIRM: Outcome.CONFIRM}
_ACCEPTED = 202


async def run(api: App, exchange: Exchange) -> Response:
    """One run, to its end; a client that hangs up does not end it."""
    refusal = exchange.refusal
    if refusal is not None and not exchange.identified:
        return respond(await api.refuse(exchange, exchange.operation.point or "", refusal), exchange)
    if refusal is not None:
        return _respond(await api.engine.run_code(refusal, exchange.context), exchange)
    if not api.programs.take(exchange.account):
        return problem(overloaded(), exchange)
    try:
        return _respond(await api.engine.run_code(await asked_of(api, exchange), exchange.context), exchange)
    finally:
        api.programs.give(exchange.account)


async def show(api: App, exchange: Exchange) -> Response:
    """The phase of a run that is under way."""
    ticket = _find(api, exchange)
    return Response.of(CodePhase(run_id=ticket.run_id, status="running", phase=ticket.phase))


async def cancel(api: App, exchange: Exchange) -> Response:
    """End a run that is under way: its sandbox is killed, and it is recorded as cancelled."""
    ticket = _find(api, exchange)
    ticket.cancel.set()
    return Response.of(CodePhase(run_id=ticket.run_id, status="cancelling", phase=ticket.phase), _ACCEPTED)


def _find(api: App, exchange: Exchange) -> Ticket:
    run_id = exchange.head.path.rpartition("/")[2]
    ticket = api.engine.code_machine().running.find(run_id, exchange.caller)
    if ticket is None:
        raise GatherError(
            f"this caller has no run `{printable(run_id, 40)}` in progress",
            remedy="set `run_id` when you start the run, and query it while the run is in progress",
            code="engine.run_unknown",
        )
    return ticket


def _respond(done: CodeRun, exchange: Exchange) -> Response:
    decision = None if done.answer is None else done.answer.decision
    if done.fault is not None:
        return problem(done.fault, exchange, decision, run=done.document)
    headers = ((b"idempotent-replayed", b"true"),) if done.replayed else ()
    return Response(
        200,
        json.dumps(done.document, ensure_ascii=False).encode("utf-8"),
        headers=headers,
        outcome=_OUTCOMES.get(done.exit, Outcome.DENY).value,
        codes=(done.stop_reason,),
        decision_id=None if decision is None else decision.decision_id,
    )
