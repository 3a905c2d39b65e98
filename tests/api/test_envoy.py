"""Envoy's `ext_authz` over HTTP: requests as Envoy sends them, and answers as it reads them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.api.serving import Reply, Serving, serving
from tests.conftest import ROOT

HOST, TOKEN = "tools.example.com", "0123456789abcdef" * 2
SENT = {"Host": HOST, "X-Agenta-Runner-Token": TOKEN, "X-Run-ID": "run-1"}
ROW = {
    "hosts": [HOST],
    "methods": ["GET", "DELETE"],
    "path": "/contacts/",
    "point": "tool_call",
    "request": {
        "policy": "assistant",
        "profile": "coding",
        "call": {"name": "$headers.x-tool", "arguments": {"search": "$path"}},
    },
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("envoy")
    shutil.copytree(ROOT / "policy", folder / "policy")
    file = folder / "policy" / "operations.yaml"
    file.write_text(json.dumps({**YAML(typ="safe").load(file), "envoy": [ROW]}))
    options = ("--policy", folder / "policy", "--server-name", HOST)
    with serving(folder, cache, *options, env={"AGENTA_AGENT_RUNNER_TOKEN": TOKEN}) as running:
        yield running


def ask(api: Serving, path: str, method: str = "GET", tool: str = "contacts_list", **headers: str) -> Reply:
    return api.ask(method, f"/v1/envoy{path}", headers={**SENT, "X-Tool": tool, **headers})


def test_an_allow_is_200_with_the_decision_in_a_header(api: Serving) -> None:
    reply = ask(api, "/contacts/7?page=2")
    assert (reply.status, reply.headers["x-admission-outcome"], reply.headers["x-admission-reasons"]) == (
        200,
        "allow",
        "",
    )
    assert reply.headers["x-admission-decision"] == reply.json["decision_id"]


def test_a_denied_request_is_403_with_its_reasons(api: Serving) -> None:
    denied, asked = ask(api, "/contacts/7", tool="nobody"), ask(api, "/contacts/7", "DELETE", "contacts_add")
    assert (denied.status, denied.headers["x-admission-outcome"]) == (403, "deny")
    assert "tool_unknown" in denied.headers["x-admission-reasons"].split(",")
    assert asked.status == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/contacts/7"),
        ("GET", "/contacts"),
        ("GET", "/others/7"),
        ("GET", "/contacts/../others"),
        ("GET", "/contacts/./7"),
        ("GET", "/contacts//7"),
        ("GET", "/contacts/%2e%2e/others"),
        ("GET", "/contacts/a%2fb"),
        ("GET", ""),
        ("GET", "/"),
    ],
)
def test_a_request_without_a_row_does_not_pass(api: Serving, method: str, path: str) -> None:
    reply = ask(api, path, method)
    assert reply.status in {403, 404}
    assert path == "" or reply.headers["x-admission-reasons"] == "engine.request_unmapped"


def test_missing_or_unknown_request_parts_are_refused(api: Serving) -> None:
    assert ask(api, "/contacts/7", tool="").status == 422
    assert ask(api, "/contacts/7", Host="other.example.com").status == 421
    assert ask(api, "/contacts/7", Authorization="Bearer of-the-client").status == 401
    assert ask(api, "/contacts/7", "TRACE").status == 405
    assert api.ask("GET", "/v1/envoy/contacts/7", headers={"Host": HOST}).status == 401


def test_a_repeated_tool_header_is_refused_as_ambiguous(api: Serving) -> None:
    """The service behind Envoy would read another one of them, or both."""
    head = (
        f"GET /v1/envoy/contacts/7 HTTP/1.1\r\nHost: {HOST}\r\nX-Agenta-Runner-Token: {TOKEN}\r\n"
        "X-Run-ID: run-1\r\nConnection: close\r\n"
    )
    twice = api.raw(f"{head}X-Tool: contacts_list\r\nx-tool: contacts_list\r\n\r\n".encode())
    assert twice.startswith(b"HTTP/1.1 403 ")
    assert b"x-admission-reasons: engine.request_ambiguous" in twice
    assert b"`x-tool`" in twice
    joined = ask(api, "/contacts/7", tool="contacts_list,contacts_list")  # as Envoy asks about a repeated one
    assert (joined.status, joined.headers["x-admission-reasons"]) == (403, "engine.request_ambiguous")
    other = api.raw(f"{head}X-Tool: contacts_list\r\nAccept: a/b\r\nAccept: c/d\r\n\r\n".encode())
    assert other.startswith(b"HTTP/1.1 200 ")
