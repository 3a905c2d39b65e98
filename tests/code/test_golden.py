"""The seed's scenario: its action runs end to end and gives its figures, its sentence, its trace and history."""

from __future__ import annotations

import hashlib
import json
import re
import uuid

import pytest

from engine import CodeRun
from tests.code.conftest import CODE, GOLDEN, Bench, golden, printing
from tests.facilities import needs

pytestmark = needs("bubblewrap")

ANSWER = (
    "Code execution brief (US, 2026-03-07): incident inc_payments_20260307 is P1 with failed payments at 3.33% and"
    " 1 chargeback alerts. Affected checkout share is 3.33%, average latency is 167.0 ms (p95 187.0 ms), and ETA is"
    " ~45 minutes. Executed in a separate subprocess boundary (best-effort, not a security sandbox) (25 ms, 269"
    " stdout bytes, 0 stderr bytes)."
)
RESULT = {
    "failed_payment_rate": 2 / 60,
    "chargeback_alerts": 1,
    "incident_severity": "P1",
    "eta_minutes": 45,
    "affected_checkout_share": 2 / 60,
    "avg_latency_ms": 167.0,
    "p95_latency_ms": 187.0,
    "sample_size": 60,
    "incident_id": "inc_payments_20260307",
    "region": "US",
}


@pytest.fixture(scope="module")
def done(bench: Bench) -> CodeRun:
    run = bench.run(golden())
    assert run.ok, run.document
    return run


# covers: C46.1 C46.3-5 C52.3-12 C82.2
def test_the_figures_are_those_of_the_seed(done: CodeRun) -> None:
    assert done.document["aggregate"] == {
        "report_date": "2026-03-07",
        "region": "US",
        "incident_id": "inc_payments_20260307",
        "metrics": {
            "incident_severity": "P1",
            "failed_payment_rate": 0.033333,
            "failed_payment_rate_pct": 3.33,
            "chargeback_alerts": 1,
            "eta_minutes": 45,
            "affected_checkout_share": 0.033333,
            "affected_checkout_share_pct": 3.33,
            "avg_latency_ms": 167.0,
            "p95_latency_ms": 187.0,
            "sample_size": 60,
        },
    }
    assert done.document["outcome"] == "code_execution_success"
    assert done.document["proposed_action"] == {
        "id": "c1",
        "language": "python",
        "entrypoint": "main.py",
        "code_hash": "47a5c01dd74664c7",
    }
    execution = done.document["execution"]
    assert execution["code_sha256"] == hashlib.sha256(CODE.encode()).hexdigest()
    assert (execution["language"], execution["code_hash"]) == ("python", "47a5c01dd74664c7")
    assert (execution["stdout_bytes"], execution["stderr_bytes"]) == (269, 0)
    assert type(execution["exec_ms"]) is int


# covers: C46.2 C79.1-2
def test_the_answer_is_the_sentence_of_the_seed_but_for_the_milliseconds(done: CodeRun, bench: Bench) -> None:
    assert re.sub(r"\(\d+ ms,", "(25 ms,", done.document["answer"]) == ANSWER
    document = golden(
        printing(region="EU", incident_id="inc_2", incident_severity="P2", eta_minutes=20),
        request={"report_date": "2026-04-01", "region": "eu", "incident_id": "inc_2"},
    )
    answer = bench.run(document).document["answer"]
    assert answer.startswith("Code execution brief (EU, 2026-04-01): incident inc_2 is P2 with failed payments at 3.0%")


# covers: C45.1-6
def test_a_result_has_the_shape_of_a_success_or_of_a_stop(done: CodeRun, bench: Bench) -> None:
    stopped = bench.run(golden("import os")).document
    for document in (done.document, stopped):
        assert str(uuid.UUID(document["run_id"])) == document["run_id"]
        assert type(document["trace"]) is type(document["history"]) is list
    assert (done.document["status"], done.document["stop_reason"]) == ("ok", "success")
    assert "phase" not in done.document
    assert (stopped["status"], stopped["phase"]) == ("stopped", "policy_check")
    assert stopped["stop_reason"].startswith("policy_block:static_policy_violation:import_not_allowed:os")
    assert not {"answer", "aggregate", "outcome", "execution"} & stopped.keys()


# covers: C01.1 C19.2 C47.1-7 C48.1-5 C49.1-6 C50.1
def test_the_trace_has_the_four_phases_in_order(done: CodeRun) -> None:
    measured = {name: done.document["execution"][name] for name in ("exec_ms", "stdout_bytes", "stderr_bytes")}
    common = {"language": "python", "code_hash": "47a5c01dd74664c7"}
    assert done.document["trace"] == [
        {"step": 1, "phase": "plan_code", "action_id": "c1", **common, "chars": 1229, "ok": True},
        {
            "step": 2,
            "phase": "policy_check",
            "decision": "allow",
            "reason": "policy_pass",
            "allowed_languages_policy": ["javascript", "python"],
            "allowed_languages_execution": ["python"],
            "ok": True,
        },
        {"step": 3, "phase": "execute_code", **common, "ok": True, **measured},
        {"step": 4, "phase": "finalize", "ok": True},
    ]


# covers: C50.2-5
def test_the_history_lists_the_proposed_action_and_its_result(done: CodeRun) -> None:
    assert done.document["history"] == [
        {"step": 1, "action": "propose_code_execution_plan", "proposed_action": done.document["proposed_action"]},
        {"step": 2, "action": "policy_check", "decision": {"kind": "allow", "reason": "policy_pass"}},
        {"step": 3, "action": "execute_code", "result": RESULT},
        {"step": 4, "action": "finalize"},
    ]


# covers: C15.1-2 C83.1-2
def test_neither_code_nor_payload_gets_into_trace_history_or_record(bench: Bench) -> None:
    code = CODE.replace("total = len(rows)", "total = len(rows)  # canary-code-5591")
    document = golden(code, action={"id": " c1 ", "language": " PyThon ", "entrypoint": " main.py "})
    document["action"]["input_payload"]["transactions"][0]["note"] = "canary-payload-8843"
    done = bench.run(document)
    assert done.ok
    assert done.document["proposed_action"]["id"] == "c1"
    assert done.document["proposed_action"]["language"] == "python"
    told = json.dumps([done.document, bench.recorded(done)])
    assert "canary-" not in told
    assert "sum(1 for row" not in told
    assert bench.kept(done.document["stored"]["code"]).decode() == code  # the control: it is kept, elsewhere


# covers: C01.1
def test_each_decision_of_a_run_is_recorded_before_the_next_step(bench: Bench) -> None:
    done = bench.run(golden())
    found = bench.recorded(done)
    assert [line.get("point") or line["status"] for line in found] == [
        "code_action",
        "code_scan",
        "code_execution",
        "ok",  # the sandbox ended; only after the allow
        "code_output",
        "run_ok",
    ]
    assert {line["mode"] for line in found if line["kind"] == "decision"} == {"enforce"}
    ids = {line["point"]: line["decision_id"] for line in found if line["kind"] == "decision"}
    last = found[-1]["facts"]
    assert done.document["decisions"] == last["decisions"] == ids
    assert last["run_id"] == done.document["run_id"]
    assert last["root_cause"] == "none"
    assert last["stored"] == done.document["stored"]
    sha256 = hashlib.sha256(CODE.encode()).hexdigest()
    assert last["programs"]["solution"]["code_sha256"] == sha256 == found[0]["input"]["action"]["code"]["sha256"]


# covers: A86.1
def test_two_runs_with_a_seed_give_the_same_and_the_seed_is_recorded(bench: Bench) -> None:
    code = "import json\n" + "print({str(number) for number in range(20)})\n"  # the order of a set follows the seed
    outputs = set()
    for _ in range(2):
        done = bench.run(golden(code, seed=7))
        assert done.stop_reason == "invalid_code_output:non_json"
        log = json.loads(bench.kept(done.document["stored"]["log"]))
        outputs.add(log["stdout"])
        (ran,) = [line for line in bench.recorded(done) if line["kind"] == "result" and "exec_ms" in line["facts"]]
        assert ran["facts"]["seed"] == 7
        (decided,) = [line for line in bench.recorded(done) if line.get("point") == "code_execution"]
        assert decided["limits"]["environment"]["PYTHONHASHSEED"] == "7"
    assert len(outputs) == 1
    other = bench.run(golden(code, seed=8))
    assert json.loads(bench.kept(other.document["stored"]["log"]))["stdout"] not in outputs  # the control


# covers: C81.2
def test_a_backend_with_a_network_boundary_reports_it_as_enforced(done: CodeRun, bench: Bench) -> None:
    assert done.document["execution"]["network_denied"] == "enforced"
    assert done.document["execution"]["boundaries"]["network"] == "kernel"
    found = bench.recorded(done)
    assert found[3]["facts"]["network"] == "enforced"
    assert found[-1]["facts"]["programs"]["solution"]["network"] == "enforced"


# covers: C82.1
def test_the_output_cannot_override_the_request(bench: Bench) -> None:
    done = bench.run(golden(printing(report_date="1999-01-01", region="us")))
    assert done.ok, done.document
    assert done.document["aggregate"]["report_date"] == "2026-03-07"
    assert done.document["aggregate"]["region"] == "US"
    lower = golden(printing(), request={**GOLDEN["request"], "region": "us"})
    assert bench.run(lower).document["aggregate"]["region"] == "US"
    for name in ("region", "incident_id"):
        refused = bench.run(golden(printing(**{name: "elsewhere"})))
        assert refused.stop_reason == f"invalid_code_output:{name}"
        assert "elsewhere" not in json.dumps(refused.document)


# covers: C74.1
def test_an_undeclared_output_key_is_neither_returned_nor_recorded(bench: Bench) -> None:
    done = bench.run(golden(printing(quokka="canary-key-2207")))
    assert done.ok, done.document
    told = json.dumps([done.document, bench.recorded(done)])
    assert "quokka" not in told
    assert "canary-key" not in told
