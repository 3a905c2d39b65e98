"""No request, code or output can crash the gateway: it ends in a registered reason, and is recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine import CodeRun
from engine.code.running import RunWatcher
from engine.code.stop_reasons import is_registered
from tests.adapters.gates import deep
from tests.code.conftest import GOLDEN, Bench, golden, printing
from tests.facilities import needs

pytestmark = needs("bubblewrap")

MISSING = "invalid_code_output:missing_required"
HALF = "\ud800"


def nested(levels: int) -> Any:
    """Objects in each other."""
    found: Any = "x"
    for _ in range(levels):
        found = {"x": found}
    return found


NOT_JSON: list[tuple[str, Any]] = [
    ("nothing", None),
    ("a list", []),
    ("a number", 7),
    ("bytes", b"{}"),
    ("half a character", golden(f"print('{HALF}')")),
    ("half a character in the request", {**golden(), "request": {"region": HALF}}),
    ("half a character as a key", {**golden(), "request": {HALF: 1}}),
    ("not a number in the payload", golden(action={"input_payload": {"x": float("nan")}})),
    ("infinity in the request", {**golden(), "request": {"x": float("inf")}}),
    ("deep", {**golden(), "action": deep(5_000)}),
    ("a payload that cannot be written again", golden(action={"input_payload": nested(900)})),
    ("a payload one level too deep", golden(action={"input_payload": nested(63)})),
    ("a huge number", golden(action={"input_payload": {"x": 10**6_000}})),
    ("an object that is no JSON", {**golden(), "request": object()}),
    ("an unknown field", {**golden(), "budget": 9}),
    ("a run id that is none", {**golden(), "run_id": "../../x"}),
    ("a seed that is none", {**golden(), "seed": -1}),
    ("a huge seed", {**golden(), "seed": 2**40}),
    ("a seed that is text", {**golden(), "seed": "1"}),
    ("a task that is an object", {**golden(), "task": {}}),
    ("approvals that are a list", {**golden(), "approvals": []}),
    ("a verifier without name", {**golden(), "verifier": {"code": "x"}}),
    ("a profile that is a path", {**golden(), "profile": "../x"}),
    ("a contract that is a path", {**golden(), "contract": "../x"}),
    ("a limit that is text", {**golden(), "tighten": {"memory_bytes": "all"}}),
]


def ended(bench: Bench, done: CodeRun) -> str:
    """The reason, of a run that was recorded and told in plain JSON."""
    assert is_registered(done.stop_reason)
    json.dumps(done.document, allow_nan=False).encode("utf-8")
    assert bench.recorded(done)
    return done.stop_reason


# covers: H18
@pytest.mark.parametrize("asked", [one for _, one in NOT_JSON], ids=[name for name, _ in NOT_JSON])
def test_a_malformed_run_is_refused_and_recorded(bench: Bench, asked: Any) -> None:
    done = bench.run(asked)
    assert ended(bench, done) == "invalid_request:unreadable"
    assert (done.document["phase"], done.exit) == ("plan", 2)
    assert (done.document["trace"], done.document["history"]) == ([], [])


def test_a_payload_may_be_nested_as_deep_as_a_run_is_read(bench: Bench) -> None:
    assert bench.run(golden("print(input())", action={"input_payload": nested(62)})).stop_reason == MISSING


ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    10**30,
    1.5,
    "",
    " ",
    "x",
    "\x00",
    "\u2028",
    [],
    [[]],
    {},
    {"": None},
    "x" * 70_000,
]


# covers: H18
@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", ["id", "language", "entrypoint", "code", "input_payload"])
def test_invalid_values_in_an_action_give_a_stop_reason(bench: Bench, name: str) -> None:
    for odd in ODD:
        reason = ended(bench, bench.run(golden(action={name: odd})))
        assert reason != "success" or (name, odd) in {("id", "x"), ("id", "\u2028")}, odd
        assert not reason.startswith("engine_fault"), (reason, odd)


# covers: H18
@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", ["action", "request", "policy_hints"])
def test_invalid_values_in_place_of_objects_give_a_stop_reason(bench: Bench, name: str) -> None:
    for odd in ODD:
        reason = ended(bench, bench.run({**golden(), name: odd}))
        assert not reason.startswith("engine_fault"), (reason, odd)


# covers: C07 C08.3-4 H18.3
@pytest.mark.parametrize("odd", [float("inf"), float("-inf"), float("nan"), 1e308, "1e999", "NaN", [], {}])
def test_invalid_numeric_hints_fall_back_to_the_defaults(bench: Bench, odd: Any) -> None:
    hints = {"max_code_chars": odd, "exec_timeout_seconds": odd}
    done = bench.run(golden(policy_hints=hints))
    assert done.ok, done.document
    (decided,) = [line for line in bench.recorded(done) if line.get("point") == "code_action"]
    assert decided["limits"]["exec_timeout_seconds"] in {2, 20}
    assert decided["limits"]["max_code_chars"] in {2400, 8000}


# covers: C65.5 H18.2
@pytest.mark.parametrize(
    "code",
    ["(" * 1_200 + ")" * 1_200, "-" * 2_300 + "1", "x\x00y", "f(" * 1_190, "not " * 590 + "1", "[" * 2_400],
    ids=["parentheses", "minus", "nul", "calls", "not", "brackets"],
)
def test_code_that_bombs_the_parser_is_refused(bench: Bench, code: str) -> None:
    reason = ended(bench, bench.run(golden(code)))
    assert reason.startswith(("policy_block:static_policy_violation:", "invalid_action:code"))


# covers: H02 H18
@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"failed_payment_rate": 10**400}, "failed_payment_rate"),
        ({"affected_checkout_share": 10**20}, "affected_checkout_share"),
        ({"avg_latency_ms": 10**400}, "avg_latency_ms"),
        ({"p95_latency_ms": 10**400}, "p95_latency_ms"),
        ({"incident_severity": ["P1"]}, "incident_severity"),
        ({"incident_severity": {"P1": 1}}, "incident_severity"),
        ({"chargeback_alerts": True}, "chargeback_alerts"),
        ({"region": None}, "region"),
    ],
    ids=lambda value: (
        value if isinstance(value, str) else next(iter(value)) + type(next(iter(value.values()))).__name__
    ),
)
def test_invalid_values_in_the_output_have_their_own_stop_reason(
    bench: Bench, changes: dict[str, Any], field: str
) -> None:
    assert ended(bench, bench.run(golden(printing(**changes)))) == f"invalid_code_output:{field}"


# covers: H02 H18
@pytest.mark.full(after=2)
@pytest.mark.parametrize(
    "code",
    [
        "print('[' * 2000 + ']' * 2000)",
        "print('{\"a\":' * 600 + '1' + '}' * 600)",
        'print(\'{"a": 1, "a": 2}\')',
        "print('{\"failed_payment_rate\": NaN}')",
        "print('9' * 4000)",
        "print(chr(0) * 100)",
        "print('\\\\ud800')",
        'print(\'{"region": "\\\\ud800"}\')',
        printing()[:-20] + '")',
    ],
)
def test_output_that_json_parsers_read_differently_is_refused(bench: Bench, code: str) -> None:
    reason = ended(bench, bench.run(golden(code)))
    assert reason.startswith(("invalid_code_output:", "policy_block:static_policy_violation:", "code_runtime_error:"))


def test_a_document_changed_during_its_run_has_no_effect(bench: Bench) -> None:
    document = golden()

    def change(phase: str) -> None:
        if phase == "policy_check":
            document["action"]["code"] = "print('other')"
            document["action"]["input_payload"]["transactions"].clear()

    done = bench.run(document, watch=RunWatcher(on_phase=change))
    assert done.ok
    assert done.document["aggregate"]["metrics"]["sample_size"] == 60
    assert document["action"] != GOLDEN["action"]  # the control: it was changed meanwhile
