"""The registry of stop reasons: what is in it can be emitted, and nothing else can."""

from __future__ import annotations

from typing import Any

import pytest

from engine.code import stop_reasons as why
from engine.errors import DecideError, EngineError, GatherError
from engine.model import Finding, Level

REGISTERED = [
    "success",
    "max_seconds",
    "invalid_action:id",
    "invalid_action:entrypoint_path",
    "invalid_action:entrypoint_denied",
    "policy_block:language_denied_policy",
    "policy_block:language_denied_execution",
    "policy_block:static_policy_violation:import_not_allowed:os",
    "code_timeout",
    "code_runtime_error:3",
    "code_runtime_error:-9",
    "code_output_too_large",
    "code_stderr_too_large",
    "invalid_code_output:sample_size",
    "invalid_request:network_access_must_be_denied",
    "approval_required",
    "cancelled",
    "engine_fault:policy_unavailable",
    "verifier:code_timeout",
    "verifier:invalid_code_output:passed",
]


def finding(code: str, subject: str | None = None, level: Level = Level.DENY) -> Finding:
    return Finding(code=code, level=level, requirement="m", subject=subject, remedy="r")


# covers: C51.1-14
@pytest.mark.parametrize("reason", REGISTERED)
def test_a_registered_reason_can_be_emitted(reason: str) -> None:
    assert why.registered(reason) == reason


# covers: C51.14
@pytest.mark.parametrize(
    "text",
    [
        *["", "ok", "successful", "code_timeout:1", "code_runtime_error", "code_runtime_error:", "invalid_action:"],
        *["policy_block", "verifier:success", "verifier:verifier:success", "verifier:", "made_up:x", "success\n"],
        "policy_block:" + "x" * 600,
    ],
)
def test_an_unregistered_reason_cannot_be_emitted(text: str) -> None:
    with pytest.raises(EngineError):
        why.registered(text)


# covers: C19.1
def test_a_scan_reason_lists_its_first_three_distinct_violations_sorted() -> None:
    scanned = [
        finding("name_not_allowed", "names/os"),
        finding("call_not_allowed", "calls/open"),
        finding("network_literal_blocked"),
        finding("call_not_allowed", "calls/open"),
        finding("attr_not_allowed", "attributes/fork"),
        finding("aaa_only_warns", None, Level.WARN),
    ]
    assert why.of_execution([finding("static_policy_violation")], scanned) == (
        "policy_block:static_policy_violation:attr_not_allowed:fork,call_not_allowed:open,name_not_allowed:os"
    )
    assert why.of_execution([finding("static_policy_violation")], []).endswith(":unknown")


@pytest.mark.parametrize(
    ("make", "given", "reason"),
    [
        (why.of_action, finding("invalid_action:id"), "invalid_action:id"),
        (why.of_action, finding("acme_forbids"), "policy_block:acme_forbids"),
        (why.of_action, finding("success"), "policy_block:success"),
        (why.of_action, finding("engine_fault:x"), "policy_block:engine_fault:x"),
        (why.of_output, finding("code_timeout"), "code_timeout"),
        (why.of_output, finding("code_runtime_error", "exits/3"), "code_runtime_error:3"),
        (why.of_output, finding("invalid_code_output", "fields/sample_size"), "invalid_code_output:sample_size"),
        (why.of_output, finding("acme_forbids", "x"), "policy_block:acme_forbids:x"),
        (why.of_output, finding("cancelled"), "policy_block:cancelled"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_code_of_the_catalogue_is_its_own_reason_and_any_other_one_blocks(make: Any, given: Any, reason: str) -> None:
    assert make([finding("warned", level=Level.WARN), given]) == reason


def test_engine_faults_and_request_errors_have_different_reasons() -> None:
    assert why.of_fault(DecideError("m", remedy="r")) == "engine_fault:policy_unavailable"
    assert why.of_request(GatherError("m", remedy="r")) == "invalid_request:unreadable"
    assert why.of_request(EngineError("m", remedy="r")) == "engine_fault:engine.internal"
    pending = GatherError("m", remedy="r", code="engine.run_pending")
    assert why.of_request(pending) == "invalid_request:run_pending"
