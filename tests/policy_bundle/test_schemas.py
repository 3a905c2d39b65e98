"""A fact or value that no schema knows is refused with file and line, wherever a rule names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.errors import PolicyError
from engine.points.registry import POINTS
from engine.policy_bundle import schemas
from engine.policy_bundle.build import build
from tests.policy_bundle.trees import DOCUMENTS, LIMITS, REQUIREMENTS, RULES, Point, opa, requirement, topic, write

RECORD = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"id": {"type": "string"}, "license": {"type": "string"}, "size": {"type": "integer"}}
    | {"kind": {"enum": ["fixture", "external"], "type": "string"}},
}
INPUT: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "point": {"type": "string"},
        "now": {"type": "integer"},
        "bundle": {"$ref": "#/$defs/Bundle"},
    },
    "$defs": {
        "Record": RECORD,
        "Bundle": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "purpose": {"type": "string"},
                "records": {"type": "array", "items": {"$ref": "#/$defs/Record"}},
                "free": {"type": "object", "additionalProperties": True},
            },
        },
    },
}
CLOSED = {"source": Point(INPUT)}
FILE = f"{REQUIREMENTS}/license.rego"
HOUSE = f"{RULES}/house.rego"
LIB = "rego/admission/lib/words.rego"
USES = topic(
    requirement(body='record.license == "MIT"\nwords.free(record)'), imports="import data.admission.lib.words\n"
)


def deny(body: str) -> dict[str, str]:
    """An added set whose condition stands on its line 4."""
    return {HOUSE: f"package main\n\ndeny contains 1 if {{\n\t{body}\n}}\n"}


def lib(body: str) -> dict[str, str]:
    """A helper whose condition stands on its line 6."""
    return {
        LIB: f"package admission.lib.words\n\nimport future.keywords.not\n\nfree(record) if {{\n\t{body}\n}}\n",
        FILE: USES,
    }


UNKNOWN: dict[str, tuple[dict[str, str], str, int, str, str]] = {
    "added_deny": (deny('input.bundle.purpos == "eval"'), HOUSE, 4, "`input.bundle.purpos`", "did you mean `purpose`?"),
    "added_deny_of_an_item": (
        deny('some record in input.bundle.records; record.licence == "MIT"'), HOUSE, 4, "`record.licence`",
        "did you mean `license`?",
    ),
    "added_deny_by_index": (
        deny('input.bundle.records[_].licence == "MIT"'), HOUSE, 4, "licence`", "did you mean `license`?",
    ),
    "added_deny_of_another_root": (deny("input.bundel.closed == true"), HOUSE, 4, "`input.bundel", "`bundle`"),
    "added_deny_negated": (deny('not input.bundle.purpos == "eval"'), HOUSE, 4, "`input.bundle.purpos`", "`purpose`"),
    "added_deny_of_values": (
        deny('data.policy.licenses.lisenses.MIT == "admit"'), HOUSE, 4, "there are no values `lisenses`", "`licenses`",
    ),
    "added_deny_of_a_variable": (
        deny("bundle := input.bundle; bundle.purpos == 1"), HOUSE, 4, "`bundle.purpos`", "`purpose`",
    ),
    "requirement": (
        {FILE: topic(requirement("stated", 'input.bundle.purpos == "eval"'))}, FILE, 12, "`input.bundle.purpos`",
        "`purpose`",
    ),
    "item_of_a_requirement": (
        {FILE: topic(requirement(body='record.size == 1\nrecord.licence == "MIT"'))}, FILE, 14, "`record.licence`",
        "`license`",
    ),
    "values": (
        {FILE: topic(requirement(body="record.license in data.policy.licenses.lisenses"))}, FILE, 13,
        "there are no values `lisenses`", "`licenses`",
    ),
    "helper": (lib('input.bundle.purpos == "eval"\n\trecord.size == 1'), LIB, 6, "`input.bundle.purpos`", "`purpose`"),
    "limits": (
        {LIMITS: "package admission.limits.source\n\nimport future.keywords.not\n\n"
         'limits := {"purpose": input.bundle.purpos}\n'}, LIMITS, 5, "`input.bundle.purpos`", "`purpose`",
    ),
    "each": (
        {FILE: topic(requirement(each="bundle.recods"))}, FILE, 12, "`each` names `bundle.recods`", "`records`",
    ),
    "parameters_of_gatekeeper": (
        deny("input.parameters.labels[_]"), HOUSE, 4, "there are no facts `parameters`", "data.policy.parameters",
    ),
    "value_that_a_fact_never_has": (
        deny('some record in input.bundle.records; record.kind == "extern"'), HOUSE, 4,
        "`input.bundle.records[_].kind` is never `extern`", "did you mean `external`?",
    ),
    "each_that_is_no_list": (
        {FILE: topic(requirement(each="bundle.purpose"))}, FILE, 12, "which is not a list", "known facts",
    ),
    "reads_of_values": (
        {FILE: topic(requirement(more="reads: [licenses.lisenses]"))}, FILE, 13, "`reads` names `licenses.lisenses`",
        "`licenses`",
    ),
    "reads_of_a_fact": (
        {FILE: topic(requirement(more='reads: ["licenses.licenses.{licence}"]'))}, FILE, 13, "the fact `licence`",
        "`license`",
    ),
    "field": (
        {FILE: topic(requirement(more="field: licence"))}, FILE, 13, "`field` names the fact `licence`", "`license`",
    ),
    "facts": (
        {FILE: topic(requirement(more="facts: {is: bundle.porpoise}"))}, FILE, 13, "`facts` names the fact", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_fact_or_value_is_refused(name: str, tmp_path: Path) -> None:
    files, file, line, message, remedy = UNKNOWN[name]
    sources = write(tmp_path, files)
    with pytest.raises(PolicyError) as caught:
        build(sources, CLOSED, opa(), tmp_path / "cache", DOCUMENTS)
    found = [one for one in caught.value.problems if one.where.file.endswith(file) and one.where.line == line]
    assert any(message in one.message and remedy in one.remedy for one in found), caught.value.problems


NEVER = {
    "parameter": ("record.size > data.policy.parameters.most", "compares a number with text"),
    "in_front": ("data.policy.parameters.most < record.size", "compares text with a number"),
    "imported": ("record.size > parameters.most", "compares a number with text"),
    "counted": ("count(record.id) > data.policy.parameters.most", "compares a number with text"),
    "variable": ("size := count(record.id); size >= data.policy.parameters.most", "compares a number with text"),
    "variable_of_a_value": ("most := parameters.most; record.size > most", "compares a number with text"),
    "sum": ("record.size + 1 > data.policy.parameters.most", "compares a number with text"),
    "negated": ("not record.size <= data.policy.parameters.most", "compares a number with text"),
    "collected": ('count(["x" | record.size > parameters.most]) > 0', "compares a number with text"),
    "checked": ("is_number(parameters.most); record.size > record.size", "compares text with a number"),
    "literal": ('record.size > "1"', "compares a number with text"),
    "model": ("data.policy.licenses.most > record.id", "compares a number with text"),
    "equal": ('count(record.id) == "5"', "compares a number with text"),
    "list": ("record.id == [1]", "compares text with a list"),
    "null": ("record.id == null", "compares text with null"),
    "false": ("false", "`false` never holds"),
    "false_beside": ('record.id == "a"; false', "`false` never holds"),
}


def limited(*conditions: str) -> dict[str, str]:
    """Sets about each record, whose first condition stands on line 9."""
    head = "package main\n\nimport future.keywords.not\n\nimport data.policy.parameters\n\n"
    body = "deny contains {name} if {{\n\tsome record in input.bundle.records\n\t{condition}\n}}\n"
    every = (*conditions, "parameters[record.id]")  # so that every parameter is read
    return {HOUSE: head + "\n".join(body.format(name=name, condition=one) for name, one in enumerate(every))}


@pytest.mark.parametrize(("condition", "message"), NEVER.values(), ids=NEVER)
def test_a_set_that_compares_values_of_two_types_is_refused(condition: str, message: str, tmp_path: Path) -> None:
    """Text is above every number: no number passes a limit of `5 MB`."""
    sources = write(tmp_path, {**limited(condition), "bundles/house/values/parameters.yaml": "most: 5 MB\n"})
    with pytest.raises(PolicyError) as caught:
        build(sources, CLOSED, opa(), tmp_path / "cache", DOCUMENTS)
    assert [one.where.line for one in caught.value.problems] == [9]
    assert message in caught.value.problems[0].message


ORDINARY = (
    "record.size > data.policy.parameters.most",
    "record.size > data.policy.parameters.by_kind[record.kind]",
    "count(input.bundle.records) > data.policy.parameters.most",
    "sum([one.size | some one in input.bundle.records]) > parameters.most",
    "not record.id in data.policy.parameters.names",
    'record.license < "m"',
    "record.id > data.policy.parameters.until",
    "input.now * 1000000000 > time.parse_rfc3339_ns(data.policy.parameters.until)",
    "record.size != null",
    "not startswith(record.id, data.policy.parameters.prefix)",
    "_large(record)",
    "every name in data.policy.parameters.names { name != record.id }",
    "input.bundle.free.kind == 5",
    'object.get(record, "kind", false) == false',
    "input.bundle.purpose == parameters.names[_]",
    'parameters.mixed[_] == "a"',
    "{one.id | some one in input.bundle.records} == {record.id}",
    "data.policy.parameters.strict == false",
    "gt(record.size, data.policy.parameters.most, true)",
    'equal(record.kind, "external", true)',
    "lower(record.id) == record.license",
    "size := record.size; not size < 0.5",
    'count([x | some one in input.bundle.records; x := one.size; x > 1]) > count([x | some x in ["a"]; x > "a"])',
    '{"a", "b"} - {record.id} == set()',
)
VALUES = (
    'most: 5\nby_kind: {external: 5}\nnames: [one]\nuntil: "2026-11-21T00:00:00Z"\nprefix: one\n'
    "strict: false\nmixed: [1, a]\n"
)


def test_ordinary_sets_are_not_refused(tmp_path: Path) -> None:
    rules = limited(*ORDINARY)[HOUSE] + "\n_large(record) if record.size > data.policy.parameters.most\n"
    sources = write(tmp_path, {HOUSE: rules, "bundles/house/values/parameters.yaml": VALUES})
    build(sources, CLOSED, opa(), tmp_path / "cache", DOCUMENTS)


def test_an_inventory_that_lacks_a_code_hides_no_misspelt_fact(tmp_path: Path) -> None:
    files, file, *_ = UNKNOWN["item_of_a_requirement"]
    sources = write(tmp_path, {**files, "rego/inventory.yaml": "source:\n  - stated\n"})
    with pytest.raises(PolicyError) as caught:
        build(sources, CLOSED, opa(), tmp_path / "cache", DOCUMENTS)
    told = "\n".join(f"{one.where.file}: {one.message}" for one in caught.value.problems)
    for words in (f"{file}: `record.licence`", "`admitted` is not in", "`stated` of `source` must exist"):
        assert words in told, told


KNOWN = {
    "added_deny": deny('some record in input.bundle.records; record.license == "GPL-2.0-only"'),
    "added_deny_of_values": deny('data.policy.licenses.licenses[input.bundle.purpose] == "refuse"'),
    "value_that_a_fact_may_have": deny('some record in input.bundle.records; "external" == record.kind'),
    "free_mapping": deny("input.bundle.free.anything.at_all == 1"),
    "requirement": {FILE: topic(requirement(body='record.license == "MIT"\nrecord.size == 1'))},
    "alternatives": {FILE: topic(requirement(), 'admitted(record) if {\n\trecord.license == "ISC"\n}')},
    "helper": lib('record.size == 1\n\tinput.bundle.purpose == "eval"'),
    "reads": {FILE: topic(requirement(more='reads: ["licenses.licenses.{license}", licenses.most]'))},
    "facts": {FILE: topic(requirement(more="facts: {is: license, of: bundle.purpose}"))},
}


@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", KNOWN)
def test_a_rule_that_fits_the_schemas_is_built(name: str, tmp_path: Path) -> None:
    build(write(tmp_path, KNOWN[name]), CLOSED, opa(), tmp_path / "cache", DOCUMENTS)


def test_the_input_of_every_point_is_closed() -> None:
    """No object of any input takes keys that nobody declared, but for mappings whose keys are the caller's own."""
    for point in POINTS.values():
        schema = point.input_schema
        for name, body in {"": schema, **schema.get("$defs", {})}.items():
            if body.get("type") == "object" and "properties" in body:
                assert body.get("additionalProperties") is False, (point.name, name)
        assert {"caller", "budgets", "quotas", "approvals", "children", "prefixes"} <= schema["properties"].keys()


def test_a_fact_is_never_null_in_a_schema() -> None:
    for point in POINTS.values():
        assert "{'type': 'null'}" not in str(point.input_schema), point.name


@pytest.mark.parametrize(
    ("path", "there"),
    [
        (["bundle", "records", None, "license"], True),
        (["bundle", "records", "license"], False),
        (["bundle", "free", "x", "y"], True),
        (["bundle", None], True),
        (["point", "x"], False),
        (["pont"], False),
        ([], True),
    ],
)
def test_paths_of_a_schema(path: list[str | None], there: bool) -> None:  # noqa: FBT001
    assert (schemas.at(INPUT, path) is not None) is there
    assert schemas.at({}, path) == {}


def test_definitions_of_joined_schemas_do_not_collide() -> None:
    other = {"type": "object", "properties": {"x": {"$ref": "#/$defs/Record"}}, "$defs": {"Record": {"type": "string"}}}
    joined = schemas.union({"a": INPUT, "b": other})
    assert joined["$defs"]["a.Record"]["type"] == "object"
    assert joined["$defs"]["b.Record"] == {"type": "string"}
    assert schemas.at(joined, ["x"]) is not None
    assert schemas.at(joined, ["bundle", "purpose"]) is not None


def test_the_common_properties_of_all_inputs_are_extracted() -> None:
    other = {"type": "object", "properties": {"now": {"type": "integer"}, "y": {}}, "additionalProperties": False}
    shared = schemas.common({"a": INPUT, "b": other})
    assert list(shared["properties"]) == ["now"]
    assert schemas.common({"a": {}, "b": {}}) == {}
