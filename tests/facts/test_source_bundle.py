"""Format 1 is exact: what fits is read as it is, what does not is taken out and named without any content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from engine.documents.canonical import canonical
from engine.documents.files import load
from engine.errors import GatherError
from engine.facts.archives.archive import open_bundle
from engine.facts.archives.source_bundle import (
    DOCUMENT,
    MOST_ERRORS,
    Reading,
    SchemaError,
    SourceBundle,
    last_second,
    read,
)
from engine.settings import ReadLimits
from tests.expect import there
from tests.lanes import examples

FIXTURES = Path(__file__).parents[2] / "fixtures"
LIMITS = ReadLimits()
BUNDLES = sorted(path.parent for path in (FIXTURES / "source_bundles").glob(f"*/{DOCUMENT}"))
GOOD = FIXTURES / "source_bundles" / "external_contacts" / DOCUMENT

WRONG = {
    "export_not_stated": {("records.0.export", "missing")},
    "hash_missing": {("records.0.sha256", "missing")},
    "license_missing": {("records.0.license", "missing")},
    "no_network_section": {("network", "missing")},
    "no_sandbox_section": {("sandbox", "missing")},
    "retention_unknown": {("records.0.retention", "wrong_type")},
    "unknown_field": {("records.0", "unknown_field")},
}
"""The fixtures that do not fit the format; all others do, and their fault is a matter of rules."""

WITHOUT_HONEST_CONTENT = {"content_missing", "hash_mismatch", "hash_missing"}


def written(value: Any) -> str:
    """YAML with one line a field; the comment keeps it from being read as JSON, which has no lines."""
    return "# a source bundle\n" + json.dumps(value, indent=1)


def reading(value: Any) -> Reading:
    return read(load(written(value).encode(), "bundle.yaml", LIMITS))


def good() -> dict[str, Any]:
    value: dict[str, Any] = load(GOOD.read_bytes(), DOCUMENT, LIMITS).value
    return value


def errors(found: Reading) -> set[tuple[str, str]]:
    return {(error.id, error.kind) for error in found.errors}


@pytest.mark.parametrize("folder", BUNDLES, ids=lambda path: path.name)
def test_each_fixture_has_only_its_expected_errors(folder: Path) -> None:
    with open_bundle(folder, LIMITS) as tree:
        document = load(tree.read_document(DOCUMENT, LIMITS.document_bytes), tree.place(DOCUMENT), LIMITS)
        found = read(document)
        assert errors(found) == WRONG.get(folder.name, set())
        if not found.errors:
            assert found.pruned == document.value
        hashes = {record["path"]: record.get("sha256") for record in found.pruned["records"]}
        if folder.name not in WITHOUT_HONEST_CONTENT:
            for path, sha256 in hashes.items():
                assert tree.hash(path) == (sha256, (folder / path).stat().st_size)


def test_at_least_30_fixtures_exist() -> None:
    assert len(BUNDLES) >= 30
    assert set(WRONG) < {folder.name for folder in BUNDLES}


@pytest.mark.parametrize("folder", sorted((FIXTURES / "source_bundles_unreadable").iterdir()), ids=lambda p: p.name)
def test_unreadable_fixtures_are_reported_with_file_and_line(folder: Path) -> None:
    with open_bundle(folder, LIMITS) as tree, pytest.raises(GatherError) as refused:
        read(load(tree.read_document(DOCUMENT, LIMITS.document_bytes), tree.place(DOCUMENT), LIMITS))
    assert refused.value.where is not None
    assert refused.value.where.file == str(folder / DOCUMENT)
    assert refused.value.where.line is not None


def test_a_document_whose_aliases_grow_is_refused_where_they_begin(tmp_path: Path) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]" for before, name in pairwise("abcdefghi")]
    (tmp_path / DOCUMENT).write_text("\n".join(lines), encoding="utf-8")
    with open_bundle(tmp_path, LIMITS) as tree, pytest.raises(GatherError, match="alias") as refused:
        load(tree.read_document(DOCUMENT, LIMITS.document_bytes), tree.place(DOCUMENT), LIMITS)
    assert there(refused.value.where).line == 1


def put(value: Any, *path: str | int) -> Callable[[dict[str, Any]], None]:
    def change(tree: Any) -> None:
        for key in path[:-1]:
            tree = tree[key]
        tree[path[-1]] = value

    return change


def drop(*path: str | int) -> Callable[[dict[str, Any]], None]:
    def change(tree: Any) -> None:
        for key in path[:-1]:
            tree = tree[key]
        del tree[path[-1]]

    return change


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], None], str, str]] = {
    "format_of_the_future": (put(2, "format"), "format", "out_of_range"),
    "format_true": (put(True, "format"), "format", "wrong_type"),  # noqa: FBT003
    "format_fraction": (put(1.5, "format"), "format", "wrong_type"),
    "format_text": (put("1", "format"), "format", "wrong_type"),
    "format_missing": (drop("format"), "format", "missing"),
    "id_with_capitals": (put("Contacts", "id"), "id", "bad_format"),
    "id_with_newline": (put("contacts\n", "id"), "id", "bad_format"),
    "id_too_long": (put("a" * 129, "id"), "id", "bad_format"),
    "purpose_unknown": (put("sell", "purpose"), "purpose", "unknown_value"),
    "purpose_a_list": (put(["train"], "purpose"), "purpose", "wrong_type"),
    "export_license_left_out": (drop("export_license"), "export_license", "missing"),
    "export_license_a_number": (put(4, "export_license"), "export_license", "wrong_type"),
    "network_null": (put(None, "network"), "network", "wrong_type"),
    "network_a_list": (put([], "network"), "network", "wrong_type"),
    "enabled_as_text": (put("true", "network", "enabled"), "network.enabled", "wrong_type"),
    "enabled_as_number": (put(1, "network", "enabled"), "network.enabled", "wrong_type"),
    "host_with_port": (put(["a.example.org:443"], "network", "allowed_hosts"), "network.allowed_hosts.0", "bad_format"),
    "host_with_capitals": (put(["A.example.org"], "network", "allowed_hosts"), "network.allowed_hosts.0", "bad_format"),
    "host_wildcard": (put(["*.example.org"], "network", "allowed_hosts"), "network.allowed_hosts.0", "bad_format"),
    "host_a_number": (put([7], "network", "allowed_hosts"), "network.allowed_hosts.0", "wrong_type"),
    "hosts_as_text": (put("a.example.org", "network", "allowed_hosts"), "network.allowed_hosts", "wrong_type"),
    "too_many_hosts": (put(["a.example.org"] * 1001, "network", "allowed_hosts"), "network.allowed_hosts", "too_long"),
    "budget_missing": (drop("network", "budget"), "network.budget", "missing"),
    "budget_negative": (put(-1, "network", "budget", "max_requests"), "network.budget.max_requests", "out_of_range"),
    "budget_endless": (put(10**7, "network", "budget", "max_requests"), "network.budget.max_requests", "out_of_range"),
    "budget_half": (put(0.5, "network", "budget", "max_requests"), "network.budget.max_requests", "wrong_type"),
    "budget_true": (put(True, "network", "budget", "max_requests"), "network.budget.max_requests", "wrong_type"),  # noqa: FBT003
    "generated_code_free": (put("enabled", "sandbox", "generated_code"), "sandbox.generated_code", "unknown_value"),
    "filesystem_null": (put(None, "sandbox", "filesystem"), "sandbox.filesystem", "wrong_type"),
    "records_null": (put(None, "records"), "records", "wrong_type"),
    "records_a_mapping": (put({}, "records"), "records", "wrong_type"),
    "records_missing": (drop("records"), "records", "missing"),
    "record_null": (put(None, "records", 1), "records.1", "wrong_type"),
    "record_text": (put("contacts", "records", 1), "records.1", "wrong_type"),
    "kind_null_means_absent": (put("import", "records", 1, "kind"), "records.1.kind", "unknown_value"),
    "path_empty": (put("", "records", 1, "path"), "records.1.path", "bad_format"),
    "path_with_dot": (put("./a.csv", "records", 1, "path"), "records.1.path", "bad_format"),
    "path_with_empty_part": (put("content//a.csv", "records", 1, "path"), "records.1.path", "bad_format"),
    "path_with_newline": (put("content/a\nb", "records", 1, "path"), "records.1.path", "bad_format"),
    "path_with_nul": (put("content/a\0b", "records", 1, "path"), "records.1.path", "bad_format"),
    "path_part_too_long": (put("ö" * 128, "records", 1, "path"), "records.1.path", "bad_format"),
    "path_too_long": (put("a/" * 600 + "b", "records", 1, "path"), "records.1.path", "too_long"),
    "path_a_list": (put(["content"], "records", 1, "path"), "records.1.path", "wrong_type"),
    "url_left_out": (drop("records", 1, "url"), "records.1.url", "missing"),
    "url_too_long": (put("https://a.example.org/" + "a" * 2048, "records", 1, "url"), "records.1.url", "too_long"),
    "alias_with_space": (put("acme contacts", "records", 1, "origin_alias"), "records.1.origin_alias", "bad_format"),
    "sha256_with_capitals": (put("A" * 64, "records", 1, "sha256"), "records.1.sha256", "bad_format"),
    "sha256_with_prefix": (put("sha256:" + "a" * 64, "records", 1, "sha256"), "records.1.sha256", "bad_format"),
    "sha256_short": (put("a" * 63, "records", 1, "sha256"), "records.1.sha256", "bad_format"),
    "media_type_word": (put("json", "records", 1, "media_type"), "records.1.media_type", "bad_format"),
    "license_missing": (drop("records", 1, "license"), "records.1.license", "missing"),
    "license_null": (put(None, "records", 1, "license"), "records.1.license", "wrong_type"),
    "license_a_list": (put(["MIT"], "records", 1, "license"), "records.1.license", "wrong_type"),
    "retrieved_without_offset": (
        put("2026-11-02T09:30:00", "records", 1, "retrieved_at"),
        "records.1.retrieved_at",
        "bad_format",
    ),
    "retrieved_a_day": (put("2026-11-02", "records", 1, "retrieved_at"), "records.1.retrieved_at", "bad_format"),
    "retention_missing": (drop("records", 1, "retention"), "records.1.retention", "missing"),
    "retention_until_missing": (drop("records", 1, "retention", "until"), "records.1.retention.until", "missing"),
    "retention_of_no_day": (
        put("2027-02-29", "records", 1, "retention", "until"),
        "records.1.retention.until",
        "bad_format",
    ),
    "retention_basis_a_sentence": (
        put("as long as needed", "records", 1, "retention", "basis"),
        "records.1.retention.basis",
        "bad_format",
    ),
    "export_perhaps": (put("perhaps", "records", 1, "export"), "records.1.export", "unknown_value"),
    "export_true": (put(True, "records", 1, "export"), "records.1.export", "wrong_type"),  # noqa: FBT003
    "decisions_missing": (drop("license_decisions"), "license_decisions", "missing"),
    "decision_word": (put("ok", "license_decisions", 0, "decision"), "license_decisions.0.decision", "unknown_value"),
    "decided_by_no_person": (
        put("", "license_decisions", 0, "decided_by"),
        "license_decisions.0.decided_by",
        "too_short",
    ),
    "decided_by_lines": (
        put("a\n::error::b", "license_decisions", 0, "decided_by"),
        "license_decisions.0.decided_by",
        "bad_format",
    ),
}


def lookup(tree: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        tree = tree[int(part)] if isinstance(tree, list) else tree[part]
    return tree


@pytest.mark.parametrize("fault", FAULTS)
def test_an_invalid_field_is_pruned_and_reported(fault: str) -> None:
    change, at, kind = FAULTS[fault]
    value = good()
    change(value)
    found = reading(value)
    assert errors(found) == {(at, kind)}
    kept = good()
    if re.fullmatch(r"records\.[0-9]+", at):
        put({}, "records", 1)(kept)
    else:
        path = at.removesuffix(".0").split(".")
        drop(*(int(part) if part.isdigit() else part for part in path))(kept)
    assert found.pruned == kept
    assert found.places[at].line is not None
    assert found.places[at].field == at


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ((), "bundle"),
        (("network",), "network"),
        (("network", "budget"), "network.budget"),
        (("records", 1), "records.1"),
    ],
)
def test_an_unknown_key_is_named_by_its_parent_only(path: tuple[str | int, ...], named: str) -> None:
    value = good()
    put("secret value", *path, "sk-secret key")(value)
    found = reading(value)
    assert errors(found) == {(named, "unknown_field")}
    assert found.pruned == good()
    place = found.places[named]
    assert b"secret" not in canonical([found.pruned, [[error.id, error.kind] for error in found.errors], str(place)])
    assert "sk-secret key" in written(value).splitlines()[there(place.line) - 1]


@pytest.mark.parametrize(
    ("value", "kind"), [(None, "missing"), ([], "wrong_type"), ("x", "wrong_type"), (1, "wrong_type")]
)
def test_a_root_that_is_not_a_mapping_is_an_error(value: Any, kind: str) -> None:
    found = reading(value)
    assert found.pruned == {}
    assert found.errors == (SchemaError(id="bundle", kind=kind),)
    assert found.places["bundle"].file == "bundle.yaml"


def test_an_empty_mapping_lacks_every_field() -> None:
    found = reading({})
    assert found.pruned == {}
    assert {kind for _, kind in errors(found)} == {"missing"}
    assert {name for name, _ in errors(found)} == set(SourceBundle.model_fields)


def test_optional_fields_may_be_null_or_omitted() -> None:
    value = good()
    put(None, "export_license")(value)
    put(None, "records", 0, "url")(value)
    put(None, "records", 0, "retrieved_at")(value)
    drop("records", 1, "retrieved_at")(value)
    drop("records", 1, "kind")(value)
    put(" ", "records", 1, "license")(value)
    put([], "license_decisions")(value)
    put([], "records", 0)({"records": [None]})
    found = reading(value)
    assert found.errors == ()
    assert found.pruned == value


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../other/secret.txt", "content/../../secret.txt", "content\\..\\..\\a", ".."]
)
def test_a_path_that_leaves_the_source_bundle_cannot_be_read(path: str) -> None:
    value = good()
    put(path, "records", 1, "path")(value)
    with pytest.raises(GatherError, match="leaves the source bundle") as refused:
        reading(value)
    where = there(refused.value.where)
    assert where.field == "records.1.path"
    assert '"path"' in written(value).splitlines()[there(where.line) - 1]
    assert path not in str(refused.value)


@pytest.mark.parametrize("path", ["content\\a.csv", "C:\\a.csv"])
def test_a_path_with_a_backslash_is_refused_with_a_remedy(path: str) -> None:
    value = good()
    put(path, "records", 1, "path")(value)
    with pytest.raises(GatherError, match=r"the path of a record has `\\`") as refused:
        reading(value)
    assert refused.value.remedy == "write `/` between folders"


def test_a_record_has_its_file_and_line() -> None:
    document = load(GOOD.read_bytes(), "b/bundle.yaml", LIMITS)
    place = read(document).document.where(("records", 1))
    assert place.file == "b/bundle.yaml"
    assert GOOD.read_text(encoding="utf-8").splitlines()[there(place.line) - 1] == "  - id: cities-1"


def test_a_date_is_valid_to_its_last_second() -> None:
    assert last_second("1970-01-01") == 86_399
    assert last_second("2027-11-02") == 1_825_199_999
    for text in ("2027-11-31", "2027-11-2", "02.11.2027", "2027-11-02T00:00:00Z", "", "1969-12-31"):
        with pytest.raises(ValueError):  # noqa: PT011
            last_second(text)


def test_many_errors_are_pruned_and_reported_up_to_a_bound() -> None:
    found = reading({"records": [{"x": 1}] * (MOST_ERRORS // 5)})
    assert len(found.errors) < MOST_ERRORS + 20
    assert found.errors[-1] == SchemaError(id="bundle", kind="too_many_errors")
    assert found.pruned == {"records": [{}] * (MOST_ERRORS // 5)}


def test_too_many_records_are_reported_and_not_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.facts.archives.source_bundle.MOST_RECORDS", 1)
    found = reading(good())
    assert errors(found) == {("records", "too_long"), ("license_decisions", "too_long")}
    assert found.pruned.keys() == good().keys() - {"records", "license_decisions"}


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=5), st.just("contacts-1"))
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))


@settings(max_examples=examples(150))
@given(data=st.data())
def test_arbitrary_values_never_crash_the_reader_and_invalid_ones_are_pruned(data: st.DataObject) -> None:
    value = good()
    for _ in range(data.draw(st.integers(1, 3))):
        tree: Any = value
        while True:
            keys = list(range(len(tree))) if isinstance(tree, list) else [*tree, "unheard of"]
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            inner = tree.get(key) if isinstance(tree, dict) else tree[key]
            if not isinstance(inner, (dict, list)) or data.draw(st.booleans()):
                tree[key] = data.draw(VALUES)
                break
            tree = inner
    try:
        found = reading(value)
    except GatherError:
        return
    again = reading(found.pruned)
    assert {kind for _, kind in errors(again)} <= {"missing"}  # nothing wrong is left, only gaps
    assert bool(found.errors) == (found.pruned != value or bool(again.errors))


def test_the_published_schema_agrees_with_the_reader() -> None:
    schema = json.loads((FIXTURES.parent / "docs/schemas/source_bundle.schema.json").read_text(encoding="utf-8"))
    good = 0
    for path in sorted((FIXTURES / "source_bundles").glob("*/bundle.yaml")):
        document = load(path.read_bytes(), str(path), LIMITS)
        wrong = not Draft202012Validator(schema).is_valid(document.value)
        assert wrong == bool(read(document).errors), path.parent.name
        good += not wrong
    assert good > 10
