"""docs/examples/gate.mjs: a program in JavaScript asks a serving engine around its tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.api.serving import issue, serving
from tests.conftest import ROOT
from tests.facilities import needs
from tests.frameworks.office import TOKEN

POINTS = ("tool_visibility", "tool_call", "tool_result")
AGENT = """
const { Gate } = await import(process.argv[1]);
const cwd = process.argv[3];
const gate = new Gate({ policy: "assistant", profile: "coding", cwd });
const tool = (name, argument) => ({ name, description: "A tool.", input_schema: {
  type: "object", properties: { [argument]: { type: "string" } }, required: [argument] } });
const read = tool("files_read", "path"), get = tool("http_get", "url"), unlisted = tool("unlisted", "x");
const url = { url: "https://docs.example.com/start" };
const ran = [];
const giving = (value) => (args) => { ran.push(args); if (value instanceof Error) throw value; return value; };
const told = {
  visible: await gate.visible([read, get, unlisted]),
  allowed: await gate.call(read, { path: cwd + "/notes.md" }, giving("notes"), "1"),
  json: await gate.call(read, { path: cwd + "/notes.md" }, giving({ a: ["é"] }), "2"),
  secret: await gate.call(read, { path: cwd + "/notes.md" }, giving(process.argv[2]), "3"),
  failed: await gate.call(read, { path: cwd + "/notes.md" }, giving(new Error("c4nary")), "4"),
  refused: await gate.call(unlisted, { x: "x" }, giving("never"), "5"),
  unasked: await gate.call(get, url, giving("never"), "6"),
  asks: [await gate.asks(get, url, "7"), await gate.asks(read, { path: cwd + "/notes.md" }, "8")],
  approved: await gate.call(get, url, giving("page"), "7"),
  again: await gate.call(get, url, giving("never"), "7"),
};
console.log(JSON.stringify({ ...told, ran: ran.length }));
"""


def answers(folder: Path, work: Path, cache: Path, redact: str) -> dict[str, Any]:
    """The answers to an agent in `work`; `redact` is a line of policy/results.yaml."""
    policy = Path(shutil.copytree(ROOT / "policy", folder / "policy"))
    results = policy / "results.yaml"
    text = results.read_text(encoding="utf-8").replace("redact: [secrets, hidden_characters, links]", redact)
    results.write_text(text, encoding="utf-8")
    with serving(folder, cache, "--policy", policy, "--root", work) as running:
        tokens = {
            "AGENT_TOKEN": issue(running.state, "agent-7", POINTS),
            "APPROVER_TOKEN": issue(running.state, "user:ana", (), approves=("tool_call",)),
        }
        given = (ROOT / "docs" / "examples" / "gate.mjs", f"a {TOKEN}", work)
        done = subprocess.run(
            ["/usr/bin/node", "--input-type=module", "-e", AGENT, *given],
            env=os.environ | tokens | {"ENGINE_URL": f"http://127.0.0.1:{running.port}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@needs("node")
def test_calls_and_results_are_decided_on_and_a_person_approves(tmp_path: Path, unprotected: Path, cache: Path) -> None:
    told = answers(tmp_path, unprotected, cache, "redact: []")
    assert told["visible"] == ["files_read", "http_get"]
    assert (told["allowed"], told["json"], told["failed"]) == ("notes", '{"a":["é"]}', "the tool failed")
    assert "secret_in_result" in told["secret"]
    assert TOKEN not in json.dumps(told)
    assert "not made (deny)" in told["refused"]
    assert "engine approvals grant" in told["unasked"]
    assert (told["asks"], told["approved"]) == ([True, False], "page")
    assert "not made (confirm)" in told["again"]
    assert told["ran"] == 5


@needs("node")
def test_no_result_is_shown_that_would_have_to_be_redacted(tmp_path: Path, unprotected: Path, cache: Path) -> None:
    told = answers(tmp_path, unprotected, cache, "redact: [secrets]")
    assert "redact: []" in told["allowed"]
    assert TOKEN not in json.dumps(told)
