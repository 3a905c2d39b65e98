"""The relay inside a real sandbox: a harness there starts the shim, and the runner here answers its requests."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from admission_adapters.runner import relay as relays
from admission_adapters.runner.relay import Relay
from admission_adapters.runner.run import Grant
from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap
from admission_adapters.sandbox.model import Bounds, Program, RunResult, Status
from engine.errors import StateError, WorkError
from engine.points.mcp import McpLimits
from tests.adapters.permits import DIGEST, misused, sealed
from tests.adapters.sandbox.programs import bounds
from tests.facilities import needs

SHIM = Path(relays.__file__).with_name("shim.py")
TOOLS = [{"name": "lookup", "description": "Look it up", "inputSchema": {"type": "object"}}]
ROOMY = bounds(memory_bytes=512 << 20, stdout_bytes=1 << 16)

# A harness that starts the entry that it is given, as an MCP client does.
HARNESS = """
import json, os, subprocess, sys
entry = json.loads(sys.argv[1])
shim = subprocess.Popen([entry["command"], *entry["args"]], env=entry["env"], stdin=-1, stdout=-1, text=True)
def ask(method, **params):
    shim.stdin.write(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}) + chr(10))
    shim.stdin.flush()
    return json.loads(shim.stdout.readline())
print(json.dumps(ask("initialize", protocolVersion="2025-06-18")))
print(json.dumps(ask("tools/list")))
print(json.dumps(ask("tools/call", name="lookup", arguments={"text": "ada"})))
print(json.dumps(sorted(os.listdir("/work/relay"))))
"""


def limits(relay: str = "harness") -> McpLimits:
    return McpLimits(
        phase="delivery",
        relay=relay,
        servers=(),
        started=(),
        skipped=(),
        tools=(),
        client_methods=(),
        server_methods=(),
    )


def grant(relay: str = "harness") -> Grant:
    return Grant(sealed("mcp", limits(relay)), DIGEST)


def relay_of(called: Callable[[Any, Any], tuple[str, bool]]) -> Relay:
    return Relay(grant(), "harness", TOOLS, called)


def ran(
    code: str, relay: Relay, *words: str, within: Bounds = ROOMY, more: dict[str, bytes] | None = None
) -> RunResult:
    command = ("/usr/bin/python3", "-c", code, *words)
    return Bubblewrap().run(Program(command=command, files={**relay.files, **(more or {})}, relay=relay), within)


# covers: D36.2 D60.3-4
@needs("bubblewrap")
def test_a_harness_starts_the_shim_and_the_runner_makes_its_call() -> None:
    calls = []

    def called(name: Any, arguments: Any) -> tuple[str, bool]:
        calls.append((name, arguments))
        return "found\nit", False

    relay = relay_of(called)
    entry = relay.entry()
    assert (sorted(entry), entry["env"]) == (["args", "command", "env", "name"], {})
    assert isinstance(entry["command"], str)
    done = ran(HARNESS, relay, json.dumps(entry))
    assert (done.status, done.stderr) == (Status.OK, b"")
    started, listed, answered, left = map(json.loads, done.stdout.splitlines())
    assert started["result"]["protocolVersion"] == "2025-06-18"
    assert listed["result"] == {"tools": TOOLS}
    assert answered["result"] == {"content": [{"type": "text", "text": "found\nit"}], "isError": False}
    assert calls == [("lookup", {"text": "ada"})]
    assert left == ["shim.py", "tools.json"]


# What a hostile program leaves in the folder, in place of the shim.
HOSTILE = """
import os, time
os.chdir("/work/relay")
os.symlink("/etc/passwd", "link.request")
os.mkdir("folder.request")
files = {"a..b": "{}", "x" * 40: "{}", "big": "x" * (1 << 19), "list": "[]", "twice": '{"params": {}, "params": {}}'}
for name, content in files.items():
    open(name, "w").write(content)
    os.rename(name, name + ".request")
answers = ("big", "list", "twice")
while not all(os.path.exists(name + ".response") for name in answers):
    time.sleep(0.01)
print([open(name + ".response").read().count("refused") for name in answers], sorted(os.listdir(".")))
"""


@needs("bubblewrap")
def test_invalid_request_files_make_no_call() -> None:
    calls = []

    def called(name: Any, arguments: Any) -> tuple[str, bool]:
        calls.append((name, arguments))
        raise WorkError("x", remedy="y", code="engine.tool_missing")

    done = ran(HOSTILE, relay_of(called), within=bounds(memory_bytes=512 << 20))
    assert (done.status, done.stderr) == (Status.OK, b"")
    assert done.stdout.startswith(b"[1, 1, 1]")
    assert calls == []
    assert b"link.request" in done.stdout  # it was not followed


@needs("bubblewrap")
def test_an_answer_that_cannot_be_written_ends_the_sandbox() -> None:
    code = """
import os, time
os.mkdir("/work/relay/a")
open("/work/relay/b", "w").close()
os.rename("/work/relay/b", "/work/relay/a.request")
time.sleep(60)
"""
    done = ran(code, relay_of(lambda _name, _arguments: ("", False)))
    assert done.status is Status.SANDBOX_ERROR


@pytest.mark.parametrize("fault", [StateError("locked", remedy="wait"), RuntimeError("secret"), OSError("secret")])
def test_a_call_that_fails_is_answered_and_the_next_one_too(fault: Exception) -> None:
    faults = iter([fault])

    def called(_name: Any, _arguments: Any) -> tuple[str, bool]:
        for one in faults:
            raise one
        return "found it", False

    relay, said = relay_of(called), list[bytes]()
    relay.begin(said.append)
    for name in (b"first", b"second"):
        relay.hear(name + b' {"params": {"name": "lookup", "arguments": {}}}')
    relay.end()
    (first, failed), (second, found) = ((name, json.loads(text)) for name, text in (one.split(b" ", 1) for one in said))
    assert (first, failed["isError"], b"secret" in said[0]) == (b"first", True, False)
    assert (second, found["content"][0]["text"]) == (b"second", "found it")


# covers: D36.3
@needs("bubblewrap")
@pytest.mark.parametrize("path", ["/work/relay/shim.py/below", "big"])
def test_a_failed_upload_is_a_sandbox_error(path: str) -> None:
    done = ran("print('it ran')", relay_of(lambda _name, _arguments: ("", False)), more={path: b"x" * (17 << 20)})
    assert (done.status, done.stdout) == (Status.SANDBOX_ERROR, b"")
    assert b"OSError" in done.stderr or b"Error" in done.stderr


# covers: D36.3
def test_a_missing_shim_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(relays, "__file__", str(tmp_path / "relay.py"))
    with pytest.raises(WorkError, match="cannot be uploaded"):
        relay_of(lambda _name, _arguments: ("", False))


# covers: D36.1
@pytest.mark.parametrize("profile", ["", "standard"])
def test_a_relay_needs_a_permit_for_its_sandbox(profile: str) -> None:
    with pytest.raises(WorkError, match="the permit has no relay in this sandbox"):
        Relay(grant(profile), "harness", TOOLS, lambda _name, _arguments: ("", False))
    for permit in misused(sealed("mcp", limits())).values():
        with pytest.raises(WorkError):
            Relay(Grant(permit, DIGEST), "harness", TOOLS, lambda _name, _arguments: ("", False))


# covers: D60.1-2
def test_the_shim_has_no_code_for_anything_but_files() -> None:
    tree = ast.parse(SHIM.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names} | {
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    }
    assert imported == {"__future__", "json", "os", "pathlib", "sys", "time", "typing"}
    assert {ast.unparse(node) for node in ast.walk(tree) if ast.unparse(node).startswith("os.")} == {
        "os.urandom",
        "os.urandom(8)",
        "os.urandom(8).hex",
        "os.urandom(8).hex()",
    }
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not names & {"exec", "eval", "compile", "__import__", "getattr", "globals"}


# covers: D60.2
@pytest.mark.parametrize("control", [False, True])
def test_a_complete_session_opens_no_socket_and_starts_no_process(*, control: bool, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    code = f"""
import sys
watched = {{"socket", "subprocess", "ctypes", "urllib", "http"}}
def saw(event, _):
    if event.split(".")[0] in watched or event in {{"os.exec", "os.posix_spawn", "os.fork", "os.system"}}:
        sys.stderr.write(event + chr(10))
sys.addaudithook(saw)
import runpy
sys.argv[:] = [{str(SHIM)!r}, {str(tmp_path)!r}]
runpy.run_path(sys.argv[0], run_name="__main__")
if {control}:
    import socket
    socket.create_server(("127.0.0.1", 0)).close()
"""
    shim = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )

    def answer() -> None:
        while not (found := [*tmp_path.glob("*.request")]):
            os.sched_yield()
        found[0].with_suffix(".new").write_text('{"content": []}', encoding="utf-8")
        found[0].with_suffix(".new").rename(found[0].with_suffix(".response"))

    answering = threading.Thread(target=answer)
    answering.start()
    call: dict[str, Any] = {"method": "tools/call", "params": {"name": "lookup", "arguments": {}}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "1"}},
        {"method": "notifications/initialized"},
        {"id": 2, **call},
        {"id": 3, "method": "server/discover"},
        {"id": 4, "method": "ping", "params": None},
        {"id": 5, "result": {}},
        {"id": 6, **call, "more": "x" * (1 << 18)},
    ]
    out, err = shim.communicate("".join(json.dumps(one) + "\n" for one in messages) + "no JSON\n", timeout=30)
    answering.join()
    started, called, *others = map(json.loads, out.splitlines())
    assert (started["result"]["protocolVersion"], called["result"]) == ("2025-11-25", {"content": []})
    assert [one.get("error", {}).get("code", one.get("result")) for one in others] == [
        -32601,
        {},
        {"content": [{"type": "text", "text": "the call is too long"}], "isError": True},
        -32600,
    ]
    assert ("socket" in err) is control, err
