"""Where a run stops: the phase, exactly what had happened until then, and the reason."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine import CodeRun
from engine.code.program import snippet
from tests.code.conftest import CODE, GOLDEN, Bench, golden, printing
from tests.facilities import needs

pytestmark = needs("bubblewrap")

JUDGED = ["plan_code", "policy_check"]
RAN = ["plan_code", "policy_check", "execute_code"]


def named(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)[:60]


def shape(done: CodeRun) -> tuple[str, str, list[str], list[str]]:
    """Reason, phase, and the steps of trace and history."""
    document = done.document
    assert document["status"] == "stopped"
    assert [step["step"] for step in document["trace"]] == list(range(1, len(document["trace"]) + 1))
    return (
        done.stop_reason,
        document["phase"],
        [step["phase"] for step in document["trace"]],
        [step["action"] for step in document["history"]],
    )


def failed(done: CodeRun, reason: str) -> dict[str, Any]:
    """The third step of a run whose program ran and failed; history says the same."""
    proposed = ["propose_code_execution_plan", "policy_check", "execute_code"]
    assert shape(done) == (reason, "execute", RAN, proposed)
    step, told = done.document["trace"][2], done.document["history"][2]
    assert (step["ok"], step["error"]) == (False, reason)
    assert (told["status"], told["reason"]) == ("error", reason)
    names = ("stderr_snippet", "stdout_snippet")
    assert {name: step[name] for name in names if name in step} == {name: told[name] for name in names if name in told}
    assert done.exit == 1
    return dict(step)


# covers: C03.4 C76.1 C77
@pytest.mark.parametrize("word", ["allowed", False, " ", None, "on"])
def test_a_request_that_wants_a_network_stops_in_plan(bench: Bench, word: Any) -> None:
    done = bench.run(golden(policy_hints={"network_access": word}, action={"id": ""}))
    assert shape(done) == ("invalid_request:network_access_must_be_denied", "plan", [], [])


# covers: C38 C76.1 C82
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"contract": "whatever"}, "contract_unknown"),
        ({"request": None}, "carried_field"),
        ({"request": {**GOLDEN["request"], "region": " "}}, "carried_field"),
        ({"request": {**GOLDEN["request"], "incident_id": "a\nb"}}, "carried_field"),
        ({"contract": "verdict", "request": None, "action": {"id": ""}}, "invalid_action:id"),
    ],
    ids=named,
)
def test_a_request_that_cannot_be_answered_stops_in_plan(bench: Bench, changes: Any, reason: str) -> None:
    done = bench.run(golden(**changes))
    reason = reason if ":" in reason else f"invalid_request:{reason}"
    assert shape(done) == (reason, "plan", [], [])
    assert not done.ran


# covers: C10.1 C11 C76.2
@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (None, "not_object"),
        (["c1"], "not_object"),
        ({}, "id"),
        ({"id": "c1"}, "language"),
        ({"id": "c1", "language": "python"}, "entrypoint"),
        ({"id": "c1", "language": "python", "entrypoint": "main.py"}, "code"),
        ({**GOLDEN["action"], "code": "x" * 2401}, "code_too_long"),
        ({**GOLDEN["action"], "input_payload": []}, "input_payload"),
        ({**GOLDEN["action"], "entrypoint": "../main.py"}, "entrypoint_path"),
        ({**GOLDEN["action"], "entrypoint": "Main.py"}, "entrypoint_denied"),
    ],
    ids=named,
)
def test_an_action_that_breaks_its_contract_stops_in_plan(bench: Bench, action: Any, reason: str) -> None:
    done = bench.run({**golden(), "action": action})
    assert shape(done) == (f"invalid_action:{reason}", "plan", [], [])
    assert [line.get("point") or line["status"] for line in bench.recorded(done)] == ["code_action", "run_stopped"]


# covers: C17.1 C18.1 C48.1-2 C48.5 C53.1 C75 C76.3
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"action": {"language": "javascript"}}, "language_denied_execution"),
        ({"action": {"language": "ruby"}}, "language_denied_policy"),
        ({"action": {"language": "no language \u00e9"}}, "language_denied_policy"),
        ({"action": {"language": "javascript", "code": "require('fs')"}}, "language_denied_execution"),
        ({"policy_hints": {"allowed_languages": ["javascript"]}}, "language_denied_policy"),
        ({"code": "import os\n" + CODE}, "static_policy_violation:import_not_allowed:os"),
        (
            {"code": "import socket, os, abc\nopen('x')\neval('1')"},
            "static_policy_violation:call_not_allowed:eval,call_not_allowed:open,import_not_allowed:abc",
        ),
        ({"code": "f(\nhttp://x"}, "static_policy_violation:syntax_error"),
    ],
    ids=named,
)
def test_a_run_blocked_by_the_policy_stops_in_policy_check(bench: Bench, changes: dict[str, Any], reason: str) -> None:
    done = bench.run(golden(changes.pop("code", None), **changes))
    proposed = ["propose_code_execution_plan", "policy_check"]
    assert shape(done) == (f"policy_block:{reason}", "policy_check", JUDGED, proposed)
    step = done.document["trace"][1]
    assert (step["decision"], step["reason"], step["ok"]) == ("deny", reason, False)
    assert step["allowed_languages_execution"] == ["python"]
    assert done.document["history"][1]["decision"] == {"kind": "deny", "reason": reason}
    assert not [line for line in bench.recorded(done) if line["kind"] == "result" and line["status"] != "run_stopped"]


def test_a_language_that_only_the_hints_leave_out_is_refused_in_these_words(bench: Bench) -> None:
    (finding,) = bench.run(golden(policy_hints={"allowed_languages": ["ruby"]})).document["findings"]
    assert finding["remedy"] == (
        "Propose the action in a language of policy/code.yaml that the hint allowed_languages names, or omit the hint"
    )


# covers: C34.1 C55.1 C73 C76.4
def test_an_endless_loop_is_stopped_by_the_clock(bench: Bench) -> None:
    done = bench.run(golden(CODE + "\nwhile True: pass", policy_hints={"exec_timeout_seconds": 0.5}))
    failed(done, "code_timeout")
    (ran,) = [line for line in bench.recorded(done) if line["kind"] == "result" and "limit" in line["facts"]]
    assert (ran["facts"]["limit"], ran["facts"]["root_cause"]) in {("wall", "time_limit"), ("cpu", "cpu_limit")}


# covers: C49.3 C56.1 C57.1 C76.5
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"sample_size": 0}, "sample_size"),
        ({"incident_severity": "P0"}, "incident_severity"),
        ({"incident_severity": ["P1"]}, "incident_severity"),
        ({"failed_payment_rate": True, "sample_size": 0}, "failed_payment_rate"),
    ],
)
def test_output_that_breaks_its_contract_gives_no_answer(bench: Bench, changes: dict[str, Any], field: str) -> None:
    done = bench.run(golden(printing(**changes)))
    failed(done, f"invalid_code_output:{field}")
    assert bench.recorded(done)[-1]["facts"]["root_cause"] == "output_contract"


# covers: C37 C43.1 C73
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print()", "empty_stdout"),
        ("print('{')", "non_json"),
        ("print('{} {}')", "non_json"),
        ("print('[1]')", "not_object"),
        ("print('{}')", "missing_required"),
    ],
)
def test_invalid_output_has_its_own_stop_reason(bench: Bench, code: str, reason: str) -> None:
    failed(bench.run(golden(code)), f"invalid_code_output:{reason}")


# covers: C35 C61.1 C85
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("while True: print('x' * 65536)", "code_output_too_large"),
        ("import os\nwhile True: os.write(2, b'x' * 65536)", "code_stderr_too_large"),
        ("import os\nos.write(1, b'x' * 4097)\nos.write(2, b'x' * 4097)\nos._exit(3)", "code_output_too_large"),
        ("import os\nos.write(2, b'x' * 4097)\nos._exit(3)", "code_stderr_too_large"),
        ("import os\nos.write(1, b'x' * 4096)\nos.write(2, b'x' * 4096)", "invalid_code_output:non_json"),
    ],
    ids=["endless stdout", "endless stderr", "both", "stderr before the exit code", "exactly as much"],
)
def test_too_much_output_is_cut_off_while_it_streams(wider: Bench, code: str, reason: str) -> None:
    done = wider.run(golden(code))
    failed(done, reason)
    (ran,) = [line for line in wider.recorded(done) if line["kind"] == "result" and "limit" in line["facts"]]
    assert max(ran["facts"]["stdout_bytes"], ran["facts"]["stderr_bytes"]) <= 4097


# covers: C36.1-2 C49.7-9 C50.4 C73
def test_an_exit_code_is_reported_with_one_short_line_of_output(wider: Bench) -> None:
    code = "import os\nprint('one\\ntwo ' + 'x' * 300, flush=True)\nos.write(2, b'\\n bad:\\n\\nend ')\nos._exit(3)"
    step = failed(wider.run(golden(code)), "code_runtime_error:3")
    assert step["stderr_snippet"] == "bad:  end"
    assert step["stdout_snippet"] == "one two " + "x" * 192
    quiet = failed(wider.run(golden("import os\nos._exit(3)")), "code_runtime_error:3")
    assert not {"stderr_snippet", "stdout_snippet"} & quiet.keys()


# covers: C36.3
def test_a_secret_is_taken_out_of_a_snippet_before_it_is_cut(wider: Bench) -> None:
    secret = "sk-ant-api03-" + "Zx9Q" * 20
    padded = "x" * 180 + " " + secret
    text = f"('x' * 180 + ' ' + {secret[:13]!r} + {secret[13:]!r}).encode()"
    done = wider.run(golden(f"import os\nos.write(2, {text})\nos._exit(3)"))
    step = failed(done, "code_runtime_error:3")
    assert "sk-ant" not in json.dumps(done.document)
    assert "[redacted:" in step["stderr_snippet"]
    assert "sk-ant" not in snippet(padded, "", "")
    assert "sk-ant" in padded[:200]  # the control: cut first, half of it would be told


# covers: C83
def test_a_traceback_shows_no_line_of_the_code_and_no_payload(bench: Bench) -> None:
    code = "payload = input()\nraise ValueError('canary' + payload[:0])\n"
    done = bench.run(golden(code))
    assert done.stop_reason == "code_runtime_error:1"
    told = json.dumps([done.document["trace"], done.document["history"]])
    assert "payload[:0]" not in told
    whole = golden("payload = input()\nraise ValueError(payload)\n", action={"input_payload": {"secretly": "hidden"}})
    told = json.dumps(bench.run(whole).document)
    assert "hidden" not in told


# covers: C83
def test_payload_text_printed_by_a_program_is_removed_from_snippets(bench: Bench) -> None:
    own = 'Kim O\'Hara "K\u00e9k"'
    code = (
        "import json\npayload = json.loads(input())\n"
        "print(payload['rows'], json.dumps(payload['rows']), payload['at'], payload['account'], payload['n'])\n"
        "raise ValueError('no such customer: ' + payload['rows'][0]['name'])\n"
    )
    given = {"rows": [{"name": own}], "at": "short", "account": 77001234567890, "n": 42}
    done = bench.run(golden(code, action={"input_payload": given}))
    (step,) = [step for step in done.document["trace"] if step["phase"] == "execute_code"]
    assert step["stderr_snippet"].endswith("ValueError: no such customer: [payload]")
    assert step["stdout_snippet"] == """[{'name': '[payload]'}] [{"name": "[payload]"}] short [payload] 42"""
    assert "Hara" not in json.dumps(done.document, ensure_ascii=False)


@pytest.fixture
def late(opening: Callable[..., Any]) -> Iterator[tuple[Bench, list[float]]]:
    """An engine whose stopwatch shows what a test says, one value after the other, the last one for ever."""
    shown = [0.0]
    with opening() as bench:
        machine = bench.engine.executors.machine()
        bench.engine.executors._machine = replace(
            machine, monotonic=lambda: shown.pop(0) if len(shown) > 1 else shown[0]
        )
        yield bench, shown


# covers: C06.1 C44.2
@pytest.mark.full
@pytest.mark.parametrize(
    ("times", "phase", "steps"),
    [([0.0, 25.5], "plan", []), ([0.0, 0.0, 25.5], "execute", JUDGED)],
    ids=["at plan start", "before execution"],
)
def test_a_spent_budget_starts_nothing(late: Any, times: list[float], phase: str, steps: list[str]) -> None:
    bench, shown = late
    shown[:] = times
    done = bench.run(golden())
    assert (done.stop_reason, done.document["phase"]) == ("max_seconds", phase)
    assert [step["phase"] for step in done.document["trace"]] == steps
    assert all(step["ok"] for step in done.document["trace"])
    assert not [line for line in bench.recorded(done) if line["kind"] == "result" and line["status"] != "run_stopped"]
    shown[:] = [0.0, 15.0]
    assert bench.run(golden()).ok  # the control


# covers: C30.1-2 C31.1-2
def test_a_program_has_a_folder_of_its_own_the_payload_and_two_variables(wider: Bench) -> None:
    code = (
        "import json, os\npayload = json.loads(input())\nnames = sorted(os.listdir('.'))\n"
        "os.write(2, json.dumps([' '.join(os.getcwd()), names, payload['x'], dict(os.environ)]).encode())\nos._exit(3)"
    )
    seen = set()
    for _ in range(2):
        done = wider.run(golden(code, action={"input_payload": {"x": "\u00e9\n\u2028"}}))
        assert done.stop_reason == "code_runtime_error:3"
        folder, names, sent, environment = json.loads(json.loads(wider.kept(done.document["stored"]["log"]))["stderr"])
        folder = folder.replace(" ", "")  # in one piece its random part may look like a secret
        assert Path(folder).name.startswith("code_exec_agent_")
        assert names == ["main.py"]
        assert sent == "\u00e9\n\u2028"
        assert (environment["PYTHONNOUSERSITE"], environment["PYTHONDONTWRITEBYTECODE"]) == ("1", "1")
        seen.add(folder)
    assert len(seen) == 2


# covers: C30.3
def test_invalid_utf_8_in_the_output_is_replaced(wider: Bench) -> None:
    done = wider.run(golden("import os\nos.write(1, b'\\xff\\xfe{')\nos.write(2, b'\\xc3')"))
    failed(done, "invalid_code_output:non_json")
    log = json.loads(wider.kept(done.document["stored"]["log"]))
    assert (log["stdout"], log["stderr"]) == ("\ufffd\ufffd{", "\ufffd")


# covers: C84.1-3
@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    "code", [CODE, "import os\nos._exit(3)", "import time\ntime.sleep(9)"], ids=["ok", "bad", "late"]
)
def test_the_folder_is_gone_after_every_run(wider: Bench, code: str) -> None:
    temporary = Path(tempfile.gettempdir())
    before = set(temporary.iterdir())
    done = wider.run(golden(code, policy_hints={"exec_timeout_seconds": 0.3}))
    assert done.stop_reason in {"success", "code_runtime_error:3", "code_timeout"}
    left = {path for path in set(temporary.iterdir()) - before if path.name.startswith("code_exec_agent_")}
    assert not left
    assert not list(wider.state.rglob("code_exec_agent_*"))
