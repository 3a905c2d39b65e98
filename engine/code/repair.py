"""The repair loop: rejected code goes back with sanitised reasons, and what comes instead is a run of its own (C63).

Every try is decided on from the start. How many there may be is a value of the policy, which counts them by
their task in the engine's state; failed code is not tried again.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.code.request import read
from engine.code.result import CodeRun
from engine.errors import EngineError

MOST_TRIES = 100
"""Of one loop, whatever the policy says: as many as a policy may allow."""

_EXHAUSTED = "policy_block:attempts_exhausted"
_REPAIRABLE = (
    *("invalid_action:", "policy_block:", "invalid_code_output:", "code_runtime_error:", "verifier:"),
    *("code_timeout", "code_output_too_large", "code_stderr_too_large"),
)
"""How reasons begin that other code may do away with."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Input of a repair: the stop reason, the requirements that do not hold, and one line of the output."""

    attempt: int
    stop_reason: str
    phase: str
    findings: list[dict[str, Any]]
    snippets: dict[str, str]

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "attempt": self.attempt,
            "stop_reason": self.stop_reason,
            "phase": self.phase,
            "findings": self.findings,
            "snippets": self.snippets,
        }


Repair = Callable[[Rejection], Any]
"""Gives the next action, or None where there is none."""

RepairAsync = Callable[[Rejection], Awaitable[Any]]


@dataclass(slots=True)
class Tries:
    """The tries of one loop. `document` is what is run next; one task ties them together."""

    document: dict[str, Any]
    runs: list[CodeRun] = field(default_factory=list)

    @classmethod
    def of(cls, asked: Any) -> Tries | None:
        """The first one; None for what cannot be read, which is refused as any other run is."""
        try:
            request = read(asked)
        except EngineError:
            return None
        return cls({**request.stated, "task": request.task or f"repair-{uuid.uuid4()}"})

    def rejected(self, run: CodeRun) -> Rejection | None:
        """What to tell of a run that another action may do better; None where the loop ends."""
        self.runs.append(run)
        document = run.document
        over = len(self.runs) >= MOST_TRIES or run.fault is not None or document["stop_reason"] == _EXHAUSTED
        if over or not run.stop_reason.startswith(_REPAIRABLE):
            return None
        return Rejection(
            attempt=len(self.runs),
            stop_reason=run.stop_reason,
            phase=document["phase"],
            findings=[_told(one) for one in document.get("findings", ())],
            snippets=_snippets(document["trace"]),
        )

    def next(self, action: Any) -> None:
        """Another action takes the place of the one that was rejected. An approval or run id was for that one."""
        kept = {name: value for name, value in self.document.items() if name not in {"approvals", "run_id"}}
        self.document = {**kept, "action": action}

    def result(self) -> CodeRun:
        """The last run, with what became of those before it."""
        run = self.runs[-1]
        run.document["attempts"] = [
            {"run_id": one.document["run_id"], "stop_reason": one.stop_reason} for one in self.runs
        ]
        return run


def repaired(run: Callable[[Any], CodeRun], asked: Any, repair: Repair) -> CodeRun:
    """Run, and run again what `repair` gives, until one is good, none is given, or the policy has enough."""
    tries = Tries.of(asked)
    if tries is None:
        return run(asked)
    while (rejection := tries.rejected(run(tries.document))) is not None:
        action = repair(rejection)
        if action is None:
            break
        tries.next(action)
    return tries.result()


async def repaired_async(run: Callable[[Any], Awaitable[CodeRun]], asked: Any, repair: RepairAsync) -> CodeRun:
    """`repaired` for an event loop."""
    tries = Tries.of(asked)
    if tries is None:
        return await run(asked)
    while (rejection := tries.rejected(await run(tries.document))) is not None:
        action = await repair(rejection)
        if action is None:
            break
        tries.next(action)
    return tries.result()


def _told(finding: Mapping[str, Any]) -> dict[str, Any]:
    return {name: finding[name] for name in ("code", "subject", "message", "remedy")}


def _snippets(trace: list[dict[str, Any]]) -> dict[str, str]:
    names = ("stderr_snippet", "stdout_snippet")
    return {name: step[name] for step in trace for name in names if name in step}
