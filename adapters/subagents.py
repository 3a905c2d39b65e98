"""Subagents as real processes: started, watched and ended, each time under a permit for exactly that.

    spawn   starts one, returns when it has its task
    run     starts one, waits for its end; after the timeout it goes on alone, until its lifetime ends
    poll    the last turns of its transcript, each line cut; waits for the first one
    cancel  asks it to stop (a line, and SIGTERM), says whether it did in time
    kill    ends it and its whole group, returns when it is dead

Every operation asks the decision point first and is recorded with its result. Repeated with the same key it
gives what it gave first and has no second effect. Blocking; threads may share one object.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from adapters.subagent_process import Program, State, SubagentProcess
from adapters.subagent_words import Ask, Decide, Family, Grant, Reply, Work
from adapters.transcript import KeptLimits
from engine.errors import WorkError
from engine.model import Limits, Outcome, Permit, Result

_NEW = "new"
"""How limits name a subagent that is yet to be started."""


class Subagents:
    """The subagents of this process. A context manager: those that still run are killed when it ends."""

    def __init__(
        self,
        decide: Decide,
        family: Family,
        program: Program,
        limits: type[Limits],
        *,
        kept: KeptLimits = KeptLimits(),  # noqa: B008  (frozen)
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        """`limits` are those that permits of the point `subagent` are sealed for; `family` keeps whose child is whose.

        `new_id` gives UUIDs in lower case.
        """
        self._decide, self._family, self._program, self._limits = decide, family, program, limits
        self._kept, self._new_id = kept, new_id
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
        """Kill whatever still runs, and wait until it is dead; nothing is started any more."""
        with self._lock:
            self._closed = True
            running = list(self._running.values())
        for process in running:
            process.kill()
        for process in running:
            process.over.wait()

    def spawn(self, ask: Ask, task: str, timeout_seconds: int | None = None) -> Reply:
        """Start a subagent; the result names it. One that does not take its task in time is killed."""

        def work(grant: Grant) -> Work:
            child, process = self._start(ask, task, grant)
            if process.told.wait(grant.timeout_seconds):
                return self._report(ask, grant, child, process, "done")
            process.kill()
            process.over.wait()
            return self._report(ask, grant, child, process, "late")

        return self._do(ask, {"operation": "spawn", "task": task, "timeout_seconds": timeout_seconds}, _NEW, work)

    def run(self, ask: Ask, task: str, timeout_seconds: int | None = None) -> Reply:
        """Start a subagent and wait until it has ended; gives the last turns of its transcript."""

        def work(grant: Grant) -> Work:
            child, process = self._start(ask, task, grant)
            status = "done" if process.over.wait(grant.timeout_seconds) else "late"
            return self._report(ask, grant, child, process, status, turns=grant.turns)

        return self._do(ask, {"operation": "run", "task": task, "timeout_seconds": timeout_seconds}, _NEW, work)

    def poll(self, ask: Ask, child: str, limit_turns: int | None = None, timeout_seconds: int | None = None) -> Reply:
        """The last turns of a subagent's transcript; waits only for its first one."""

        def work(grant: Grant) -> Work:
            process = self._find(grant.child)
            status = "done" if process.transcript.spoken.wait(grant.timeout_seconds) else "late"
            return self._report(ask, grant, grant.child, process, status, turns=grant.turns)

        stated = {"operation": "poll", "limit_turns": limit_turns, "timeout_seconds": timeout_seconds}
        return self._do(ask, stated, child, work)

    def cancel(self, ask: Ask, child: str, timeout_seconds: int | None = None) -> Reply:
        """Ask a subagent to stop and wait until it has."""

        def work(grant: Grant) -> Work:
            process = self._find(grant.child)
            process.cancel(_line(type="cancel"))
            status = "done" if process.over.wait(grant.timeout_seconds) else "late"
            return self._report(ask, grant, grant.child, process, status)

        return self._do(ask, {"operation": "cancel", "timeout_seconds": timeout_seconds}, child, work)

    def kill(self, ask: Ask, child: str, timeout_seconds: int | None = None) -> Reply:
        """End a subagent at once and wait until it is dead."""

        def work(grant: Grant) -> Work:
            process = self._find(grant.child)
            process.kill()
            status = "done" if process.over.wait(grant.timeout_seconds) else "late"
            return self._report(ask, grant, grant.child, process, status)

        return self._do(ask, {"operation": "kill", "timeout_seconds": timeout_seconds}, child, work)

    def _do(self, ask: Ask, stated: dict[str, Any], child: str, work: Callable[[Grant], Work]) -> Reply:
        """Ask the point, and on an allow do the work, once for each key."""
        named = None if child == _NEW else child
        request = {**ask.request(), "child_conversation_id": named, **stated}

        def hand(permit: Permit, job: Any) -> Result:
            limits = permit.demand("subagent", job.input_digest, self._limits)
            if not isinstance(limits, Grant) or limits.operation != stated["operation"]:
                raise _failed("the permit is for another operation", "engine.limit_unenforceable")
            if limits.child != child.lower():
                raise _failed("the permit is for another subagent", "engine.limit_unenforceable")
            done = work(limits)
            with self._lock:
                self._gave[permit.decision_id] = done
                while len(self._gave) > self._kept.ended:
                    self._gave.popitem(last=False)
            return done.result

        answer = self._decide(request, hand, ask.key, ask.approval)
        decision, fault = answer.decision, answer.fault
        if decision.outcome is not Outcome.ALLOW or fault is not None:
            return Reply(decision, fault)
        with self._lock:
            gave = self._gave.get(decision.decision_id) if ask.key else self._gave.pop(decision.decision_id, None)
        if gave is None:
            return Reply(decision, _failed("what this key gave first is no longer known", "engine.subagent_forgotten"))
        return Reply(decision, None, gave.result, gave.turns)

    def _start(self, ask: Ask, task: str, grant: Grant) -> tuple[str, SubagentProcess]:
        """A new subagent, known as a child before it runs."""
        child = self._new_id()

        def ended(state: State) -> None:
            with self._lock:
                self._over[child] = self._running.pop(child)
                while len(self._over) > self._kept.ended:
                    self._over.popitem(last=False)
            self._family.ended(child, state)

        self._family.started(child, ask.conversation)
        try:
            process = self._launch(child, grant, ended)
        except (OSError, ValueError, RuntimeError) as error:  # no such program, no descriptors or threads left
            with suppress(Exception):
                self._family.ended(child, "ended")
            raise _failed(f"the subagent cannot be started: {type(error).__name__}", "engine.subagent_start") from error
        process.tell(_line(type="task", conversation=child, text=task))
        return child, process

    def _launch(self, child: str, grant: Grant, ended: Callable[[State], None]) -> SubagentProcess:
        with self._lock:  # it cannot end before it is known
            if self._closed:
                raise RuntimeError("closed")
            process = SubagentProcess(self._program, grant.lifetime_seconds, self._kept, ended)
            self._running[child] = process
            return process

    def _find(self, child: str) -> SubagentProcess:
        with self._lock:
            process = self._running.get(child) or self._over.get(child)
        if process is None:
            raise _failed("this subagent is not one of this process, or ended long ago", "engine.subagent_unknown")
        return process

    def _report(
        self, ask: Ask, grant: Grant, child: str, process: SubagentProcess, status: str, *, turns: int = 0
    ) -> Work:
        """The audit fields of an operation, and the turns that it gives; no word of them is recorded."""
        given = process.transcript.last(turns, grant.line_bytes)
        facts = {
            "operation": grant.operation,
            "child": child,
            "parent": ask.conversation,
            "state": process.state,
            "turns": len(given),
            "said": process.transcript.said,
        }
        return Work(Result(status, facts), given)


def _line(**fields: str) -> bytes:
    return json.dumps(fields).encode("ascii")


def _failed(message: str, code: str) -> WorkError:
    return WorkError(message, remedy="see the record of the decisions on this subagent, then ask again", code=code)
