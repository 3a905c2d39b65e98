"""The callback of a run: only below an origin of the permit, and only plain JSON objects come back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from admission_adapters.runner.callback import Callback, CallbackError
from admission_adapters.runner.run import Grant
from admission_adapters.runner.sealed import Opener
from engine.errors import WorkError
from engine.model import Limits, StopSignal
from tests.adapters.permits import DIGEST, sealed
from tests.expect import refused
from tests.runners import LoopbackRunner, answering, running

POINT = "runner_request"


class Endpoints(Limits):
    """The part of the limits of a run that a callback reads."""

    endpoints: tuple[str, ...]


def grant(limits: Limits) -> Grant:
    return Grant(sealed(POINT, limits), DIGEST)


@pytest.fixture
def there() -> Iterator[LoopbackRunner]:
    with running(answering({"result": "found it"})) as server:
        yield server


def callback(server: LoopbackRunner, authorization: str = "Bearer c4nary", **changes: Any) -> Callback:
    run = grant(Endpoints(endpoints=(server.origin,)))
    where = f"{server.origin}/tools/call"
    opener = Opener(None)
    own = Callback(run, "r-1", "tool_callback", where, SecretStr(authorization), opener, StopSignal())
    return replace(own, **changes)


def test_a_call_is_posted_with_the_authorization_of_the_run(there: LoopbackRunner) -> None:
    assert callback(there).tool("lookup", "gateway")(text="ada") == "found it"
    there.behavior = answering({"more": 1})
    assert callback(there, "").tool("lookup", "gateway")() == {"more": 1}
    first, second = there.received
    assert json.loads(first.body) == {
        "run_id": "r-1", "kind": "gateway", "name": "lookup", "arguments": {"text": "ada"},
    }  # fmt: skip
    assert {name.lower(): value for name, value in first.headers}["authorization"] == "Bearer c4nary"
    assert "authorization" not in {name.lower() for name, _ in second.headers}


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:1/tools", "https://{at}/tools", "http://user@{at}/tools", "http://{at}x/tools", "http://[", ""],
)
def test_an_address_outside_the_permit_receives_nothing(address: str, there: LoopbackRunner) -> None:
    endpoint = address.format(at=there.origin.partition("//")[2])
    with refused(WorkError, "engine.permit_missing"):
        callback(there, endpoint=endpoint).post({})
    assert there.received == []


def test_a_mismatched_permit_posts_nothing(there: LoopbackRunner) -> None:
    own = grant(Endpoints(endpoints=(there.origin,)))
    for run, code in (
        (grant(Limits()), "engine.limit_unenforceable"),
        (replace(own, input_digest="sha256:" + "1" * 64), "engine.permit_missing"),
        (Grant(sealed("runner_uri", Endpoints(endpoints=(there.origin,))), DIGEST), "engine.permit_missing"),
    ):
        with refused(WorkError, code):
            callback(there, run=run).post({})
    assert there.received == []


@pytest.mark.parametrize(
    ("behavior", "told"),
    [
        (answering({"result": 1}, 201), "it answered 201"),
        (answering({"result": 1}, 500), "it answered 500"),
        (answering({}, 307, Location="http://127.0.0.1:1/"), "it answered 307"),
        (answering([1]), "its answer is not a plain JSON object"),
        (answering(b'{"result": 1, "result": 2}'), "its answer is not a plain JSON object"),
        (answering(b"x" * 2_000), "its answer is larger than 1000 bytes"),
    ],
    ids=["201", "500", "307", "a list", "a key twice", "too large"],
)
def test_an_invalid_answer_is_reported_without_its_text(behavior: Any, told: str, there: LoopbackRunner) -> None:
    there.behavior = behavior
    with pytest.raises(CallbackError) as caught:
        callback(there, answer_bytes=1_000).post({})
    assert str(caught.value) == told
