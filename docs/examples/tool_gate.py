"""An agent with real tools behind the gate: files, a database, an HTTP server; a scripted model calls them.

Tools enter the registry by a permit only: their code is this file, whose digest is curated for each of them, and
one that the policy does not know stays outside. What the policy hides is not in the prompt, one call is refused, one
waits until a person grants it with `engine approvals grant`, the others run. Run it with
`.venv/bin/python docs/examples/tool_gate.py`; the records of all of it go to the usual state folder.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

from admission_adapters.tools.gate import ToolGate, ToolResult, ToolValidationError, record_side_effect
from admission_adapters.tools.implementations import implementation_digest
from admission_adapters.tools.prompt_view import prompt_view
from admission_adapters.tools.registry import ToolRegistry
from engine import Caller, Context, Engine, Settings, Via
from engine.work import Executor


class Office:
    """The tools: plain functions. Each reports a side effect before performing it."""

    def __init__(self, folder: Path, page: str) -> None:
        self.folder, self.page = folder, page
        self._database = folder / "contacts.db"
        (folder / "notes.txt").write_text("Ask Ada about the engine.\n", encoding="utf-8")
        with closing(sqlite3.connect(self._database)) as database:
            database.execute("CREATE TABLE contacts (name TEXT, email TEXT)")
            database.execute("INSERT INTO contacts VALUES ('Ada', 'ada at work')")
            database.commit()

    def files_read(self, path: str) -> str:
        """Read a file."""
        record_side_effect("read", id="file", target=path)
        return Path(path).read_text(encoding="utf-8")

    def contacts_list(self, search: str) -> list[tuple[str, str]]:
        """List the contacts whose name begins with some letters."""
        if not search.isalpha():
            raise ToolValidationError("search_not_letters", "search by letters only", {"argument": "search"})
        record_side_effect("read", id="contacts")
        with closing(sqlite3.connect(self._database)) as database:
            return database.execute("SELECT * FROM contacts WHERE name LIKE ?", (f"{search}%",)).fetchall()

    def contacts_add(self, name: str, email: str) -> str:
        """Add a contact."""
        record_side_effect("write", id="contacts", target=name)
        with closing(sqlite3.connect(self._database)) as database:
            database.execute("INSERT INTO contacts VALUES (?, ?)", (name, email))
            database.commit()
        return f"{name} is a contact now"

    def http_get(self, url: str) -> str:
        """Fetch one address."""
        record_side_effect("network", id="page", target=url)
        with build_opener(ProxyHandler({})).open(url, timeout=5) as response:
            text: str = response.read().decode("utf-8")
        return text

    def calendar_read(self, day: str) -> str:
        """Read the calendar; it has no entry in policy/tools.yaml."""
        return f"nothing on {day}"

    def registry(self, engine: Engine, context: Context) -> ToolRegistry:
        """The tools that the engine admits, each with its definition for the model."""
        registry = ToolRegistry()
        effects: dict[Callable[..., Any], list[str]] = {
            self.files_read: ["read"],
            self.contacts_list: ["read"],
            self.contacts_add: ["write"],
            self.http_get: ["read", "network"],
            self.calendar_read: ["read"],
        }
        for tool, side_effects in effects.items():
            names = [name for name in tool.__annotations__ if name != "return"]
            schema = {
                "type": "object",
                "properties": {name: {"type": "string"} for name in names},
                "required": names,
                "additionalProperties": False,
            }
            definition = {"name": tool.__name__, "description": tool.__doc__, "input_schema": schema}
            candidate = {
                "definition": definition,
                "implementation": {"local": True, "digest": implementation_digest(tool)},
                "environment": "workspace",
                "side_effects": side_effects,
            }
            answer = engine.decide("tool_contract", {"tool": candidate}, entering(registry, tool, definition), context)
            if answer.result is None:
                print(f"{tool.__name__}: not admitted: {answer.decision.findings[0].code}")
        return registry


def entering(registry: ToolRegistry, tool: Callable[..., Any], definition: dict[str, Any]) -> Executor:
    """The work that a permit allows: registering exactly this tool."""
    return lambda permit, job: registry.admit(permit, job.input_digest, tool, definition)


def curated() -> tuple[str, ...]:
    """What a reviewer of this file writes into policy/tools.yaml: `curated` of its tools."""
    digest = implementation_digest(Office.files_read)
    names = ("files_read", "contacts_list", "contacts_add", "http_get")
    return tuple(f'tools.tools.{name}.curated=["{digest}"]' for name in names)


class Page(BaseHTTPRequestHandler):
    """A server with one page."""

    def do_GET(self) -> None:
        """Answer with the page."""
        body = b"Ada has moved to room 7."
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


@contextmanager
def serving() -> Iterator[str]:
    """The address of the page while it is served, on this machine only."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def model(office: Office) -> Iterator[dict[str, Any]]:
    """A scripted model: its answers turn by turn, as calls in OpenAI format."""
    script: list[tuple[str, dict[str, str]]] = [
        ("files_read", {"path": str(office.folder / "notes.txt")}),
        ("files_read", {"path": "/etc/passwd"}),
        ("calendar_read", {"day": "monday"}),
        ("contacts_list", {"search": "A*"}),
        ("contacts_list", {"search": "A"}),
        ("contacts_add", {"name": "Grace", "email": "grace at work"}),
        ("http_get", {"url": office.page}),
    ]
    for number, (name, arguments) in enumerate(script):
        function = {"name": name, "arguments": json.dumps(arguments)}
        yield {"id": f"call_{number}", "type": "function", "function": function}


def person(approval: str, state: Path) -> None:
    """A person at a terminal grants what the agent asked for; the command identifies the person by the system user."""
    reason = ["--reason", "seen and fine", "--state", str(state)]
    subprocess.run([sys.executable, "-m", "engine", "approvals", "grant", approval, *reason], check=True)


def loop(gate: ToolGate, office: Office, state: Path) -> list[ToolResult]:
    """Prompt, call, result, until the model is done; each step is printed."""
    results: list[ToolResult] = []
    history: list[dict[str, Any]] = [{"role": "user", "content": "Where is Ada, and is Grace a contact?"}]
    most: int | None = None  # bytes of results in a prompt; told with the first one
    for call in model(office):
        shown = [definition["name"] for definition in gate.visible()]
        prompt = history if most is None else prompt_view(history, most).messages
        print(f"prompt: {len(prompt)} messages, tools: {', '.join(shown)}")
        result = gate.call(call)
        if result.approval is not None:
            print(f"{call['function']['name']}: {result.status}: {result.code}", flush=True)
            person(result.approval, state)
            result = gate.call(call, result.approval)
        print(f"{call['function']['name']}: {result.status}: {result.code or result.content.strip()}", flush=True)
        most = result.metadata.get("prompt_bytes", most)
        history += [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": result.content},
        ]
        results.append(result)
    return results


def main() -> None:
    """The loop, then its record."""
    settings = Settings()
    context = Context(caller=Caller(via=Via.PROCESS, principal="assistant-7"), run="run-7")
    with tempfile.TemporaryDirectory() as scratch, serving() as page, Engine(settings, values=curated()) as engine:
        office = Office(Path(scratch).resolve(), page)
        registry = office.registry(engine, context)
        print(f"without a policy, tools: {ToolGate(engine, registry, context).visible()}")
        gate = ToolGate(engine, registry, context, policy="assistant", profile="coding", cwd=str(office.folder))
        last = loop(gate, office, settings.state)[-1]
    story = ["show", "--point", "tool_call", "--principal", "assistant-7"]
    for words in (["verify"], story, ["show", "--decision-id", str(last.decision_id)]):
        command = [sys.executable, "-m", "engine", "record", *words, "--state", str(settings.state)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
