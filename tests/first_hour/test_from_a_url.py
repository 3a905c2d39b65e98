"""docs/from-a-url.md, followed as written against a real TLS server: fetched, checked, built, used, undone, proven."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.environments.bundles import proven
from tests.first_hour.pages import Reader, blocks, steps
from tests.sources.https import Authority, admitting, complete, resolving, response, serving

PAGE = "docs/from-a-url.md"
CONTACTS = [
    {"id": 1, "name": "Ada Example", "city": "London"},
    {"id": 2, "name": "Ben Example", "city": "Zurich"},
    {"id": 3, "name": "Eve Example", "tags": ["vip"]},
]
_PORT = """
outside, inside = ("127.0.0.1", 443), ("127.0.0.1", {port})
connect, peer = socket.socket.connect, socket.socket.getpeername
socket.socket.connect = lambda self, to: connect(self, inside if to == outside else to)
socket.socket.getpeername = lambda self: outside if peer(self) == inside else peer(self)
"""
"""The port of the address leads to the server, as its name does, by a translation that the client does not see."""


@pytest.mark.full
def test_the_page_leads_from_a_url_to_a_proven_side_effect(tmp_path: Path, cache: Path) -> None:
    authority = Authority(tmp_path)
    with serving(authority.context()) as server:
        server.answers(response(json.dumps(CONTACTS).encode()))
        policy = admitting(tmp_path / "own", server)
        with (policy.parent / "sitecustomize.py").open("a", encoding="utf-8") as file:
            file.write(_PORT.format(port=server.port))
        own = {**resolving(policy), "ENGINE_POLICY": str(policy), "ENGINE_CA_FILE": str(authority.path)}
        reader = Reader(tmp_path, cache, tmp_path, own)
        (lines,) = blocks(PAGE, "yaml")
        for at, step in enumerate(steps(PAGE)):
            if at == 2:
                complete(tmp_path / "contacts", lines)
            reader.follow(step)
        assert len(server.requests) == 1
    proven(tmp_path / "state", tmp_path / "environments" / "contacts_sqlite")


def test_the_client_of_the_page_serves_the_environment() -> None:
    """The arguments are those of the command; tests/environments/test_mcp.py runs it."""
    (text,) = blocks(PAGE, "json")
    arguments = json.loads(text)["mcpServers"]["contacts"]["args"]
    assert arguments[:2] == ["environment", "serve"]
    assert {"--source", "--tool-policy", "--profile", "--enable-mcp-adapter"} <= set(arguments)
