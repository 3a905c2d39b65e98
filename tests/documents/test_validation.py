"""Errors about the fields of a request say what would be valid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.documents.validation import FieldsError, validate
from engine.points.license import LicenseRequest
from engine.points.source import SourceRequest
from engine.settings import ReadLimits

GOOD: dict[str, Any] = {
    "purpose": "train",
    "export_license": None,
    "license": "MIT",
    "sha256": "0" * 64,
    "decisions": [{"sha256": "0" * 64, "decision": "accepted", "decided_at": "2026-11-03T10:00:00Z"}],
}


def test_a_missing_field_that_may_be_null_is_told_so() -> None:
    with pytest.raises(FieldsError) as caught:
        validate(SourceRequest, b'{"path": "contacts"}', "point `source`", "remedy", ReadLimits())
    assert caught.value.fields == (("digest", "is missing; send null where there is none"),)


@pytest.mark.parametrize(
    ("change", "field", "problem"),
    [
        ({"decided_at": "2026-11-03"}, "decisions.0.decided_at", "must be a UTC time such as 2026-11-03T10:00:00Z"),
        ({"sha256": "abc"}, "sha256", "must be 64 lower-case hexadecimal digits"),
        ({"license": "x" * 65_537}, "license", "must have at most 65536 characters"),
        (
            {"decision": "fine"},
            "decisions.0.decision",
            "must be 'accepted', 'incompatible', 'review_required' or 'unknown'",
        ),
        ({"license": 5}, "license", "must be text"),
    ],
)
def test_a_field_that_does_not_fit_is_told_with_what_fits(change: dict[str, Any], field: str, problem: str) -> None:
    ((name, value),) = change.items()
    decision = {**GOOD["decisions"][0], **({name: value} if name.startswith("deci") else {})}
    request = {**GOOD, "decisions": [decision], **({} if name.startswith("deci") else {name: value})}
    with pytest.raises(FieldsError) as caught:
        validate(LicenseRequest, json.dumps(request).encode(), "point `license`", "remedy", ReadLimits())
    assert caught.value.fields == ((field, problem),)
