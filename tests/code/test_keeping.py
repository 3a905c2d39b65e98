"""What is kept of a run, and the chain from an action over its artifacts to their validation."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from tests.code.conftest import CODE, GOLDEN, Bench, golden, printing
from tests.facilities import needs

pytestmark = needs("bubblewrap")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def admitted(bench: Bench, digest: str, kind: str) -> list[str]:
    """What point `artifact` finds against an artifact."""
    decision = bench.engine.decide("artifact", {"sha256": digest, "kind": kind}).decision
    return [finding.code for finding in decision.findings]


# covers: C62.1
def test_code_and_result_of_a_good_run_are_kept_by_digest(bench: Bench) -> None:
    done = bench.run(golden())
    stored = done.document["stored"]
    assert bench.kept(stored["code"]).decode() == CODE
    assert json.loads(bench.kept(stored["result"])) == done.document["history"][2]["result"]
    assert stored["code"] == f"sha256:{sha256(CODE)}"


# covers: C62.2
def test_a_secret_in_code_or_result_is_redacted_before_it_is_kept(bench: Bench) -> None:
    secret = "AKIA" + "QWERTYUIOPASDFGH"
    done = bench.run(golden(f"key = '{secret}'\n" + CODE))
    assert done.ok
    kept = bench.kept(done.document["stored"]["code"]).decode()
    assert secret not in kept
    assert "[redacted:" in kept
    assert kept.endswith(CODE)
    failed = bench.run(golden(f"print('{secret}')"))
    assert secret not in bench.kept(failed.document["stored"]["log"]).decode()
    for path in (bench.state / "artifacts").rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes()


# covers: A88.2
@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("while True: pass", {"time_limit", "cpu_limit"}),
        ("raise ValueError", {"program_error"}),
        ("print('x' * 9999)", {"output_limit"}),
        ("print()", {"output_contract"}),
        (printing(sample_size=0), {"output_contract"}),
        ("x = 'x' * (1 << 40)", {"program_error", "memory_limit"}),
    ],
    ids=["time", "error", "output", "blank", "contract", "memory"],
)
def test_each_failure_log_has_a_class_of_its_root_cause(bench: Bench, code: str, cause: set[str]) -> None:
    done = bench.run(golden(code, policy_hints={"exec_timeout_seconds": 0.5 if "time_limit" in cause else 20}))
    log = json.loads(bench.kept(done.document["stored"]["log"]))
    assert log["root_cause"] in cause
    assert log["stop_reason"] == done.stop_reason
    assert log["run_id"] == done.document["run_id"]
    assert bench.recorded(done)[-1]["facts"]["root_cause"] == log["root_cause"]
    assert bench.recorded(done)[-1]["facts"]["stored"]["log"] == done.document["stored"]["log"]


# covers: A88
@pytest.mark.parametrize(
    ("document", "cause"),
    [
        (golden("import os"), "policy"),
        (golden(action={"id": ""}), "action_contract"),
        (golden(policy_hints={"network_access": "on"}), "request"),
    ],
    ids=["policy", "action", "request"],
)
def test_a_refused_run_has_a_root_cause_and_stores_nothing(bench: Bench, document: Any, cause: str) -> None:
    done = bench.run(document)
    last = bench.recorded(done)[-1]["facts"]
    assert (last["root_cause"], last["stored"]) == (cause, {})
    assert "stored" not in done.document


# covers: A88.1
def test_a_failure_log_is_kept_for_the_retention_time_of_its_permit(bench: Bench) -> None:
    done = bench.run(golden("raise ValueError"))
    store, days = bench.engine.executors.machine().store, 86_400
    digest = done.document["stored"]["log"]
    (line,) = [one for one in bench.recorded(done) if one.get("point") == "code_execution"]
    assert line["limits"]["retention_days"] == 90
    file = bench.state / "artifacts" / digest.removeprefix("sha256:")[:2] / digest.removeprefix("sha256:")
    begun = file.stat().st_mtime - 90 * days
    store.sweep(int(begun + 90 * days) - 1)
    assert store.get(digest) is not None


# covers: A01.3 A02
def test_code_is_trusted_once_it_ran_in_a_sandbox_and_its_output_was_validated(bench: Bench) -> None:
    good, bad, never = CODE + "\n# good", printing(sample_size=0, eta_minutes=1), CODE + "\n# never ran"
    assert admitted(bench, sha256(good), "code") != []
    assert bench.run(golden(good)).ok
    assert admitted(bench, sha256(good), "code") == []
    assert admitted(bench, sha256(good), "solution") == []
    bench.run(golden(bad))
    assert "artifact_not_validated" in admitted(bench, sha256(bad), "code")
    assert bench.run(golden("import os\n" + never)).stop_reason.startswith("policy_block:")
    assert admitted(bench, sha256("import os\n" + never), "solution") != []


# covers: A01 A02
def test_the_checks_name_the_decisions_that_they_came_from(bench: Bench) -> None:
    code = CODE + "\n# chain"
    done = bench.run(golden(code))
    rows = bench.engine.store().artifact_checks(sha256(code), 9)
    decided = done.document["decisions"]
    assert [(row.name, row.passed, row.ran_in, row.decision_id) for row in rows] == [
        ("validation", True, "restricted_process", decided["code_output"]),
        ("sandbox", True, "restricted_process", decided["code_execution"]),
    ]


# covers: A01
def test_files_come_out_by_digest_and_stay_untrusted(wider: Bench) -> None:
    code = (
        "import os, json\nfd = os.open('artifacts' + chr(47) + 'out.txt', os.O_WRONLY | os.O_CREAT)\n"
        "os.write(fd, b'made here')\nos.close(fd)\n" + CODE.removeprefix("import json\n")
    )
    done = wider.run(golden(code, artifacts=True))
    assert done.ok, done.document
    (artifact,) = done.document["artifacts"]
    assert (artifact["path"], artifact["bytes"]) == ("out.txt", 9)
    assert wider.kept(artifact["stored"]) == b"made here"
    assert artifact["sha256"] == sha256("made here")
    (recorded,) = wider.recorded(done)[-1]["facts"]["artifacts"]
    assert recorded["sha256"] == artifact["sha256"]
    assert "artifact_not_validated" in admitted(wider, artifact["sha256"], "tool")
    without = wider.run(golden(code))
    assert without.stop_reason == "code_runtime_error:1"  # the control: no folder is declared
    good = CODE + "\n# left by another program"
    assert wider.run(golden(good)).ok
    copy = code.replace("b'made here'", repr(good.encode()))
    failing = wider.run(golden(copy + "\nraise ValueError", artifacts=True, policy_hints={"max_code_chars": 8000}))
    assert failing.stop_reason == "code_runtime_error:1"
    assert failing.document["stored"]["log"]
    assert admitted(wider, sha256(good), "code") == []  # what others leave says nothing of it
    assert GOLDEN["action"]["code"] == CODE


WRITES = """
def put(name, data):
    fd = os.open("artifacts" + chr(47) + name, os.O_WRONLY | os.O_CREAT)
    while data:
        data = data[os.write(fd, data):]
    os.close(fd)
"""


def leaving(*lines: str, seconds: float = 20) -> dict[str, Any]:
    """The seed's run of a program that leaves files first."""
    code = "import os, json\n" + WRITES + "\n".join(lines) + "\n" + CODE.removeprefix("import json\n")
    return golden(code, artifacts=True, policy_hints={"max_code_chars": 8000, "exec_timeout_seconds": seconds})


# covers: C62 A01
def test_the_bytes_of_a_file_are_kept_exactly_or_not_at_all(wider: Bench) -> None:
    secret = "AKIA" + "QWERTYUIOPASDFGH"
    done = wider.run(
        leaving(
            "put('long.csv', b'a,b\\n' * 500_000)",
            "put('mail.txt', b'write to jane.doe@example.org about 4111 1111 1111 1111')",
            "put('raw.bin', bytes(range(256)) * 100)",
            f"put('key.txt', b'the key is {secret[:9]}' + b'{secret[9:]}')",
            "put('wide.txt', 'password=swordfish'.encode('utf-16'))",
        )
    )
    assert done.ok, done.document
    kept = {one["path"]: wider.kept(one["stored"]) for one in done.document["artifacts"]}
    assert kept == {
        "long.csv": b"a,b\n" * 500_000,
        "mail.txt": b"write to jane.doe@example.org about 4111 1111 1111 1111",
        "raw.bin": bytes(range(256)) * 100,
    }
    assert all(one["stored"] == f"sha256:{one['sha256']}" for one in done.document["artifacts"])
    assert done.document["artifacts_not_kept"] == [
        {"name": "key.txt", "reason": "artifact_secret"},
        {"name": "wide.txt", "reason": "artifact_secret"},
    ]
    assert [(one["code"], one["level"]) for one in done.document["findings"]] == [("artifact_secret", "warn")] * 2
    for path in wider.state.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes()


# covers: C62
def test_every_file_that_is_not_kept_is_named_with_its_reason(wider: Bench) -> None:
    done = wider.run(
        leaving(
            "put('fine.txt', b'fine')",
            "put('n' * 200 + chr(10), b'odd')",
            *(f"put('z{number:02}', b'')" for number in range(20)),
        )
    )
    assert done.ok, done.document
    assert "fine.txt" in {one["path"] for one in done.document["artifacts"]}
    reasons = {one["name"]: one["reason"] for one in done.document["artifacts_not_kept"]}
    assert reasons["n" * 200 + "\\n"] == "name_not_plain"
    assert set(reasons.values()) == {"name_not_plain", "too_many_files"}
    assert len(done.document["artifacts"]) + len(reasons) == 22
    assert wider.recorded(done)[-1]["facts"]["artifacts_not_kept"] == len(reasons)


# covers: C62
@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("last", "reason", "seconds"), [("raise ValueError", "run_stopped", 20), ("while True: pass", "not_handed_out", 2)]
)
def test_of_a_run_that_stopped_no_file_is_kept_and_each_is_named(
    wider: Bench, last: str, reason: str, seconds: float
) -> None:
    done = wider.run(leaving(f"put('fine.txt', b'{reason}')", last, seconds=seconds))
    assert not done.ok
    assert [one["reason"] for one in done.document["artifacts_not_kept"]] == [reason]
    assert "artifacts" not in done.document
    assert wider.engine.executors.machine().store.get(sha256(reason)) is None


def test_a_failure_log_says_that_it_was_cut_and_holds_no_half_of_a_secret(bench: Bench) -> None:
    secret = "AKIA" + "QWERTYUIOPASDFGH"
    cut = bench.run(golden(f"print('x ' * {(4096 - 12) // 2} + '{secret}' + 'y ' * 99)"))
    assert cut.stop_reason == "code_output_too_large"
    log = json.loads(bench.kept(cut.document["stored"]["log"]))
    assert (log["stdout_cut"], log["stderr_cut"]) == (True, False)
    assert log["stdout"].startswith("x x x")
    assert secret[:6] not in log["stdout"]
    whole = json.loads(bench.kept(bench.run(golden("print('all of it')")).document["stored"]["log"]))
    assert (whole["stdout"], whole["stdout_cut"]) == ("all of it\n", False)
