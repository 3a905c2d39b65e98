"""The registry of stop reasons of code runs, and the mapping from findings to reasons (C51).

A reason is one or more words joined by colons. `*` in the registry matches the rest, which is a
code of the policy or an id; unregistered reasons cannot be emitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NewType

from engine.errors import EngineError, Exit
from engine.model import Finding, Level

StopReason = NewType("StopReason", str)
"""A registered reason; `registered` makes those that are not written here."""

REGISTRY: tuple[str, ...] = (
    "success",
    "max_seconds",
    "cancelled",
    "approval_required",
    "invalid_request:network_access_must_be_denied",
    "invalid_request:*",
    "invalid_action:entrypoint_path",
    "invalid_action:entrypoint_denied",
    "invalid_action:*",
    "policy_block:language_denied_policy",
    "policy_block:language_denied_execution",
    "policy_block:static_policy_violation:*",
    "policy_block:*",
    "code_timeout",
    "code_output_too_large",
    "code_stderr_too_large",
    "code_runtime_error:*",
    "invalid_code_output:*",
    "engine_fault:*",
    "verifier:*",
)
"""All of them. What follows `verifier:` is itself one of these: it is why the verifier's own run stopped."""

_VERIFIER = "verifier:"
_VIOLATION = "static_policy_violation"
_BUDGET = "max_seconds"
_VIOLATIONS = 3
"""Most violations in a reason; the record of the scan has all of them (C19)."""

_LONGEST = 512


def registered(text: str) -> StopReason:
    """The reason of this text. Raises EngineError."""
    if not is_registered(text):
        raise EngineError("the stop reason of a run is not registered", remedy="this is an engine fault: report it")
    return StopReason(text)


def is_registered(text: str) -> bool:
    """Whether a run may stop for this reason."""
    if len(text) > _LONGEST or not text.isprintable():
        return False
    if text.startswith(_VERIFIER):
        return is_registered(text.removeprefix(_VERIFIER)) and text != _VERIFIER + "success"
    return any(fnmatchcase(text, pattern.replace("*", "?*")) for pattern in REGISTRY)


SUCCESS = StopReason("success")
CANCELLED = StopReason("cancelled")
APPROVAL = StopReason("approval_required")
MAX_SECONDS = StopReason(_BUDGET)
STOPPED = StopReason("policy_block:stopped")
"""A stop in force refuses what was running."""


def of_fault(fault: EngineError) -> StopReason:
    """The reason for a fault of the engine, its policy server, record, state or sandbox: no verdict on the code."""
    return registered(f"engine_fault:{fault.code}")


def of_request(fault: EngineError) -> StopReason:
    """The reason for an invalid request: it is not plain JSON, or not a run."""
    if fault.exit is not Exit.UNREADABLE:
        return of_fault(fault)
    unreadable = fault.code in {"engine.request_invalid", "engine.input_unreadable", "engine.json_invalid"}
    return registered(f"invalid_request:{'unreadable' if unreadable else fault.code.removeprefix('engine.')}")


def of_action(findings: Iterable[Finding]) -> StopReason:
    """The reason for a refused action: the code of the first finding, or a block by policy."""
    return _own_or_blocked(_first(findings).code)


def of_execution(findings: Iterable[Finding], scanned: Iterable[Finding]) -> StopReason:
    """The reason of a refused execution; `scanned` are the findings of the scan, which describe the code (C19)."""
    code = _first(findings).code
    if code == _BUDGET:
        return MAX_SECONDS
    if code == _VIOLATION:
        violations = sorted({_detail_of(finding) for finding in scanned if finding.level is not Level.WARN})
        return registered(f"policy_block:{_VIOLATION}:{','.join(violations[:_VIOLATIONS]) or 'unknown'}")
    return _own_or_blocked(code)


def of_output(findings: Iterable[Finding]) -> StopReason:
    """The reason of refused output: the code, and its subject if it has one."""
    return _own_or_blocked(_detail_of(_first(findings)))


def _own_or_blocked(text: str) -> StopReason:
    """A code of the catalogue unchanged; the code of an organization's own rule counts as a block by policy."""
    own = (f"{word}:" for word in ("invalid_request", "invalid_action", "invalid_code_output", "code_runtime_error"))
    plain = {reason for reason in REGISTRY if ":" not in reason} - {SUCCESS, CANCELLED, APPROVAL}
    return registered(text if text in plain or text.startswith(tuple(own)) else f"policy_block:{text}")


def _first(findings: Iterable[Finding]) -> Finding:
    """The finding that refused; findings are sorted, and warnings and confirmations do not count."""
    return next(finding for finding in findings if finding.level is Level.DENY)


def _detail_of(finding: Finding) -> str:
    """The code, and the id in its subject: `os` for `imports/os`."""
    tail = "" if finding.subject is None else finding.subject.partition("/")[2] or finding.subject
    return f"{finding.code}:{tail}" if tail else finding.code
