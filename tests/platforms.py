"""A remote platform as a server of its own, which runs programs and states what it applied, true or not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.runners import Handler, running


@dataclass(slots=True)
class LoopbackPlatform:
    """What it got, and how its next answers differ from true ones."""

    address: str
    changes: dict[str, Any] = field(default_factory=dict)
    made: list[dict[str, Any]] = field(default_factory=list)
    ran: list[list[str]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def answer(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if method == "DELETE":
            self.removed.append(path.rpartition("/")[2])
            return {}
        if path.endswith("/run"):
            self.ran.append(body["command"])
            command = [sys.executable, *body["command"][1:]]
            done = subprocess.run(command, input=body["stdin"].encode(), capture_output=True, timeout=60, check=False)
            return {"exit_code": done.returncode, "stdout": done.stdout.decode()}
        self.made.append(body)
        applied = {"network": body["network"], "filesystem": body["filesystem"]}
        answer = {"id": f"box-{len(self.made)}", "run": body["run"], "nonce": body["nonce"], "applied": applied}
        return answer | self.changes


@contextmanager
def platform() -> Iterator[LoopbackPlatform]:
    """A platform on this machine."""

    def behave(handler: Handler) -> None:
        sent = handler.runner.received[-1]
        data = json.dumps(found.answer(sent.method, sent.path, json.loads(sent.body or b"{}"))).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    with running(behave) as server:
        found = LoopbackPlatform(f"{server.origin}/api")
        yield found
