"""Errors about the fields of a request say what would be valid."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pydantic import BaseModel

from engine.code.request import CodeRunRequest
from engine.documents.validation import PATTERNS, FieldsError, validate
from engine.points.export import ExportRequest
from engine.points.license import LicenseRequest
from engine.points.sandbox import SandboxRequest
from engine.points.source import SourceRequest
from engine.points.tool_call import ToolCallRequest
from engine.points.tool_visibility import VisibilityRequest
from engine.settings import ReadLimits
from engine.times import RFC3339
from tests.conftest import ROOT

GOOD: dict[str, Any] = {
    "purpose": "train",
    "export_license": None,
    "license": "MIT",
    "sha256": "0" * 64,
    "decisions": [{"sha256": "0" * 64, "decision": "accepted", "decided_at": "2026-11-03T10:00:00Z"}],
}


def test_a_missing_nullable_field_is_reported_with_the_hint_to_send_null() -> None:
    with pytest.raises(FieldsError) as caught:
        validate(SourceRequest, b'{"path": "contacts"}', "point `source`", "remedy", ReadLimits())
    assert caught.value.fields == (("digest", "is missing; send null where there is none"),)


@pytest.mark.parametrize(
    ("change", "field", "problem"),
    [
        ({"decided_at": "2026-11-03"}, "decisions.0.decided_at", "must be a UTC time such as 2026-11-03T10:00:00Z"),
        ({"sha256": "abc"}, "sha256", "must be 64 lower-case hexadecimal digits"),
        ({"license": "x" * 65_537}, "license", "must have 65536 or fewer characters"),
        (
            {"decision": "fine"},
            "decisions.0.decision",
            "must be 'accepted', 'incompatible', 'review_required' or 'unknown'",
        ),
        ({"license": 5}, "license", "must be text"),
    ],
)
def test_an_invalid_field_is_reported_with_its_allowed_form(change: dict[str, Any], field: str, problem: str) -> None:
    ((name, value),) = change.items()
    decision = {**GOOD["decisions"][0], **({name: value} if name.startswith("deci") else {})}
    request = {**GOOD, "decisions": [decision], **({} if name.startswith("deci") else {name: value})}
    with pytest.raises(FieldsError) as caught:
        validate(LicenseRequest, json.dumps(request).encode(), "point `license`", "remedy", ReadLimits())
    assert caught.value.fields == ((field, problem),)


@pytest.mark.parametrize("text", [b"[]", b"null", b'"x"'])
def test_a_request_that_is_no_object_is_not_called_by_the_name_of_a_field(text: bytes) -> None:
    with pytest.raises(FieldsError, match="a run of code: it must be an object"):
        validate(CodeRunRequest, text, "a run of code", "remedy", ReadLimits())


def test_a_misspelled_field_is_named_before_those_that_are_missing() -> None:
    with pytest.raises(FieldsError, match=r"point `license`: `licens` is not a known field; did you mean `license`\?"):
        validate(LicenseRequest, b'{"licens": "MIT"}', "point `license`", "remedy", ReadLimits())


def test_an_unknown_field_is_answered_with_the_one_that_it_may_mean() -> None:
    outer = {("licence" if name == "license" else name): value for name, value in GOOD.items()}
    inner = {**GOOD, "decisions": [{"sha265": "0" * 64, "decision": "accepted", "decided_at": "2026-11-03T10:00:00Z"}]}
    unknown = "is not a known field"
    assert dict(_fields_of(LicenseRequest, outer))["licence"] == f"{unknown}; did you mean `license`?"
    assert dict(_fields_of(LicenseRequest, inner))["decisions.0.sha265"] == f"{unknown}; did you mean `sha256`?"
    assert dict(_fields_of(LicenseRequest, {**GOOD, "colour": 1})) == {"colour": unknown}


def test_every_form_of_a_field_is_stated_in_words() -> None:
    """No caller is shown a regular expression; a time has a message of its own."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "docs/schemas/requests").glob("*.json")]
    found = {json.loads(literal) for text in texts for literal in re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', text)}
    assert found > {f"^{RFC3339}$"}
    assert found - PATTERNS.keys() == {f"^{RFC3339}$"}


def _fields_of(model: type[BaseModel], request: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    with pytest.raises(FieldsError) as caught:
        validate(model, json.dumps(request).encode(), "the point", "remedy", ReadLimits())
    return caught.value.fields


def test_a_number_at_an_exclusive_bound_is_reported_with_the_bound() -> None:
    request = {"profile": "standard", "tighten": {"wall_seconds": 0}}
    assert _fields_of(SandboxRequest, request) == (("tighten.wall_seconds", "must be greater than 0.0"),)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"run_id": "1"}, ("run_id", "must be a UUID in lower case")),
        ({"files": {"a": 1}}, ("files.a", "must be text")),
        ({"files": {"a": "aGk=aGk="}}, ("files.a", "must be base64, with its padding")),
        (
            {"files": {"a/b": "aGk="}},
            ("files.a/b.[key]", "must be the name of one file, without folders and without a leading dot"),
        ),
    ],
)
def test_invalid_fields_of_a_code_run_are_reported_in_plain_words(
    fields: dict[str, object], wanted: tuple[str, str]
) -> None:
    assert _fields_of(CodeRunRequest, fields) == (wanted,)


def test_a_list_with_an_invalid_item_is_not_reported_as_too_short() -> None:
    sample: dict[str, Any] = {"id": "1", "kind": "Synthetic", "provenance": [], "treatment": None, "content": {}}
    assert [field for field, _ in _fields_of(ExportRequest, {"samples": [sample]})] == ["samples.0.kind"]


@pytest.mark.parametrize(
    ("stated", "field", "problem"),
    [
        ({"reset": True}, "environment.checkpoint", "is missing"),
        ({"held": "contacts", "reset": True}, "environment.reset", "is not a known field"),
        ("reset", "environment", "must be an object"),
    ],
)
def test_an_invalid_union_field_is_reported_by_its_own_path(stated: object, field: str, problem: str) -> None:
    request = {"call": {"name": "contacts_delete", "arguments": {}}, "environment": stated}
    assert _fields_of(ToolCallRequest, request) == ((field, problem),)


@pytest.mark.parametrize(
    ("tools", "field"),
    [
        ({"tools": [], "nextCursor": 5}, "tools.nextCursor"),
        ({"jsonrpc": "2.0", "id": 1, "result": {"tools": {}}}, "tools.result.tools"),
        (5, "tools"),
    ],
)
def test_an_invalid_listing_is_reported_by_its_own_path(tools: object, field: str) -> None:
    assert {path for path, _ in _fields_of(VisibilityRequest, {"tools": tools})} == {field}
