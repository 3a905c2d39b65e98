"""What generated policies decide, on a real OPA: whatever is missing, undefined or odd can only refuse."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from engine.binaries import find_binary
from engine.opa.command import OpaCommand
from engine.policy_bundle.archives import GENERATED
from tests.expect import there
from tests.policy_bundle.trees import LIMITS, REQUIREMENTS, RULES, Served, codes, requirement, served, source, topic

ODD: list[Any] = [None, True, False, 0, "", "no", [], {}, {"a": 1}, [[]], 1.5]

TREE = {
    f"{REQUIREMENTS}/license.rego": topic(
        requirement("stated(record)", "is_string(record.license)", code="license_missing"),
        requirement(
            "admitted(record)",
            "words.admitted(record.license)",
            code="license_refused",
            more="after: [license_missing, id_unique]\nstanding: confirm",
        ),
        imports="import data.admission.lib.words\n",
    ),
    f"{REQUIREMENTS}/record.rego": topic(
        requirement("id_unique(record)", "_once(record) == true"),
        requirement("copies_few(record)", "record.copies in {1, 2}", more="after: [license_refused]"),
        "_once(record) if record.copies == 1\n\n_once(record) if record.alone == true",
        name="record",
    ),
    f"{REQUIREMENTS}/purpose.rego": topic(
        requirement(
            "purpose_known",
            'input.bundle.purpose in {"train", "eval"}',
            more="after: [records_missing]\nstanding: warn",
        ),
        requirement("notes_short(note)", "note.short == true", each="bundle.notes", more="empty: allowed"),
        name="purpose",
    ),
    "rego/admission/lib/words.rego": "package admission.lib.words\n\nimport future.keywords.not\n\n"
    'admitted(key) if data.policy.licenses.licenses[key] == "admit"\n',
    LIMITS: "package admission.limits.source\n\nimport future.keywords.not\n\n"
    'limits := {"purpose": input.bundle.purpose, "rooms": input.bundle.rooms}\n',
    "policy/levels.yaml": "levels:\n  source: {license_refused: confirm, purpose_known: warn, id_unique: deny}\n",
}
POLICY: dict[str, Any] = {
    "licenses": {"licenses": {"MIT": "admit", "GPL-2.0-only": "refuse"}, "most": 5},
    "levels": {"levels": {"source": {"license_refused": "confirm", "purpose_known": "warn"}}},
}


def record(name: Any = "one", **facts: Any) -> dict[str, Any]:
    return {"id": name, "license": "MIT", "copies": 1, **facts}


def request(*records: Any, **facts: Any) -> dict[str, Any]:
    return source(list(records) or [record()], **{"notes": [], "rooms": 2, **facts})


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return served(tmp_path_factory.mktemp("policy"), TREE)


def test_allow_has_no_findings_and_all_limits(policy: Served) -> None:
    want = {"outcome": "allow", "findings": [], "limits": {"purpose": "train", "rooms": 2}}
    assert policy.ask(request()) == want


def test_a_missing_empty_or_invalid_list_denies(policy: Served) -> None:
    facts = request()
    del facts["bundle"]["records"]
    lists = [*ODD, {"0": record()}]
    answers = policy.ask_all(
        [facts, *(request() | {"bundle": {**request()["bundle"], "records": odd}} for odd in lists)]
    )
    for odd, answer in zip(["absent", *lists], answers, strict=True):
        assert answer["outcome"] == "deny", odd
        if odd != [[]]:
            assert ("records_missing", None) in codes(answer), odd
        assert "limits" not in answer


def test_an_empty_list_is_enough_only_where_allowed(policy: Served) -> None:
    answers = policy.ask_all([request(notes=[]), *(request(notes=odd) for odd in ODD if not isinstance(odd, list))])
    assert answers[0]["outcome"] == "allow"
    assert all(("notes_missing", None) in codes(one) for one in answers[1:])


def test_a_value_that_is_not_exactly_true_is_not_proven(policy: Served) -> None:
    notes = [{"short": odd} for odd in ODD if odd is not True]
    answer = policy.ask(request(notes=[*notes, {}, {"short": True}]))
    assert set(codes(answer)) == {("notes_short", f"notes/#{index}") for index in range(len(notes) + 1)}


def test_a_function_of_an_undefined_value_is_not_proven(policy: Served) -> None:
    answer = policy.ask(request({"id": "one", "copies": 1}))
    assert codes(answer) == [("license_missing", "records/one")]
    without_values = policy.ask_with([request()], {"levels": POLICY["levels"]})
    assert [codes(one) for one in without_values] == [[("license_refused", "records/one")]]
    assert without_values[0]["outcome"] == "confirm"


def test_every_item_is_checked_and_named(policy: Served) -> None:
    items = [record("one", license="GPL-2.0-only"), {"license": "MIT"}, record(7, license=1), "text", None, [record()]]
    answer = policy.ask(request(*items))
    assert [subject for code, subject in codes(answer) if code == "id_unique"] == [
        f"records/#{index}" for index in (1, 3, 4, 5)
    ]
    assert ("license_refused", "records/one") in codes(answer)
    assert ("license_missing", "records/#2") in codes(answer)
    assert answer["outcome"] == "deny"


# covers: H23.1
@pytest.mark.parametrize("point", ["license", "", None, 0, "Source", ["source"]])
def test_another_point_denies(point: Any, policy: Served) -> None:
    assert policy.ask({**request(), "point": point}) == {"outcome": "deny", "findings": []}


@pytest.mark.parametrize("document", [{}, [], "source", 0])
def test_another_document_denies(document: Any, policy: Served) -> None:
    assert policy.ask(document) == {"outcome": "deny", "findings": []}


# covers: H23.2
def test_levels_fold_to_the_strictest(policy: Served) -> None:
    refused, odd = record(license="GPL-2.0-only"), record("two", copies=2)
    answers = policy.ask_all(
        [request(purpose="x"), request(refused), request(refused, purpose="x"), request(refused, odd)]
    )
    assert [one["outcome"] for one in answers] == ["allow", "confirm", "confirm", "deny"]
    assert answers[0]["limits"]["purpose"] == "x"
    assert [one["level"] for one in answers[2]["findings"]] == ["confirm", "warn"]
    assert all("limits" not in one for one in answers[1:])


@pytest.mark.parametrize(
    "levels",
    [
        None,
        {},
        {"levels": None},
        {"levels": {"source": {}}},
        {"levels": {"source": {"license_refused": "allow", "purpose_known": None}}},
        {"levels": {"source": {"license_refused": ["warn"], "purpose_known": True}}},
        {"levels": {"source": "warn"}},
        {"levels": {"license": {"license_refused": "warn", "purpose_known": "warn"}}},
    ],
)
def test_a_missing_or_invalid_level_denies(levels: Any, policy: Served) -> None:
    documents = [request(record(license="GPL-2.0-only")), request(purpose="x")]
    for values in ({**POLICY, "levels": levels}, {"licenses": POLICY["licenses"]}):
        assert [one["outcome"] for one in policy.ask_with(documents, values)] == ["deny", "deny"]


def test_missing_limits_deny_an_allow_or_confirm(policy: Served) -> None:
    facts = request()
    del facts["bundle"]["rooms"]
    confirm = request(record(license="GPL-2.0-only"))
    del confirm["bundle"]["rooms"]
    deny = request(record(copies=2))
    del deny["bundle"]["rooms"]
    answers = policy.ask_all([facts, confirm, deny])
    assert [one["outcome"] for one in answers] == ["deny", "deny", "deny"]
    assert codes(answers[0]) == [("limits_missing", None)]
    assert ("limits_missing", None) in codes(answers[1])
    assert codes(answers[2]) == [("id_unique", "records/one")]


def test_after_hides_only_findings_of_the_same_or_the_whole_subject(policy: Served) -> None:
    answer = policy.ask(request({"id": "one", "copies": 1}, record("two", license="GPL-2.0-only")))
    assert codes(answer) == [("license_missing", "records/one"), ("license_refused", "records/two")]
    whole = policy.ask(request() | {"bundle": {"purpose": "x", "records": [], "notes": [], "rooms": 1}})
    assert codes(whole) == [("records_missing", None)]
    assert whole["outcome"] == "deny"


def test_after_is_transitive(policy: Served) -> None:
    """`copies_few` is after `license_refused`, which holds here, and that is after `id_unique`."""
    answer = policy.ask(request(record(copies=3)))
    assert codes(answer) == [("id_unique", "records/one")]
    alone = policy.ask(request(record(copies=3, alone=True)))
    assert codes(alone) == [("copies_few", "records/one")]


def test_after_never_hides_a_stricter_finding(policy: Served) -> None:
    """The trap: a deny hidden behind a confirm or warn would be shown as less than it is."""
    documents = [request({"id": "one", "copies": 1})]
    strict = {"license_missing": "warn", "license_refused": "deny"}
    for first, shown in (("warn", 2), ("confirm", 2), ("deny", 1)):
        levels = {"levels": {"source": {**strict, "license_missing": first}}}
        (answer,) = policy.ask_with(documents, {**POLICY, "levels": levels})
        assert answer["outcome"] == "deny"
        assert len(answer["findings"]) == shown
        assert "deny" in {one["level"] for one in answer["findings"]}


def test_the_outcome_is_the_strictest_level_of_its_findings(policy: Served) -> None:
    words = ("deny", "confirm", "warn")
    documents = [
        request({"id": "one", "copies": copies}, purpose=purpose) for copies in (1, 2) for purpose in ("x", "eval")
    ]
    for missing in words:
        for refused in words:
            for unique in words:
                levels = {
                    "license_missing": missing,
                    "license_refused": refused,
                    "id_unique": unique,
                    "purpose_known": "warn",
                }
                for answer in policy.ask_with(documents, {**POLICY, "levels": {"levels": {"source": levels}}}):
                    found = {one["level"] for one in answer["findings"]}
                    strictest = "deny" if "deny" in found else "confirm" if "confirm" in found else "allow"
                    assert answer["outcome"] == strictest, (levels, answer)


def test_a_batch_answers_each_item_as_alone(policy: Served) -> None:
    documents: list[Any] = [request(), None, request(record(copies=2)), {}, "x", request(purpose="x"), [], 0]
    documents += [request(record(copies=odd), notes=odd) for odd in ODD]
    together = policy.ask_all(documents)
    assert len(together) == len(documents)
    assert together == [policy.ask(one) for one in documents]


REMOVED = [
    "requirements/source/license.rego",
    "requirements/source",
    "compiled/source.rego",
    "limits/source.rego",
    "lib/words.rego",
]


@pytest.mark.parametrize("removed", REMOVED)
def test_without_a_file_of_rules_nothing_is_allowed(removed: str, policy: Served, tmp_path: Path) -> None:
    """OPA refuses what calls a function that is gone; whatever it still serves denies."""
    folder = tmp_path / "served"
    shutil.copytree(policy.folder, folder)
    path = folder / "admission" / removed
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    opa = OpaCommand(find_binary().path)
    loads = opa.run("check", "--bundle", str(folder)).code == 0
    assert loads == (removed not in {"compiled/source.rego", "lib/words.rego"})
    if loads:
        documents = [request(), request(purpose="x"), request(record(license="GPL-2.0-only"))]
        answers = Served(policy.bundle, folder).ask_all(documents)
        assert [one["outcome"] for one in answers] == ["deny"] * 3


def test_generated_text_is_formatted(policy: Served, tmp_path: Path) -> None:
    head = "package a\n\nimport data.admission.lib.words\nimport future.keywords.not\n\n"
    files: list[Path] = []
    for path in sorted((policy.folder / "admission").rglob("*.rego")):
        text = path.read_text(encoding="utf-8")
        _, mark, generated = text.partition(GENERATED)
        if mark or "compiled" in path.parts or path.name == "main.rego":
            files.append(tmp_path / f"{len(files)}.rego")
            files[-1].write_text(f"{head}{generated.lstrip()}" if mark else text, encoding="utf-8")
    finished = OpaCommand(find_binary().path).unformatted(files)
    assert (finished.code, finished.stdout) == (0, b"")


def test_the_import_is_guarded_by_syntax(policy: Served, tmp_path: Path) -> None:
    """Without the import there is a parse error, not a `not` that never holds."""
    opa = OpaCommand(find_binary().path)
    for name in ("compiled/source.rego", "requirements/source/license.rego", "requirements/source/purpose.rego"):
        text = (policy.folder / "admission" / name).read_text(encoding="utf-8")
        path = tmp_path / "x.rego"
        path.write_text(text, encoding="utf-8")
        assert opa.parse(path).code == 0
        path.write_text(text.replace("import future.keywords.not\n", ""), encoding="utf-8")
        assert opa.parse(path).code != 0


def test_served_rules_keep_their_lines_and_lose_their_comments(policy: Served) -> None:
    text = (policy.folder / "admission/requirements/source/license.rego").read_text(encoding="utf-8")
    own, _, generated = text.partition(GENERATED)
    author = str(TREE[f"{REQUIREMENTS}/license.rego"]).splitlines()
    assert "#" not in own + generated
    for number, line in enumerate(own.splitlines()[: len(author)]):
        assert line == ("" if author[number].startswith("#") else author[number])


def test_the_catalogue_lists_requirements_and_their_words(policy: Served) -> None:
    catalogue = policy.bundle.catalogue
    one = there(catalogue.requirement("source", "license_refused"))
    assert (one.rule, one.each, one.after, one.topic) == (
        "admitted",
        "bundle.records",
        ("license_missing", "id_unique"),
        "license",
    )
    assert catalogue.codes("source", "license") == {"license_missing", "license_refused"}
    assert catalogue.requirement("source", "records_missing") is None
    for code in ("records_missing", "notes_missing", "limits_missing", "id_unique"):
        words = there(catalogue.words("source", code))
        assert words.title
        assert words.remedy
    assert catalogue.words("source", "other") is None
    assert catalogue.words("other", "id_unique") is None


def test_generated_module(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """What `engine policy show --format rego` shows, with an added rule of each form."""
    own = requirement("house_rule(record)", "record.ours == true\nsome tag in record.tags\ntag in {`a`, `b`}")
    tree = {
        **TREE,
        f"{RULES}/own.rego": f"package admission.added.source.own\n\nimport future.keywords.not\n\n{own}\n",
        f"{RULES}/house.rego": "package main\n\ndeny[msg] { input.bundle.purpose == `eval`; msg := `no` }\n",
    }
    assert served(tmp_path, tree).bundle.module("source") == snapshot
