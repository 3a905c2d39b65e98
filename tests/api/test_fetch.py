"""`POST /v1/fetch`: what `engine fetch` does, below the operator's folder, in a folder of the caller's own."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.state import open_store
from tests.api.serving import Reply, Serving, serving, until
from tests.command import decisions
from tests.sources import https
from tests.sources.https import BODY, HOST, Authority, Server, answers, response

POINTS = ["network", "network_response"]
HOSTILE = "../../agent.7"


@dataclass(slots=True)
class Fetching:
    """A serving engine with a folder for what is fetched, a server that its policy admits, and tokens by principal."""

    api: Serving
    server: Server
    root: Path
    tokens: dict[str, str]

    def __call__(self, principal: str | None = "agent-7", key: str = "", **changes: Any) -> Reply:
        body = {
            "urls": [self.server.url()], "into": "contacts", "license": "CC-BY-4.0", "hosts": [HOST], **changes,
        }  # fmt: skip
        headers = {} if principal is None else {"Authorization": f"Bearer {self.tokens[principal]}"}
        return self.api.ask("POST", "/v1/fetch", body, {**headers, "Idempotency-Key": key})

    def written(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Fetching]:
    folder = tmp_path_factory.mktemp("fetching")
    root = folder / "fetched"
    root.mkdir()
    authority = Authority(folder)
    store, now = open_store(folder / "state"), int(time.time())
    names = {"agent-7": POINTS, "agent-8": POINTS, HOSTILE: POINTS, "licenses": ["license"], "half": POINTS[:1]}
    tokens = {name: store.issue(name, points, now + 3600, now).text for name, points in names.items()}
    store.close()
    with https.serving(authority.context()) as server:
        policy = https.admitting(folder / "own", server)
        options = ("--policy", policy, "--fetch-root", root, "--ca-file", authority.path)
        with serving(folder, cache, *options, env=https.resolving(policy)) as api:
            yield Fetching(api, server, root, tokens)


@pytest.fixture
def fetch(opened: Fetching) -> Fetching:
    opened.server.answers(response())
    return opened


def codes(reply: Reply) -> list[str]:
    return sorted({finding["code"] for finding in reply.json["decisions"][-1]["findings"]})


def test_without_a_folder_of_the_operator_nothing_is_fetched(api: Serving) -> None:
    body = {"urls": ["https://data.example.org/a"], "into": "a", "hosts": [HOST]}
    reply = api.ask("POST", "/v1/fetch", body, {"X-Request-ID": "off"})
    assert (reply.status, reply.json["code"]) == (403, "engine.fetch_disabled")
    assert "--fetch-root" in reply.json["remedy"]
    (line,) = [one for one in decisions(api.state) if one["request_id"] == "off"]
    assert (line["point"], line["outcome"]) == ("network", "deny")


def test_a_fetch_is_written_below_the_folder_of_its_caller_and_once_for_a_key(fetch: Fetching) -> None:
    key = str(uuid.uuid4())
    reply = fetch("agent-8", key, into="once")
    assert reply.status == 200, reply.body
    assert reply.json["folder"] == "agent-8/once"
    assert [(one["point"], one["outcome"]) for one in reply.json["decisions"]] == [(name, "allow") for name in POINTS]
    assert (fetch.root / "agent-8" / "once" / "content" / "once.json").read_bytes() == BODY
    again = fetch("agent-8", key, into="once")
    assert (again.status, again.json, again.headers["idempotent-replayed"]) == (200, reply.json, "true")
    other = fetch("agent-8", key, into="other")
    assert (other.status, other.json["code"]) == (422, "engine.idempotency_conflict")
    assert len(fetch.server.requests) == 1
    taken = fetch("agent-8", into="once")
    assert (taken.status, taken.json["decision"]["outcome"]) == (400, "deny")
    assert "not an empty folder" in taken.json["detail"]
    assert len(fetch.server.requests) == 1


def test_a_caller_fetches_only_into_its_own_folder(fetch: Fetching) -> None:
    for principal, folder in (("agent-7", "agent-7"), (HOSTILE, "%2E%2E%2F%2E%2E%2Fagent%2E7")):
        assert fetch(principal).json["folder"] == f"{folder}/contacts"
        assert (fetch.root / folder / "contacts" / "bundle.yaml").is_file()
    assert not (fetch.root.parent.parent / "agent.7").exists()
    assert fetch(None).status == 401
    out = fetch("licenses", into="out")
    assert (codes(out), out.json["folder"]) == (["caller_out_of_scope"], None)
    half = fetch("half", into="half")  # it may ask for a transfer, and keep nothing
    assert (codes(half), half.json["folder"]) == (["caller_out_of_scope"], None)
    assert not [name for name in fetch.written() if name.startswith(("licenses", "half"))]


@pytest.mark.parametrize("into", ["../x", "a/b", "/x", "..", ".", "", "A", "a\u0000", None, 7])
def test_a_name_that_is_not_a_plain_folder_name_is_refused(fetch: Fetching, into: Any) -> None:
    before = fetch.written()
    reply = fetch(into=into)
    assert (reply.status, reply.json["code"]) == (422, "engine.request_invalid")
    assert reply.json["decision"]["outcome"] == "deny"
    assert (fetch.written(), fetch.server.connections) == (before, 0)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"hosts": []}, "network_disabled"),
        ({"license": None}, "license_missing"),
        ({"max_requests": 0}, "request_budget_exhausted"),
        ({"urls": ["http://data.example.org/a"]}, "unsafe_scheme"),
        ({}, "redirect_blocked"),
    ],
)
def test_a_refused_fetch_is_an_answer_and_writes_nothing(fetch: Fetching, changes: dict[str, Any], code: str) -> None:
    fetch.server.answers(response(b"", status="302 Found", more=("Location: https://evil.example/",)))
    before = fetch.written()
    reply = fetch(into="refused", **changes)
    assert (reply.status, reply.json["folder"]) == (200, None)
    assert code in codes(reply)
    assert (fetch.written(), len(fetch.server.requests)) == (before, int(code == "redirect_blocked"))


def test_one_caller_cannot_have_more_than_half_of_the_fetches(fetch: Fetching) -> None:
    release, replies = threading.Event(), list[Reply]()

    def holds(stream: Any, ended: threading.Event) -> None:
        release.wait(20)
        answers(response())(stream, ended)

    fetch.server.answers(holds)
    started = [
        threading.Thread(target=lambda name=f"held-{number}": replies.append(fetch(into=name))) for number in range(4)
    ]
    for thread in started:
        thread.start()
    try:
        until(lambda: len(fetch.server.requests) == 4)
        over = fetch(into="over")
        assert (over.status, over.json["code"]) == (503, "engine.overloaded")
    finally:
        release.set()
        for thread in started:
            thread.join(30)
    assert [reply.json["folder"] is not None for reply in replies] == [True] * 4
