"""Harnesses for the tests of a runner, as real programs in real sandboxes, and a policy that has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.documents.files import load
from engine.settings import ReadLimits
from tests.conftest import ROOT
from tests.tool_rows import reading

_VALUES = load((ROOT / "docs/examples/runner/values/runners.yaml").read_bytes(), "runners.yaml", ReadLimits()).value
EXAMPLE: str = _VALUES["harnesses"]["pi_core"]["command"][2]
"""The harness of the documentation: it calls the tools that the last message names."""

_READS = """
import json, sys, time
say = lambda **m: print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
hear = lambda: json.loads(sys.stdin.readline())
CAN = {"mcpTools": False, "toolCalls": True}
first = hear()
"""
_STARTS = _READS + "say(id=first['id'], result={'capabilities': CAN})\nrun = hear()\n"
_ENDS = "\nsay(id='run', result={'outputs': {'invoke': 'done'}})\n"

HARNESSES: dict[str, str] = {
    "pi_core": EXAMPLE,
    # Takes tools over MCP only, and can do neither.
    "claude": _READS + "CAN['toolCalls'] = False\nsay(id=first['id'], result={'capabilities': CAN})\nhear()" + _ENDS,
    "hiding": _STARTS + _ENDS,  # shows its model no tool
    "showing_less": _STARTS + "say(method='advertised', params={'tools': []})" + _ENDS,
    "shapeless": _READS + "say(id=first['id'], result={'capabilities': {'toolCalls': 'yes'}})\nhear()" + _ENDS,
    "dying": _STARTS + "sys.exit(3)",
    "leaving": EXAMPLE.replace("say(method=", "'probe' in task or sys.exit(3)\nsay(method=", 1),  # passes its probe
    "chatting": _STARTS + "print('hello')",
    "failing": _STARTS + "say(id='run', error={'message': 'no model at /srv/models with ' + 'c4nary-' + 'provider'})",
    "curious": _STARTS
    + """
import glob, os, socket
found = []
for act in (lambda: open('/etc/passwd').read(), lambda: socket.create_connection(('127.0.0.1', PORT), 2)):
    try:
        act()
        found.append('did')
    except OSError:
        found.append('refused')
say(id='run', result={'outputs': {'invoke': json.dumps([found, sorted(os.environ), json.dumps(run)])}})
""",
}
"""Programs by the name of their harness."""

RELAYED = """
import json, os, subprocess, sys
say = lambda **m: print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
hear = lambda: json.loads(sys.stdin.readline())
say(id=hear()["id"], result={"capabilities": {"mcpTools": True, "toolCalls": True}})
run = hear()
task = run["params"]
(entry,) = task["mcp_servers"]
shim = subprocess.Popen([entry["command"], *entry["args"]], env=entry["env"], stdin=-1, stdout=-1, text=True)
def ask(method, **params):
    shim.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + chr(10))
    shim.stdin.flush()
    return json.loads(shim.stdout.readline())["result"]
ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "harness", "version": "1"})
tools = [tool["name"] for tool in ask("tools/list")["tools"]]
say(method="advertised", params={"tools": tools})
answers = []
if "probe" in task:
    ask("tools/call", name=tools[0], arguments={"word": task["probe"]["word"]})
else:
    for line in task["messages"][-1]["content"].splitlines():
        name, _, arguments = line.partition(" ")
        answers.append(ask("tools/call", name=name, arguments=json.loads(arguments)))
answers.append([entry["env"], sorted(os.listdir("/work/relay")), open("/work/relay/tools.json").read()])
say(id="run", result={"outputs": {"invoke": json.dumps(answers)}})
"""
"""Takes its tools over MCP: starts the servers of its task, and calls the tools that the last message names."""


def policy_with(folder: Path, callback: str, port: int = 0, **values: Any) -> Path:
    """A policy folder with these harnesses, in which runs may post to this callback. `values` of runners.yaml win."""
    policy = folder / "policy"
    (policy / "values").mkdir(parents=True)
    (policy / "recipe.yaml").write_text("description: runs of agents\nowner: tests\n", encoding="utf-8")
    rows = {
        name: {
            "custom_tools": "mcp" if name == "claude" else "native",
            "command": ["python3", "-c", f"PORT = {port}\n{code}"],
            "kwargs": ["effort"] if name == "curious" else [],
            "assumed": {"toolCalls": True} if name == "shapeless" else {},
            "models": {"anthropic": ["claude-sonnet-4-5"]} if name == "pi_core" else {},
            "connection_modes": ["agenta"] if name == "pi_core" else [],
        }
        for name, code in HARNESSES.items()
    }
    tool = reading(text="text")
    documents = {
        "runners": {
            "harnesses": rows,
            "endpoints": [callback],
            "calls": {"ask": {"policy": "runs", "profile": "coding"}},
            **values,
        },
        "sandbox": {"executables": {"python3": "/usr/bin/python3"}},
        "tools": {
            "tools": {"lookup": tool, "change": tool},
            "rulesets": {"runs": {"deny": [], "confirm": [], "allow": [{"id": "lookup", "tools": ["lookup"]}]}},
            "policies": {"runs": {"base": "confirm_all", "rulesets": ["runs"], "principals": "any"}},
        },
    }
    for name, document in documents.items():
        (policy / "values" / f"{name}.yaml").write_text(json.dumps(document), encoding="utf-8")
    return policy
