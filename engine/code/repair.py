"""The repair loop: rejected code is returned with sanitised reasons; each replacement is a new run (C63).

Every attempt is decided from the start. Their maximum is a value of the policy, and they are counted by
task in the engine's state; failed code is not run again.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any

from engine import steps
from engine.code.request import read
from engine.code.result import CodeRun
from engine.errors import EngineError

MOST_TRIES = 100
"""Most attempts of one loop: the highest number that a policy may allow."""

_EXHAUSTED = "policy_block:attempts_exhausted"
_PUBLIC = ("code", "subject", "line", "found", "requirement", "remedy")
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


Repair = Callable[[Rejection], Any]
"""Returns the next action, or None if there is none."""

RepairAsync = Callable[[Rejection], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The request of the next run."""

    request: Any


def repaired(run: Callable[[Any], CodeRun], original: Any, repair: Repair) -> CodeRun:
    """Run, then run each action that `repair` returns, until one succeeds, none is left, or the policy stops it."""
    return steps.run(_loop(original), lambda step: run(step.request) if isinstance(step, _Attempt) else repair(step))


async def repaired_async(run: Callable[[Any], Awaitable[CodeRun]], original: Any, repair: RepairAsync) -> CodeRun:
    """`repaired` for an event loop."""
    return await steps.run_async(
        _loop(original), lambda step: run(step.request) if isinstance(step, _Attempt) else repair(step)
    )


def _loop(original: Any) -> Generator[_Attempt | Rejection, Any, CodeRun]:
    """Yields attempts, which are sent their run, and rejections, which are sent the next action or None."""
    try:
        request = read(original)
    except EngineError:  # refused as any other run is
        refused: CodeRun = yield _Attempt(original)
        return refused
    document = {**request.stated, "task": request.task or f"repair-{uuid.uuid4()}"}  # one task links the attempts
    runs: list[CodeRun] = [(yield _Attempt(document))]
    while (rejection := _rejection(runs)) is not None and (action := (yield rejection)) is not None:
        stable = {name: value for name, value in document.items() if name not in {"approvals", "run_id"}}
        document = {**stable, "action": action}  # approvals and run id were for the rejected action
        runs.append((yield _Attempt(document)))
    last = runs[-1]
    last.document["attempts"] = [{"run_id": run.document["run_id"], "stop_reason": run.stop_reason} for run in runs]
    return last


def _rejection(runs: list[CodeRun]) -> Rejection | None:
    """The rejection of the last run that another action may repair; None if the loop ends."""
    run, document = runs[-1], runs[-1].document
    over = len(runs) >= MOST_TRIES or run.fault is not None or document["stop_reason"] == _EXHAUSTED
    if over or not run.stop_reason.startswith(_REPAIRABLE):
        return None
    return Rejection(
        attempt=len(runs),
        stop_reason=run.stop_reason,
        phase=document["phase"],
        findings=[{name: one[name] for name in _PUBLIC} for one in document.get("findings", ())],
        snippets=_snippets(document["trace"]),
    )


def _snippets(trace: list[dict[str, Any]]) -> dict[str, str]:
    names = ("stderr_snippet", "stdout_snippet")
    return {name: step[name] for step in trace for name in names if name in step}
