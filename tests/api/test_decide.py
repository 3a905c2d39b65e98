"""Decisions over HTTP: shapes, modes, headers, and what a broken request gets."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from engine.record.model import DecisionRecord
from engine.record.reader import Filter, select
from tests.api.serving import ALLOWED, LICENSE, Serving, serving
from tests.command import Command
from tests.conftest import BUNDLES

_IDS = re.compile(r"[0-9a-f]{32}")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def steady(value: Any) -> Any:
    """A decision without what differs from policy to policy and run to run."""
    if isinstance(value, dict):
        return {
            key: "…" if key in {"policy", "input_digest", "bundle_digest"} else steady(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [steady(item) for item in value]
    return _IDS.sub("…", value) if isinstance(value, str) else value


def test_an_allow_is_answered_with_the_whole_decision(api: Serving, snapshot: SnapshotAssertion) -> None:
    reply = api.decide("license", ALLOWED)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.json["policy"]["rules"].startswith("sha256:")
    assert steady(reply.json) == snapshot


def test_a_deny_is_answered_with_200(api: Serving, snapshot: SnapshotAssertion) -> None:
    reply = api.decide("license", LICENSE)
    assert reply.status == 200
    assert reply.json["outcome"] == "deny"
    assert steady(reply.json) == snapshot


def test_mode_check_is_a_dry_run(api: Serving) -> None:
    assert api.decide("license", ALLOWED, "?mode=check").json["mode"] == "check"
    assert api.decide("license", ALLOWED, "?mode=enforce").json["mode"] == "enforce"
    assert api.decide("license", ALLOWED).json["mode"] == "enforce"


def test_a_repeated_request_gives_the_same_bytes_except_the_id(api: Serving) -> None:
    first, second = api.decide("license", LICENSE), api.decide("license", LICENSE)
    assert first.json["decision_id"] != second.json["decision_id"]
    assert first.body.replace(first.json["decision_id"].encode(), b"") == second.body.replace(
        second.json["decision_id"].encode(), b""
    )


def test_request_id_and_trace_are_carried_through(api: Serving) -> None:
    reply = api.decide("license", ALLOWED, X_Request_ID="batch:7.1", traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")
    assert reply.headers["x-request-id"] == "batch:7.1"
    assert re.fullmatch(rf"00-{TRACE}-(?!00f067aa0ba902b7)[0-9a-f]{{16}}-01", reply.headers["traceparent"])


def test_without_request_id_and_trace_new_ones_are_generated(api: Serving) -> None:
    first, second = api.decide("license", ALLOWED).headers, api.decide("license", ALLOWED, traceparent="00-x").headers
    assert re.fullmatch(r"[0-9a-f]{32}", first["x-request-id"])
    assert first["x-request-id"] != second["x-request-id"]
    assert first["traceparent"][:35] != second["traceparent"][:35]


BROKEN: dict[str, tuple[bytes, str, int, str]] = {
    "empty": (b"", "application/json", 400, "engine.json_invalid"),
    "no_json": (b"{", "application/json", 400, "engine.json_invalid"),
    "twice": (b'{"purpose":"a","purpose":"b"}', "application/json", 400, "engine.json_invalid"),
    "nan": (b'{"purpose":NaN}', "application/json", 400, "engine.json_invalid"),
    "deep": (b"[" * 10_000 + b"]" * 10_000, "application/json", 400, "engine.json_invalid"),
    "charset": (b"{}", "application/json; charset=latin-1", 415, "engine.media_type"),
    "media_type": (b"{}", "text/plain", 415, "engine.media_type"),
    "archive_for_another_point": (b"{}", "application/gzip", 415, "engine.media_type"),
    "no_media_type": (b"{}", "", 415, "engine.media_type"),
    "not_an_object": (b"[]", "application/json", 422, "engine.request_invalid"),
    "missing_fields": (b"{}", "application/json", 422, "engine.request_invalid"),
    "unknown_field": (b'{"nobody":1}', "application/json", 422, "engine.request_invalid"),
    "fifty_megabytes": (b'"' + b"x" * (50 << 20) + b'"', "application/json", 413, "engine.body_too_large"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_request_gets_a_problem_and_a_recorded_deny(api: Serving, name: str) -> None:
    body, media_type, status, code = BROKEN[name]
    reply = api.ask("POST", "/v1/decide/license", body, {"Content-Type": media_type})
    assert (reply.status, reply.json["code"], reply.json["status"]) == (status, code, status)
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["type"] == f"urn:admission-engine:problem:{code}"
    assert reply.json["instance"] == f"urn:request:{reply.headers['x-request-id']}"
    decision = reply.json["decision"]
    assert (decision["outcome"], [finding["code"] for finding in decision["findings"]]) == ("deny", [code])


def test_utf_8_is_the_one_charset(api: Serving) -> None:
    reply = api.decide("license", ALLOWED, Content_Type='Application/JSON; charset="UTF-8"')
    assert reply.status == 200


def test_problems_name_the_fields(api: Serving) -> None:
    reply = api.decide("license", {**ALLOWED, "decisions": [{"sha256": 5}], "nobody": 1})
    fields = {error["field"] for error in reply.json["errors"]}
    assert {"decisions.0.sha256", "decisions.0.decision", "nobody"} <= fields
    assert reply.json["remedy"] == "GET /v1/schemas/license has the schema of its requests"
    reply = api.decide("license", b'{"purpose":"a","purpose":"b"}')
    assert reply.json["errors"] == [{"field": "purpose", "problem": "occurs twice"}]


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("X-Run-ID", "two words"),
        ("X-Run-ID", "x" * 129),
        ("X-Approval", "né"),
        ("X-Request-ID", "a\tb"),
        ("X-Request-ID", "x" * 256),
        ("Idempotency-Key", "k" * 256),
        ("Content-Encoding", "gzip"),
    ],
)
def test_a_header_out_of_its_alphabet_is_refused_by_name(api: Serving, header: str, value: str) -> None:
    reply = api.ask("POST", "/v1/decide/license", ALLOWED, {header: value})
    assert reply.status == (415 if header == "Content-Encoding" else 400)
    assert reply.json["errors"][0]["field"] == header.lower()
    assert reply.json["decision"]["outcome"] == "deny"
    assert value.encode() not in reply.body


@pytest.mark.parametrize(
    "query",
    [
        "?token=s3cret",
        "?access_token=s3cret",
        "?mode=check&mode=enforce",
        "?mode=maybe",
        "?x",
        "?x" + "&token=s3cret" * 40,
    ],
)
def test_anything_else_in_the_query_is_refused_and_not_repeated(api: Serving, query: str) -> None:
    reply = api.decide("license", ALLOWED, query)
    assert (reply.status, reply.json["code"]) == (400, "engine.query_invalid")
    assert reply.json["decision"]["outcome"] == "deny"
    assert b"s3cret" not in reply.body


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/decide/nothing", 404),
        ("POST", "/v1/decide/", 404),
        ("POST", "/v1/decide/license/", 404),
        ("POST", "/v1/decide/nothing/batch", 404),
        ("GET", "/", 404),
        ("GET", "/v1/decide/license", 405),
        ("DELETE", "/v1/decide/license", 405),
        ("POST", "/health", 405),
        ("OPTIONS", "/v1/decide/license", 405),
    ],
)
def test_an_unknown_route_or_method_is_answered_without_a_decision(
    api: Serving, method: str, path: str, status: int
) -> None:
    reply = api.ask(method, path)
    assert reply.status == status
    assert reply.json["decision"] is None
    assert ("allow" in reply.headers) == (status == 405)


def test_head_is_get_without_a_body(api: Serving) -> None:
    reply = api.ask("HEAD", "/ready")
    assert (reply.status, reply.body) == (200, b"")
    assert int(reply.headers["content-length"]) > 0


def test_an_idempotency_key_gives_the_first_decision_again(api: Serving) -> None:
    first = api.decide("license", ALLOWED, Idempotency_Key="once-1")
    again = api.decide("license", ALLOWED, Idempotency_Key="once-1")
    assert again.json["decision_id"] == first.json["decision_id"]
    other = api.decide("license", LICENSE, Idempotency_Key="once-1")
    assert (other.status, other.json["code"]) == (422, "engine.idempotency_conflict")


def test_a_source_bundle_below_the_root_is_decided(api: Serving) -> None:
    reply = api.decide("source", {"path": "offline_fixture", "digest": None}, "?mode=check")
    assert (reply.status, reply.json["outcome"]) == (200, "allow")


@pytest.mark.parametrize("path", ["/etc", "../..", "offline_fixture/../../..", "nothing", "", "a\x00b"])
def test_a_path_that_leaves_the_root_is_refused(api: Serving, path: str) -> None:
    reply = api.decide("source", {"path": path, "digest": None}, "?mode=check")
    assert reply.status == 400
    assert reply.json["decision"]["outcome"] == "deny"


def test_without_a_root_no_path_is_taken(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache) as running:
        for path in (str(BUNDLES / "offline_fixture"), "offline_fixture", ".", "", "/"):
            reply = running.decide("source", {"path": path, "digest": None})
            assert (reply.status, reply.json["decision"]["outcome"]) == (400, "deny"), path


def archive(kind: str, bundle: str = "offline_fixture") -> bytes:
    data = io.BytesIO()
    files = [path for path in sorted((BUNDLES / bundle).rglob("*")) if path.is_file()]
    if kind == "application/zip":
        with zipfile.ZipFile(data, "w") as packed:
            for path in files:
                packed.write(path, path.relative_to(BUNDLES / bundle))
    else:
        with tarfile.open(fileobj=data, mode="w:gz") as tar:
            for path in files:
                tar.add(path, path.relative_to(BUNDLES / bundle))
    return data.getvalue()


@pytest.mark.parametrize("kind", ["application/zip", "application/gzip", "application/x-tar+gzip"])
def test_an_uploaded_archive_is_decided_like_the_folder_and_removed(api: Serving, kind: str) -> None:
    there = api.decide("source", {"path": "offline_fixture", "digest": None}).json
    reply = api.ask("POST", "/v1/decide/source", archive(kind), {"Content-Type": kind})
    assert (reply.status, reply.json["outcome"]) == (200, "allow")
    assert reply.json["limits"]["records"] == there["limits"]["records"]
    refused = api.ask("POST", "/v1/decide/source", archive(kind, "unknown_license"), {"Content-Type": kind})
    assert refused.json["outcome"] == "deny"
    assert list((api.state / "uploads").iterdir()) == []


def test_an_invalid_archive_is_a_problem_and_leaves_no_files(api: Serving) -> None:
    reply = api.ask("POST", "/v1/decide/source", b"no archive", {"Content-Type": "application/zip"})
    assert (reply.status, reply.json["decision"]["outcome"]) == (400, "deny")
    assert list((api.state / "uploads").iterdir()) == []


def test_a_file_that_cannot_be_read_is_named_without_its_folders(tmp_path: Path, cache: Path) -> None:
    broken = tmp_path / "material" / "broken"
    broken.mkdir(parents=True)
    (broken / "bundle.yaml").write_text("id: [\n", encoding="utf-8")
    with serving(tmp_path, cache, "--root", broken.parent) as running:
        packed = archive("application/zip", str(broken))
        for reply in (
            running.decide("source", {"path": "broken", "digest": None}),
            running.ask("POST", "/v1/decide/source", packed, {"Content-Type": "application/zip"}),
        ):
            assert reply.json["detail"].startswith("bundle.yaml:2: the document is not YAML: ")
            assert reply.json["decision"]["findings"][0]["requirement"] == reply.json["detail"]
            assert str(tmp_path).encode() not in reply.body


def test_the_instance_of_a_problem_is_a_uri_whatever_the_request_id(api: Serving) -> None:
    reply = api.decide("license", b"{", X_Request_ID="edge/7#1 {a}")
    assert (reply.headers["x-request-id"], reply.json["instance"]) == (
        "edge/7#1 {a}",
        "urn:request:edge%2F7%231%20%7Ba%7D",
    )


FAILING = """package admission.added.license.size

import future.keywords.not

# METADATA
# title: A size is one number
# description: Fails where it is evaluated.
# custom:
#   code: size_ambiguous
#   remedy: Correct the rule
one_size if {
	_size == 2
}

_size := 1 if input.purpose == "train"

_size := 2 if input.purpose == "train"
"""


def test_a_rule_that_fails_is_named_without_its_folders(tmp_path: Path, cache: Path, command: Command) -> None:
    own = tmp_path / "own"
    assert command("policy", "init", own).code == 0
    (own / "rules" / "license").mkdir(parents=True)
    (own / "rules" / "license" / "size.rego").write_text(FAILING, encoding="utf-8")
    with (own / "inventory.yaml").open("a", encoding="utf-8") as inventory:
        inventory.write("license:\n  - size_ambiguous\n")
    with serving(tmp_path, cache, "--policy", own) as running:
        reply = running.decide("license", ALLOWED)
        assert (reply.json["code"], reply.json["detail"].split(" ")[0]) == ("engine.opa_error", "size.rego:17:")
        assert reply.json["decision"]["findings"][0]["subject"] == "size.rego:17"
        assert str(tmp_path).encode() not in reply.body


# covers: C70.1
def test_every_decision_is_recorded_including_those_on_invalid_requests(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache) as running:
        asked = [
            running.decide("license", ALLOWED, X_Request_ID="r1", X_Run_ID="run-1"),
            running.decide("license", b"{", X_Request_ID="r2"),
            running.decide("license", ALLOWED, "?mode=no", X_Request_ID="r3"),
            running.ask("POST", "/v1/decide/license", b"x", {"Content-Type": "text/plain", "X-Request-ID": "r4"}),
            running.ask("POST", "/v1/decide/license", ALLOWED, {"X-Run-ID": "a b", "X-Request-ID": "r5"}),
        ]
        assert running.stop() == 0
    recorded = {line["request_id"]: line for line in running.records() if line.get("point") == "license"}
    assert sorted(recorded) == ["r1", "r2", "r3", "r4", "r5"]
    assert (recorded["r1"]["run"], recorded["r1"]["outcome"]) == ("run-1", "allow")
    for number, reply in enumerate(asked, start=1):  # each can be followed by its trace
        trace = reply.headers["traceparent"][3:35]
        (entry,) = select(running.state, Filter(trace=trace), 10).entries
        assert recorded[f"r{number}"]["trace"] == trace
        assert isinstance(entry.body, DecisionRecord)
        assert entry.body.request_id == f"r{number}"
    assert {recorded[f"r{number}"]["outcome"] for number in range(2, 6)} == {"deny"}
