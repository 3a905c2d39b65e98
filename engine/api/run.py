"""`POST /run`: the gate in front of an agent runner.

    caller ──> runner_uri ─> runner_request ─> the runner
    401         which runner   the whole run     gets exactly the admitted body, once

The address is decided before anything else of the run is read (D41). The body is secret (D29): it
goes to the runner and nowhere else. Scoped tokens need both points. An approval applies to the run.
Stack traces go to standard error only (D44).
"""

from __future__ import annotations

import asyncio
import sys
import time
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from admission_adapters.runner.access import RunnerAccess
from admission_adapters.runner.answer import RunAnswer
from admission_adapters.runner.errors import UnsupportedBoundaryError, raise_unsupported
from admission_adapters.runner.run import ForwardLimits, Grant, Runner
from engine.api import answers
from engine.api.body import parse_json, within
from engine.api.load import Load
from engine.api.messages import Exchange, Response
from engine.api.problems import describe, respond, status_of
from engine.api.streams import Following, under_way
from engine.api.uploads import write_all
from engine.documents.canonical import RawJson, canonical, compact, digest
from engine.drive import run as drive
from engine.enforce import permit
from engine.errors import EngineError, Exit, WorkError, fault_inside, stack_of
from engine.facts.run_request import in_one_shape
from engine.flow import Answer, Context, Services
from engine.idempotency import answer_once, conflict
from engine.model import Decision, Mode, Outcome, Permit, Result
from engine.points.registry import find
from engine.points.runner_request import RunnerLimits
from engine.secrets.redaction import redact_text
from engine.steps import own_thread
from engine.work import Job

if TYPE_CHECKING:
    from engine.api.app import App


MOST_RUNS = 32
"""Runs in progress; each occupies a thread, its body and its answer for minutes. More are refused with 503."""


_INVALID, _BAD_REQUEST = "engine.request_invalid", 400
"""Missing or wrong fields have the status that callers of a runner compare (D25)."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run request as it came in, and what its runner is decided on."""

    text: RawJson
    value: Any
    address: dict[str, Any]

    def in_one_shape(self) -> bytes:
        """The text to forward: as it came in, unless keys beside `agent` have to be moved into it."""
        shaped = in_one_shape(self.value)
        return self.text.data if shaped is self.value else compact(shaped)


class Runs:
    """Answers `/run`. For one event loop. A runner itself does other than forward an admitted run."""

    def __init__(self) -> None:
        self._turns = Load(MOST_RUNS, 0)

    async def run(self, api: App, exchange: Exchange) -> Response:
        """Decide a run, have it done if it is allowed, and return the result, or its beginning for who follows it."""
        body = exchange.body
        exchange.release(api.bodies)  # so that the operational log cannot find it
        following = Following(exchange)

        async def whole() -> None:
            await following.end(await self._answer(api, exchange, body, following))

        under_way(whole())
        return await following.answer

    async def _answer(self, api: App, exchange: Exchange, body: bytes, following: Following) -> Response:
        try:
            if exchange.refusal is not None:  # refused whatever the load
                return await refuse(api, exchange, exchange.refusal)
            async with self._turns.turn(exchange.account):
                try:
                    request = await within(body, lambda: _read(api, body))
                    await _bind_key(api, exchange.context, request)
                except EngineError as error:
                    return await refuse(api, exchange, error)
                return await self.perform(api, exchange, request, following)
        except EngineError as error:
            fault = error
        except Exception as crash:  # noqa: BLE001  (a fault of ours is an answer without details)
            fault = fault_inside("run", "report the request id; standard error of the engine shows where it failed")
            fault.__cause__ = crash
        return await undecided(fault, exchange, None)

    @abstractmethod
    async def perform(self, api: App, exchange: Exchange, request: RunRequest, following: Following) -> Response:
        """Decide this run and do what is allowed."""


class ForwardedRuns(Runs):
    """The gate in front of a runner: an admitted run is sent to it."""

    def __init__(self, limits: ForwardLimits | None = None, access: RunnerAccess | None = None) -> None:
        super().__init__()
        self._runner = Runner(limits or ForwardLimits(), access)

    async def perform(self, api: App, exchange: Exchange, request: RunRequest, following: Following) -> Response:
        """Decide the address, then the run, and forward it."""
        context = exchange.context
        async with api.load.turn(exchange.account):
            address = await api.engine.decide("runner_uri", request.address, context=replace(context, approval=None))
        sealed = permit(address.decision) if address.exit is Exit.ALLOW else None
        if sealed is None:
            return await respond_to(address, exchange)
        kept: list[RunAnswer] = []

        def executor(own: Permit, job: Job) -> Result:
            own.demand("runner_request", job.input_digest, RunnerLimits)
            if api.engine.policy is None or api.engine.policy.revisions != address.decision.policy:
                raise WorkError(
                    "the policy changed while the run was being decided",
                    remedy="send the run again",
                    code="policy_stale",
                )
            to = Grant(sealed, address.decision.input_digest or "")
            run = Grant(own, job.input_digest)
            follow = following if following.follows else None
            result, answer = self._runner.forward(run, to, request.in_one_shape(), follow, job.stop)
            kept.append(answer)
            return result

        parts = for_threads(api)
        steps = answer_once(find("runner_request"), request.text, Mode.ENFORCE, parts, context, executor)
        answer = await own_thread(lambda: drive(steps))  # takes minutes; a stop does not wait for it
        return await respond_to(answer, exchange, kept[0] if kept else None)


async def respond_to(answer: Answer, exchange: Exchange, kept: RunAnswer | None = None) -> Response:
    """The result of a run, which is the runner's own answer, unchanged, or its error; else why there is none."""
    decision, fault = answer.decision, answer.fault
    if fault is not None and answer.result is None:
        return await undecided(fault, exchange, decision)
    if fault is not None:
        await print_fault(fault)
        return _failed(fault.message, decision, status_of(fault)[0], (fault.code,))
    if kept is None:
        return _not_forwarded(decision, replayed=answer.gathered is None)
    if kept.error is not None:
        return _failed(kept.error, decision)
    return Response(200, kept.data, outcome=decision.outcome.value, decision_id=decision.decision_id)


async def refuse(api: App, exchange: Exchange, error: EngineError) -> Response:
    """Record the deny of a run that cannot be decided on."""
    return await respond_to(await api.refuse(exchange, "runner_request", error), exchange)


async def undecided(fault: EngineError, exchange: Exchange, decision: Decision | None) -> Response:
    """The problem of a broken request or engine, with `ok` and `error` for callers of a runner."""
    await print_fault(fault)
    found = describe(fault, exchange, decision)
    status = _BAD_REQUEST if fault.code == _INVALID else found.status
    return respond(answers.RunFailure(**{**dict(found), "status": status}, error=found.detail))


async def print_fault(fault: EngineError) -> None:
    """Print the stack of a fault of the engine or the runner, which helps to repair it."""
    if status_of(fault)[0] >= _OUR_FAULT and fault.code not in _NO_FAULT:
        await own_thread(lambda: print_stack(fault))


def _read(api: App, body: bytes) -> RunRequest:
    """The run as strict JSON, of which nothing but the presence and text of `agent.uri` is looked at here."""
    value = parse_json(body, api.limits)
    agent = value.get("agent") if isinstance(value, dict) else None
    stated = {"override": agent["uri"]} if isinstance(agent, dict) and "uri" in agent else {}
    return RunRequest(RawJson(body), value, {"inherited": None, **stated})


async def _bind_key(api: App, context: Context, request: RunRequest) -> None:
    """Hold an idempotency key to the whole run, also where only its address gets decided. Raises EngineError."""
    key, caller = context.idempotency_key, context.caller
    if key is None:
        return
    try:
        body = await within(request.text.data, lambda: digest(canonical([request.value, context.approval])))
    except (ValueError, TypeError, RecursionError):
        return  # it has no canonical form: its point reports that
    scope = f"run/{caller.via}/{caller.principal or ''}"
    claim = await asyncio.to_thread(lambda: api.engine.store().begin(scope, key, body, int(time.time())))
    if claim.kind == "conflict":
        raise conflict()


def for_threads(api: App) -> Services:
    """The engine's services for a path that runs in its own thread; metrics are counted on the event loop."""
    parts, loop = api.engine.opened, asyncio.get_running_loop()
    observe = parts.observe

    def later(decision: Decision, durations: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(observe, decision, durations)

    return replace(parts, observe=later)


_OUR_FAULT = 500
_NO_FAULT = frozenset({"engine.overloaded", "engine.stopping"})
_MOST_NAMED = 3
"""Items that a sentence names; the decision has all of them."""

_REPLAYED = "a run with this idempotency key was already forwarded, and its output is not kept"


def _failed(error: str, decision: Decision, status: int = 200, codes: tuple[str, ...] = ()) -> Response:
    """A run that was allowed and failed."""
    return Response.of(answers.RunAnswer(ok=False, error=redact_text(error)), status, decision=decision, codes=codes)


def _not_forwarded(decision: Decision, *, replayed: bool) -> Response:
    """A run that was not allowed; or that was allowed before, under the same idempotency key.

    The result of the first one is content and is not stored, so this does not mean that it succeeded.
    """
    repeated = decision.outcome is Outcome.ALLOW
    error = _REPLAYED if repeated else redact_text(_reason(decision))
    answer = answers.RunAnswer(
        ok=False, error=error, replayed=True if repeated or replayed else None, decision=decision
    )
    return Response.of(answer, decision=decision)


def print_stack(error: BaseException) -> None:
    """Write the stack of an error and its remedy to standard error; blocks until it is read."""
    fix = f"fix: {error.remedy}\n" if isinstance(error, EngineError) else ""
    text = redact_text(f"[sandbox-agent] run error: {stack_of(error)}\n{fix}").encode("utf-8", "replace")
    with suppress(OSError, ValueError):
        write_all(sys.stderr.fileno(), [text])


def _reason(decision: Decision) -> str:
    """Why not, in the words that callers of a runner compare, where there are any."""
    try:
        raise_unsupported(decision)
    except UnsupportedBoundaryError as error:
        return error.text
    of_outcome = [finding for finding in decision.findings if finding.level.value == decision.outcome.value]
    first = next(iter(of_outcome or decision.findings), None)
    if first is None:
        return "it is not allowed"
    about = [finding.subject for finding in decision.findings if finding.code == first.code and finding.subject]
    named = f" ({', '.join(about[:_MOST_NAMED])})" if about else ""
    return f"{first.code}{named}: required: {first.requirement}"
