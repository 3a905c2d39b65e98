"""A real MCP server, as the package of a server that policy/mcp.yaml starts: mcp-server-time and all that it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from admission_adapters.runner.mcp_server import package_digest
from engine.facts.tools.definitions import definition_of

SERVER = ["-m", "mcp_server_time", "--local-timezone", "UTC"]
"""The arguments of an interpreter that start it."""

PYTHON = "/usr/bin/python3"


def packed(folder: Path) -> dict[str, Any]:
    """The package, as a row of policy/mcp.yaml names it. Skips where the sandbox has another Python than the tests."""
    version = subprocess.run([PYTHON, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, check=True)
    if version.stdout.decode().strip() != str(sys.version_info[:2]):
        pytest.skip("the packages of the tests are for another Python than that of the sandbox")
    files: dict[str, bytes] = {}
    for name in _needed("mcp-server-time"):
        for file in distribution(name).files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                content = Path(str(file.locate())).read_bytes()
                files[file.as_posix()] = content
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_bytes(content)
    return {"folder": str(folder), "digest": package_digest(files)}


def definitions() -> dict[str, str]:
    """The digests of the definitions of its tools, by their names; asked outside of every sandbox."""
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
    lines: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    ]
    with subprocess.Popen([sys.executable, *SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(b"".join(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n" for line in lines))
        server.stdin.flush()
        answers = (json.loads(line) for line in server.stdout)
        tools = next(answer for answer in answers if answer.get("id") == 2)["result"]["tools"]
        server.stdin.close()
    return {tool["name"]: definition_of(tool).digest() for tool in tools}


def _needed(name: str) -> list[str]:
    """A distribution and all that it needs here."""
    names = [name]
    for one in names:
        for stated in distribution(one).requires or ():
            needed = Requirement(stated)
            markers = [needed.marker is None or needed.marker.evaluate({"extra": extra}) for extra in ("", "crypto")]
            if any(markers) and needed.name not in names and _there(needed.name):
                names.append(needed.name)
    return names


def _there(name: str) -> bool:
    try:
        distribution(name)
    except ModuleNotFoundError:
        return False
    return True
