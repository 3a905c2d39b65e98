"""AuthZEN 1.0: the same decisions in the words of the standard."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.api.serving import ALLOWED, LICENSE, Serving, serving
from tests.conftest import ROOT

REVIEWED = {**ALLOWED, "license": "GPL-3.0-only"}
"""A person has to approve this one."""


def asked(request: Any, point: str = "license", **more: Any) -> dict[str, Any]:
    return {
        "subject": {"type": "user", "id": "alice"},
        "action": {"name": point},
        "resource": {"type": "request", "id": "1", "properties": {"request": request}},
        **more,
    }


def evaluate(api: Serving, body: Any) -> Any:
    reply = api.ask("POST", "/access/v1/evaluation", body)
    assert reply.status == 200, reply.body
    return reply.json


def test_an_allow_is_true_with_its_limits_as_obligations(api: Serving) -> None:
    found = evaluate(api, asked(ALLOWED))
    assert found["decision"] is True
    assert found["context"]["obligations"] == [
        {"id": "license.limits", "type": "limits", "properties": {"purpose": "train", "export": {"allowed": False}}}
    ]


def test_a_deny_is_false_with_its_reasons(api: Serving) -> None:
    found = evaluate(api, asked(LICENSE))
    assert found["decision"] is False
    assert found["context"]["reasons"] == ["license_decision_missing"]
    assert "obligations" not in found["context"]


def test_a_confirm_is_false_with_an_access_request(api: Serving) -> None:
    found = evaluate(api, asked(REVIEWED))
    assert (found["decision"], found["context"]["outcome"]) == (False, "confirm")
    assert set(found["context"]["access_request"]) == {"id", "expires_at"}


def test_the_request_may_stand_in_the_context_and_unknown_fields_are_ignored(api: Serving) -> None:
    body = asked(None, context={"request": ALLOWED, "time": "now"}, extra=1)
    body["resource"] = {"type": "request", "id": "1", "etag": "x"}
    assert evaluate(api, body)["decision"] is True


BAD: dict[str, tuple[Any, str]] = {
    "list": ([], "body"),
    "no_subject": ({"action": {"name": "license"}, "resource": {"type": "a", "id": "b"}}, "subject"),
    "empty_id": (asked(ALLOWED, subject={"type": "user", "id": ""}), "subject.id"),
    "numeric_id": (asked(ALLOWED, subject={"type": "user", "id": 5}), "subject.id"),
    "no_action_name": (asked(ALLOWED, action={}), "action.name"),
    "unknown_point": (asked(ALLOWED, "nothing"), "action.name"),
    "no_resource_id": (asked(ALLOWED, resource={"type": "request"}), "resource.id"),
    "properties_no_object": (asked(ALLOWED, resource={"type": "a", "id": "b", "properties": 1}), "resource.properties"),
    "context_no_object": (asked(ALLOWED, context=[]), "context"),
    "no_request": (asked(None), "resource.properties.request"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_missing_or_mistyped_field_is_answered_with_400_and_its_name(api: Serving, name: str) -> None:
    body, field = BAD[name]
    reply = api.ask("POST", "/access/v1/evaluation", body)
    assert (reply.status, reply.json["errors"][0]["field"]) == (400, field)


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", ""])
def test_another_media_type_is_answered_with_400(api: Serving, kind: str) -> None:
    for path in ("/access/v1/evaluation", "/access/v1/evaluations"):
        reply = api.ask("POST", path, json.dumps(asked(ALLOWED)).encode(), {"Content-Type": kind})
        assert (reply.status, reply.json["errors"][0]["field"]) == (400, "content-type")


@pytest.mark.parametrize("text", ["MDEyMzQ1Njc4OQ==", "edge/7#1 {a}", "x" * 255])
def test_the_request_id_is_an_arbitrary_text_and_comes_back(api: Serving, text: str) -> None:
    reply = api.ask("POST", "/access/v1/evaluation", asked(ALLOWED), {"X-Request-ID": text})
    assert (reply.status, reply.headers["x-request-id"]) == (200, text)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff"])
def test_malformed_json_is_answered_with_400(api: Serving, body: bytes) -> None:
    assert api.ask("POST", "/access/v1/evaluation", body).status == 400
    assert api.ask("POST", "/access/v1/evaluations", body).status == 400


def test_a_request_that_does_not_fit_is_a_recorded_deny(api: Serving) -> None:
    reply = api.ask("POST", "/access/v1/evaluation", asked({"nobody": 1}))
    assert (reply.status, reply.json["code"]) == (422, "engine.request_invalid")


def many(api: Serving, *items: dict[str, Any], **more: Any) -> list[Any]:
    defaults = {key: value for key, value in asked(ALLOWED).items() if key not in more}
    reply = api.ask("POST", "/access/v1/evaluations", {**defaults, "evaluations": list(items), **more})
    assert reply.status == 200, reply.body
    return list(reply.json["evaluations"])


def resource(request: Any) -> dict[str, Any]:
    return {"resource": {"type": "request", "id": "1", "properties": {"request": request}}}


def decisions(found: list[Any]) -> list[bool]:
    return [one["decision"] for one in found]


def test_execute_all_answers_every_item_in_order(api: Serving) -> None:
    items: tuple[dict[str, Any], ...] = (
        resource(LICENSE),
        {},
        resource({"nobody": 1}),
        {"action": {"name": "nothing"}},
        resource(ALLOWED),
    )
    found = many(api, *items)
    assert decisions(found) == [False, True, False, False, True]
    assert found[2]["context"]["error"]["status"] == 422
    assert found[3]["context"]["error"]["status"] == 400


@pytest.mark.parametrize(
    ("semantic", "wanted"),
    [
        ("execute_all", [True, False, True]),
        ("deny_on_first_deny", [True, False]),
        ("permit_on_first_permit", [True]),
    ],
)
def test_the_three_evaluation_semantics_stop_where_they_should(api: Serving, semantic: str, wanted: list[bool]) -> None:
    items = (resource(ALLOWED), resource(LICENSE), resource(ALLOWED))
    assert decisions(many(api, *items, options={"evaluations_semantic": semantic})) == wanted


def test_permit_on_first_permit_continues_after_denies_and_failures(api: Serving) -> None:
    items = (resource(LICENSE), resource(5), resource(ALLOWED), resource(ALLOWED))
    options = {"evaluations_semantic": "permit_on_first_permit"}
    assert decisions(many(api, *items, options=options)) == [False, False, True]


@pytest.mark.parametrize("semantic", ["execute_all", "permit_on_first_permit", "deny_on_first_deny"])
def test_an_idempotency_key_holds_for_each_item_by_its_place(api: Serving, semantic: str) -> None:
    stops = semantic == "permit_on_first_permit"
    items = [resource(LICENSE if stops else ALLOWED), resource(LICENSE if stops else ALLOWED), resource(REVIEWED)]
    body = asked(ALLOWED, evaluations=items, options={"evaluations_semantic": semantic})
    headers = {"Idempotency-Key": f"many-{semantic}"}
    first = api.ask("POST", "/access/v1/evaluations", body, headers).json["evaluations"]
    assert [one["context"]["outcome"] for one in first] == (["deny"] * 2 if stops else ["allow"] * 2) + ["confirm"]
    assert api.ask("POST", "/access/v1/evaluations", body, headers).json["evaluations"] == first
    long = api.ask("POST", "/access/v1/evaluations", body, {"Idempotency-Key": "k" * 254})
    assert (long.status, long.json["code"]) == (400, "engine.header_invalid")


def test_an_item_replaces_a_default_as_a_whole(api: Serving) -> None:
    bare = {"resource": {"type": "request", "id": "2"}}  # without the properties of the default
    assert decisions(many(api, bare, {})) == [False, True]


def test_without_evaluations_a_single_decision_is_returned(api: Serving) -> None:
    for body in (asked(ALLOWED), asked(ALLOWED, evaluations=[])):
        reply = api.ask("POST", "/access/v1/evaluations", body)
        assert (reply.status, reply.json["decision"]) == (200, True)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"evaluations": {}}, "evaluations"),
        ({"evaluations": [5]}, "evaluations"),
        ({"evaluations": [{}] * 1001}, "evaluations"),
        ({"evaluations": [{}], "options": []}, "options"),
        ({"evaluations": [{}], "options": {"evaluations_semantic": "any"}}, "options.evaluations_semantic"),
    ],
)
def test_an_invalid_evaluations_list_is_answered_with_400_and_its_field(
    api: Serving, more: dict[str, Any], field: str
) -> None:
    reply = api.ask("POST", "/access/v1/evaluations", asked(ALLOWED, **more))
    assert (reply.status, reply.json["errors"][0]["field"]) == (400, field)


def test_the_metadata_says_where_the_endpoints_are(api: Serving) -> None:
    found = api.ask("GET", "/.well-known/authzen-configuration").json
    base = f"http://{api.host}:{api.port}"
    assert found == {
        "policy_decision_point": base,
        "access_evaluation_endpoint": f"{base}/access/v1/evaluation",
        "access_evaluations_endpoint": f"{base}/access/v1/evaluations",
    }


def test_behind_a_proxy_with_tls_the_metadata_names_its_scheme(api: Serving) -> None:
    """A caller must not use metadata that name another address than the one it asked."""
    for sent, scheme in (("https", "https"), ("http", "http"), ("javascript", "http")):
        found = api.ask("GET", "/.well-known/authzen-configuration", headers={"X-Forwarded-Proto": sent}).json
        assert found["policy_decision_point"] == f"{scheme}://{api.host}:{api.port}"


def test_at_the_control_socket_the_subject_is_the_user_or_it_is_refused(api: Serving) -> None:
    me = api.ask("GET", "/health", control=True).json["caller"]["principal"]
    kind, _, name = me.partition(":")
    good = asked(ALLOWED, subject={"type": kind, "id": name})
    assert api.ask("POST", "/access/v1/evaluation", good, control=True).json["decision"] is True
    reply = api.ask("POST", "/access/v1/evaluation", asked(ALLOWED), control=True)
    assert (reply.status, reply.json["code"]) == (403, "engine.subject_mismatch")


ROWS = [
    {
        "resource": "todo",
        "actions": ["can_read_todos", "can_create_todo", "can_delete_todo"],
        "point": "tool_call",
        "request": {
            "policy": "todo",
            "profile": "todo",
            "call": {
                "name": "$action.name",
                "arguments": {"id": "$resource.id", "owner": "$resource.properties.ownerID"},
            },
        },
    },
    {
        "resource": "route",
        "actions": ["GET", "DELETE"],
        "point": "tool_call",
        "request": {
            "policy": "todo",
            "profile": "todo",
            "call": {"name": "$action.name", "arguments": {"path": "$resource.id", "user": "$subject.id"}},
        },
    },
]
"""Actions of a list of tasks and of the gateway before it, in the shapes of the interoperability scenarios."""


def tool(**arguments: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"side_effects": ["write"], "reversal": [], "secrets": False, "paths_on": "this_machine"}
    return {"title": "A task", "environments": ["workspace"], "curated": [], "definition": "none", **fields} | {
        "arguments": arguments
    }


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Serving]:
    """An engine whose policy lets tasks be read, asks before one is deleted, and knows no other action."""
    folder = tmp_path_factory.mktemp("tasks")
    shutil.copytree(ROOT / "policy", folder / "policy")
    tools, operations = (YAML(typ="safe").load(folder / "policy" / name) for name in ("tools.yaml", "operations.yaml"))
    operations["authzen"] = ROWS
    names = ("can_read_todos", "can_create_todo", "can_delete_todo")
    tools["tools"] |= {name: tool(id="text", owner="text") for name in names}
    tools["tools"] |= {name: tool(path="text", user="text") for name in ("GET", "DELETE")}
    tools["profiles"]["todo"] = ["*"]
    tools["rulesets"]["todo"] = {
        "deny": [],
        "confirm": [{"id": "ask", "tools": ["can_delete_todo"]}],
        "allow": [{"id": "read", "tools": ["can_read_todos", "GET"]}],
    }
    tools["policies"]["todo"] = {"base": "deny_all", "rulesets": ["todo"], "principals": "any"}
    for name, document in (("tools.yaml", tools), ("operations.yaml", operations)):
        (folder / "policy" / name).write_text(json.dumps(document))
    with serving(folder, cache, "--policy", folder / "policy") as running:
        yield running


def acted(action: str, resource: dict[str, Any]) -> dict[str, Any]:
    return {"subject": {"type": "user", "id": "ana@example.org"}, "action": {"name": action}, "resource": resource}


TASK = {"type": "todo", "id": "todo-1", "properties": {"ownerID": "lee@example.org"}}
ROUTE = {"type": "route", "id": "/todos", "properties": {"uri": "https://api.example.org/todos", "ip": "203.0.113.7"}}


@pytest.mark.parametrize(
    ("action", "resource", "outcome"),
    [
        ("can_read_todos", {"type": "todo", "id": "todo-1"}, "allow"),
        ("can_create_todo", TASK, "deny"),
        ("can_delete_todo", TASK, "confirm"),
        ("GET", ROUTE, "allow"),
        ("DELETE", ROUTE, "deny"),
    ],
)
def test_mapped_actions_of_applications_get_the_outcome_of_the_policy(
    tasks: Serving, action: str, resource: dict[str, Any], outcome: str
) -> None:
    found = evaluate(tasks, acted(action, resource))
    assert (found["decision"], found["context"]["outcome"]) == (outcome == "allow", outcome)


def test_a_list_of_actions_gets_its_decisions_in_order(tasks: Serving) -> None:
    items = [{"action": {"name": name}} for name in ("can_read_todos", "can_create_todo", "can_read_todos")]
    assert decisions(many(tasks, *items, resource=TASK)) == [True, False, True]


@pytest.mark.parametrize("body", [acted("POST", ROUTE), acted("can_read_todos", {"type": "user", "id": "1"})])
def test_an_action_that_the_policy_does_not_map_is_400(tasks: Serving, body: dict[str, Any]) -> None:
    reply = tasks.ask("POST", "/access/v1/evaluation", body)
    assert (reply.status, reply.json["errors"][0]["field"]) == (400, "action.name")
