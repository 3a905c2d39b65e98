"""Rules that an organization adds: both forms are read, and whatever they say only narrows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.expect import there
from tests.policy_bundle.trees import RULES, Served, codes, requirement, served, source

HEAD = "package admission.added.source.own\n\nimport future.keywords.not\n\n"
CONFTEST = """package main

import data.admission.lib.words

# METADATA
# title: Nothing from the old archive
# custom:
#   code: old_archive
#   remedy: Take the new one
# labels:
#   control: C-7
deny contains message if {
	some record in input.bundle.records
	words.old(record.origin) # said by its name
	message := sprintf("%s is old", [record.id])
}

deny contains {"msg": "closed", "details": {"x": 1}} if input.bundle.closed == true

deny contains 7 if input.bundle.seven == true

# METADATA
# custom:
#   standing: warn
deny_silent contains "no" if _quiet

_quiet if input.bundle.quiet == true
"""
GATEKEEPER = """package k8srequired

violation[{"msg": msg, "details": {"missing": missing}}] {
  provided := {label | input.bundle.labels[label]}
  required := {"team"}
  missing := required - provided
  count(missing) > 0
  msg := sprintf("labels are missing: %v", [missing])
}

# METADATA
# custom:
#   standing: confirm
deny[msg] { input.bundle.long; msg := concat("", [x | x := "y"; _ := numbers.range(1, 900)[_]]) }
"""
TREE = {
    "rego/admission/lib/words.rego": "package admission.lib.words\n\nimport future.keywords.not\n\n"
    'old(origin) if startswith(origin, "old")\n',
    f"{RULES}/own.rego": HEAD + requirement("ours(record)", "record.ours == true", more="after: [admitted]") + "\n",
    f"{RULES}/archive.rego": CONFTEST,
    f"{RULES}/labels.rego": GATEKEEPER,
    "bundles/house/inventory.yaml": "source:\n  - archive_deny_silent\n  - labels_deny\n  - labels_violation\n"
    "  - old_archive (3 rules)\n  - ours\n",
    "policy/levels.yaml": "levels:\n  source:\n    archive_deny_silent: warn\n    labels_deny: confirm\n",
}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return served(tmp_path_factory.mktemp("added"), TREE)


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return served(tmp_path_factory.mktemp("base"))


def request(**facts: Any) -> dict[str, Any]:
    records = [{"id": "one", "license": "MIT", "ours": True, "origin": "new"}]
    return source(**{"records": records, "labels": {"team": "a"}, **facts})


def test_nothing_added_applies(policy: Served) -> None:
    assert policy.ask(request()) == {"outcome": "allow", "findings": [], "limits": {"purpose": "train"}}


def test_a_requirement_of_our_form(policy: Served) -> None:
    answer = policy.ask(request(records=[{"id": "one", "license": "MIT"}, {"id": "two"}]))
    assert codes(answer) == [("admitted", "records/two"), ("ours", "records/one")]
    one = there(policy.bundle.catalogue.requirement("source", "ours"))
    assert one.added
    assert one.file == f"{RULES}/own.rego"


def test_messages_of_conftest_and_gatekeeper(policy: Served) -> None:
    old = [{"id": "one", "license": "MIT", "ours": True, "origin": "old"}]
    answer = policy.ask(request(records=old, closed=True, seven=True, quiet=True, labels={}))
    assert answer["outcome"] == "deny"
    found = {(one["code"], one["level"], one.get("requirement")) for one in answer["findings"]}
    assert found == {
        ("old_archive", "deny", "one is old"),
        ("old_archive", "deny", "closed"),
        ("old_archive", "deny", None),
        ("archive_deny_silent", "warn", "no"),
        ("labels_violation", "deny", 'labels are missing: {"team"}'),
    }


def test_levels_and_length_of_messages(policy: Served) -> None:
    (found,) = policy.ask(request(long=True))["findings"]
    assert (found["code"], found["level"], len(found["requirement"])) == ("labels_deny", "confirm", 500)


def test_titles_and_remedies_come_from_metadata_or_name_the_owner(policy: Served) -> None:
    one = there(policy.bundle.catalogue.requirement("source", "old_archive"))
    assert (one.title, one.remedy, one.labels) == (
        "Nothing from the old archive",
        "Take the new one",
        {"control": "C-7"},
    )
    assert one.line == 12
    other = there(policy.bundle.catalogue.requirement("source", "labels_violation"))
    assert "compliance@example.org" in other.remedy
    assert other.title


def test_lines_of_the_current_dialect_stay(policy: Served) -> None:
    text = (policy.folder / "admission/added/source/archive.rego").read_text(encoding="utf-8")
    assert text.splitlines()[11].startswith("deny contains message if {")
    assert text.startswith("package admission.added.source.archive\n")
    assert "said by its name" not in text


def test_added_rules_only_narrow(policy: Served, without: Served) -> None:
    """Whatever the input: never more than without them, never with fewer findings of our own."""
    rank = {"allow": 0, "confirm": 1, "deny": 2}
    odd: list[Any] = [None, True, 0, "", "MIT", [], {}, [{"id": "one", "license": "MIT"}], {"team": 1}]
    documents = [request(), source(), {}, {"point": "source"}]
    for name in ("records", "purpose", "labels", "closed", "long"):
        documents += [request(**{name: value}) for value in odd]
    narrowed = 0
    for own, wider in zip(policy.ask_all(documents), without.ask_all(documents), strict=True):
        assert rank[own["outcome"]] >= rank[wider["outcome"]]
        assert {found for found in codes(wider) if found[0] != "limits_missing"} <= set(codes(own))
        narrowed += own["outcome"] != wider["outcome"]
    assert narrowed


@pytest.mark.parametrize(
    "package",
    [
        "admission.requirements.source.license",
        "admission.compiled.source",
        "admission.limits.source",
        "admission.lib.words",
        "admission",
        "policy",
        "system.authz",
    ],
)
def test_no_package_of_ours_can_be_joined(package: str, tmp_path: Path) -> None:
    """Whatever package such a file names, it is moved into its own."""
    rule = "deny contains limits if {\n\tinput.never == 1\n\tadmitted(1)\n}"
    text = f"package {package}\n\n{rule}\n\nadmitted(_) := true\n\nlimits := {{}}\n"
    policy = served(tmp_path, {f"{RULES}/house.rego": text})
    assert not (policy.folder / "system").exists()
    assert policy.ask(source([{"id": "one", "license": "GPL-2.0-only"}]))["outcome"] == "deny"
    own = (policy.folder / "admission/added/source/house.rego").read_text(encoding="utf-8")
    assert own.startswith("package admission.added.source.house\n")


def test_tests_of_added_rules_are_not_served(tmp_path: Path) -> None:
    test = "package admission.added.source.own_test\n\ntest_nothing if true\n"
    policy = served(tmp_path, {f"{RULES}/own.rego": TREE[f"{RULES}/own.rego"], f"{RULES}/own_test.rego": test})
    assert not list(policy.folder.rglob("*_test.rego"))
