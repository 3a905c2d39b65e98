"""The batch entry: EOPA's shape, each item for itself, one question to OPA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.api.decide import _merged
from tests.api.serving import ALLOWED, LICENSE, Reply, Serving, serving
from tests.processes import opa_of, stop

MOST = 1_000


def ask(api: Serving, inputs: Any, common: Any = None, query: str = "") -> Reply:
    body = {"inputs": inputs} if common is None else {"inputs": inputs, "common_input": common}
    return api.ask("POST", f"/v1/decide/license/batch{query}", body)


def test_all_decided_is_200_and_each_is_the_decision_of_its_own(api: Serving) -> None:
    reply = ask(api, {"good": ALLOWED, "bad": LICENSE})
    assert reply.status == 200
    assert reply.json["batch_decision_id"] == reply.headers["x-request-id"]
    answers = reply.json["responses"]
    assert {name: answer["outcome"] for name, answer in answers.items()} == {"good": "allow", "bad": "deny"}
    for name, request in (("good", ALLOWED), ("bad", LICENSE)):
        alone = api.decide("license", request).json
        assert {**answers[name], "decision_id": ""} == {**alone, "decision_id": ""}


def test_one_bad_item_is_207_and_the_others_are_decided(api: Serving) -> None:
    reply = ask(api, {"good": ALLOWED, "bad": {"nobody": 1}, "text": "x", "null": None})
    assert reply.status == 207
    answers = reply.json["responses"]
    assert (answers["good"]["outcome"], answers["good"]["http_status_code"]) == ("allow", "200")
    for name in ("bad", "text", "null"):
        assert (answers[name]["code"], answers[name]["http_status_code"]) == ("engine.request_invalid", "422")
        assert answers[name]["decision"]["outcome"] == "deny"
    assert "nobody" in {error["field"] for error in answers["bad"]["errors"]}


@pytest.mark.parametrize("inputs", [{"a": {}, "b": 5}, {"alone": None}])
def test_invalid_items_alone_are_207_and_each_a_recorded_deny(api: Serving, inputs: dict[str, Any]) -> None:
    reply = ask(api, inputs)
    assert reply.status == 207
    answers = reply.json["responses"].values()
    assert {answer["http_status_code"] for answer in answers} == {"422"}
    assert {answer["decision"]["outcome"] for answer in answers} == {"deny"}
    assert len({answer["decision"]["decision_id"] for answer in answers} - {""}) == len(inputs)


@pytest.mark.full
def test_a_batch_of_which_the_engine_can_decide_nothing_is_500(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache, "--deadline", "0.2") as running:
        stop(opa_of(running.process.pid))
        reply = ask(running, {"a": ALLOWED, "b": ALLOWED})
        mixed = ask(running, {"a": ALLOWED, "b": {}})
    assert (reply.status, mixed.status) == (500, 207)
    assert {answer["decision"]["outcome"] for answer in reply.json["responses"].values()} == {"deny"}


def test_an_item_overrides_the_common_input(api: Serving) -> None:
    common = {**ALLOWED, "license": "no such licence"}
    reply = ask(api, {"own": {"license": "MIT"}, "common": {}}, common)
    answers = reply.json["responses"]
    assert (answers["own"]["outcome"], answers["common"]["outcome"]) == ("allow", "deny")


def test_objects_are_merged_below_and_lists_are_not() -> None:
    assert _merged({"a": {"x": 1, "y": [1]}, "b": 2}, {"a": {"y": [2], "z": 3}}) == {
        "a": {"x": 1, "y": [2], "z": 3},
        "b": 2,
    }


def test_zero_items_are_an_empty_answer(api: Serving) -> None:
    reply = ask(api, {})
    assert (reply.status, reply.json["responses"]) == (200, {})


def test_a_batch_of_the_maximum_size_is_accepted_and_a_larger_one_is_refused(api: Serving) -> None:
    reply = ask(api, {str(number): {} for number in range(MOST)}, LICENSE, "?mode=check")
    answers = reply.json["responses"].values()
    failed = {answer["code"]: answer["message"] for answer in answers if "code" in answer}
    assert (reply.status, len(answers), failed) == (200, MOST, {})
    assert {answer["mode"] for answer in answers} == {"check"}
    reply = ask(api, {str(number): {} for number in range(MOST + 1)}, LICENSE)
    assert (reply.status, reply.json["code"]) == (400, "engine.batch_invalid")
    assert str(MOST) in reply.json["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "inputs"),
        ({}, "inputs"),
        ({"inputs": []}, "inputs"),
        ({"inputs": {}, "common_input": []}, "common_input"),
        ({"inputs": {}, "more": 1}, "more"),
        ({"inputs": {"x" * 257: {}}}, "inputs"),
        (b'{"inputs":{"a":1,"a":2}}', "a"),
    ],
)
def test_a_malformed_batch_is_one_recorded_deny(api: Serving, body: Any, field: str) -> None:
    reply = api.ask("POST", "/v1/decide/license/batch", body)
    assert reply.status == 400
    assert reply.json["errors"][0]["field"] == field
    assert reply.json["decision"]["outcome"] == "deny"


def keyed(api: Serving, key: str, inputs: Any, query: str = "") -> Reply:
    return api.ask("POST", f"/v1/decide/license/batch{query}", {"inputs": inputs}, {"Idempotency-Key": key})


def test_an_idempotency_key_holds_for_each_item_by_its_id(api: Serving) -> None:
    inputs = {"good": ALLOWED, "bad": LICENSE, "again": ALLOWED}
    first = keyed(api, "batch-1", inputs)
    assert first.status == 200
    answers = first.json["responses"]
    assert {name: answer["outcome"] for name, answer in answers.items()} == {
        "good": "allow",
        "bad": "deny",
        "again": "allow",
    }
    assert keyed(api, "batch-1", inputs).json["responses"] == answers
    mixed = keyed(api, "batch-1", {**inputs, "bad": ALLOWED})
    assert mixed.status == 207
    assert mixed.json["responses"]["bad"]["code"] == "engine.idempotency_conflict"
    assert mixed.json["responses"]["good"]["decision_id"] == answers["good"]["decision_id"]


def test_many_items_under_one_key_are_each_decided(api: Serving) -> None:
    reply = keyed(api, "batch-many", {str(number): ALLOWED for number in range(100)})
    assert reply.status == 200
    assert len({answer["decision_id"] for answer in reply.json["responses"].values()}) == 100


def test_a_key_that_is_too_long_with_an_id_is_refused(api: Serving) -> None:
    reply = keyed(api, "k" * 250, {"short": ALLOWED, "x": ALLOWED})
    assert (reply.status, reply.json["code"]) == (400, "engine.header_invalid")
    assert reply.json["errors"][0]["field"] == "idempotency-key"
    assert reply.json["decision"]["outcome"] == "deny"
    assert keyed(api, "k" * 249, {"short": ALLOWED, "x": ALLOWED}).status == 200
    assert keyed(api, "k" * 256, {"x": ALLOWED}).json["code"] == "engine.header_invalid"
