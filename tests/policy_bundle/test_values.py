"""Values: overrides, what OPA gets, and the place of every row."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import PolicyError, Problem
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.values import OVERRIDES, locations, read
from tests.expect import there
from tests.policy_bundle.trees import DOCUMENTS, LOWERED, built, policy, write


def bundle(tmp_path: Path, *values: str, **files: str) -> PolicyBundle:
    changes = {f"policy/{name}.yaml": text for name, text in files.items()}
    return policy(tmp_path, changes, values)


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("licenses.licenses.MIT=refuse", ("licenses", "licenses", "MIT"), "refuse"),
        ("licenses.licenses.GPL-2.0-only=admit", ("licenses", "licenses", "GPL-2.0-only"), "admit"),
        ('licenses.licenses."GPL-2.0-only"=admit', ("licenses", "licenses", "GPL-2.0-only"), "admit"),
        ("licenses.licenses.ISC=admit", ("licenses", "licenses", "ISC"), "admit"),
        ('licenses.licenses."GPL-9.0"=refuse', ("licenses", "licenses", "GPL-9.0"), "refuse"),
        ("licenses.most=7", ("licenses", "most"), 7),
        ("licenses.licenses={ISC: admit}", ("licenses", "licenses"), {"ISC": "admit"}),
        ('licenses.licenses={"ISC": "admit"}', ("licenses", "licenses"), {"ISC": "admit"}),
        ("licenses.licenses={}", ("licenses", "licenses"), {}),
        ("levels.levels={source: {admitted: deny}}", ("levels", "levels", "source", "admitted"), "deny"),
    ],
)
def test_override(override: str, path: tuple[str, ...], value: Any, tmp_path: Path) -> None:
    policy = bundle(tmp_path, override)
    row = policy.row(path)
    assert row.value == value
    assert there(row.where).file == "--values"
    assert policy.revisions.values != bundle(tmp_path).revisions.values
    assert policy.revisions.rules == bundle(tmp_path).revisions.rules


def test_a_row_that_an_override_changes_in_part_is_from_the_override(tmp_path: Path) -> None:
    policy = bundle(
        tmp_path, "levels.levels.source.admitted.level=confirm", levels=f"levels: {{source: {{admitted: {LOWERED}}}}}"
    )
    places = [
        there(policy.row(path).where).file
        for path in (("levels", "levels", "source", "admitted"), ("licenses", "most"))
    ]
    assert (places[0], places[1].endswith("licenses.yaml")) == ("--values", True)


def test_a_later_override_wins(tmp_path: Path) -> None:
    assert bundle(tmp_path, "licenses.most=7", "licenses.most=8").row(("licenses", "most")).value == 8


@pytest.mark.parametrize("overlay", [{}, {"bundles/house/values/licenses.yaml": b"licenses: {ISC: refuse}"}])
def test_an_override_changes_no_other_policy(overlay: dict[str, bytes]) -> None:
    """Files that did not change are read once per process."""
    files = {"policy/levels.yaml": b"levels: {}", "policy/licenses.yaml": b"licenses: {MIT: admit}\nmost: 5", **overlay}
    own = {"ISC": "refuse"} if overlay else {}
    for overrides, licenses in (((), {}), (("licenses.licenses.MIT=refuse", "licenses.most=7"), {"MIT": "refuse"})) * 2:
        found: list[Problem] = []
        data, places = read(files, overrides, DOCUMENTS, found) or pytest.fail(str(found))
        assert data["licenses"]["licenses"] == {"MIT": "admit"} | own | licenses
        assert (locations(places)["licenses", "most"].file == OVERRIDES) is bool(overrides)


def test_an_override_into_a_list_or_scalar_is_refused(tmp_path: Path) -> None:
    for override in ("licenses.most.x=1", "licenses.licenses.MIT.decision=refuse", "licenses=1"):
        with pytest.raises(PolicyError, match="does not exist"):
            bundle(tmp_path, override)


def test_an_edit_replaces_its_file_in_memory_only(tmp_path: Path) -> None:
    sources = write(tmp_path)
    file = tmp_path / "policy" / "licenses.yaml"
    before = file.read_bytes()
    data = b"licenses:\n\n  MIT: refuse\nmost: 5\n"
    edited = built(replace(sources, edits=(("policy/licenses.yaml", data),)), tmp_path / "cache")
    assert edited.row(("licenses", "licenses", "MIT")).value == "refuse"
    assert there(edited.row(("licenses", "licenses", "MIT")).where).line == 3
    assert file.read_bytes() == before
    file.write_bytes(data)
    assert built(sources, tmp_path / "cache").revisions == edited.revisions


def test_null_values_are_omitted(tmp_path: Path) -> None:
    policy = bundle(tmp_path, licenses="licenses: {}\nmost: 1\nnote: null\n")
    assert policy.data["licenses"] == {"licenses": {}, "most": 1}


def test_a_row_has_its_value_and_place(tmp_path: Path) -> None:
    policy = bundle(tmp_path)
    row = policy.row(("licenses", "licenses", "GPL-2.0-only"))
    assert (row.path, row.value) == ("licenses.licenses.GPL-2.0-only", "refuse")
    assert row.where is not None
    assert (row.where.file, row.where.line) == (str(tmp_path / "policy/licenses.yaml"), 3)
    missing = policy.row(("licenses", "licenses", "X"))
    assert (missing.path, missing.value, missing.where) == ("licenses.licenses.X", None, None)
    assert policy.row(("licenses", "licenses", "MIT", "x")).where is None
    assert policy.row(("licenses", "most", 0)).where is None


def test_a_place_opens_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = bundle(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert there(policy.row(("licenses", "most")).where).file == "policy/licenses.yaml"
    assert str(policy.where("bundles/house/rules/source/x.rego", 3)) == "bundles/house/rules/source/x.rego:3"


def test_levels_for_people(tmp_path: Path) -> None:
    policy = bundle(tmp_path, levels=f"levels:\n  source:\n    admitted: {LOWERED}\n")
    assert policy.level("source", "admitted") == "warn"
    assert policy.level("source", "records_missing") == "deny"
    assert policy.level("other", "admitted") == "deny"


def test_the_data_served_to_opa_is_canonical_json(tmp_path: Path) -> None:
    policy = bundle(tmp_path)
    policy.unpack(tmp_path / "served")
    text = (tmp_path / "served/policy/data.json").read_text(encoding="utf-8")
    assert text == json.dumps(policy.data, sort_keys=True, separators=(",", ":"))
