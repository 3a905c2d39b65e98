"""A remote platform: what of its answer is believed, and that no program runs there without a permit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from admission_adapters.runner.platform import KEY_VARIABLE, Platform, PlatformError, RemoteSandbox
from admission_adapters.runner.run import Grant
from engine.errors import WorkError
from engine.model import Limits, StopSignal
from tests.adapters.permits import DIGEST, sealed
from tests.expect import refused
from tests.runners import LoopbackRunner, answering, running

MADE = {"id": "box-1", "run": "r-1", "nonce": "n-1", "applied": {"network": "restricted"}}
BOX = RemoteSandbox("box-1", "r-1", {}, "sha256:" + "0" * 64)


@pytest.fixture
def server() -> Iterator[LoopbackRunner]:
    with running(answering(MADE)) as found:
        yield found


def created(server: LoopbackRunner, **changes: Any) -> RemoteSandbox:
    server.behavior = answering(MADE | changes)
    return Platform(f"{server.origin}/api/").create("r-1", "n-1", "restricted", "none")


def test_a_created_sandbox_matches_its_request(server: LoopbackRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    found = created(server)
    assert (found.id, found.run, found.applied) == ("box-1", "r-1", {"network": "restricted"})
    assert created(server, run="another").run == "another"  # the policy decides on whose it is
    monkeypatch.setenv(KEY_VARIABLE, " c4nary-key ")
    created(server)
    first, *_, last = server.received
    assert (first.method, first.path) == ("POST", "/api/sandboxes")
    assert json.loads(first.body) == {"run": "r-1", "nonce": "n-1", "network": "restricted", "filesystem": "none"}
    assert "authorization" not in {name.lower() for name, _ in first.headers}
    assert {name.lower(): value for name, value in last.headers}["authorization"] == "Bearer c4nary-key"


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": "n-2"}, {"nonce": None}, {"id": None}, {"id": 1}, {"id": ""}, {"id": "../other"}, {"id": "x" * 129},
        {"applied": None}, {"applied": ["network"]},
    ],
)  # fmt: skip
def test_an_answer_that_does_not_match_the_request_is_refused(changes: dict[str, Any], server: LoopbackRunner) -> None:
    with pytest.raises(PlatformError, match="it did not answer this request"):
        created(server, **changes)


@pytest.mark.parametrize(
    ("behavior", "told"),
    [
        (answering(MADE, 500), "it answered 500"),
        (answering(MADE, 302, Location="http://127.0.0.1:1/"), "it answered 302"),
        (answering([]), "its answer is not a plain JSON object"),
        (answering(b"x" * 2_000), "larger than 1000 bytes"),
    ],
)
def test_an_invalid_platform_answer_is_reported(behavior: Any, told: str, server: LoopbackRunner) -> None:
    server.behavior = behavior
    with pytest.raises(PlatformError, match=told) as caught:
        Platform(server.origin, answer_bytes=1_000).create("r-1", "n-1", "restricted", "none")
    assert caught.value.code == "engine.platform_failed"
    Platform(server.origin, answer_bytes=1_000).remove(BOX)  # ends by itself if it cannot be removed


def test_a_program_runs_there_only_under_the_permit_of_its_run(server: LoopbackRunner) -> None:
    server.behavior = answering({"exit_code": 0, "stdout": "done"}, 201)
    platform = Platform(server.origin)
    own = Grant(sealed("runner_request", Limits()), DIGEST)
    assert platform.run(own, BOX, ("python3", "-"), b"pass", StopSignal()) == b"done"
    with refused(WorkError, "engine.permit_missing"):
        platform.run(Grant(sealed("mcp", Limits()), DIGEST), BOX, ("python3",), b"", StopSignal())
    (request,) = server.received
    assert (request.path, json.loads(request.body)) == (
        "/sandboxes/box-1/run", {"command": ["python3", "-"], "stdin": "pass"},
    )  # fmt: skip
    server.behavior = answering({"exit_code": 0})
    with pytest.raises(PlatformError, match="it returned no output"):
        platform.run(own, BOX, ("python3",), b"", StopSignal())
