"""Starts, supervises and ends subagents as processes; each operation needs its own permit.

    spawn   starts one, returns when it has its task
    run     starts one, waits for its end; after the timeout it continues alone until its lifetime ends
    poll    the last turns of its transcript, each line cut; waits for the first one
    cancel  requests a stop (a line, and SIGTERM), reports whether it stopped in time
    kill    ends it and its whole group, returns when it is dead

Every operation is decided first and recorded with its result. Repeated with the same key, it
returns the first result and has no second effect. Blocking; thread-safe.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, runtime_checkable

from admission_adapters.grants import granted
from admission_adapters.interfaces import Answer
from admission_adapters.subagents.process import HistoryLimits, Program, State, SubagentProcess
from engine.errors import EngineError, WorkError
from engine.model import Decision, Job, Outcome, Permit, Result, StopSignal


@dataclass(frozen=True, slots=True)
class Requester:
    """The requester with its tool policy and profile. `key` is an idempotency key, `approval` a granted approval."""

    conversation: str
    user: str
    account: str
    policy: str | None = None
    profile: str | None = None
    key: str | None = None
    approval: str | None = None

    def request(self) -> dict[str, Any]:
        """The fields of a request that describe the requester."""
        return {name: getattr(self, name) for name in ("conversation", "user", "account", "policy", "profile")}


@dataclass(frozen=True, slots=True)
class Work:
    """The result of permitted work, and the turns of the transcript."""

    result: Result
    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """The decision; on an allow the result and the turns, or the fault that stopped the work."""

    decision: Decision
    fault: EngineError | None
    result: Result | None = None
    turns: tuple[str, ...] = ()


Decide = Callable[[dict[str, Any], Callable[[Permit, Job], Result], str | None, str | None], Answer]
"""Takes a request through point `subagent` and lets the executor do the work, once for each key.

Its arguments are the request, the executor, an idempotency key and an approval. A refusal raises nothing.
"""


class Family(Protocol):
    """Stores parents and children for the decision point."""

    def started(self, child: str, parent: str) -> None:
        """Called before a child is started; if it raises, nothing is started."""

    def ended(self, child: str, state: Literal["running", "ended", "cancelled", "killed"]) -> None:
        """Called once it is dead, from its supervising thread."""


@runtime_checkable
class Grant(Protocol):
    """What is read of the limits of point `subagent`."""

    operation: str  # the permitted operation
    child: str  # the subagent; `new` for one that is to be started
    turns: int  # the most turns to return
    line_bytes: int  # bytes of each turn
    timeout_seconds: int  # how long the operation may take
    lifetime_seconds: int  # how long a subagent may live


_NEW = "new"
"""How limits name a subagent that is yet to be started."""


class Subagents:
    """The subagents of this process. A context manager: running subagents are killed at its end."""

    def __init__(
        self,
        decide: Decide,
        family: Family,
        program: Program,
        *,
        history: HistoryLimits = HistoryLimits(),  # noqa: B008  (frozen)
    ) -> None:
        """`family` stores parents and children."""
        self._decide, self._family, self._program = decide, family, program
        self._history = history
        self._lock = threading.Lock()
        self._closed = False
        self._running: dict[str, SubagentProcess] = {}
        self._over: OrderedDict[str, SubagentProcess] = OrderedDict()
        self._gave: OrderedDict[str, Work] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill all running subagents and wait until they are dead; no more are started."""
        with self._lock:
            self._closed = True
            running = list(self._running.values())
        for process in running:
            process.kill()
        for process in running:
            process.over.wait()

    def spawn(self, ask: Requester, task: str, timeout_seconds: int | None = None) -> Reply:
        """Start a subagent; the result names it. It is killed if it does not read its task in time."""

        def work(grant: Grant, stop: StopSignal) -> Work:
            child, process = self._start(ask, task, grant, stop)
            if process.input_taken.wait(grant.timeout_seconds):
                return self._report(ask, grant, child, process, "done")
            process.kill()
            process.over.wait()
            return self._report(ask, grant, child, process, "late")

        return self._do(ask, {"operation": "spawn", "task": task, "timeout_seconds": timeout_seconds}, _NEW, work)

    def run(self, ask: Requester, task: str, timeout_seconds: int | None = None) -> Reply:
        """Start a subagent and wait until it has ended; returns the last turns of its transcript."""

        def work(grant: Grant, stop: StopSignal) -> Work:
            child, process = self._start(ask, task, grant, stop)
            status = "done" if process.over.wait(grant.timeout_seconds) else "late"
            return self._report(ask, grant, child, process, status, turns=grant.turns)

        return self._do(ask, {"operation": "run", "task": task, "timeout_seconds": timeout_seconds}, _NEW, work)

    def poll(
        self, ask: Requester, child: str, limit_turns: int | None = None, timeout_seconds: int | None = None
    ) -> Reply:
        """The last turns of a subagent's transcript; waits only for its first one."""

        def work(grant: Grant, _: StopSignal) -> Work:
            process = self._find(grant.child)
            status = "done" if process.transcript.spoken.wait(grant.timeout_seconds) else "late"
            return self._report(ask, grant, grant.child, process, status, turns=grant.turns)

        stated = {"operation": "poll", "limit_turns": limit_turns, "timeout_seconds": timeout_seconds}
        return self._do(ask, stated, child, work)

    def cancel(self, ask: Requester, child: str, timeout_seconds: int | None = None) -> Reply:
        """Request a subagent to stop and wait until it has."""
        line = _line(type="cancel")
        return self._stop("cancel", ask, child, timeout_seconds, lambda process: process.cancel(line))

    def kill(self, ask: Requester, child: str, timeout_seconds: int | None = None) -> Reply:
        """End a subagent at once and wait until it is dead."""
        return self._stop("kill", ask, child, timeout_seconds, SubagentProcess.kill)

    def _stop(
        self, operation: str, ask: Requester, child: str, seconds: int | None, stop: Callable[[SubagentProcess], None]
    ) -> Reply:
        def work(grant: Grant, _: StopSignal) -> Work:
            process = self._find(grant.child)
            stop(process)
            status = "done" if process.over.wait(grant.timeout_seconds) else "late"
            return self._report(ask, grant, grant.child, process, status)

        return self._do(ask, {"operation": operation, "timeout_seconds": seconds}, child, work)

    def _do(
        self, ask: Requester, stated: dict[str, Any], child: str, work: Callable[[Grant, StopSignal], Work]
    ) -> Reply:
        """Request a decision and, on an allow, do the work; once for each key."""
        named = None if child == _NEW else child
        request = {**ask.request(), "child_conversation_id": named, **stated}

        def executor(permit: Permit, job: Job) -> Result:
            limits = granted(permit, "subagent", job.input_digest, Grant)
            if limits.operation != stated["operation"]:
                raise _failed("the permit is for another operation", "engine.limit_unenforceable")
            if limits.child != child.lower():
                raise _failed("the permit is for another subagent", "engine.limit_unenforceable")
            done = work(limits, job.stop)
            with self._lock:
                self._gave[permit.decision_id] = done
                while len(self._gave) > self._history.subagents:
                    self._gave.popitem(last=False)
            return done.result

        answer = self._decide(request, executor, ask.key, ask.approval)
        decision, fault = answer.decision, answer.fault
        if decision.outcome is not Outcome.ALLOW or fault is not None:
            return Reply(decision, fault)
        with self._lock:
            gave = self._gave.get(decision.decision_id) if ask.key else self._gave.pop(decision.decision_id, None)
        if gave is None:
            return Reply(decision, _failed("the answer to this key is no longer known", "engine.subagent_forgotten"))
        return Reply(decision, None, gave.result, gave.turns)

    def _start(self, ask: Requester, task: str, grant: Grant, stop: StopSignal) -> tuple[str, SubagentProcess]:
        """Start a subagent, which `stop` kills; it is stored as a child before it runs."""
        child = str(uuid.uuid4())

        def on_end(state: State) -> None:
            with self._lock:
                process = self._over[child] = self._running.pop(child)
                stop.forget(process.kill)
                while len(self._over) > self._history.subagents:
                    self._over.popitem(last=False)
            self._family.ended(child, state)

        self._family.started(child, ask.conversation)
        try:
            process = self._launch(child, grant, on_end, stop)
        except (OSError, ValueError, RuntimeError) as error:  # no such program, no descriptors or threads left
            with suppress(Exception):
                self._family.ended(child, "ended")
            raise _failed(f"the subagent cannot be started: {type(error).__name__}", "engine.subagent_start") from error
        process.send(_line(type="task", conversation=child, text=task))
        return child, process

    def _launch(self, child: str, grant: Grant, on_end: Callable[[State], None], stop: StopSignal) -> SubagentProcess:
        with self._lock:  # it cannot end before it is known
            if self._closed:
                raise RuntimeError("closed")
            process = SubagentProcess(self._program, grant.lifetime_seconds, self._history, on_end)
            self._running[child] = process
            stop.then(process.kill)
            return process

    def _find(self, child: str) -> SubagentProcess:
        with self._lock:
            process = self._running.get(child) or self._over.get(child)
        if process is None:
            raise _failed("this process did not start this subagent, or it ended long ago", "engine.subagent_unknown")
        return process

    def _report(
        self, ask: Requester, grant: Grant, child: str, process: SubagentProcess, status: str, *, turns: int = 0
    ) -> Work:
        """The audit fields of an operation, and its turns, which are not recorded."""
        last_turns = process.transcript.last(turns, grant.line_bytes)
        facts = {
            "operation": grant.operation,
            "child": child,
            "parent": ask.conversation,
            "state": process.state,
            "turns": len(last_turns),
            "said": process.transcript.count,
        }
        return Work(Result(status, facts), last_turns)


def _line(**fields: str) -> bytes:
    return json.dumps(fields).encode("ascii")


def _failed(message: str, code: str) -> WorkError:
    return WorkError(message, remedy="see the recorded decisions on this subagent, then repeat the request", code=code)
