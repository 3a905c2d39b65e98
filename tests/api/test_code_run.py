"""`POST /v1/code/run`: the enforcing route, and what a caller can do while its own run is in progress."""

from __future__ import annotations

import json
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.state import open_store
from tests.api.serving import SECONDS, Reply, Serving, serving, until
from tests.code.conftest import CODE, golden, printing
from tests.command import lines
from tests.conftest import take_over
from tests.facilities import needs

pytestmark = needs("bubblewrap")

SLOW = golden("while True: pass", policy_hints={"exec_timeout_seconds": 20})


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, cache: Path, probed: Path) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("code")
    take_over(probed, folder / "state")
    with serving(folder, cache) as engine:
        yield engine


def run(api: Serving, body: Any, **headers: str) -> Reply:
    return api.post("/v1/code/run", body, **headers)


# covers: C45 C46 C52
def test_a_good_run_is_answered_with_its_whole_result(api: Serving) -> None:
    reply = run(api, golden(), X_Request_ID="golden-1")
    assert reply.status == 200
    assert reply.json["aggregate"]["metrics"]["avg_latency_ms"] == 167.0
    assert reply.json["execution"]["code_hash"] == "47a5c01dd74664c7"
    found = [line for line in lines(api.state) if line.get("request_id") == "golden-1"]
    assert [line.get("point") or line["status"] for line in found][-2:] == ["code_output", "run_ok"]
    assert CODE not in reply.body.decode()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (golden("import os"), "policy_block:static_policy_violation:import_not_allowed:os"),
        (golden(printing(sample_size=0)), "invalid_code_output:sample_size"),
        ({}, "invalid_action:not_object"),
    ],
    ids=["import", "output", "empty"],
)
def test_a_run_that_stopped_is_an_answer(api: Serving, body: Any, reason: str) -> None:
    reply = run(api, body)
    assert (reply.status, reply.json["status"], reply.json["stop_reason"]) == (200, "stopped", reason)


# covers: H18
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"", 400),
        (b"\xff", 400),
        (b'{"action": {"code": "\\ud800"}}', 400),
        (b'{"action": NaN}', 400),
        (b'{"action": 1, "action": 2}', 400),
        (b'{"action": {"input_payload": {"x": 1e999}}}', 400),
        (b"[" * 100 + b"]" * 100, 400),
        (b"[]", 422),
        (b'{"unknown": 1}', 422),
        (b'{"seed": true}', 422),
    ],
)
def test_a_broken_request_is_a_problem_and_its_deny_is_recorded(api: Serving, body: bytes, status: int) -> None:
    request = f"broken-{uuid.uuid4().hex[:6]}"
    reply = run(api, body, X_Request_ID=request)
    assert reply.status == status
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["run"]["stop_reason"] == "invalid_request:unreadable"
    assert reply.json["decision"]["point"] == "code_action"
    (line,) = [one for one in lines(api.state) if one.get("request_id") == request]
    assert (line["point"], line["outcome"]) == ("code_action", "deny")


def test_a_repeated_key_runs_once(api: Serving) -> None:
    key = str(uuid.uuid4())
    first, again = (run(api, golden(), Idempotency_Key=key) for _ in range(2))
    assert first.json == again.json
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    other = run(api, golden("print()"), Idempotency_Key=key)
    assert (other.status, other.json["code"]) == (422, "engine.idempotency_conflict")


def test_a_run_under_way_shows_its_phase_and_can_be_cancelled(api: Serving) -> None:
    own, replies = str(uuid.uuid4()), list[Reply]()
    thread = threading.Thread(target=lambda: replies.append(run(api, {**SLOW, "run_id": own})))
    thread.start()
    path = f"/v1/code/runs/{own}"
    until(lambda: api.ask("GET", path).json.get("phase") == "execute")
    found = api.ask("GET", path)
    assert (found.status, found.json["status"], found.json["run_id"]) == (200, "running", own)
    same = run(api, golden(run_id=own))
    assert (same.status, same.json["code"]) == (409, "engine.run_pending")
    assert api.ask("DELETE", path).status == 202
    thread.join(SECONDS)
    assert (replies[0].status, replies[0].json["stop_reason"]) == (200, "cancelled")
    kept = api.ask("GET", path)
    assert (kept.status, kept.json["result"]) == (200, replies[0].json)
    assert (kept.json["status"], kept.json["stop_reason"]) == ("stopped", "cancelled")
    assert [api.ask(*known).status for known in (("DELETE", path), ("GET", f"{path[:-1]}x"))] == [404, 404]
    assert api.ask("GET", "/v1/code/runs/").status == 404
    assert api.ask("POST", path, {}).status == 405
    results = [line for line in lines(api.state) if line["kind"] == "result" and line["facts"].get("run_id") == own]
    assert [line["status"] for line in results] == ["cancelled", "run_stopped"]


def listed(api: Serving, query: str = "", **headers: str) -> Any:
    return api.ask("GET", f"/v1/code/runs{query}", headers=headers).json


def test_runs_are_listed_page_by_page(api: Serving) -> None:
    ids = [run(api, golden(printing(sample_size=0))).json["run_id"] for _ in range(3)]
    first = listed(api, "?limit=2")
    assert [one["run_id"] for one in first["ended"]] == [ids[2], ids[1]]
    second = listed(api, f"?limit=1&before={first['next']}")
    assert [one["run_id"] for one in second["ended"]] == [ids[0]]
    assert first["active"] == []
    assert [one["stop_reason"] for one in first["ended"]] == ["invalid_code_output:sample_size"] * 2
    for wrong in ("?limit=0", "?limit=x", "?before=-1", "?unknown=1"):
        assert api.ask("GET", f"/v1/code/runs{wrong}").status == 400


PRINTING = """
import sys, time
print("first line", flush=True)
print("second " + "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a", flush=True)
while True: pass
"""
SHOWN = {
    "action": {**golden()["action"], "code": PRINTING},
    "request": {},
    "contract": "printed",
    "profile": "analysis",
}
SHOWN |= {"policy_hints": {"exec_timeout_seconds": 20, "max_code_chars": 10_000}}


def events(connection: socket.socket, body: Any, query: str = "", media: str = "application/x-ndjson") -> Any:
    """The events of a run, as they come."""
    data = json.dumps(body).encode()
    head = f"POST /v1/code/run{query} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Accept: {media}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    with connection.makefile("rb") as answer:
        for line in answer:
            if line.startswith((b"{", b"data: ")):
                yield json.loads(line.removeprefix(b"data: "))


@pytest.mark.parametrize("media", ["application/x-ndjson", pytest.param("text/event-stream", marks=pytest.mark.full)])
def test_a_run_can_be_followed_and_its_output_has_no_secrets(api: Serving, media: str) -> None:
    own, seen = str(uuid.uuid4()), []
    with socket.create_connection((api.host, api.port), timeout=60) as connection:
        for event in events(connection, {**SHOWN, "run_id": own}, media=media):
            seen.append(event)
            if "second" in event.get("text", ""):
                assert api.ask("DELETE", f"/v1/code/runs/{own}").status == 202
    assert [one["phase"] for one in seen if one.get("type") == "phase"] == ["plan", "policy_check", "execute"]
    text = "".join(one["text"] for one in seen if one.get("type") == "output")
    assert text.startswith("first line\nsecond [redacted:")
    assert (seen[-1]["run_id"], seen[-1]["stop_reason"]) == (own, "cancelled")


def test_a_refused_request_of_a_follower_is_a_plain_answer(api: Serving) -> None:
    accept = {"Accept": "application/x-ndjson"}
    for body, query, status in (
        (b"{", "", 400),
        (golden(), "?on_disconnect=maybe", 400),
        (golden(), "?mode=check", 400),
    ):
        reply = api.ask("POST", f"/v1/code/run{query}", body, accept)
        assert (reply.status, reply.json["run"]["status"]) == (status, "stopped")


@pytest.mark.parametrize("accept", ["application/json", "application/x-ndjson"])
@pytest.mark.parametrize("choice", ["cancel", pytest.param("continue", marks=pytest.mark.full)])
def test_a_disconnect_cancels_the_run_only_if_requested(api: Serving, accept: str, choice: str) -> None:
    own = str(uuid.uuid4())
    with socket.create_connection((api.host, api.port), timeout=60) as connection:
        answer = events(connection, {**SHOWN, "run_id": own}, f"?on_disconnect={choice}", accept)
        sending = threading.Thread(target=lambda: next(answer, None))
        sending.start()
        path = f"/v1/code/runs/{own}"
        until(lambda: api.ask("GET", path).json.get("phase") == "execute")
        connection.shutdown(socket.SHUT_RDWR)
        sending.join(60)
    if choice == "continue":
        assert api.ask("GET", path).json["status"] == "running"
        assert api.ask("DELETE", path).status == 202
    ended = until(lambda: [one for one in listed(api)["ended"] if one["run_id"] == own], 60)
    assert ended[0]["stop_reason"] == "cancelled"


def test_a_waiting_run_shows_its_place(tmp_path: Path, cache: Path, probed: Path) -> None:
    take_over(probed, tmp_path / "state")
    ids = [str(uuid.uuid4()) for _ in range(6)]
    with serving(tmp_path, cache) as engine:
        threads = [threading.Thread(target=run, args=(engine, {**SLOW, "run_id": own})) for own in ids]
        for thread in threads:
            thread.start()
        until(lambda: len(listed(engine)["active"]) == 6)
        active = listed(engine)["active"]
        states = sorted((one["status"], one.get("place")) for one in active)
        assert states[-2:] == [("waiting", 1), ("waiting", 2)]  # one caller has half of the turns
        (second,) = [one["run_id"] for one in active if one.get("place") == 2]
        assert engine.ask("GET", f"/v1/code/runs/{second}").json["place"] == 2
        assert engine.ask("DELETE", f"/v1/code/runs/{second}").status == 202
        until(lambda: second not in [one["run_id"] for one in listed(engine)["active"]])
        engine.process.terminate()
        for thread in threads:
            thread.join(60)
        assert engine.process.wait(60) in {0, 4}


def test_runs_over_the_limit_get_503_with_retry_after(api: Serving) -> None:
    """Callers run code without a pause, so a run that ends on a busy machine leaves no place for long."""
    enough, ids, replies = threading.Event(), set[str](), list[Reply]()

    def keep_running() -> None:
        while not enough.is_set():
            ids.add(own := str(uuid.uuid4()))
            replies.append(run(api, {**SLOW, "run_id": own}))

    def refused() -> Reply | None:
        reply = run(api, golden())
        return reply if reply.status == 503 else None

    callers = [threading.Thread(target=keep_running) for _ in range(22)]
    for caller in callers:
        caller.start()
    try:
        until(lambda: len(listed(api)["active"]) == 20, 120)
        over = until(refused, 120)
        assert (over.json["code"], over.headers["retry-after"]) == ("engine.overloaded", "1")
    finally:
        enough.set()
        while any(caller.is_alive() for caller in callers):
            for own in tuple(ids):
                api.ask("DELETE", f"/v1/code/runs/{own}")
            callers[0].join(0.1)
    answered = [reply.json for reply in replies if reply.status == 200]
    assert {one["stop_reason"] for one in answered} <= {"cancelled", "code_timeout", "max_seconds"}
    assert run(api, golden()).json["status"] == "ok"


def test_runs_of_other_callers_cannot_be_seen_or_ended(
    tmp_path: Path,
    cache: Path,
    probed: Path,
) -> None:
    take_over(probed, tmp_path / "state")
    store = open_store(tmp_path / "state")
    points = ["code_action", "code_scan", "code_execution", "code_output"]
    now = int(time.time())
    one, two = (store.issue(name, points, now + 3600, now).text for name in ("one", "two"))
    few = store.issue("few", ["code_action", "code_scan"], now + 3600, now).text
    store.close()
    own, replies = str(uuid.uuid4()), list[Reply]()
    with serving(tmp_path, cache) as engine:
        mine, others = ({"Authorization": f"Bearer {token}"} for token in (one, two))
        body = {**SLOW, "run_id": own}
        thread = threading.Thread(target=lambda: replies.append(engine.ask("POST", "/v1/code/run", body, mine)))
        thread.start()
        path = f"/v1/code/runs/{own}"
        until(lambda: engine.ask("GET", path, headers=mine).status == 200)
        for method in ("GET", "DELETE"):
            assert engine.ask(method, path, headers=others).status == 404
            assert listed(engine, **others) == {"active": [], "ended": [], "next": None}
            assert engine.ask(method, path).status == 401
        assert engine.ask("DELETE", path, headers=mine).status == 202
        thread.join(SECONDS)
        assert replies[0].json["stop_reason"] == "cancelled"
        assert engine.ask("POST", "/v1/code/run", golden()).status == 401
        scoped = engine.ask("POST", "/v1/code/run", golden(), {"Authorization": f"Bearer {few}"})
        assert scoped.json["stop_reason"] == "policy_block:caller_out_of_scope"
        assert json.dumps(scoped.json["trace"]).count("execute_code") == 0
