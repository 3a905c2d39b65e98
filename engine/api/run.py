"""`POST /run`: the gate in front of an agent runner.

    who asks ─> runner_uri ─> runner_request ─> the runner
    401         which runner   the whole run     takes exactly the admitted body, once

The address is decided before anything else of the run is looked at (D41). The body is secret (D29): it
goes to the runner and nowhere else. Scoped tokens need both points. An approval is one for the run.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from adapters.runner import ForwardLimits, Grant, Runner
from adapters.runner_answer import RunAnswer
from engine.api import run_answers
from engine.api.body import parse_json, within
from engine.api.decide import context_of
from engine.api.load import Load
from engine.canonical import RawJson, canonical, digest
from engine.drive import run as drive
from engine.enforce import permit
from engine.errors import EngineError, Exit, GatherError, WorkError
from engine.flow import Answer, Context, Parts
from engine.model import Decision, Mode, Permit, Result
from engine.once import answer_once
from engine.points.registry import find
from engine.points.runner_request import RunnerLimits
from engine.points.runner_uri import UriLimits

if TYPE_CHECKING:
    from engine.api.app import Api
    from engine.api.messages import Exchange, Response
    from engine.work import Job

T = TypeVar("T")

MOST_RUNS = 32
"""Runs under way; each holds a thread, its body and its answer for minutes. More are refused with 503."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A run request as it came in, and what its runner is decided on."""

    text: RawJson
    value: Any
    address: dict[str, Any]


class Runs:
    """Answers `/run`. For one event loop."""

    def __init__(self, limits: ForwardLimits | None = None) -> None:
        self._runner = Runner(limits or ForwardLimits())
        self._turns = Load(MOST_RUNS, 0, 0)

    async def run(self, api: Api, exchange: Exchange) -> Response:
        """Decide a run, take it to its runner when it is allowed, and answer what came of it."""
        body = _take(api, exchange)
        try:
            if exchange.refusal is not None:  # who may not ask is told so however much is under way
                return await _refuse(api, exchange, exchange.refusal)
            await self._turns.enter(exchange.account)
            try:
                return await self._answer(api, exchange, body)
            finally:
                self._turns.leave(exchange.account)
        except EngineError as error:
            fault = error
        except Exception as crash:  # noqa: BLE001  (a fault of ours is an answer without details)
            fault = EngineError(
                f"an unexpected {type(crash).__name__} stopped the run",
                remedy="this is a fault of the engine: report it with the request id",
            )
            fault.__cause__ = crash
        return await _undecided(fault, exchange, None)

    async def _answer(self, api: Api, exchange: Exchange, body: bytes) -> Response:
        context = context_of(exchange)
        try:
            asked = await within(body, lambda: _read(api, body))
            await _bind_key(api, context, asked)
        except EngineError as error:
            return await _refuse(api, exchange, error)
        address = await _ask(api, "runner_uri", asked.address, replace(context, approval=None), exchange.account)
        sealed = permit(address.decision) if address.exit is Exit.ALLOW else None
        if sealed is None:
            return await _respond(address, exchange)
        kept: list[RunAnswer] = []

        def hand(own: Permit, job: Job) -> Result:
            own.demand("runner_request", job.input_digest, RunnerLimits)
            if api.engine.policy is None or api.engine.policy.revisions != address.decision.policy:
                raise WorkError(
                    "the policy has changed while the run was decided on",
                    remedy="send the run again",
                    code="policy_stale",
                )
            to = Grant(sealed, address.decision.input_digest or "", UriLimits)
            result, answer = self._runner.forward(Grant(own, job.input_digest, RunnerLimits), to, asked.text.data)
            kept.append(answer)
            return result

        parts = _for_threads(api)
        steps = answer_once(find("runner_request"), asked.text, Mode.ENFORCE, parts, context, hand)
        answer = await _in_thread(lambda: drive(steps))
        return await _respond(answer, exchange, kept[0] if kept else None)


async def _respond(answer: Answer, exchange: Exchange, kept: RunAnswer | None = None) -> Response:
    decision, fault = answer.decision, answer.fault
    if fault is not None and answer.result is None:
        return await _undecided(fault, exchange, decision)
    if fault is not None:
        await _tell(fault)
        return run_answers.faulted(fault, decision)
    if kept is None:
        replayed = answer.gathered is None
        allowed = answer.exit is Exit.ALLOW
        return run_answers.repeated(decision) if allowed else run_answers.refused(decision, replayed=replayed)
    if kept.error is not None:
        return run_answers.failed(kept.error, decision)
    return run_answers.went_well(kept.data, decision)


async def _refuse(api: Api, exchange: Exchange, error: EngineError) -> Response:
    """Record the deny of a run that cannot be decided on."""
    return await _respond(await api.refuse(exchange, "runner_request", error), exchange)


async def _undecided(fault: EngineError, exchange: Exchange, decision: Decision | None) -> Response:
    await _tell(fault)
    return run_answers.undecided(fault, exchange, decision)


async def _tell(fault: EngineError) -> None:
    if run_answers.is_ours(fault):
        await _in_thread(lambda: run_answers.tell_stack(fault))


async def _ask(api: Api, point: str, request: Any, context: Context, account: str) -> Answer:
    await api.load.enter(account)
    try:
        return await api.engine.decide(point, request, context=context)
    finally:
        api.load.leave(account)


def _take(api: Api, exchange: Exchange) -> bytes:
    """The body, and none of it left where the operational log could find it."""
    body = exchange.body
    api.load.give(exchange.account, sum(map(len, exchange.chunks)))
    exchange.chunks = []
    return body


def _read(api: Api, body: bytes) -> _Asked:
    """The run as strict JSON, of which nothing but the presence and text of `agent.uri` is looked at here."""
    value = parse_json(body, api.limits)
    agent = value.get("agent") if isinstance(value, dict) else None
    stated = {"override": agent["uri"]} if isinstance(agent, dict) and "uri" in agent else {}
    return _Asked(RawJson(body), value, {"inherited": None, **stated})


async def _bind_key(api: Api, context: Context, asked: _Asked) -> None:
    """Hold an idempotency key to the whole run, also where only its address gets decided. Raises EngineError."""
    key, caller = context.idempotency_key, context.caller
    if key is None:
        return
    try:
        body = await within(asked.text.data, lambda: digest(canonical([asked.value, context.approval])))
    except (ValueError, TypeError, RecursionError):
        return  # it has no canonical form: its point will say so
    scope = f"run/{caller.via}/{caller.principal or ''}"
    begun = await asyncio.to_thread(lambda: api.engine.store().begin(scope, key, body, int(time.time())))
    if begun.kind == "conflict":
        raise GatherError(
            "this idempotency key was used for another request",
            remedy="use a new idempotency key for a new request",
            code="engine.idempotency_conflict",
        )


def _for_threads(api: Api) -> Parts:
    """The engine's parts for a path that a thread of its own takes; metrics are counted on the event loop."""
    parts, loop = api.engine.parts, asyncio.get_running_loop()
    if parts is None:
        raise EngineError("the engine is not open", remedy="this is a fault of the engine")
    observe = parts.observe

    def later(decision: Decision, durations: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended: nobody counts any more
            loop.call_soon_threadsafe(observe, decision, durations)

    return replace(parts, observe=later)


async def _in_thread(do: Callable[[], T]) -> T:
    """What `do` gives, from a thread of its own: a run takes minutes and must not hold one that others need.

    The thread does not keep a process alive that was told to stop.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def work() -> None:
        with suppress(RuntimeError):  # the loop has ended: nobody waits any more
            try:
                result = do()
            except BaseException as error:  # noqa: BLE001  (whoever waits decides what it means)
                loop.call_soon_threadsafe(done.set_exception, error)
            else:
                loop.call_soon_threadsafe(done.set_result, result)

    threading.Thread(target=work, name="run", daemon=True).start()
    return await done
