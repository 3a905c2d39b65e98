"""From what was seen of a run to its status: what we did ourselves first, then what the launcher reported."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field

from adapters.sandbox.model import Bounds, Ended, NotTaken, Status
from adapters.sandbox.report import Report

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
"""The signals that the launcher cannot block: the C library keeps two of them to itself, so they end it too."""

_LOST = (NotTaken("(all files)", "not_handed_out"),)
"""Of a program that was killed nothing is handed out, and nobody looked at what there was."""

_SIGNALED = 128
"""Added to the number of a signal where an exit code stands for one."""


@dataclass(slots=True)
class Seen:
    """What the engine saw of one run. `killed` names the bound for which we ended it; `undead` what would not end."""

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


def ended(seen: Seen, bounds: Bounds) -> Ended:
    """The result. Without the handshake, or without a word on how the program ended, it is a sandbox error."""
    status, exit_code, number, limit = _verdict(seen, bounds)
    kept = status in {Status.OK, Status.RUNTIME_ERROR, Status.SIGNAL} and seen.report.complete
    return Ended(
        status=status,
        exit_code=exit_code,
        signal=number,
        wall_seconds=seen.wall_seconds,
        cpu_seconds=seen.cpu_seconds if seen.report.cpu_seconds is None else seen.report.cpu_seconds,
        stdout=bytes(seen.stdout),
        stderr=bytes(seen.stderr),
        stdout_bytes=seen.stdout_bytes,
        stderr_bytes=seen.stderr_bytes,
        limit=limit,
        artifacts=tuple(seen.report.artifacts) if kept else (),
        refused_artifacts=tuple(seen.report.refused) if kept else _LOST if bounds.artifact_files else (),
    )


_Verdict = tuple[Status, int | None, int | None, str | None]
_NO_VERDICT: _Verdict = (Status.SANDBOX_ERROR, None, None, None)


def _verdict(seen: Seen, bounds: Bounds) -> _Verdict:
    report = seen.report
    if not seen.let_go or seen.undead or report.broken:
        return _NO_VERDICT
    if seen.killed is not None:
        return _BY_US[seen.killed], None, int(signal.SIGKILL), seen.killed
    if report.wait_status is None:
        return _unreported(seen, bounds)
    return _exited(report.wait_status, seen, bounds) if report.complete else _NO_VERDICT


def _exited(status: int, seen: Seen, bounds: Bounds) -> _Verdict:
    if os.WIFSIGNALED(status):
        return _signaled(os.WTERMSIG(status), seen, bounds)
    if not os.WIFEXITED(status):  # a stop is no end
        return _NO_VERDICT
    code = os.WEXITSTATUS(status)
    if code == 0:
        return Status.OK, 0, None, None
    return Status.RUNTIME_ERROR, code, None, _said(seen)


def _unreported(seen: Seen, bounds: Bounds) -> _Verdict:
    """The launcher is gone: where it stood beside the program, only a kill can have come from the program itself."""
    if seen.single and seen.exit_line is not None and seen.exit_line > _SIGNALED:
        return _signaled(seen.exit_line - _SIGNALED, seen, bounds)
    for number in _KILLS:
        if seen.exit_line == _SIGNALED + number:
            return Status.SIGNAL, None, number, None
    return _NO_VERDICT


def _signaled(number: int, seen: Seen, bounds: Bounds) -> _Verdict:
    used = seen.report.cpu_seconds
    used_up = number == signal.SIGKILL and (used or 0.0) >= bounds.cpu_seconds
    own = used is not None and used < bounds.cpu_seconds / 2  # the kernel counts in ticks, but not as wrongly as that
    if (number == signal.SIGXCPU and not own) or used_up:
        return Status.TIMEOUT_CPU, None, number, "cpu"
    if number == signal.SIGSYS:
        return Status.FORBIDDEN_SYSCALL, None, number, None
    return Status.SIGNAL, None, number, None


def _said(seen: Seen) -> str | None:
    """Python's own word that there was no memory left: a hint, for the program could say it too."""
    lines = bytes(seen.stderr).rstrip().splitlines()
    return "memory" if lines and lines[-1].startswith(b"MemoryError") else None


def not_started(said: str) -> Ended:
    """The end of a run that did not begin; `stderr` has what the sandbox said."""
    text = said.encode("utf-8")
    return Ended(Status.SANDBOX_ERROR, None, None, 0.0, None, b"", text, 0, len(text))
