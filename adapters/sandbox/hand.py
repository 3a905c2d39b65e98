"""The hand of a code execution: demands the permit, looks again at everything it can, then runs the sandbox once."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from adapters.sandbox.granted import Granted, Shown, bounds_of, enforced, prove_again, unenforceable
from adapters.sandbox.model import Backend, Ended, Program, Status
from engine.errors import WorkError
from engine.model import Limits, Permit, Result

FOLDER = "code_exec_agent_"
"""How the name of a working folder begins (C30)."""

_POINT = "code_execution"

ROOT_CAUSES: Mapping[Status, str] = {
    Status.OK: "none",
    Status.RUNTIME_ERROR: "program_error",
    Status.SIGNAL: "program_killed",
    Status.TIMEOUT_WALL: "time_limit",
    Status.TIMEOUT_CPU: "cpu_limit",
    Status.OUTPUT_LIMIT: "output_limit",
    Status.OOM: "memory_limit",
    Status.FORBIDDEN_SYSCALL: "forbidden_call",
    Status.CANCELLED: "cancelled",
    Status.SANDBOX_ERROR: "sandbox",
}
"""The class of what ended a run, by how it ended (A88)."""


@runtime_checkable
class ExecutionGrant(Granted, Protocol):
    """What is used of the limits of point `code_execution`."""

    language: str
    entrypoint: str
    code_sha256: str
    role: str
    seed: int
    environment: Mapping[str, str]
    retention_days: int


@dataclass(frozen=True, slots=True)
class Code:
    """What is to run: the text that was decided on, its entry point, and what stands on its standard input."""

    text: str
    entrypoint: str
    stdin: bytes


def run_code(
    permit: Permit,
    input_digest: str,
    limits: type[Limits],
    code: Code,
    backend: Backend,
    shown: Shown,
    cancel: threading.Event | None = None,
) -> tuple[Result, Ended, ExecutionGrant]:
    """Run code in a sandbox of its own; what may be written down of it, how it ended, and what it was granted.

    Raises WorkError: `engine.permit_missing` for other code or another sandbox than the permit's,
    `engine.limit_unenforceable` where the machine is no longer shown to hold every boundary.
    """
    grant = permit.demand(_POINT, input_digest, limits)
    if not isinstance(grant, ExecutionGrant):
        raise unenforceable("the limits of a code execution are not complete")
    text = code.text.encode("utf-8", "surrogatepass")
    granted = (grant.code_sha256, grant.entrypoint, grant.backend)
    if granted != (hashlib.sha256(text).hexdigest(), code.entrypoint, backend.name):
        raise WorkError(
            "the permit is for other code, another entry point or another sandbox",
            remedy="ask the engine for a decision on exactly this run",
            code="engine.permit_missing",
        )
    prove_again(grant, backend, shown)
    if cancel is not None and cancel.is_set():
        ended = _not_started()
    else:
        ended = backend.run(_program(grant, code), bounds_of(grant), cancel)
    return Result(ended.status.value, facts(grant, ended, shown)), ended, grant


def facts(grant: ExecutionGrant, ended: Ended, shown: Shown) -> dict[str, Any]:
    """What the record has of a run: no output, no code."""
    return {
        "role": grant.role,
        "language": grant.language,
        "code_sha256": grant.code_sha256,
        "seed": grant.seed,
        **how_it_ended(grant, ended, shown),
        "artifacts": [{"sha256": one.sha256, "bytes": len(one.data)} for one in ended.artifacts],
        "refused_artifacts": len(ended.refused_artifacts),
    }


def how_it_ended(grant: Granted, ended: Ended, shown: Shown) -> dict[str, Any]:
    """Where something ran, whether that holds the network off (C81), and how it ended."""
    return {
        "backend": grant.backend,
        "isolation": grant.isolation,
        "network": "enforced" if "network" in enforced(grant.backend, shown.boundaries) else "not_enforced",
        "exit_code": ended.exit_code,
        "signal": ended.signal,
        "limit": ended.limit,
        "root_cause": ROOT_CAUSES[ended.status],
        "exec_ms": milliseconds(ended),
        "stdout_bytes": ended.stdout_bytes,
        "stderr_bytes": ended.stderr_bytes,
    }


def milliseconds(ended: Ended) -> int:
    """How long the program took, whole milliseconds."""
    return int(ended.wall_seconds * 1_000)


def _program(grant: ExecutionGrant, code: Code) -> Program:
    return Program(
        language=grant.language,
        code=code.text,
        stdin=code.stdin,
        environment=dict(grant.environment),
        seed=grant.seed,
        folder=FOLDER + secrets.token_hex(8),
    )


def _not_started() -> Ended:
    """A run that was cancelled before anything was started."""
    return Ended(
        status=Status.CANCELLED,
        exit_code=None,
        signal=None,
        wall_seconds=0.0,
        cpu_seconds=None,
        stdout=b"",
        stderr=b"",
        stdout_bytes=0,
        stderr_bytes=0,
    )
