"""A recipe of one's own: values laid over those of policy/, helpers, parameters, and what could never apply."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import Location
from tests.expect import there
from tests.policy_bundle.trees import RULES, Files, codes, policy, problems, requirement, served, source

HOUSE = "bundles/house"
HEAD = "package admission.added.source.{}\n\nimport future.keywords.not\n\nimport data.admission.added.lib.names\n\n"
OWN = {
    f"{HOUSE}/rules/lib/names.rego": "package admission.added.lib.names\n\nimport future.keywords.not\n\n"
    "short(name) if {\n\tis_string(name)\n\tis_number(data.policy.parameters.longest)\n"
    "\tcount(name) <= data.policy.parameters.longest\n}\n",
    f"{RULES}/name.rego": HEAD.format("name") + requirement("named(record)", "names.short(record.id)") + "\n",
    f"{RULES}/purpose.rego": HEAD.format("purpose")
    + requirement("stated", "names.short(input.bundle.purpose)", each="")
    + "\n",
    f"{HOUSE}/values/parameters.yaml": "longest: 5\n",
}


def test_added_rules_share_helpers_and_parameters(tmp_path: Path) -> None:
    policy = served(tmp_path, OWN)
    assert policy.ask(source())["outcome"] == "allow"
    long = source([{"id": "number", "license": "MIT"}], purpose="training")
    assert codes(policy.ask(long)) == [("named", "records/number"), ("stated", None)]
    assert there(policy.bundle.catalogue.requirement("source", "named")).added


def test_values_are_laid_over_those_of_policy(tmp_path: Path) -> None:
    laid = "licenses:\n  GPL-2.0-only: null\n  ISC: admit\n"
    bundle = policy(tmp_path, {f"{HOUSE}/values/licenses.yaml": laid})
    assert bundle.data["licenses"] == {"licenses": {"MIT": "admit", "ISC": "admit"}, "most": 5}
    where = {path[-1]: bundle.sources.path(place.file).parent.name for path, place in bundle.places.items()}
    assert (where["ISC"], where["MIT"], where["most"]) == ("values", "policy", "policy")


@pytest.mark.parametrize("text", ["# licenses: {}\n\n  # most: 1\n", "---\n# most: 1\n"])
def test_values_of_nothing_but_comments_change_nothing(text: str, tmp_path: Path) -> None:
    laid = {f"{HOUSE}/values/{name}.yaml": text for name in ("licenses", "parameters")}
    assert policy(tmp_path / "laid", laid).revisions.values == policy(tmp_path / "plain").revisions.values


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_an_empty_file_is_refused(text: str, tmp_path: Path) -> None:
    """A full disk or a killed editor leaves one, and without what it said more might be admitted."""
    told = problems(tmp_path, {f"{HOUSE}/values/{name}.yaml": text for name in ("licenses", "parameters")})
    remedy = "restore it, from version control or a backup; without the file, shipped values are in force"
    assert [(Path(one.where.file).name, one.message, one.remedy) for one in told] == [
        ("licenses.yaml", "the document is empty", remedy),
        ("parameters.yaml", "the document is empty", remedy),
    ]


def test_a_recipe_that_is_given_as_all_values_is_the_one_problem(tmp_path: Path) -> None:
    told = problems(tmp_path, {"policy/recipe.yaml": "{}\n"})
    assert [(one.message, "`recipe=`" in one.remedy) for one in told] == [
        ("this is the folder of a recipe, not of all values", True)
    ]


def test_a_misspelled_field_is_recognized_also_where_the_shipped_file_has_it(tmp_path: Path) -> None:
    told = problems(tmp_path, {f"{HOUSE}/values/licenses.yaml": "mots: 3\n"})
    assert [one.remedy for one in told] == ["did you mean `most`? correct the spelling or remove it"]
    told = problems(tmp_path, {f"{HOUSE}/values/licenses.yaml": "most: 3\nmots: 3\n"})
    assert [one.remedy for one in told] == ["correct the spelling or remove it"]


def test_problems_of_values_that_are_written_as_json_have_lines(tmp_path: Path) -> None:
    laid = '{\n  "licenses": {"ISC": "admit"},\n  "mots": 3\n}\n'
    (told,) = problems(tmp_path, {f"{HOUSE}/values/licenses.yaml": laid})
    assert (told.where.line, told.remedy) == (3, "did you mean `most`? correct the spelling or remove it")


def test_a_file_without_fields_is_refused_with_their_syntax(tmp_path: Path) -> None:
    (told,) = problems(tmp_path, {f"{HOUSE}/values/licenses.yaml": "most:3\n"})
    assert told.message == "the document is text; it should be a mapping"
    assert told.remedy == "write `name: value`, with a space after the colon"


def test_an_invalid_value_is_reported_at_its_place_in_the_recipe(tmp_path: Path) -> None:
    laid = "# ours\nmost: many\nmore: 1\n"
    told = problems(tmp_path, {f"{HOUSE}/values/licenses.yaml": laid})
    file = str(tmp_path / HOUSE / "values" / "licenses.yaml")
    assert [one.where for one in told] == [Location(file, 2, "most"), Location(file, 3, "more")]


def test_while_a_rule_does_not_parse_no_parameter_is_called_unread(tmp_path: Path) -> None:
    broken = OWN[f"{RULES}/purpose.rego"].replace("if {", "if {{")
    read_elsewhere = {name: text for name, text in OWN.items() if not name.endswith("lib/names.rego")}
    assert "}" in broken
    told = problems(tmp_path, {**read_elsewhere, f"{RULES}/purpose.rego": broken})
    assert told
    assert [one.message for one in told if "parameter" in one.message] == []


def test_a_stray_file_hides_no_other_problem(tmp_path: Path) -> None:
    files = {
        f"{HOUSE}/notes.txt": "",
        f"{RULES}/set.rego": "package main\n\nfree := 1\n",
        "policy/more.yml": "",
    }
    found = [Path(one.where.file).name for one in problems(tmp_path, files)]
    assert found == ["notes.txt", "set.rego", "more.yml"]


UNREAD = "package main\n\ndeny contains 1 if input.bundle.never\n\ndenied contains 2 if input.bundle.purpose\n"
HELPER = f"{HOUSE}/rules/lib/names.rego"


@pytest.mark.parametrize(
    ("files", "place", "message"),
    [
        ({f"{RULES}/set.rego": UNREAD}, (f"{RULES}/set.rego", 5), "`denied` is read by nothing"),
        (
            {f"{RULES}/set.rego": 'package main\n\ndeny contains 1 if input.point == "license"\n'},
            (f"{RULES}/set.rego", 3),
            "`input.point` is never `license` here",
        ),
        (
            {**OWN, f"{HOUSE}/values/parameters.yaml": "longest: 5\nshortest: 1\n"},
            (f"{HOUSE}/values/parameters.yaml", 2),
            "no added rule reads the parameter `shortest`",
        ),
        (
            {**OWN, f"{HOUSE}/values/parameters.yaml": None},
            (HELPER, 7),
            "there are no values `parameters`",
        ),
        (
            {**OWN, f"{HOUSE}/values/parameters.yaml": "longest_: 5\n"},
            (HELPER, 7),
            "there are no values `longest` here",
        ),
        (
            {f"{RULES}/set.rego": "package main\n\nadmitted if input.bundle.purpose\n"},
            (f"{RULES}/set.rego", 1),
            "the file adds no rule",
        ),
        ({f"{HOUSE}/values/licences.yaml": "most: 3\n"}, (f"{HOUSE}/values/licences.yaml", None), "no values of this"),
        (
            {"rego/admission/lib/own.rego": "package admission.lib.own\n\nimport future.keywords.not\n\n"
             "import data.admission.added.lib.names\n\nf(x) if names.short(x)\n", **OWN},
            ("rego/admission/lib/own.rego", 5),
            "may not be read by rules",
        ),
    ],
)  # fmt: skip
def test_a_rule_or_value_without_effect_is_refused(
    files: Files, place: tuple[str, int | None], message: str, tmp_path: Path
) -> None:
    found = {(one.where.file, one.where.line): one.message for one in problems(tmp_path, files)}
    assert message in found[str(tmp_path / place[0]), place[1]]


@pytest.mark.parametrize(
    ("instead", "message"),
    [
        ("", "compares `data.policy.parameters.longest`, whose type is not checked"),
        ("\tdata.policy.parameters.longest\n", "`data.policy.parameters.longest` holds for null, 0 and text too"),
    ],
)
def test_a_rule_checks_the_type_of_a_parameter(instead: str, message: str, tmp_path: Path) -> None:
    """No model does: a limit of `5 MB` is text, above every number, and `no` is text, which holds."""
    helper = OWN[HELPER].replace("\tis_number(data.policy.parameters.longest)\n", instead)
    found = {one.where.line: one.message for one in problems(tmp_path, {**OWN, HELPER: helper})}
    assert message in found[7]


def test_a_parameter_of_another_type_refuses(tmp_path: Path) -> None:
    policy = served(tmp_path, {**OWN, f"{HOUSE}/values/parameters.yaml": "longest: 5 MB\n"})
    assert codes(policy.ask(source())) == [("named", "records/one"), ("stated", None)]
