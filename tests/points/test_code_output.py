"""What output comes to, asked of the real policy: one finding at a time, in the order of C73, and the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.cases.run import Runner
from engine.facts.code.answers import echoed_of, metrics_of, result_of, sentence
from engine.points.code_output import CodeOutputLimits
from tests.expect import of

VALUES: dict[str, Any] = {
    "failed_payment_rate": 2 / 60,
    "chargeback_alerts": 1,
    "incident_severity": "P1",
    "eta_minutes": 45,
    "affected_checkout_share": 2 / 60,
    "avg_latency_ms": 166.996,
    "p95_latency_ms": 187,
    "sample_size": 60,
    "incident_id": "inc_payments_20260307",
    "region": "US",
}
REQUEST = {"report_date": "2026-03-07", "region": "us", "incident_id": "inc_payments_20260307"}
RUN: dict[str, Any] = {"status": "ok", "exit_code": 0, "stdout_bytes": 0, "stderr_bytes": 0}
ORDER = (
    "failed_payment_rate", "affected_checkout_share", "chargeback_alerts", "incident_severity", "eta_minutes",
    "sample_size", "avg_latency_ms", "p95_latency_ms", "incident_id", "region",
)  # fmt: skip


def decision(runner: Runner, stdout: Any = VALUES, request: Any = REQUEST, **run: Any) -> Any:
    text = stdout if isinstance(stdout, str) else json.dumps(stdout)
    asked = {"contract": "incident_metrics", "request": request, "run": {**RUN, **run}, "stdout": text}
    return runner.engine({}).check("code_output", asked).decision


def told(runner: Runner, stdout: Any = VALUES, request: Any = REQUEST, **run: Any) -> str | None:
    """The one finding as `code`, or `code:` and the last part of its subject."""
    findings = decision(runner, stdout, request, **run).findings
    assert len(findings) < 2
    return None if not findings else ":".join((findings[0].code, *(findings[0].subject or "").split("/")[1:]))


# covers: C38.1-10
@pytest.mark.parametrize("name", VALUES)
def test_every_field_has_to_be_there(name: str, runner: Runner) -> None:
    values = {key: value for key, value in VALUES.items() if key != name}
    assert told(runner, values) == "invalid_code_output:missing_required"


GOOD: dict[str, tuple[Any, ...]] = {
    "failed_payment_rate": (0, 1, 0.0, 1.0, 0.5),
    "affected_checkout_share": (0, 1, 0.5),
    "chargeback_alerts": (0, 2**53 - 1),
    "incident_severity": ("P1", "P2", "P3"),
    "eta_minutes": (0, 240),
    "sample_size": (1, 60),
    "avg_latency_ms": (0, "167.5", -1.5),
    "p95_latency_ms": (187, " 187 "),
    "region": ("us", "US"),
}
NOT_JSON_NUMBERS: tuple[Any, ...] = (True, False, None, [], {}, [1], "x", "", 10**400)
BAD: dict[str, tuple[Any, ...]] = {
    "failed_payment_rate": (*NOT_JSON_NUMBERS, -0.01, 1.01, -1, 2, "0.5"),
    "affected_checkout_share": (*NOT_JSON_NUMBERS, -0.01, 1.01, "1"),
    "chargeback_alerts": (*NOT_JSON_NUMBERS, -1, 1.0, "1"),
    "incident_severity": (True, None, [], ["P1"], {"P1": 1}, "P0", "p1", "P1 ", "", 1),
    "eta_minutes": (*NOT_JSON_NUMBERS, -1, 241, 45.0, "45"),
    "sample_size": (*NOT_JSON_NUMBERS, 0, -1, 1.0, "60"),
    "avg_latency_ms": (*NOT_JSON_NUMBERS, "nan", "inf", "-Infinity", "1e999", "1_0"),
    "p95_latency_ms": (*NOT_JSON_NUMBERS, "nan", "Infinity"),
    "incident_id": (True, None, [], {}, "", "inc_payments_20260308", "INC_PAYMENTS_20260307", 1.5),
    "region": (True, None, [], {}, "", "EU", "US "),
}


# covers: C39.1-8 C40.1-7 C41.1 C42.1-2 C56.1 C57.1 H02.1-2 H18.4-5 H20
@pytest.mark.parametrize("name", BAD)
def test_each_field_accepts_only_values_within_its_bounds(name: str, runner: Runner) -> None:
    for value in GOOD.get(name, ()):
        assert told(runner, {**VALUES, name: value}) is None, value
    for value in BAD[name]:
        assert told(runner, {**VALUES, name: value}) == f"invalid_code_output:{name}", value


# covers: H02.3
@pytest.mark.parametrize("name", VALUES)
def test_not_a_number_is_refused_everywhere(name: str, runner: Runner) -> None:
    for value in (float("nan"), float("inf"), -float("inf"), [float("nan")]):
        assert told(runner, {**VALUES, name: value}) == "invalid_code_output:non_json"
    assert told(runner, {**VALUES, "further": float("nan")}) == "invalid_code_output:non_json"


# covers: C35.1-2 C36 C73.3
def test_the_order_of_the_checks(runner: Runner) -> None:
    for index, name in enumerate(ORDER):
        values = {**VALUES, **dict.fromkeys(ORDER[index:], True)}
        assert told(runner, values) == f"invalid_code_output:{name}"
    steps: list[tuple[dict[str, Any], str, str]] = [
        ({"status": "timeout_wall"}, "x" * 5000, "code_timeout"),
        ({}, "x" * 5000, "code_output_too_large"),
        ({}, "", "code_stderr_too_large"),
        ({"stderr_bytes": 0}, "", "code_runtime_error:3"),
        ({"stderr_bytes": 0, "status": "ok", "exit_code": 0}, "", "invalid_code_output:empty_stdout"),
        ({"stderr_bytes": 0, "status": "ok", "exit_code": 0}, "x", "invalid_code_output:non_json"),
        ({"stderr_bytes": 0, "status": "ok", "exit_code": 0}, "[]", "invalid_code_output:not_object"),
        ({"stderr_bytes": 0, "status": "ok", "exit_code": 0}, "{}", "invalid_code_output:missing_required"),
    ]
    for run, stdout, want in steps:
        failing = {"status": "runtime_error", "exit_code": 3, "stderr_bytes": 5000}
        assert told(runner, stdout, {}, **{**failing, **run}) == want


# covers: C85.4
def test_output_size_limits_are_exact(runner: Runner) -> None:
    text = json.dumps(VALUES)
    assert told(runner, text.ljust(4096)) is None
    assert told(runner, text.ljust(4097)) == "code_output_too_large"
    assert told(runner, text, stdout_bytes=4096, stderr_bytes=4096) is None
    assert told(runner, text, stdout_bytes=4097) == "code_output_too_large"
    assert told(runner, text, stderr_bytes=4097) == "code_stderr_too_large"


# covers: C34.1 C36
def test_each_end_of_a_run_has_its_code(runner: Runner) -> None:
    for status in ("timeout_wall", "timeout_cpu"):
        assert told(runner, "", status=status, exit_code=None, signal=9) == "code_timeout"
        assert told(runner, VALUES, status=status, exit_code=None) == "code_timeout"
    for status in ("oom", "signal", "forbidden_syscall"):
        assert told(runner, VALUES, status=status, exit_code=None, signal=9) == "code_runtime_error:-9"
        assert told(runner, VALUES, status=status, exit_code=0, signal=None) == "code_runtime_error:0"
    for status in ("cancelled", "sandbox_error", "fine"):
        assert told(runner, VALUES, status=status) == "code_run_incomplete"
    assert told(runner, VALUES, exit_code=0, signal=9) == "code_runtime_error:-9"
    assert told(runner, VALUES, status="output_limit", limit="disk") == "code_output_too_large"


# covers: C82
def test_a_request_without_the_echoed_field_is_invalid(runner: Runner) -> None:
    others: tuple[Any, ...] = ({**REQUEST, "report_date": None}, {**REQUEST, "report_date": "x\ny"}, {}, [])
    for request in others:
        assert told(runner, VALUES, request) == "invalid_request:carried_field"


# covers: C42 C43.1 C46 C74.1 C79 C82
def test_the_answer_is_made_of_the_limits(runner: Runner) -> None:
    limits = of(CodeOutputLimits, decision(runner, {**VALUES, "region": "us", "quokka": "x"}).limits)
    assert "quokka" not in limits.model_dump_json()
    result, metrics, echoed = result_of(limits.result), metrics_of(limits.result), echoed_of(limits.echoed)
    assert list(result) == list(ORDER)
    assert result == {**VALUES, "avg_latency_ms": 167.0, "p95_latency_ms": 187.0}
    assert echoed == {"report_date": "2026-03-07", "region": "US", "incident_id": "inc_payments_20260307"}
    assert len(metrics) == 10
    assert [metrics["failed_payment_rate"], metrics["failed_payment_rate_pct"]] == [0.033333, 3.33]
    run = {"exec_ms": 25, "stdout_bytes": 269, "stderr_bytes": 0}
    assert sentence(limits.answer, metrics, echoed, run) == (
        "Code execution brief (US, 2026-03-07): incident inc_payments_20260307 is P1 with failed payments at 3.33% and "
        "1 chargeback alerts. Affected checkout share is 3.33%, average latency is 167.0 ms (p95 187.0 ms), and ETA is "
        "~45 minutes. Executed in a separate subprocess boundary (best-effort, not a security sandbox) (25 ms, 269 "
        "stdout bytes, 0 stderr bytes)."
    )
    assert decision(runner, {**VALUES, "sample_size": 0}).limits is None


# covers: C43.1 C74.1
def test_no_text_of_the_output_is_in_input_or_decision(runner: Runner) -> None:
    for name in ("incident_severity", "incident_id", "region", "avg_latency_ms", "further"):
        asked = {"contract": "incident_metrics", "request": REQUEST, "run": RUN}
        answer = runner.engine({}).check("code_output", {**asked, "stdout": json.dumps({**VALUES, name: "quokka"})})
        assert "quokka" not in str(answer.document)
        assert "quokka" not in answer.decision.model_dump_json()
