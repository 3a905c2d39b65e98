"""The relay shim: an MCP server on standard streams that runs inside the sandbox, for a harness there.

It has the public definitions of tools and a folder. Each call becomes a file `<name>.request` in the folder, and the
file `<name>.response`, which the runner writes, its answer: the runner decides on the call and makes it. Nothing else
happens here. The engine does not import it: its text is uploaded, and run by the system's interpreter (the syntax of
Python 3.9, the standard library).
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

MYPY = False
if MYPY:
    from typing import Any

_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_REQUEST_BYTES = 1 << 18
_LOOK_SECONDS = 0.01
_NO_METHOD, _NO_REQUEST = -32601, -32600


def main(folder: Path, out: Any) -> None:
    """Answer every line of standard input, one after the other."""
    tools = json.loads((folder / "tools.json").read_text(encoding="utf-8"))
    for line in sys.stdin:
        answer = _answer(line, tools, folder)
        if answer is not None:
            out.write(json.dumps({"jsonrpc": "2.0", **answer}) + "\n")
            out.flush()


def _answer(line: str, tools: list[Any], folder: Path) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params") or {}
    except (ValueError, AttributeError):
        return {"id": None, "error": {"code": _NO_REQUEST, "message": "not a request"}}
    if "id" not in message or method is None:
        return None  # notifications, and answers to nothing
    if method == "initialize":
        version = params.get("protocolVersion")
        result: dict[str, Any] = {
            "protocolVersion": version if version in _VERSIONS else _VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "relay", "version": "1"},
        }
    elif method == "ping":
        result = {}
    elif method == "tools/list":
        result = {"tools": tools}
    elif method == "tools/call":
        result = _relayed(message, folder)
    else:
        return {"id": message["id"], "error": {"code": _NO_METHOD, "message": "there is no such method"}}
    return {"id": message["id"], "result": result}


def _relayed(message: dict[str, Any], folder: Path) -> Any:
    """The answer of the runner; waits for it."""
    content = json.dumps(message).encode("utf-8")
    if len(content) > _REQUEST_BYTES:
        return {"content": [{"type": "text", "text": "the call is too long"}], "isError": True}
    path = folder / os.urandom(8).hex()
    path.write_bytes(content)
    path.rename(path.with_suffix(".request"))
    response = path.with_suffix(".response")
    while not response.exists():
        time.sleep(_LOOK_SECONDS)
    answer = json.loads(response.read_text(encoding="utf-8"))
    response.unlink()
    return answer


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.stdout)
