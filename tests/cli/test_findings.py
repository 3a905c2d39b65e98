"""What `engine check` says of wrong source bundles: what was found, where, and what it should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.command import Command
from tests.conftest import BUNDLES

HASH = "45fc3534f5b5f88dc073f5cadc10cace2fd2147f2866dc3775fab8c1c3752f65"
ID = "lower-case letters, digits, `.`, `_` and `-`, first a letter or a digit, at most 128 characters"
MISSING = "it is missing; it should be"

WRONG: dict[str, tuple[str, str, dict[str, tuple[str | None, str]]]] = {
    # what is replaced in bundle.yaml, by what, and of some findings by code and subject: line by its text, and found
    "hash": (
        f"acme-contacts\n    sha256: {HASH}",
        f"acme-contacts\n    sha256: {'1' * 63}a",
        {"content_hash_mismatch": ("    sha256: 1111", f"computed {HASH}, stated {'1' * 63}a")},
    ),
    "purpose": (
        "purpose: train",
        "purpose: training",
        {
            "errors/purpose": (
                "purpose: training",
                "it is not a known word; it should be train, eval, tool or environment",
            ),
            "purpose_not_admitted": (
                "purpose: training",
                "purpose: it is not a known word; it should be train, eval, tool or environment",
            ),
        },
    ),
    "id": (
        "id: contacts-2026-11",
        "id: My Contacts",
        {
            "errors/id": ("id: My", f"its form is wrong; it should be the name of this source bundle: {ID}"),
            "bundle_missing": ("id: My", f"id: its form is wrong; it should be the name of this source bundle: {ID}"),
        },
    ),
    "type": (
        "budget: {max_requests: 0}",
        "budget: 5",
        {"errors/network.budget": ("  budget: 5", "it is a number; it should be a mapping such as {max_requests: 0}")},
    ),
    "misspelt list": (
        "\nrecords:",
        "\nrecord:",
        {
            "records_missing": (
                None,
                (
                    "bundle: unknown field; did you mean `records`?; "
                    f"records: {MISSING} a list of mappings, one for each content file, at most 100,000"
                ),
            )
        },
    ),
    "misspelt field of the whole": (
        "purpose: train",
        "purposes: train",
        {
            "purpose_not_admitted": (
                None,
                (
                    "bundle: unknown field; did you mean `purpose`?; "
                    f"purpose: {MISSING} train, eval, tool or environment"
                ),
            )
        },
    ),
    "misspelt field": (
        "    license: CC-BY-4.0",
        "    licence: CC-BY-4.0",
        {
            "errors/records.0": ("    licence", "unknown field; did you mean `license`?"),
            "license_missing": (
                "  - id",
                (
                    "records.0: unknown field; did you mean `license`?; "
                    f"records.0.license: {MISSING} one line of text, an SPDX expression such as CC-BY-4.0"
                ),
            ),
        },
    ),
    "unknown fields": (
        "    license: CC-BY-4.0",
        "    license: CC-BY-4.0\n    colour: red\n    media-type: x/y",
        {
            "errors/records.0": (
                "    colour",
                (
                    "unknown field; known are id, kind, path, url, origin_alias, sha256, media_type, license, "
                    "retrieved_at, retention, export; unknown field in line 27; did you mean `media_type`?"
                ),
            )
        },
    ),
    "license family": (
        "    license: CC-BY-4.0",
        "    license: CC BY",
        {
            "license_unknown": (
                "    license",
                "it cannot be read; did you mean `CC-BY-4.0`, `CC-BY-3.0` or `CC-BY-2.5`?",
            )
        },
    ),
    "retention": (
        'until: "2035-11-02"',
        "until: forever",
        {
            "retention_missing": (
                "    retention",
                (
                    "records.0.retention.until: its form is wrong; "
                    'it should be the last day in quotes, such as "2030-12-31"'
                ),
            )
        },
    ),
    "path": (
        "path: content/contacts.json",
        "path: content/contact.json",
        {"content_missing": ("    path", "there is no regular file of this name")},
    ),
    "address without kind": (
        "    kind: fixture\n    path: content/contacts.json\n    url: null",
        "    path: content/contacts.json\n    url: https://data.example.org/contacts.json",
        {"host_not_allowlisted": ("  allowed_hosts", "host data.example.org")},
    ),
    "decision word": (
        "decision: accepted",
        "decision: accept",
        {
            "license_decision_ambiguous": ("  - record", "line 30: a decision without a valid decision"),
        },
    ),
    "decision of another record": (
        "record: contacts-1",
        "record: contacts",
        {"license_decision_missing": ("  - id", "no decision names the record `contacts-1`")},
    ),
    "decision on other content": (
        f"    sha256: {HASH}\n    decision",
        f"    sha256: {'2' * 63}b\n    decision",
        {
            "license_decision_missing": (
                "  - record",
                f"line 30: a decision on content {'2' * 63}b, but the content is {HASH}",
            )
        },
    ),
}


@pytest.fixture(scope="module")
def text() -> str:
    return (BUNDLES / "license_text_beside" / "bundle.yaml").read_text(encoding="utf-8")


def test_each_invalid_field_is_reported_at_its_line_with_its_error(text: str, command: Command, tmp_path: Path) -> None:
    """One command for all of them: its start is what takes time."""
    content = (BUNDLES / "license_text_beside" / "content" / "contacts.json").read_bytes()
    for name, (old, new, _) in WRONG.items():
        assert text.count(old) == 1, (name, old)
        (tmp_path / "b" / name / "content").mkdir(parents=True)
        (tmp_path / "b" / name / "content" / "contacts.json").write_bytes(content)
        (tmp_path / "b" / name / "bundle.yaml").write_text(text.replace(old, new), encoding="utf-8")
    reports = {Path(one["path"]).name: one["findings"] for one in command.reports(tmp_path / "b")}
    for name, (old, new, wanted) in WRONG.items():
        lines = text.replace(old, new).splitlines()
        told = _told(reports[name])
        for key, (start, found) in wanted.items():
            assert key in told, (name, key, sorted(told))
            line, said = told[key]
            field = f"{key.removeprefix('errors/')}: " if key.startswith("errors/") else ""
            assert (said, lines[line - 1].startswith(start or "")) == (f"{field}{found}", True), (name, key, line)


def test_a_misspelled_decision_is_no_finding_about_the_license(text: str, command: Command, tmp_path: Path) -> None:
    bundle = tmp_path / "b"
    (bundle / "content").mkdir(parents=True)
    bundle.joinpath("bundle.yaml").write_text(text.replace("decision: accepted", "decision: Accepted"), "utf-8")
    content = (BUNDLES / "license_text_beside" / "content" / "contacts.json").read_bytes()
    (bundle / "content" / "contacts.json").write_bytes(content)
    (report,) = command.reports(bundle)
    assert sorted(one["code"] for one in report["findings"]) == ["bundle_invalid", "license_decision_ambiguous"]


def test_a_missing_decision_on_a_misspelled_license_names_the_one_that_it_may_mean(
    text: str, command: Command, tmp_path: Path
) -> None:
    bundle = tmp_path / "b"
    (bundle / "content").mkdir(parents=True)
    bundle.joinpath("bundle.yaml").write_text(
        text.replace("record: contacts-1", "record: contacts").replace("license: CC-BY-4.0", "license: CC-BY-4.00"),
        encoding="utf-8",
    )
    content = (BUNDLES / "license_text_beside" / "content" / "contacts.json").read_bytes()
    (bundle / "content" / "contacts.json").write_bytes(content)
    (report,) = command.reports(bundle)
    (found,) = [one for one in report["findings"] if one["code"] == "license_decision_missing"]
    assert [row["nearest"][0] for row in found["policy_rows"]] == ["CC-BY-4.0"]


def _told(findings: list[dict[str, Any]]) -> dict[str, tuple[int, str]]:
    """Line and text of each finding, by its code, or by its subject where that is a field."""
    return {
        one["subject"] if one["code"] == "bundle_invalid" else one["code"]: (one["where"]["line"] or 0, one["found"])
        for one in findings
    }
