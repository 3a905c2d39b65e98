"""`POST /v1/code/run`: decide, run in a sandbox, validate, record, answer; also what a caller's own runs came to.

A run that stopped returns 200, whatever stopped it; an invalid request or an engine fault returns a problem with the
run in it. A client may follow a run, and may have it cancelled when it hangs up. A caller sees and cancels its own
runs only.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.api.answers import CodePhase, CodeRunEnd, CodeRunPage, KeptCodeRun
from engine.api.decide import request_of
from engine.api.headers import QueryError
from engine.api.live import LiveRun
from engine.api.messages import Exchange, Response
from engine.api.problems import problem
from engine.api.streams import Following, under_way
from engine.code.running import RunWatcher, Ticket, owner_of
from engine.documents.files import printable
from engine.errors import Exit, GatherError
from engine.model import Outcome
from engine.state.rows import CodeRunRow
from engine.times import time_text

if TYPE_CHECKING:
    from engine.api.app import App
    from engine.code.result import CodeRun

_OUTCOMES = {Exit.ALLOW: Outcome.ALLOW, Exit.CONFIRM: Outcome.CONFIRM}
_ACCEPTED = 202

HANG_UP = "on_disconnect"
"""The parameter that says what becomes of a run whose client hangs up."""

PAGE = frozenset({"limit", "before"})
"""The parameters of the list."""

_MOST = 100
"""Runs that have ended, of one page."""
_NUMBER = re.compile("[1-9][0-9]{0,15}")


async def run(api: App, exchange: Exchange) -> Response:
    """One run, to its end; a client that hangs up ends it only if it said so."""
    refusal, stated = exchange.refusal, exchange.query.get(HANG_UP, "continue")
    if refusal is None and stated not in {"continue", "cancel"}:
        refusal = QueryError(HANG_UP, "is neither `cancel` nor `continue`")
    if refusal is not None:
        return _respond(await api.engine.run_code(refusal, exchange.context), exchange)
    watch, following = RunWatcher(), Following(exchange)
    if stated == "cancel":
        exchange.when_hung_up(watch.cancel.set)
    request = await request_of(api, exchange)
    if not following.follows:
        return _respond(await api.engine.run_code(request, exchange.context, watch), exchange)
    size, exchange.stored = len(exchange.stored), b""  # it counts as a body until the run has ended
    live = LiveRun(following)
    watch = replace(watch, on_phase=live.phase, on_place=live.place, on_output=live.output)

    async def whole() -> None:
        sending = asyncio.create_task(live.send())
        try:
            response = _respond(await api.engine.run_code(request, exchange.context, watch), exchange)
        except Exception as crash:  # noqa: BLE001  (a fault of ours is an answer without details)
            response = problem(api.crashed(exchange, crash), exchange)
        finally:
            api.bodies.give(exchange.account, size)
            live.close()
        await sending
        await following.end(response)

    under_way(whole())
    return await following.answer


async def page(api: App, exchange: Exchange) -> Response:
    """The runs of the caller: those that wait or have begun, and a page of those that have ended."""
    limit, before = (_number(exchange.query, name) for name in ("limit", "before"))
    limit = min(limit or _MOST, _MOST)
    owner, now = owner_of(exchange.caller), api.engine.now()
    ended = await asyncio.to_thread(lambda: api.engine.store().code_runs(owner, before, now, limit))
    active = () if before else api.engine.executors.machine().running.of(exchange.caller)
    return Response.of(
        CodeRunPage(
            active=tuple(map(_phase, active)),
            ended=tuple(CodeRunEnd(**_end(row)) for row in ended),
            next=ended[-1].number if len(ended) == limit else None,
        )
    )


async def show(api: App, exchange: Exchange) -> Response:
    """The phase of a run that waits or has begun, or the kept result of one that has ended."""
    run_id = _id(exchange)
    if (ticket := api.engine.executors.machine().running.find(run_id, exchange.caller)) is not None:
        return Response.of(_phase(ticket))
    owner, now = owner_of(exchange.caller), api.engine.now()
    row = await asyncio.to_thread(lambda: api.engine.store().code_run(run_id, owner, now))
    if row is None:
        raise _unknown(run_id, "known")
    return Response.of(KeptCodeRun(**_end(row), result=None if row.result is None else json.loads(row.result)))


async def cancel(api: App, exchange: Exchange) -> Response:
    """End a run that waits or has begun: its sandbox is killed, and it is recorded as cancelled."""
    run_id = _id(exchange)
    ticket = api.engine.executors.machine().running.find(run_id, exchange.caller)
    if ticket is None:
        raise _unknown(run_id, "in progress")
    ticket.watch.cancel.set()
    return Response.of(_phase(ticket).model_copy(update={"status": "cancelling"}), _ACCEPTED)


def _id(exchange: Exchange) -> str:
    return exchange.head.path.rpartition("/")[2]


def _phase(ticket: Ticket) -> CodePhase:
    return CodePhase(
        run_id=ticket.run_id,
        status="waiting" if ticket.place else "running",
        phase=ticket.phase,
        place=ticket.place or None,
        started_at=time_text(ticket.started_at),
    )


def _end(row: CodeRunRow) -> dict[str, Any]:
    """The end of a run as the fields of a `CodeRunEnd`."""
    return {
        "run_id": row.id,
        "status": row.status,
        "stop_reason": row.stop_reason,
        "decision_id": row.decision_id,
        "started_at": time_text(row.started_at),
        "ended_at": time_text(row.ended_at),
        "kept_until": time_text(row.expires_at),
    }


def _number(query: Mapping[str, str], name: str) -> int | None:
    stated = query.get(name)
    if stated is not None and _NUMBER.fullmatch(stated) is None:
        raise QueryError(name, "is not a whole number of 1 or more")
    return None if stated is None else int(stated)


def _unknown(run_id: str, what: str) -> GatherError:
    return GatherError(
        f"this caller has no run `{printable(run_id, 40)}` that is {what}",
        remedy="set `run_id` when you start the run; GET /v1/code/runs lists your runs",
        code="engine.run_unknown",
    )


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
