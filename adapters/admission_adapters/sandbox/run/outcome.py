"""Derives the status of a run from observations: first what the engine did itself, then the launcher's report."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field

from admission_adapters.sandbox.model import Bounds, RefusedArtifact, RunResult, Status
from admission_adapters.sandbox.run.report import Report

_BY_US = {
    "stdout": Status.OUTPUT_LIMIT,
    "stderr": Status.OUTPUT_LIMIT,
    "wall": Status.TIMEOUT_WALL,
    "cpu": Status.TIMEOUT_CPU,
    "cancelled": Status.CANCELLED,
    "memory": Status.OOM,
    "artifacts": Status.SANDBOX_ERROR,
}

_KILLS = (int(signal.SIGKILL), 32, 33)
"""Signals that the launcher cannot block (the C library reserves two of them), so they end the launcher too."""

_LOST = (RefusedArtifact("(all files)", "not_handed_out"),)
"""No artifacts of a killed program are handed out or inspected."""

_SIGNALED = 128
"""Added to the number of a signal to form an exit code."""


@dataclass(slots=True)
class RunObservations:
    """What the engine observed of one run. `killed` names the exceeded limit; `undead`: it could not be killed."""

    report: Report
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    killed: str | None = None
    let_go: bool = False
    undead: bool = False
    exit_line: int | None = None
    single: bool = False  # the program is the first process itself
    cpu_seconds: float | None = None
    wall_seconds: float = 0.0


def ended(observed: RunObservations, bounds: Bounds) -> RunResult:
    """The result. Without the handshake, or without a word on how the program ended, it is a sandbox error."""
    status, exit_code, number, limit = _verdict(observed, bounds)
    complete = status in {Status.OK, Status.RUNTIME_ERROR, Status.SIGNAL} and observed.report.complete
    return RunResult(
        status=status,
        exit_code=exit_code,
        signal=number,
        wall_seconds=observed.wall_seconds,
        cpu_seconds=observed.cpu_seconds if observed.report.cpu_seconds is None else observed.report.cpu_seconds,
        stdout=bytes(observed.stdout),
        stderr=bytes(observed.stderr),
        stdout_bytes=observed.stdout_bytes,
        stderr_bytes=observed.stderr_bytes,
        limit=limit,
        artifacts=tuple(observed.report.artifacts) if complete else (),
        refused_artifacts=tuple(observed.report.refused) if complete else _LOST if bounds.artifact_files else (),
    )


_Verdict = tuple[Status, int | None, int | None, str | None]
_NO_VERDICT: _Verdict = (Status.SANDBOX_ERROR, None, None, None)


def _verdict(observed: RunObservations, bounds: Bounds) -> _Verdict:
    report = observed.report
    if not observed.let_go or observed.undead or report.broken:
        return _NO_VERDICT
    if observed.killed is not None:
        return _BY_US[observed.killed], None, int(signal.SIGKILL), observed.killed
    if report.wait_status is None:
        return _unreported(observed, bounds)
    return _exited(report.wait_status, observed, bounds) if report.complete else _NO_VERDICT


def _exited(status: int, observed: RunObservations, bounds: Bounds) -> _Verdict:
    if os.WIFSIGNALED(status):
        return _signaled(os.WTERMSIG(status), observed, bounds)
    if not os.WIFEXITED(status):  # a stop is no end
        return _NO_VERDICT
    code = os.WEXITSTATUS(status)
    if code == 0:
        return Status.OK, 0, None, None
    return Status.RUNTIME_ERROR, code, None, _sandbox_output(observed)


def _unreported(observed: RunObservations, bounds: Bounds) -> _Verdict:
    """The launcher ended: if it ran beside the program, only a kill by the program explains that."""
    if observed.single and observed.exit_line is not None and observed.exit_line > _SIGNALED:
        return _signaled(observed.exit_line - _SIGNALED, observed, bounds)
    for number in _KILLS:
        if observed.exit_line == _SIGNALED + number:
            return Status.SIGNAL, None, number, None
    return _NO_VERDICT


def _signaled(number: int, observed: RunObservations, bounds: Bounds) -> _Verdict:
    used = observed.report.cpu_seconds
    used_up = number == signal.SIGKILL and (used or 0.0) >= bounds.cpu_seconds
    own = used is not None and used < bounds.cpu_seconds / 2  # the kernel counts in ticks, but not as wrongly as that
    if (number == signal.SIGXCPU and not own) or used_up:
        return Status.TIMEOUT_CPU, None, number, "cpu"
    if number == signal.SIGSYS:
        return Status.FORBIDDEN_SYSCALL, None, number, None
    return Status.SIGNAL, None, number, None


def _sandbox_output(observed: RunObservations) -> str | None:
    """Python's own message that no memory was left: a hint, since a program can print it too."""
    lines = bytes(observed.stderr).rstrip().splitlines()
    return "memory" if lines and lines[-1].startswith(b"MemoryError") else None


def not_started(message: str) -> RunResult:
    """The result of a run that did not begin; `stderr` is the output of the sandbox."""
    text = message.encode("utf-8")
    return RunResult(Status.SANDBOX_ERROR, stderr=text, stderr_bytes=len(text))
