"""One's own rules in the editor: linted while typing, previewed with tests, cases and the record, then saved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.documents.canonical import digest
from engine.engine import Engine
from engine.settings import Settings
from tests.command import Command, lines
from tests.conftest import BUNDLES
from tests.workbench.conftest import NASTY
from tests.workbench.pages import Page, Visitor, Workbench, workbench
from tests.workbench.test_pages import harmless

FILE = "bundles/my-policy/rules/source/origin.rego"
RULE = "origin_team_known(record) if names.team(record.origin_alias) in data.policy.parameters.teams"
STRICT = RULE.replace(" if ", " if {\n\t") + '\n\trecord.id == "nobody"\n}'

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    folder = tmp_path_factory.mktemp("rules")
    assert Command.of(folder, cache)("policy", "init", folder / "my-policy").code == 0
    return folder / "my-policy"


@pytest.fixture
def rule(own: Path) -> Iterator[Path]:
    """The file of a rule, as it was after each test."""
    file = own / "rules" / "source" / "origin.rego"
    before = file.read_bytes()
    yield file
    file.write_bytes(before)


@pytest.fixture(scope="module")
def bench(own: Path, cache: Path) -> Iterator[Workbench]:
    """A workbench on a record with a source bundle that the rules admit."""
    settings = Settings(state=own.parent / "state", cache=cache, recipe=own)
    with Engine(settings) as engine:
        engine.check("source", {"path": str(own / "cases" / "source_bundles" / "recipes"), "digest": None})
        engine.check("source", {"path": str(BUNDLES / "offline_fixture"), "digest": None})
    with workbench(own.parent, cache, "--policy", own) as running:
        yield running


def edited(visitor: Visitor, text: str, before: bytes, name: str = FILE) -> Page:
    fields = {"file": name, "text": text.replace("\n", "\r\n"), "before": digest(before), "count": "100"}
    return visitor.post("/edit", fields)


def test_a_rule_is_previewed_with_its_tests_cases_and_decisions_then_saved(
    bench: Workbench, visitor: Visitor, own: Path, rule: Path
) -> None:
    assert f"/edit?file={FILE}" in visitor.get("/values").html.values("a", "href")
    before, record = rule.read_text(), len(lines(bench.state))
    page = edited(visitor, before.replace(RULE, STRICT), before.encode())
    assert page.status == 303, page.html.text
    shown = visitor.get(page.headers["location"]).html.text
    for words in (
        "Rules changed: ",
        "problems with this edit",
        "test_known_team",
        "cases/source/recipes.yaml",
        "Newly denied at source: origin_team_unknown, 2 decisions",
    ):
        assert words in shown, shown
    assert rule.read_text() == before  # nothing is written before the preview
    assert visitor.post(page.headers["location"]).headers["location"] == f"/values?saved={FILE}"
    assert rule.read_text() == before.replace(RULE, STRICT)
    assert not list(own.rglob("*.partial"))
    assert len(lines(bench.state)) == record  # as by hand: an activation is recorded, an edit is not
    noted = before.replace("# METADATA", "# seen\n# METADATA")
    page = edited(visitor, noted, rule.read_bytes())
    assert "The tests of your rules and your cases pass." in visitor.get(page.headers["location"]).html.text


def test_problems_shown_while_typing_equal_those_of_lint_with_the_line(
    visitor: Visitor, own: Path, rule: Path, command: Command
) -> None:
    text = rule.read_text()
    wrong = text.replace("names.team(", "names.teem(")
    assert json.loads(visitor.post("/lint", {"file": FILE, "text": text}).body) == {"problems": []}
    found = json.loads(visitor.post("/lint", {"file": FILE, "text": wrong}).body)["problems"]
    assert rule.read_text() == text
    rule.write_text(wrong)
    said = command("policy", "lint", "--policy", own).stdout
    assert found
    for one in found:
        assert one["message"] in said
    assert found[0]["line"] == text.splitlines().index(RULE) + 1
    refused = edited(visitor, wrong, rule.read_bytes())
    assert (refused.status, "Nothing was written." in refused.html.text) == (422, True)
    large = visitor.post("/lint", {"file": FILE, "text": "# " + "x" * (1 << 20)})
    assert (large.status, "larger than" in large.html.text) == (422, True)


def test_two_editors_and_a_full_disk_overwrite_nothing(bench: Workbench, visitor: Visitor, rule: Path) -> None:
    before = rule.read_bytes()
    text = before.decode().replace("# METADATA", "# seen\n# METADATA")
    path, other = edited(visitor, text, before).headers["location"], bench.visitor()
    second = edited(other, text.replace("seen", "seen too"), before).headers["location"]
    with bench.full_disk(len(before) // 2):
        full = visitor.post(path)
    assert (full.status, "was not saved: file too large" in full.html.text) == (422, True)
    assert rule.read_bytes() == before
    assert visitor.post(path).status == 303
    late = other.post(second)
    assert (late.status, "has changed since you opened it; nothing was saved" in late.html.text) == (409, True)
    assert rule.read_text() == text


@pytest.mark.threat("injection")
def test_hostile_rules_and_foreign_forms_do_nothing(bench: Workbench, visitor: Visitor, rule: Path) -> None:
    hostile = rule.read_text() + f"\n# </textarea>{NASTY!r}\nx <script>alert(1)</script>\n"
    pages = [edited(visitor, hostile, rule.read_bytes())]
    rule.write_text(hostile)
    pages += [visitor.get(f"/edit?file={FILE}"), visitor.get("/policy")]
    for page in pages:
        harmless(page.html)
    fields = {"file": FILE, "text": "package x"}
    for path in ("/lint", "/edit"):
        assert visitor.post(path, fields, Origin="http://evil.example").status == 403
        assert visitor.post(path, fields | {"form_key": bench.visitor().key}).status == 403


@pytest.mark.parametrize(
    "name",
    [
        *("rego/admission/requirements/source/alias.rego", "bundles/my-policy/rules/../recipe.yaml"),
        *("bundles/my-policy/rules/source/new.rego", "bundles/my-policy/recipe.yaml", "bundles/my-policy/cases/x.yaml"),
    ],
)
def test_no_other_file_is_shown_or_written(visitor: Visitor, name: str) -> None:
    assert visitor.get(f"/edit?file={name}").status == 422
    assert visitor.post("/edit", {"file": name, "text": "package x", "before": "none"}).status == 422


def test_a_link_among_the_rules_is_not_replaced(visitor: Visitor, rule: Path, tmp_path: Path) -> None:
    target = tmp_path / "origin.rego"
    before = rule.read_bytes()
    rule.rename(target)
    rule.symlink_to(target)
    try:
        page = edited(visitor, before.decode(), before)
        assert page.status in {409, 422}
        assert target.read_bytes() == before
    finally:
        rule.unlink()
