"""Tables and texts that a program prints: checked by their contract, given without secrets and further columns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.code import program
from tests.code.conftest import Bench, golden
from tests.facilities import needs

pytestmark = needs("bubblewrap")

TOKEN = "ghp_" + "0123456789abcdefABCDEF0123456789abcd"
ROWS = [{"label": "north", "quantity": 3, "turnover": 1.5, "note": 1}, {"label": f"key {TOKEN}", "quantity": 2}]
SEEN = [
    {"label": "north", "quantity": 3, "turnover": 1.5},
    {"label": "key [redacted]", "quantity": 2, "turnover": None},
]


def printing(value: Any, **more: Any) -> dict[str, Any]:
    return totals(f"print({json.dumps(json.dumps(value))})", **more)


def totals(code: str, **more: Any) -> dict[str, Any]:
    return golden(code, contract="totals", request={}, **more)


# covers: C74
def test_a_table_is_given_without_secrets_and_further_columns(bench: Bench) -> None:
    done = bench.run(printing({"rows": ROWS}))
    assert done.ok, done.document
    assert done.document["content"] == {"rows": SEEN}
    assert done.document["history"][2]["result"] == {"rows": SEEN}
    assert TOKEN not in json.dumps(done.document)
    assert "north" not in json.dumps(bench.recorded(done))
    assert json.loads(bench.kept(done.document["stored"]["result"])) == {"rows": SEEN}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"rows": [{"label": "north", "quantity": "3"}]}, "invalid_code_output:rows.quantity"),
        ({"rows": "north"}, "invalid_code_output:rows"),
        ({"table": []}, "invalid_code_output:missing_required"),
    ],
)
def test_the_reason_names_the_column(bench: Bench, value: Any, reason: str) -> None:
    done = bench.run(printing(value))
    assert done.stop_reason == reason
    assert "content" not in done.document


def test_a_table_may_be_larger_than_other_output(bench: Bench) -> None:
    code = 'import json\nprint(json.dumps({"rows": [{"label": str(one), "quantity": one} for one in range(500)]}))'
    done = bench.run(totals(code))
    assert done.ok, done.document
    assert done.document["execution"]["stdout_bytes"] > 4096
    assert len(done.document["content"]["rows"]) == 500


def test_a_verifier_sees_the_table(bench: Bench) -> None:
    code = 'import json\nseen = json.loads(input())\nprint(json.dumps({"passed": len(seen["output"]["rows"]) == 2}))'
    own = {"action": {"id": "v1", "language": "python", "entrypoint": "main.py", "code": code}}
    assert bench.run(printing({"rows": ROWS}, verifier=own)).ok
    assert bench.run(printing({"rows": ROWS[:1]}, verifier=own)).stop_reason == "verifier:invalid_code_output:passed"


def test_content_that_differs_from_the_decided_one_is_not_returned(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "content_of", lambda *_: ([{"label": "another"}], "0" * 64))
    done = bench.run(printing({"rows": ROWS}))
    assert (done.ok, done.document["stop_reason"].split(":")[0]) == (False, "engine_fault")
    assert "another" not in json.dumps(done.document)
