"""A requirement that is gone, renamed or in a file that is not read is told with its code, never passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.policy_bundle.trees import REQUIREMENTS, RULES, Files, policy, problems, requirement, topic

INVENTORY = "rego/inventory.yaml"
ADDED = "bundles/house/inventory.yaml"
TWO = {
    f"{REQUIREMENTS}/license.rego": topic(requirement()),
    f"{REQUIREMENTS}/purpose.rego": topic(requirement("stated", 'input.bundle.purpose == "train"'), name="purpose"),
    INVENTORY: "# Reviewed\nsource:\n  - admitted\n  - stated\n",
}
DENY = "package main\n\ndeny contains 1 if input.bundle.closed == true\n"
TWICE = DENY + "\ndeny contains 2 if input.bundle.records == 1\n"


def told(folder: Path, changes: Files) -> tuple[str, str, str]:
    """The one problem: its place below the folder, message, remedy."""
    (one,) = problems(folder, changes)
    return str(one.where).removeprefix(f"{folder}/"), one.message, one.remedy


def test_a_complete_inventory_is_built(tmp_path: Path) -> None:
    assert policy(tmp_path, TWO).catalogue.codes("source") == {"admitted", "stated"}


def test_a_removed_requirement_is_named(tmp_path: Path) -> None:
    policy(tmp_path, TWO)
    where, message, remedy = told(tmp_path, {**TWO, f"{REQUIREMENTS}/purpose.rego": None})
    assert where == f"{INVENTORY}:4"
    assert message == "the code `stated` of `source` must exist, but no requirement has it"
    assert remedy == "restore the requirement; to drop it on purpose, remove this line too"


def test_a_renamed_requirement_is_named_twice(tmp_path: Path) -> None:
    renamed = topic(requirement("declared", 'input.bundle.purpose == "train"'), name="purpose")
    found = problems(tmp_path, {**TWO, f"{REQUIREMENTS}/purpose.rego": renamed})
    assert {one.message for one in found} == {
        "the code `stated` of `source` must exist, but no requirement has it",
        "the code `declared` is not in rego/inventory.yaml",
    }
    (new,) = [one for one in found if "declared" in one.message]
    assert new.where.line is not None
    assert new.remedy == "add the line `  - declared` below `source:`, before `  - stated`, in rego/inventory.yaml"


def test_a_misspelled_code_is_answered_with_the_listed_one(tmp_path: Path) -> None:
    renamed = topic(requirement("statd", 'input.bundle.purpose == "train"'), name="purpose")
    found = problems(tmp_path, {**TWO, f"{REQUIREMENTS}/purpose.rego": renamed})
    (new,) = [one for one in found if "`statd`" in one.message]
    assert new.remedy == (
        "did you mean `stated`? correct the code, or add the line `  - statd` below `source:`, before `  - stated`, "
        "in rego/inventory.yaml"
    )


def test_a_moved_requirement_is_still_there(tmp_path: Path) -> None:
    moved = {
        f"{REQUIREMENTS}/purpose.rego": None,
        f"{REQUIREMENTS}/use.rego": topic(requirement("stated", 'input.bundle.purpose == "train"'), name="use"),
    }
    assert "stated" in policy(tmp_path, {**TWO, **moved}).catalogue.codes("source")


def test_a_missing_inventory_is_refused(tmp_path: Path) -> None:
    found = problems(tmp_path, {**TWO, INVENTORY: None})
    assert any(one.where.file.endswith(INVENTORY) and "missing" in one.message for one in found)
    for code in ("admitted", "stated"):
        assert any(one.remedy.startswith("add the lines `source:`") and f"  - {code}`" in one.remedy for one in found)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("source:\n  - stated\n  - admitted\n", 3, "`admitted` is listed after `stated`"),
        ("source:\n  - admitted\n  - admitted\n  - stated\n", 3, "`admitted` is listed after `admitted`"),
        ("source: admitted\n", 1, ""),
        ("- admitted\n", 1, ""),
        ("source:\n  - admitted\n  - stated\nlicense: []\n", 4, "lists no code"),
        ("source:\n  - admitted\n  - stated\nsourec:\n  - other\n", 5, "the code `other` of `sourec` must exist"),
        ("source:\n  - admitted\n  - stated\nsource:\n  - x\n", 4, ""),
    ],
    ids=["unsorted", "twice", "no_list", "no_mapping", "empty", "unknown_point", "doubled_key"],
)
def test_an_invalid_inventory_is_refused(text: str, line: int, words: str, tmp_path: Path) -> None:
    found = problems(tmp_path, {**TWO, INVENTORY: text})
    assert any(
        one.where.file.endswith(INVENTORY) and one.where.line == line and words in one.message and one.remedy
        for one in found
    ), found


def test_requirements_of_every_point_are_listed_as_common(tmp_path: Path) -> None:
    common = requirement("asked", 'input.caller.via == "token"').replace("source", "common")
    files = {
        **TWO,
        "rego/admission/requirements/common/caller.rego": topic(common).replace(
            "requirements.source.license", "requirements.common.caller"
        ),
    }
    where, message, remedy = told(tmp_path, files)
    assert where.startswith("rego/admission/requirements/common/caller.rego:")
    assert message == "the code `asked` is not in rego/inventory.yaml"
    assert remedy == "add the lines `common:` and `  - asked` to rego/inventory.yaml"
    files[INVENTORY] = "common:\n  - asked\nsource:\n  - admitted\n  - stated\n"
    assert "asked" in policy(tmp_path, files).catalogue.codes("source")


def test_added_rules_have_an_inventory_beside_them(tmp_path: Path) -> None:
    files = {**TWO, f"{RULES}/house.rego": DENY, ADDED: "source:\n  - house_deny\n"}
    assert "house_deny" in policy(tmp_path, files).catalogue.codes("source")
    where, message, _ = told(tmp_path, {**files, f"{RULES}/house.rego": None})
    assert (where, message) == (f"{ADDED}:2", "the code `house_deny` of `source` must exist, but no rule has it")


def test_an_inventory_of_nothing_but_comments_lists_no_rule(tmp_path: Path) -> None:
    comments = {ADDED: "# source:\n\n  # - house_deny\n"}
    assert "house_deny" not in policy(tmp_path / "none", {**TWO, **comments}).catalogue.codes("source")
    where, message, remedy = told(tmp_path / "one", {**TWO, **comments, f"{RULES}/house.rego": DENY})
    assert where.startswith(f"{RULES}/house.rego:")
    assert message.endswith(f"/{ADDED}")
    assert remedy.startswith("add the lines `source:` and `  - house_deny` to ")
    (empty,) = problems(tmp_path / "empty", {**TWO, ADDED: ""})
    assert empty.message == "the document is empty"


def test_added_rules_without_an_inventory_are_reported(tmp_path: Path) -> None:
    found = problems(tmp_path, {**TWO, f"{RULES}/house.rego": DENY, ADDED: None})
    assert any(one.where.file.endswith(ADDED) and "missing" in one.message for one in found)
    assert any("`  - house_deny`" in one.remedy for one in found)


def test_a_removed_deny_rule_of_several_with_one_code_is_reported(tmp_path: Path) -> None:
    """All have one code, and each refuses on its own: so their number is listed."""
    files = {
        **TWO,
        f"{RULES}/house.rego": TWICE,
        ADDED: "source:\n  - house_deny (2 rules)\n",
    }
    policy(tmp_path, files)
    found = problems(tmp_path, {**files, f"{RULES}/house.rego": DENY})
    assert any("`house_deny (2 rules)` of `source` must exist" in one.message for one in found)
    assert any("`  - house_deny`" in one.remedy for one in found)


UNREAD = {
    "stop.rego.txt": "would be ignored",
    "stop.rego.bak": "would be ignored",
    "stop.bak": "would be ignored",
    "stop.REG": "would be ignored",
    "stop.REGO": "would be ignored",
    "stop.Rego": "would be ignored",
    "notes.md": "would be ignored",
    ".hidden": "would be ignored",
    ".stop.rego.swp": "this is a temporary file of an editor",
    "stop.rego~": "this is a temporary file of an editor",
    "#stop.rego#": "this is a temporary file of an editor",
    "stop.json": "would be ignored",
    "Makefile": "would be ignored",
}


@pytest.mark.full(after=13)
@pytest.mark.parametrize("name", UNREAD)
@pytest.mark.parametrize("folder", [REQUIREMENTS, RULES, "rego", "rego/admission/lib"])
def test_a_file_that_is_not_read_is_an_error(folder: str, name: str, tmp_path: Path) -> None:
    where, message, remedy = told(tmp_path, {**TWO, f"{folder}/{name}": DENY})
    assert where == f"{folder}/{name}"
    assert UNREAD[name] in message
    assert remedy


@pytest.mark.parametrize(
    "name", ["licenses.yaml.bak", "licenses.yaml~", "more/licenses.yaml", ".levels.yaml.swp", "x.txt"]
)
def test_values_that_are_not_read_are_an_error(name: str, tmp_path: Path) -> None:
    where, message, remedy = told(tmp_path, {**TWO, f"policy/{name}": "a: 1\n"})
    assert where == f"policy/{name.partition('/')[0]}"
    assert "would be ignored" in message or "temporary file of an editor" in message
    assert remedy


@pytest.mark.parametrize("folder", ["rego", REQUIREMENTS, RULES, "policy", "bundles/house"])
def test_a_readme_may_stand_anywhere(folder: str, tmp_path: Path) -> None:
    policy(tmp_path, {**TWO, f"{folder}/README.md": "# Why\n"})


@pytest.mark.parametrize("name", [f"{REQUIREMENTS}/deep/stop.rego", "rego/admission/requirements/stop.rego"])
def test_rules_nested_too_deep_or_not_enough_are_an_error(name: str, tmp_path: Path) -> None:
    where, message, _ = told(tmp_path, {**TWO, name: DENY})
    assert (where, message) == (name, "rules are not read from this folder")


def test_the_inventory_is_one_of_the_sources(tmp_path: Path) -> None:
    """A change of it is never answered from the cache."""
    policy(tmp_path, TWO)
    where, _, _ = told(tmp_path, {**TWO, INVENTORY: f"{TWO[INVENTORY]}  - zones\n"})
    assert where == f"{INVENTORY}:5"
