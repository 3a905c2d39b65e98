"""Why a run of generated code stopped: the one registry of reasons, and how findings become one (C51).

A reason is one or more words joined by colons. `*` in the registry stands for what follows, which is a
code of the policy or an id; nothing that is not registered can be emitted.
"""

from __future__ import annotations

from collections.abc import Iterable
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
"""So many violations are told; the others stand in the record of the scan (C19)."""

_LONGEST = 512


class UnregisteredError(EngineError):
    """Somebody tried to stop a run for a reason that is not in the registry."""


def registered(text: str) -> StopReason:
    """The reason of this text. Raises UnregisteredError."""
    if not is_registered(text):
        raise UnregisteredError(
            "a run cannot stop for a reason that is not registered", remedy="this is a fault of the engine: report it"
        )
    return StopReason(text)


def is_registered(text: str) -> bool:
    """Whether a run may stop for this reason."""
    if len(text) > _LONGEST or not text.isprintable():
        return False
    if text.startswith(_VERIFIER):
        return is_registered(text.removeprefix(_VERIFIER)) and text != _VERIFIER + "success"
    return any(_fits(text, one) for one in REGISTRY)


SUCCESS = StopReason("success")
CANCELLED = StopReason("cancelled")
APPROVAL = StopReason("approval_required")
MAX_SECONDS = StopReason(_BUDGET)


def of_fault(fault: EngineError) -> StopReason:
    """Of a fault of the engine, its policy server, record, state or sandbox: never a verdict on the code."""
    return registered(f"engine_fault:{fault.code}")


def of_request(fault: EngineError) -> StopReason:
    """Of a run that cannot be asked for: it is not plain JSON, or not a run."""
    if fault.exit is not Exit.UNREADABLE:
        return of_fault(fault)
    unreadable = fault.code in {"engine.request_invalid", "engine.input_unreadable", "engine.json_invalid"}
    return registered(f"invalid_request:{'unreadable' if unreadable else fault.code.removeprefix('engine.')}")


def of_verifier(reason: StopReason) -> StopReason:
    """Of a verifier that did not pass the output: why its own run stopped."""
    return registered(_VERIFIER + reason)


def of_action(findings: Iterable[Finding]) -> StopReason:
    """Of a refused action: the code itself, and any other finding as what policy blocks."""
    return _own_or_blocked(_first(findings).code)


def of_execution(findings: Iterable[Finding], scanned: Iterable[Finding]) -> StopReason:
    """Of a refused execution; `scanned` are the findings of the scan, which say what stands in the code."""
    code = _first(findings).code
    if code == _BUDGET:
        return MAX_SECONDS
    if code == _VIOLATION:
        return registered(f"policy_block:{reason_of_scan(scanned)}")
    return _own_or_blocked(code)


def reason_of_scan(scanned: Iterable[Finding]) -> str:
    """The words of a scan that found something: the first three of the sorted, unique violations (C19)."""
    found = ",".join(violations(scanned)[:_VIOLATIONS])
    return f"{_VIOLATION}:{found or 'unknown'}"


def violations(scanned: Iterable[Finding]) -> list[str]:
    """What the scan found, each once, sorted."""
    return sorted({_told(finding) for finding in scanned if finding.level is not Level.WARN})


def of_output(findings: Iterable[Finding]) -> StopReason:
    """Of refused output: the code, and what it is about where it says so."""
    return _own_or_blocked(_told(_first(findings)))


def _own_or_blocked(text: str) -> StopReason:
    """A code of the catalogue as it is; one of an organisation's own rules is something that policy blocks."""
    own = (f"{word}:" for word in ("invalid_request", "invalid_action", "invalid_code_output", "code_runtime_error"))
    plain = {one for one in REGISTRY if ":" not in one} - {SUCCESS, CANCELLED, APPROVAL}
    return registered(text if text in plain or text.startswith(tuple(own)) else f"policy_block:{text}")


def _first(findings: Iterable[Finding]) -> Finding:
    """What refused; findings are sorted, and those that only warn or ask are none."""
    return next(one for one in findings if one.level is Level.DENY)


def _told(finding: Finding) -> str:
    """The code, and the id behind the list of its subject: `imports/os` is `os`."""
    tail = "" if finding.subject is None else finding.subject.partition("/")[2] or finding.subject
    return f"{finding.code}:{tail}" if tail else finding.code


def _fits(text: str, pattern: str) -> bool:
    if not pattern.endswith("*"):
        return text == pattern
    start = pattern[:-1]
    return text.startswith(start) and len(text) > len(start)
