"""The executor of generated code: verifies the permit and the evidence again, then runs the sandbox once."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from admission_adapters import grants
from admission_adapters.sandbox.model import Backend, Bounds, Program, RunResult, Status
from engine.errors import PermitMissingError, WorkError
from engine.model import Boundary, Permit, Result, SandboxFacts


class Granted(Protocol):
    """Where a program runs, what has to enforce each boundary there, and its limits."""

    backend: str
    isolation: str
    required: Mapping[Any, tuple[str, ...]]

    def bounds(self) -> dict[str, Any]:
        """The limits by the names of `Bounds`; seconds, bytes, counts."""


def enforced(backend: str, boundaries: Iterable[Boundary]) -> dict[str, str]:
    """The boundaries that a sandbox enforces, and what enforces each."""
    return {item.boundary: item.kind for item in boundaries if item.backend == backend and item.enforced}


def run_granted(
    grant: Granted, backend: Backend, evidence: SandboxFacts, program: Program, cancel: threading.Event | None
) -> RunResult:
    """Run a program within the limits of its permit, once the evidence is verified again. Raises WorkError."""
    _prove_again(grant, backend, evidence)
    if cancel is not None and cancel.is_set():
        return RunResult(Status.CANCELLED)
    return backend.run(program, Bounds(**grant.bounds()), cancel)


def _prove_again(grant: Granted, backend: Backend, evidence: SandboxFacts) -> None:
    """The decision used the evidence, but it may be outdated."""
    if backend.name != grant.backend:
        raise unenforceable(f"the permit is for the sandbox `{grant.backend}`, not for `{backend.name}`")
    lacking = backend.available()
    if lacking is not None:
        raise unenforceable(f"the sandbox `{backend.name}` cannot be used here: {lacking}")
    probes = (probe for probe in evidence.probes if probe.id == backend.name)
    if not any(probe.authentic and probe.subject == probe.machine for probe in probes):
        raise unenforceable(f"the sandbox `{backend.name}` was not probed on this machine as it is now")
    enforcers = enforced(backend.name, evidence.boundaries)
    for name, kinds in grant.required.items():
        if enforcers.get(name) not in kinds:
            raise unenforceable(f"nothing proves that this machine enforces `{name}`")


def unenforceable(message: str) -> WorkError:
    """The error for limits that this machine cannot enforce."""
    return grants.unenforceable(message, "run `engine doctor --sandbox`, install what it names, and repeat the request")


_POINT = "code_execution"

INPUTS = "inputs"
"""The folder of a program's input files, below its working folder."""

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
    """The limits of point `code_execution`, as far as they are read."""

    language: str
    entrypoint: str
    code_sha256: str
    role: str
    seed: int
    environment: Mapping[str, str]
    retention_days: int
    packages: Sequence[Any]
    files: Sequence[Any]
    live: bool
    scan: str


@dataclass(frozen=True, slots=True)
class Code:
    """The code that was decided on, its entry point, its standard input and the files in its `inputs/`.

    `packages` is the folder of its packages and the digest of all files in it. `on_output` gets what the program
    prints, where the permit says that it may be shown.
    """

    text: str
    entrypoint: str
    stdin: bytes
    files: Mapping[str, bytes] = field(default_factory=dict)
    packages: tuple[str, str] | None = None
    on_output: Callable[[str, bytes], None] | None = None


def run_code(
    permit: Permit,
    input_digest: str,
    code: Code,
    backend: Backend,
    evidence: SandboxFacts,
    cancel: threading.Event | None = None,
) -> tuple[Result, RunResult, ExecutionGrant]:
    """Run code in its own sandbox; returns its recordable facts, its result and its grant.

    Raises WorkError: `engine.permit_missing` for other code or another sandbox than the permit's,
    `engine.limit_unenforceable` if the evidence no longer covers every boundary.
    """
    grant = grants.granted(permit, _POINT, input_digest, ExecutionGrant)
    text = code.text.encode("utf-8", "surrogatepass")
    decided = (grant.code_sha256, grant.entrypoint, grant.backend, _material(grant))
    files = {name: hashlib.sha256(content).hexdigest() for name, content in code.files.items()}
    tree = None if code.packages is None else code.packages[1]
    if decided != (hashlib.sha256(text).hexdigest(), code.entrypoint, backend.name, (files, tree)):
        raise PermitMissingError(
            "the permit is for other code, files or packages, another entry point or another sandbox",
            remedy="request a decision on exactly this run",
        )
    program = Program(
        grant.language,
        code.text,
        code.stdin,
        dict(grant.environment),
        grant.seed,
        files={f"{INPUTS}/{name}": content for name, content in code.files.items()},
        packages="" if code.packages is None else code.packages[0],
        on_output=code.on_output if grant.live else None,
    )
    run_result = run_granted(grant, backend, evidence, program, cancel)
    return Result(run_result.status.value, facts(grant, run_result, evidence)), run_result, grant


def _material(grant: ExecutionGrant) -> tuple[dict[str, str], str | None]:
    """The files of a permit with their digests, and the digest of its packages."""
    return {file.name: file.sha256 for file in grant.files}, grant.packages[0].tree if grant.packages else None


def facts(grant: ExecutionGrant, run_result: RunResult, evidence: SandboxFacts) -> dict[str, Any]:
    """The facts of a run for the record: no output, no code."""
    return {
        "role": grant.role,
        "language": grant.language,
        "code_sha256": grant.code_sha256,
        "seed": grant.seed,
        "scan": grant.scan,
        **({"packages": grant.packages[0].model_dump()} if grant.packages else {}),
        **({"files": [file.sha256 for file in grant.files]} if grant.files else {}),
        **result_facts(grant, run_result, evidence),
        "artifacts": [{"sha256": artifact.sha256, "bytes": len(artifact.data)} for artifact in run_result.artifacts],
        "refused_artifacts": len(run_result.refused_artifacts),
    }


def result_facts(grant: Granted, run_result: RunResult, evidence: SandboxFacts) -> dict[str, Any]:
    """The backend, its network isolation (C81), and the result of a run."""
    return {
        "backend": grant.backend,
        "isolation": grant.isolation,
        "network": "enforced" if "network" in enforced(grant.backend, evidence.boundaries) else "not_enforced",
        "exit_code": run_result.exit_code,
        "signal": run_result.signal,
        "limit": run_result.limit,
        "root_cause": ROOT_CAUSES[run_result.status],
        "exec_ms": int(run_result.wall_seconds * 1_000),
        "stdout_bytes": run_result.stdout_bytes,
        "stderr_bytes": run_result.stderr_bytes,
    }
