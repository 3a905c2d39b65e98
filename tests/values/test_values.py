"""The models of policy/: what ships fits them, and a mistake is told with the path of its field."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from engine.facts.licenses import canonical_key
from engine.values import DOCUMENTS
from tests.values.shipped import DROP, POLICY, SHIPPED, changed, errors, errors_of


def _envoy(argument: Any) -> dict[str, Any]:
    """A row of `envoy` with this argument of a call."""
    place = {"hosts": ["h.example"], "methods": ["GET"], "path": "/"}
    return {**place, "point": "tool_call", "request": {"call": {"arguments": {"id": argument}}}}


def _authzen(argument: Any) -> dict[str, Any]:
    """A row of `authzen` with this request."""
    return {"resource": "todo", "actions": ["read"], "point": "tool_call", "request": argument}


@pytest.mark.parametrize("argument", ["$path", "$headers.x-user", ["$host", "plain", 1], {"a": "$query"}, "a$b", None])
def test_references_to_what_envoy_sends_are_accepted(argument: Any) -> None:
    DOCUMENTS["operations"].model_validate(changed("operations", ("envoy", [_envoy(argument)])))


def test_every_policy_file_has_a_document_model() -> None:
    assert sorted(DOCUMENTS) == sorted(path.stem for path in POLICY.glob("*.yaml"))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_shipped_values_fit(name: str) -> None:
    DOCUMENTS[name].model_validate(SHIPPED[name])
    first = (POLICY / f"{name}.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first == f"# yaml-language-server: $schema=../docs/schemas/policy/{name}.schema.json"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_field_has_a_description(name: str) -> None:
    schema = DOCUMENTS[name].model_json_schema()
    for model in (schema, *schema.get("$defs", {}).values()):
        assert model["additionalProperties"] is False
        assert model["description"]
        assert all(field.get("description") for field in model["properties"].values())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_are_closed_and_frozen(name: str) -> None:
    assert ("surprise", "Extra inputs are not permitted") in errors_of(name, {**SHIPPED[name], "surprise": 1})
    model = DOCUMENTS[name].model_validate(SHIPPED[name])
    with pytest.raises(ValidationError):
        setattr(model, next(iter(DOCUMENTS[name].model_fields)), None)
    assert all(field.is_required() for field in DOCUMENTS[name].model_fields.values())


# Licenses


def test_the_license_table_is_well_formed_and_covers_every_category() -> None:
    table = SHIPPED["licenses"]
    assert 120 <= len(table["licenses"]) <= 220
    assert {row["category"] for row in table["licenses"].values()} == set(table["categories"])
    assert all(canonical_key(key) == key for key in table["licenses"])


def test_every_export_license_has_a_row() -> None:
    table = SHIPPED["licenses"]["licenses"]
    assert {name for row in table.values() for name in row.get("export_under", ())} <= set(table)


@pytest.mark.parametrize(
    ("part", "category"),
    [
        ("-NC-", "non_commercial"),
        ("-ND-", "no_derivatives"),
        ("-SA-", "share_alike"),
        ("AGPL-", "network_copyleft"),
        ("-rail", "responsible_ai"),
    ],
)
def test_licenses_with_conditions_are_never_admitted_for_training(part: str, category: str) -> None:
    table = SHIPPED["licenses"]
    rows = {key: row for key, row in table["licenses"].items() if part in key}
    assert any(row["category"] == category for row in rows.values())
    for row in rows.values():
        assert "admit" not in {table["categories"][row["category"]]["train"]} & {row["decision"]}
        assert table["categories"][row["category"]]["export"] in {"listed", "refuse"}


@pytest.mark.parametrize(
    ("path", "value", "where", "message"),
    [
        (
            "licenses/mit",
            {"category": "permissive", "decision": "admit"},
            "licenses.mit",
            "`mit` is never matched: SPDX spells it `MIT`",
        ),
        (
            "licenses/GPL-2.0",
            {"category": "strong_copyleft", "decision": "admit", "export_under": ["GPL-2.0-only"]},
            "licenses.GPL-2.0",
            "`GPL-2.0` is never matched: SPDX spells it `GPL-2.0-only`",
        ),
        *[
            (
                f"licenses/{key}",
                {"category": "permissive", "decision": "admit"},
                f"licenses.{key}",
                f"`{key}` is not a license: use one SPDX id, alone or WITH an SPDX exception, or `LicenseRef-…`",
            )
            for key in ("NOASSERTION", "NONE", "Proprietary", "MIT OR ISC", "MIT WITH MIT", "LLVM-exception", "{x}", "")
        ],
        (
            "licenses/CC-BY-4.0/export_under",
            ["CC-BY-4.0", "cc-by-sa-4.0"],
            "licenses.CC-BY-4.0.export_under.1",
            "`cc-by-sa-4.0` is never matched: SPDX spells it `CC-BY-SA-4.0`",
        ),
        (
            "licenses/CC-BY-4.0/export_under",
            [],
            "licenses.CC-BY-4.0",
            "`export_under` is missing or empty: category `attribution` exports only under the licenses listed there",
        ),
        (
            "licenses/CC-BY-4.0",
            {"category": "attribution", "decision": "admit"},
            "licenses.CC-BY-4.0",
            "`export_under` is missing or empty: category `attribution` exports only under the licenses listed there",
        ),
        ("aliases/CC0", "CC0-1.0", "aliases.CC0", "`CC0` is never matched: write it as `cc0`"),
        ("aliases/mit", "MIT", "aliases.mit", "`mit` is an SPDX id itself: remove the alias"),
        (
            "aliases/odc-by",
            "odc-by-1.0",
            "aliases.odc-by",
            "`odc-by-1.0` is never matched: SPDX spells it `ODC-By-1.0`",
        ),
        (
            "licenses/MIT/export_under",
            ["MIT"],
            "licenses.MIT.export_under",
            "`export_under` has no effect: category `permissive` does not export `listed`, remove it",
        ),
        (
            "licenses/MIT/decision",
            "yes",
            "licenses.MIT.decision",
            "Input should be 'admit', 'review' or 'refuse'",
        ),
        ("licenses/MIT/decision", True, "licenses.MIT.decision", "Input should be 'admit', 'review' or 'refuse'"),
        ("licenses/MIT/note", "", "licenses.MIT.note", "String should have at least 1 character"),
        (
            "categories/permissive/export",
            "always",
            "categories.permissive.export",
            "Input should be 'admit', 'review', 'refuse' or 'listed'",
        ),
    ],
)
def test_license_mistakes_are_reported_at_their_fields(path: str, value: Any, where: str, message: str) -> None:
    assert errors("licenses", (path, value)) == [(where, message)]


def test_unknown_category_names_the_known_ones() -> None:
    [(where, message)] = errors("licenses", ("licenses/MIT/category", "permisive"))
    assert where == "licenses.MIT.category"
    assert message.startswith("no category `permisive`: use one of `public_domain`, `permissive`, ")


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("roles/Judge/entry", "verdikt", "roles.Judge.entry"),
        ("roles/Judge/aside", "hint", "roles.Judge.aside"),
        ("roles/Judge/entries", ["verdict", "verdikt"], "roles.Judge.entries.1"),
    ],
)
def test_an_entry_that_no_transcript_has_is_a_mistake_of_its_role(path: str, value: Any, where: str) -> None:
    [(found, message)] = errors("episodes", (path, value))
    assert (found, message.startswith("no kind of entry")) == (where, True)


def test_all_mistakes_are_reported_together() -> None:
    table = changed("licenses", ("licenses/MIT/category", "permisive"))
    table["licenses"]["mit"] = {"category": "permissive", "decision": "admit"}
    assert [where for where, _ in errors_of("licenses", table)] == ["licenses.MIT.category", "licenses.mit"]


# The others


@pytest.mark.parametrize(
    ("name", "path", "value", "where"),
    [
        ("levels", "levels/source", {"license_review_required": "allow"}, "levels.source.license_review_required.word"),
        ("levels", "levels/source", {"engine.internal": "warn"}, "levels.source.engine.internal.[key]"),
        ("levels", "levels/Source", {}, "levels.Source.[key]"),
        ("levels", "levels", ["source"], "levels"),
        ("sandbox", "redaction", False, "redaction"),
        ("sandbox", "generated_code", ["enabled"], "generated_code.0"),
        ("sandbox", "generated_code", "disabled", "generated_code"),
        ("sandbox", "filesystem", {"artifact_subdir": ["unsupported"]}, "filesystem.artifact_subdir.0"),
        ("sandbox", "filesystem", ["artifact_subdir"], "filesystem"),
        ("sandbox", "network", [None], "network.0"),
        ("sources", "purposes", ["sell"], "purposes.0"),
        ("sources", "kinds", ["file"], "kinds.0"),
        ("sources", "retention_bases", [""], "retention_bases.0"),
        ("networks", "schemes", ["https://"], "schemes.0"),
        ("operations", "envoy", [_envoy("$headers.X-User")], "envoy.0.request"),
        ("operations", "envoy", [_envoy("$header.x-user")], "envoy.0.request"),
        ("operations", "envoy", [_envoy(["$"])], "envoy.0.request"),
        ("operations", "authzen", [_authzen({"id": "$ressource.id"})], "authzen.0.request"),
        *[("networks", "ports", [port], "ports.0") for port in (0, 65536, 443.0, "443", True, None)],
    ],
)
def test_other_mistakes_are_reported_at_their_fields(name: str, path: str, value: Any, where: str) -> None:
    assert [place for place, _ in errors(name, (path, value))] == [where]


def test_a_model_without_a_row_is_told_with_the_row_to_add() -> None:
    places = ("providers/example/models", ["gpt-4o"])
    told = "no model `gpt-4o`: add its row under `models`, such as `gpt-4o: {answers_as: [gpt-4o]}`"
    assert errors("llm", places) == [("providers.example.models.0", told)]


@pytest.mark.parametrize(
    ("name", "field"), [(name, field) for name in DOCUMENTS for field in DOCUMENTS[name].model_fields]
)
def test_missing_or_null_values_are_refused(name: str, field: str) -> None:
    assert (field, "Field required") in errors(name, (field, DROP))
    assert [where for where, _ in errors(name, (field, None))] == [field]


@pytest.mark.parametrize(
    "path",
    [
        *(f"licenses/MIT/{field}" for field in ("category", "decision")),
        *(f"categories/permissive/{field}" for field in ("title", "train", "eval", "tool", "environment", "export")),
    ],
)
def test_incomplete_rows_are_refused(path: str) -> None:
    assert errors("licenses", (path, DROP)) == [(path.replace("/", "."), "Field required")]
