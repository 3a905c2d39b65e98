"""Every rule, value or recipe that the build refuses: the file, the line, and what to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.errors import PolicyError
from tests.policy_bundle.trees import LIMITS, LOWERED, REQUIREMENTS, RULES, built, problems, requirement, topic, write

FILE = f"{REQUIREMENTS}/license.rego"
HOUSE = f"{RULES}/house.rego"
LEVELS, LICENSES, RECIPE = "policy/levels.yaml", "policy/licenses.yaml", "bundles/house/recipe.yaml"
LIB = "rego/admission/lib/words.rego"
HEAD = "package admission.requirements.source.license\n\nimport future.keywords.not\n\n"
LIMITS_HEAD = "package admission.limits.source\n\nimport future.keywords.not\n\n"
ADDED_HEAD = "package admission.added.source.house\n\nimport future.keywords.not\n\n"


@dataclass(frozen=True)
class Refused:
    """Files that change the base, and what must be said about which line."""

    files: dict[str, str | bytes | None]
    line: int | None
    message: str
    remedy: str
    file: str = FILE
    values: tuple[str, ...] = field(default=())


def one(file: str, text: str | bytes | None, line: int | None, message: str, remedy: str) -> Refused:
    """One file with this text, or without it."""
    return Refused({file: text}, line, message, remedy, file)


def rule(text: str, line: int, message: str, remedy: str) -> Refused:
    """One file of requirements with this text below its head."""
    return one(FILE, HEAD + text, line, message, remedy)


def body(text: str, message: str, remedy: str) -> Refused:
    """A requirement with this body, which is line 13 of the file."""
    return rule(requirement(body=text) + "\n", 13, message, remedy)


def level(word: str, message: str, remedy: str) -> Refused:
    """This level for the code of the requirement."""
    return one(LEVELS, f"levels:\n  source:\n    admitted: {word}\n", 3, message, remedy)


def metadata(lines: str, line: int, message: str, remedy: str, name: str = "admitted(record)") -> Refused:
    """One requirement with this METADATA; its first line is line 6 of the file."""
    note = "".join(f"# {one}\n" for one in lines.splitlines())
    body = f'{name} if record.license == "MIT"\n' if "(" in name else f'{name} if input.x == "a"\n'
    return rule(f"# METADATA\n{note}{body}", line, message, remedy)


WORDS = "title: T\ndescription: D\ncustom:\n  code: admitted\n  remedy: R\n"
EACH = WORDS + "  each: bundle.records\n"
GOOD = requirement()

REFUSED = {
    # what a requirement may be
    "no_metadata": rule('admitted(record) if record.license == "MIT"\n', 5, "has no METADATA", "title, description"),
    "lower_case_metadata": rule("# metadata\n# title: T\nok if input.x == 1\n", 7, "has no METADATA", "# METADATA"),
    "metadata_on_second_definition": rule(
        f"admitted(record) if record.free == true\n\n{GOOD}\n", 5, "has no METADATA", "above it"
    ),
    "two_arguments": metadata(EACH, 12, "takes 2 arguments", "exactly one argument", "admitted(record, _)"),
    "argument_without_each": metadata(WORDS, 11, "names no list", "add `each:"),
    "each_without_argument": metadata(EACH, 12, "takes no argument", "exactly one argument", "admitted"),
    "argument_beside_a_list_that_must_be_empty": metadata(
        f"{EACH}  empty: required\n",
        13,
        "covers the whole list `bundle.records`",
        "write `input.bundle.records == []`",
    ),
    "argument_is_a_pattern": rule(
        GOOD.replace("admitted(record)", 'admitted({"license": l})').replace("record.license", "l") + "\n",
        12,
        "is not a variable",
        "name the item",
    ),
    "argument_is_a_wildcard": rule(
        GOOD.replace("admitted(record)", "admitted(_)").replace("record.license", "input.l") + "\n",
        12,
        "is not a variable",
        "name the item",
    ),
    "default": rule(f"default admitted(_) := true\n\n{GOOD}\n", 5, "`default admitted`", "undefined is not proven"),
    "deny_set": rule(GOOD.replace("admitted(record) if", "deny contains record if"), 12, "is a set", "must hold"),
    "else": rule(f"{GOOD[:-2]}\n}} else := true\n", 12, "has an `else`", "several definitions"),
    "set": rule(GOOD.replace("admitted(record) if", "admitted contains record if") + "\n", 12, "a set or", "if …"),
    "object": rule(GOOD.replace("admitted(record) if", "admitted[record] if") + "\n", 12, "a set or object", "if …"),
    "value_false": rule(
        GOOD.replace(") if {", ") := false if {") + "\n", 12, "a value other than true", "into the body"
    ),
    "value_of_a_fact": rule(
        GOOD.replace(") if {", ") := record.ok if {") + "\n", 12, "a value other than true", "into the body"
    ),
    "no_condition": rule(
        GOOD.split("admitted(record)")[0].replace("#   each: bundle.records\n", "") + "ok := true\n",
        11,
        "no condition",
        "remove it",
    ),
    "condition_true": rule(requirement("ok", "true") + "\n", 11, "no condition", "remove it"),
    "different_arities": rule(
        f"{GOOD}\n\nadmitted(record, key) if record[key] == 1\n", 16, "one argument in one place", "two names"
    ),
    "metadata_twice": rule(f"{GOOD}\n\n{GOOD}\n", 16, "METADATA twice", "keep one block"),
    "reserved_name": rule(f"{GOOD}\n\n_findings contains 1 if input.x == 1\n", 16, "the build defines", "another name"),
    "reserved_variable": body("some __x in record.l\n__x == 1", "`__x`", "another name"),
    # METADATA
    "unknown_key": metadata(EACH.replace("title:", "titel:"), 6, "`titel` is not a known field", "spelling"),
    "title_missing": metadata(EACH.removeprefix("title: T\n"), 6, "`title` is missing", "write the sentence"),
    "description_missing": metadata(EACH.replace("description: D\n", ""), 6, "`description` is missing", "why it must"),
    "title_empty": metadata(EACH.replace("title: T", 'title: ""'), 6, "`title` is empty", "write the sentence"),
    "title_no_text": metadata(EACH.replace("title: T", "title: [a]"), 7, "into string", "correct the METADATA"),
    "custom_missing": metadata("title: T\ndescription: D\n", 6, "`custom` is missing", "custom.code"),
    "code_missing": metadata(EACH.replace("  code: admitted\n", ""), 8, "`custom.code` is missing", "lower case"),
    "code_upper_case": metadata(EACH.replace("code: admitted", "code: Admitted"), 9, "custom.code", "lower case"),
    "code_reserved": metadata(EACH.replace("code: a", "code: engine.a"), 12, "reserved", "another code"),
    "remedy_missing": metadata(EACH.replace("  remedy: R\n", ""), 8, "`custom.remedy` is missing", "should do"),
    "level": metadata(EACH + "  level: warn\n", 12, "`custom.level` is not a known field", "policy/levels.yaml"),
    "unknown_custom_key": metadata(EACH + "  eahc: x\n", 12, "`custom.eahc` is not a known field", "spelling"),
    "unknown_label": metadata(EACH + "labels:\n  rows: A1\n", 13, "`labels.rows` is not a known field", "spelling"),
    "each_no_path": metadata(EACH.replace("bundle.records", "bundle.records[0]"), 11, "custom.each", "plain path"),
    "each_from_input": metadata(EACH.replace("bundle.records", "Bundle"), 11, "custom.each", "plain path"),
    "empty_other_word": metadata(EACH + "  empty: true\n", 12, "custom.empty", "empty: allowed"),
    "empty_without_list": metadata(WORDS + "  empty: allowed\n", 12, "needs a list", "add `each`", "admitted"),
    "proof_no_sentence": metadata(EACH + "  proof: yes\n", 12, "custom.proof", "in a sentence"),
    "reads_no_document": metadata(EACH + "  reads: [licences.x]\n", 13, "no values `licences`", "`licenses`"),
    "field_no_path": metadata(EACH + "  field: a b\n", 12, "custom.field", "dotted path"),
    "facts_no_names": metadata(EACH + "  facts: [b]\n", 12, "custom.facts", "dotted paths"),
    "reads_no_path": metadata(EACH + '  reads: ["a b"]\n', 12, "custom.reads", "dotted paths"),
    "metadata_no_mapping": metadata("just words\n", 6, "unmarshal", "correct the METADATA"),
    "metadata_odd_number": metadata(EACH.replace("T\n", "017\n", 1), 6, "interpret differently", "quote it"),
    "package_metadata": one(
        FILE, "# METADATA\n# titel: x\n" + topic(GOOD), 2, "`titel` is not a known field", "spelling"
    ),
    "helper_metadata": rule(
        f"{GOOD}\n\n# METADATA\n# custom:\n#   code: x\n_h if input.x == 1\n",
        18,
        "`custom.code` is not a known field",
        "lower case",
    ),
    # between requirements
    "code_twice": one(
        f"{REQUIREMENTS}/other.rego",
        topic(requirement("x(r)", "r.a == 1", code="admitted"), name="other"),
        12,
        "`admitted` is already used by `admitted` in rego/admission/requirements/source/license.rego:12",
        "a unique code",
    ),
    "code_of_a_list": rule(requirement(code="records_missing") + "\n", 12, "the build gives the code", "another code"),
    "code_of_limits": rule(requirement(code="limits_missing") + "\n", 12, "the build gives the code", "another code"),
    "two_lists_one_code": rule(
        f"{GOOD}\n\n{requirement('other(record)', 'record.a == 1', each='records')}\n",
        23,
        "`records_missing`",
        "rename one",
    ),
    "after_unknown": rule(
        requirement(more="after: [nothing]") + "\n", 13, "`nothing`, which is not a code", "`records_missing`"
    ),
    "after_misspelled": rule(
        requirement(more="after: [record_missing]") + "\n", 13, "is not a code", "did you mean `records_missing`?"
    ),
    "after_implied": rule(
        "\n\n".join(
            (
                requirement("one(r)", "r.a == 1", more="after: [records_missing, two, three]"),
                requirement("two(r)", "r.a == 1", more="after: [three]"),
                requirement("three(r)", "r.a == 1", more="after: [records_missing]") + "\n",
            )
        ),
        13,
        "`three`, which `two` already implies",
        "remove `three`",
    ),
    "after_itself": rule(
        requirement(more="after: [admitted]") + "\n", 13, "leads back to itself", "remove one of the two"
    ),
    "after_cycle": rule(
        requirement("one(r)", "r.a == 1", more="after: [two]")
        + "\n\n"
        + requirement("two(r)", "r.a == 1", more="after: [one]")
        + "\n",
        13,
        "leads back to itself",
        "remove one of the two",
    ),
    "no_requirement": Refused(
        {FILE: HEAD + "_helper if input.x == 1\n"},
        None,
        "has no requirement",
        "at least one",
        "rego/admission/requirements/source",
    ),
    # dialect and place
    "package_not_path": one(FILE, topic(GOOD, name="other"), 1, "its folder requires", "source.license`"),
    "import_missing": one(
        FILE, f"package admission.requirements.source.license\n\n{GOOD}\n", 1, "is missing", "add `import"
    ),
    "other_dialect": one(FILE, topic(GOOD, imports="import rego.v1\n"), 3, "changes the Rego dialect", "only"),
    "nested": one(
        FILE, f"{HEAD}ok if count({'[1 | ' * 200}true{']' * 200}) > 0\n", None, "deeper than 20", "inner parts"
    ),
    "syntax_error": rule("ok if {\n\tinput.x ==\n}\n", 7, "unexpected", "correct the syntax"),
    "not_utf8": one(FILE, HEAD.encode() + b"\xff", 5, "not UTF-8", "save it"),
    "unformatted": rule(GOOD.replace("\trecord", "  record") + "\n", 13, "not formatted", "opa fmt --write"),
    "unused_variable": body('x := 1\nrecord.license == "MIT"', "unused", "remove it"),
    "undefined_function": body("nothing(record)", "undefined function", "correct the name"),
    "recursion": rule(f"{GOOD}\n\n_loop(r) if _loop(r.x)\n", 16, "recursive", "remove the cycle"),
    "misplaced_point": one(
        "rego/admission/requirements/sauce/x.rego", "package a\n", None, "no decision point `sauce`", "`source`"
    ),
    "misplaced_file": one("rego/admission/x.rego", "package admission.x\n", None, "rules are not read", "move it"),
    "compiled_by_hand": one(
        "rego/admission/compiled/source.rego",
        "package admission.compiled.source\n",
        None,
        "rules are not read",
        "move it",
    ),
    "odd_topic": one(f"{REQUIREMENTS}/Odd-name.rego", "package a\n", None, "not a valid topic name", "a-z"),
    "requirement_named_test": one(
        f"{REQUIREMENTS}/unit_test.rego",
        topic(GOOD, name="unit"),
        1,
        "a test file must be `package admission.requirements.source.unit_test`",
        "tests are not served",
    ),
    # what rules may call and read
    "network_call": body("http.send({}).status == record.x", "`http.send`", "the engine compute"),
    "clock": body("record.x == time.now_ns()", "`time.now_ns`", "`input`"),
    "unknown_values": body("record.x == data.policy.licences.x", "`licences`", "`licenses`"),
    "all_values": body("record.x == data.policy[record.y]", "without naming", "name it"),
    "compiled_read": body("data.admission.compiled.source.findings == record.x", "may not be read", "read `input`"),
    "import_of_values": one(
        FILE,
        topic(requirement(body="record.x == l.most"), imports="import data.policy.licences as l\n"),
        3,
        "`licences`",
        "`licenses`",
    ),
    "input_shadowed_by_import": one(
        FILE, topic(GOOD, imports="import data.policy.licenses as input\n"), 3, "input", "correct the syntax"
    ),
    "input_shadowed_by_rule": rule(f"{GOOD}\n\n_x(input) if input.x == 1\n", 16, "input", "correct the rule"),
    "empty_file": one(FILE, "", 1, "empty", "correct the syntax"),
    "dangling_metadata": rule(f"{GOOD}\n\n# METADATA\n# title: T\n", 16, "annotation", "correct the syntax"),
    # limits
    "limits_missing": one(LIMITS, None, None, "has no limits", "write `limits"),
    "limits_other_name": one(LIMITS, f"{LIMITS_HEAD}limit := {{}}\n", 1, "defines no `limits`", "write `limits"),
    "limits_function": one(LIMITS, f"{LIMITS_HEAD}limits(x) := x\n", 5, "not one object", "write `limits"),
    "limits_public_helper": one(LIMITS, f"{LIMITS_HEAD}limits := {{}}\n\nhelper := 1\n", 7, "is not `limits`", "begin"),
    "limits_default": one(
        LIMITS, f"{LIMITS_HEAD}default limits := {{}}\n\nlimits := input.x\n", 5, "`default limits`", "custom.proof"
    ),
    # risky bodies, one of each room; the kinds of risk are in test_bodies.py
    "risky_requirement": body("not record.revoked", "negates", "custom.proof"),
    "risky_helper": rule(f"{GOOD}\n\n_h(r) := [x | some x in r.l]\n", 16, "in `_h`", "custom.proof"),
    "risky_lib": one(
        LIB,
        "package admission.lib.words\n\nimport future.keywords.not\n\nyoung(x) if x < 5\n",
        5,
        "whose type is not checked",
        "is_number(x)",
    ),
    # values
    "values_file_missing": one(LICENSES, None, None, "is missing", "write it"),
    "values_file_unknown": one(
        "policy/licences.yaml", "a: 1\n", None, "there are no values of this name", "did you mean `licenses.yaml`?"
    ),
    "values_other_ending": one("policy/x.yml", "a: 1\n", None, "would be ignored", "<name>.yaml"),
    "value_wrong_type": one(LICENSES, "licenses: {}\nmost: many\n", 2, "`most`", "correct the value"),
    "value_unknown_key": one(LICENSES, "licenses: {}\nmost: 1\nleast: 2\n", 3, "not a known field", "spelling"),
    "value_missing": one(LICENSES, "licenses: {}\n", 1, "`most` is missing", "write it"),
    "value_twice": one(LICENSES, "most: 1\nlicenses: {}\nmost: 2\n", 3, "twice", "keep one"),
    "value_odd_number": one(LICENSES, "most: 017\nlicenses: {}\n", 1, "interpret differently", "quote it"),
    "value_not_finite": one(LICENSES, "most: .inf\nlicenses: {}\n", 1, "interpret differently", "finite decimal"),
    "values_not_yaml": one(LICENSES, "a: [\n", 2, "not YAML", "syntax"),
    "values_empty": one(LICENSES, "# nothing\n", None, "is empty", "restore it, from version control or a backup"),
    "level_unknown_code": one(
        LEVELS, "levels:\n  source:\n    admited: warn\n", 3, "`admited`", "did you mean `admitted`?"
    ),
    "level_unknown_point": one(LEVELS, "levels:\n  sauce: {}\n", 2, "`sauce`", "`source`"),
    "level_of_a_list": one(LEVELS, "levels:\n  source:\n    records_missing: warn\n", 3, "always denies", "remove"),
    "level_lowered_for_good": level("warn", "from deny without an owner and a last day", "owner: data@example.org"),
    "level_below_the_standing_one": Refused(
        {
            FILE: topic(requirement(more="standing: confirm")),
            LEVELS: "levels:\n  source:\n    admitted: warn\n",
        },
        3,
        "from confirm without an owner and a last day",
        "owner: data@example.org",
        LEVELS,
    ),
    "level_of_a_fixed_code": Refused(
        {
            FILE: topic(requirement(more="fixed: true")),
            LEVELS: f"levels:\n  source:\n    admitted: {LOWERED}\n",
        },
        3,
        "`admitted` cannot be lowered",
        "remove the row",
        LEVELS,
    ),
    "level_lowered_without_owner": level(
        f"{LOWERED.replace('owner', 'author')}", "`levels.source.admitted.owner` is missing", "write"
    ),
    "level_lowered_until_no_day": level(f"{LOWERED.replace('03-31', '02-30')}", "day is out of range", "correct"),
    "fixed_and_standing": metadata(EACH + "  fixed: true\n  standing: warn\n", 14, "contradict", "keep one of them"),
    "standing_deny": metadata(EACH + "  standing: deny\n", 12, "`custom.standing` must be", "confirm or warn"),
    "level_other_word": level("ignore", "'deny', 'confirm' or 'warn'", "correct"),
    "level_misspelled": level("confrim", "'deny', 'confirm' or 'warn'", "did you mean `confirm`? correct"),
    # overrides
    "override_no_pair": Refused({}, None, "not PATH=VALUE", "write it like", "--values", ("licenses",)),
    "override_no_document": Refused({}, None, "no values `x`", "`levels`", "--values", ("x.y=1",)),
    "override_misspelled_document": Refused({}, None, "no values `licences`", "did", "--values", ("licences.most=1",)),
    "override_misspelled_parent": Refused(
        {}, None, "a parent that does not exist", "did you mean `licenses`?", "--values", ("licenses.licences.A=1",)
    ),
    "override_no_parent": Refused(
        {}, None, "a parent that does not exist", "one new key", "--values", ("licenses.licenses.A.B=1",)
    ),
    "override_misspelled_field": Refused(
        {}, None, "`mots` is not a known field", "did you mean `most`?", "--values", ("licenses.mots=1",)
    ),
    "override_no_value": Refused({}, None, "no value after `=`", "write one", "--values", ("licenses.most=",)),
    "override_wrong_type": Refused({}, None, "`most`", "correct the value", "--values", ("licenses.most=many",)),
    # recipe
    "recipe_missing": one(RECIPE, None, None, "cannot read", "check the path"),
    "recipe_unknown_key": one(RECIPE, "description: D\nowner: O\nsigner: S\n", 3, "not a known field", "spelling"),
    "recipe_no_owner": one(RECIPE, "description: D\n", 1, "`owner` is missing", "name the owner"),
    # added rules
    "added_own_package": one(
        HOUSE,
        ADDED_HEAD.replace("house", "other") + requirement("ok", "input.x == 1") + "\n",
        1,
        "its folder requires",
        "added.source.house",
    ),
    "added_set_in_own_form": one(
        HOUSE, f'{ADDED_HEAD}deny contains "x" if input.x == 1\n', 5, "has no METADATA", "title"
    ),
    "added_code_taken": one(
        HOUSE,
        ADDED_HEAD + requirement("ok", "input.x == 1", code="admitted") + "\n",
        11,
        "is already used by `admitted`",
        "a unique code",
    ),
    "after_added_code": Refused(
        {
            FILE: topic(requirement(more="after: [ok]")),
            HOUSE: ADDED_HEAD + requirement("ok", "input.x == 1") + "\n",
        },
        13,
        "`ok`, which is not a code",
        "`admitted`",
    ),
    "added_risky": one(HOUSE, ADDED_HEAD + requirement("ok", "not input.x") + "\n", 12, "negates", "custom.proof"),
    "conftest_warn": one(
        HOUSE,
        "package main\n\nwarn contains 1 if input.x == 1\n\ndeny contains 2 if input.y == 1\n",
        3,
        "`warn` would not be read",
        "policy/levels.yaml",
    ),
    "conftest_boolean": one(
        HOUSE, "package main\n\ndeny if input.x == 1\n", 3, "not a set of messages", "contains message"
    ),
    "conftest_nothing": one(HOUSE, "package main\n\nhelper if input.x == 1\n", 1, "adds no rule", "deny contains"),
    "conftest_other_data": one(
        HOUSE,
        'package main\n\ndeny contains "x" if data.admission.requirements.source.license.x\n',
        3,
        "may not be read by rules",
        "`input`",
    ),
    "conftest_network": one(
        HOUSE, 'package main\n\ndeny contains "x" if http.send({}).x == 1\n', 3, "`http.send`", "the engine compute"
    ),
    "conftest_syntax": one(HOUSE, "package main\n\ndeny contains if {\n", 3, "", "correct the syntax"),
    "conftest_pattern": one(
        HOUSE,
        'package main\n\ndeny contains "x" if regex.match(`^([a$`, input.x)\n',
        3,
        "`^([a$` is not a regular expression",
        "correct the pattern",
    ),
    "helper_pattern": one(
        LIB,
        'package admission.lib.words\n\nimport future.keywords.not\n\nodd(x) if regex.split("(?=a)", x) == ["a"]\n',
        5,
        "`(?=a)` is not a regular expression",
        "look-arounds",
    ),
    "byte_order_mark": one(FILE, b"\xef\xbb\xbf" + HEAD.encode(), 1, "begins with a byte order mark", "without"),
    "conftest_two_codes": one(
        HOUSE,
        "package main\n\n# METADATA\n# title: A\ndeny contains 1 if input.x == 1\n\n"
        "# METADATA\n# title: B\ndeny contains 2 if input.y == 1\n",
        5,
        "METADATA twice",
        "name one of them",
    ),
}


@pytest.mark.full(after=48)
@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused_with_place_and_remedy(case: Refused, tmp_path: Path) -> None:
    found = problems(tmp_path, case.files, case.values)
    place = case.file if case.file == "--values" else str(tmp_path / case.file)
    told = [one for one in found if case.message in one.message and one.where.file == place]
    assert told, found
    assert told[0].where.line == case.line, told[0]
    assert case.remedy in told[0].remedy, told[0]
    assert not (tmp_path / "cache").exists(), "a build that fails writes nothing"


def test_the_base_is_accepted(tmp_path: Path) -> None:
    assert built(write(tmp_path), tmp_path / "cache").catalogue.codes("source") == {"admitted"}


def test_every_problem_is_reported_at_once(tmp_path: Path) -> None:
    """Rules of several files, values and recipe in one go, sorted by file and line."""
    broken = {
        FILE: HEAD + "ok if input.x == 1\n\nother if input.y == 1\n",
        LIMITS: f"{LIMITS_HEAD}limit := nothing(1)\n",
        "policy/licenses.yaml": "licenses: {}\n",
        "bundles/house/recipe.yaml": "owner: O\n",
    }
    places = [(one.where.file, one.where.line or 0) for one in problems(tmp_path, broken)]
    assert places == sorted(places)
    lines = {("source/license.rego", 5), ("source/license.rego", 7), ("limits/source.rego", 5)}
    lines |= {("policy/licenses.yaml", 1), ("house/recipe.yaml", 1)}
    assert lines <= {("/".join(Path(file).parts[-2:]), line) for file, line in places}


@pytest.mark.parametrize("folder", ["rego", "policy", "bundles/house"])
def test_missing_folder(folder: str, tmp_path: Path) -> None:
    sources = write(tmp_path)
    (tmp_path / folder).rename(tmp_path / "elsewhere")
    with pytest.raises(PolicyError) as caught:
        built(sources, tmp_path / "cache")
    assert str(tmp_path / folder) in str(caught.value)
