"""What gets into the input of a result: kinds and flags, and nothing of what a tool said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from engine.documents.canonical import digest
from engine.facts.text.disguises import names_a_path
from engine.points import GatherContext
from engine.points.tool_result import ToolResultInput, ToolResultRequest, gather
from engine.policy_bundle.lookups import Lookups
from tests.conftest import FORMS
from tests.expect import of

TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"  # noqa: S105  (looks like one)
DIGEST = "sha256:" + "0" * 64
WORLD = GatherContext(clock=lambda: 0, boundaries=tuple, lookups=Lookups(forms=FORMS))


def facts(**error: Any) -> ToolResultInput:
    request = {"tool": "t", "status": "error", "error": {"kind": "validation", "class": "E", **error}}
    parsed = ToolResultRequest.model_validate_json(json.dumps({**request, "side_effects": []}))
    return of(ToolResultInput, gather(parsed, WORLD).input)


def flags(texts: Any) -> dict[str, tuple[bool, bool]]:
    return {text.id: (text.secret, text.path) for text in texts}


# covers: B32
def test_every_text_that_would_be_shown_is_looked_at() -> None:
    found = facts(
        code="wrong",
        message=f"token={TOKEN}",
        details={"plain": "seven", "home": "~/x", "with space": TOKEN, TOKEN: "x"},
    )
    assert flags(found.messages) == {"message": (True, False)}
    assert flags(found.details) == {
        "class": (False, False),
        "code": (False, False),
        "details.plain": (False, False),
        "details.home": (False, True),
        "details.#2": (True, False),
        "details.#3": (True, False),
    }


# covers: B26 B32 B41.2
def test_nothing_that_a_tool_said_is_in_the_input() -> None:
    said = facts(message="quokka", details={"quokka9": "quokka", "a b": "quokka"}).model_dump_json()
    assert said.count("quokka") == 1  # the name of a detail is its id


# covers: H22.1
@pytest.mark.parametrize(("stated", "whole"), [(0, True), (1, True), (5, True), (6, False)])
def test_size_and_digest_are_those_of_the_text_unless_more_was_returned(stated: int, whole: bool) -> None:  # noqa: FBT001
    result = {"bytes": stated, "digest": DIGEST, "media": "text", "text": "caf\u00e9"}
    request = {"tool": "t", "status": "ok", "result": result, "side_effects": []}
    parsed = ToolResultRequest.model_validate_json(json.dumps(request))
    found = of(ToolResultInput, gather(parsed, WORLD).input).result
    assert found is not None
    assert (found.bytes, found.digest) == ((5, digest("café".encode())) if whole else (6, DIGEST))


@pytest.mark.parametrize(
    "text",
    [
        "/etc/passwd", "see /srv/x.", "(/srv)", "~/x", "~jane/x", "../x", "./run", "..", "a/../b", ".ssh/id", "a/b/c",
        "notes/a.txt", "C:\\x", "C:/x", "\\\\host\\share", "a\\b", "file:///x", "file:/x", "%2fetc%2fpasswd",
        "%252Fetc", "%25252525252Fetc", "\uff0fetc\uff0fpasswd", "FILE:/x", "</etc>", "</srv/x>", "yes/no/maybe",
        "2026/03/07/x", "2026/03/07.csv", "A/B/c", "DATA/RAW/CONTACTS", "/2026/03/07", "../1/2", "data/x.csv",
        "€ /srv/x", "€/etc/passwd", "%/TMP/x", "$/srv", "//etc/passwd", "see ///srv//x", ".//etc/x", "+/etc/x",
    ],
)  # fmt: skip
def test_plain_and_disguised_paths_are_detected(text: str) -> None:
    assert names_a_path(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "seven of 9", "read/write", "text/plain", "1/2", "wait...", "50% of 3", "https://docs.example.com",
        "date must be DD/MM/YYYY", "a date such as 2026/03/07.", "ratio 1/2/3", "TCP/IP/UDP", "P1/P2/P3, or none",
        "</b> is not allowed", "<td>a</td>", "</record >", "<br/>", "€/kWh", "$/month", "in €/MWh/a", "°/min", "%/year",
        "3 +/- 1", "+/-5 %", "-/+", "7 // 2", "// a comment", ".//item", "//div/a",
    ],
)  # fmt: skip
def test_ordinary_text_does_not_name_a_path(text: str) -> None:
    assert not names_a_path(text)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "ok"},
        {"result": {"bytes": 1, "digest": DIGEST, "media": "text"}},
        {"error": None},
        {"side_effects": [{"id": "a b", "class": "read"}]},
        {"side_effects": [{"id": "a", "class": "read", "target": "/srv"}]},
        {"side_effects": [{"id": "a", "class": "read"}] * 1_001},
        {"error": {"kind": "validation", "class": "E", "stack": "x"}},
        {"error": {"kind": "validation", "class": "E", "details": {"n": 7}}},
        {"error": {"kind": "validation", "class": "E\nTraceback"}},
    ],
)
def test_malformed_requests_are_refused(changes: dict[str, Any]) -> None:
    request = {"tool": "t", "status": "error", "error": {"kind": "other", "class": "E"}, "side_effects": []}
    ToolResultRequest.model_validate_json(json.dumps(request))  # the control
    with pytest.raises(ValidationError):
        ToolResultRequest.model_validate_json(json.dumps(request | changes))
