"""A verifier looks at validated output, in a sandbox, folder and budget of its own, under a permit of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.code.conftest import GOLDEN, Bench, golden
from tests.facilities import needs

pytestmark = needs("bubblewrap")

VERIFY = """
import json

seen = json.loads(input())
rows = seen["input_payload"]["transactions"]
print(json.dumps({"passed": len(rows) == seen["output"]["sample_size"]}))
"""


def verified(code: str = VERIFY, **action: Any) -> dict[str, Any]:
    own = {"id": "v1", "language": "python", "entrypoint": "main.py", "code": code, **action}
    return {**golden(), "verifier": {"action": own}}


# covers: A87.1
def test_a_verifier_that_passes_is_a_step_of_its_own(bench: Bench) -> None:
    done = bench.run(verified())
    assert done.ok, done.document
    assert [step["phase"] for step in done.document["trace"]] == [
        "plan_code",
        "policy_check",
        "execute_code",
        "verify_code",
        "finalize",
    ]
    assert done.document["history"][3]["result"] == {"passed": True}
    found = bench.recorded(done)
    permits = [line["limits"] for line in found if line.get("point") == "code_execution"]
    assert [one["role"] for one in permits] == ["solution", "verifier"]
    assert permits[0]["wall_seconds"] <= 20
    assert permits[1]["artifact_files"] == 0
    assert permits[0]["processes"] != permits[1]["processes"]  # a budget of its own
    ran = [line["facts"] for line in found if line["kind"] == "result" and "exec_ms" in line["facts"]]
    assert [one["role"] for one in ran] == ["solution", "verifier"]
    assert ran[0]["code_sha256"] != ran[1]["code_sha256"]
    assert set(found[-1]["facts"]["programs"]) == {"solution", "verifier"}
    assert done.document["stored"]["verifier"]["result"]


# covers: A87
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print('{\"passed\": false}')", "invalid_code_output:passed"),
        ("print('{\"passed\": 1}')", "invalid_code_output:passed"),
        ('print(\'{"passed": "true"}\')', "invalid_code_output:passed"),
        ("print('{}')", "invalid_code_output:missing_required"),
        ("print('no')", "invalid_code_output:non_json"),
        ("raise ValueError", "code_runtime_error:1"),
        ("import os", "policy_block:static_policy_violation:import_not_allowed:os"),
        ("", "invalid_action:code"),
    ],
    ids=lambda value: value[:40],
)
def test_output_rejected_by_its_verifier_gives_no_answer(bench: Bench, code: str, reason: str) -> None:
    done = bench.run(verified(code))
    assert (done.stop_reason, done.document["phase"], done.exit) == (f"verifier:{reason}", "execute", 1)
    assert "answer" not in done.document
    step = done.document["trace"][-1]
    assert (step["phase"], step["ok"], step["error"]) == ("verify_code", False, f"verifier:{reason}")


def test_a_verifier_sees_what_the_engine_shows_it_and_nothing_else(bench: Bench) -> None:
    done = bench.run(verified(input_payload={"transactions": []}))
    assert done.ok  # its own payload is made by the engine
    every: list[Any] = [None, [], "x", 7]
    for odd in every:
        assert bench.run({**golden(), "verifier": {"action": odd}}).stop_reason == "verifier:invalid_action:not_object"


# covers: A87.2
def test_solution_and_verifier_share_no_path_that_can_be_written(wider: Bench) -> None:
    leave = "import os\nos.mkdir('left')\nos.mkdir(chr(47) + 'tmp' + chr(47) + 'left')\n"
    look = (
        "import json, os\nshared = os.listdir(chr(47) + 'tmp')\n"
        "names = [' '.join(os.getcwd()), sorted(os.listdir('.')), sorted(shared), os.getpid()]\n"
        "os.write(2, json.dumps(names).encode())\nos._exit(3)"
    )
    done = wider.run({**verified(look), "action": {**GOLDEN["action"], "code": leave + GOLDEN["action"]["code"]}})
    assert done.stop_reason == "verifier:code_runtime_error:3"
    stored = done.document["stored"]["verifier"]
    folder, own, shared, _ = json.loads(json.loads(wider.kept(stored["log"]))["stderr"])
    assert own == ["main.py"]
    assert shared == []
    done = wider.run(golden(leave + look.replace("import json, os", "import json")))
    folder, own, shared, _ = json.loads(json.loads(wider.kept(done.document["stored"]["log"]))["stderr"])
    assert (own, shared) == (["left", "main.py"], ["left"])  # the control: one that looks at its own sees it
    again = wider.run(verified(look)).document["stored"]["verifier"]
    assert json.loads(json.loads(wider.kept(again["log"]))["stderr"])[0] != folder
