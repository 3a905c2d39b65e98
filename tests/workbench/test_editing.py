"""Edits of values: previewed before anything is written, saved as they were typed, and never over those of others."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from re import DOTALL, search

import pytest

from engine.documents.canonical import digest
from engine.engine import Engine
from engine.record.layout import DECISIONS
from engine.settings import Settings
from tests.api.serving import ALLOWED, serving
from tests.command import Command
from tests.conftest import ROOT
from tests.workbench.conftest import copied
from tests.workbench.pages import Page, Visitor, Workbench, workbench

FILE = "policy/licenses.yaml"
ADMITTED = "  MIT: {category: permissive, decision: admit}"
REFUSED = "  MIT: {category: permissive, decision: refuse}"


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("values"))


@pytest.fixture
def values(policy: Path) -> Iterator[Path]:
    """The file of licenses, as it was after each test."""
    file = policy / "licenses.yaml"
    before = file.read_bytes()
    yield file
    file.unlink(missing_ok=True)
    file.write_bytes(before)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, cache: Path, policy: Path) -> Iterator[Workbench]:
    """A workbench on a record with three allows at point `license`."""
    folder = tmp_path_factory.mktemp("editing")
    with Engine(Settings(state=folder / "state", cache=cache)) as engine:
        for _ in range(3):
            engine.decide("license", ALLOWED)
    with workbench(folder, cache, "--policy", policy) as running:
        yield running


def edited(visitor: Visitor, text: str, before: bytes, **more: str) -> Page:
    """Send a text to be previewed, as a browser does: with two characters for each newline."""
    fields = {"file": FILE, "text": text.replace("\n", "\r\n"), "before": digest(before), "count": "100"}
    return visitor.post("/edit", fields | more)


def previewed(visitor: Visitor, values: Path) -> tuple[str, str]:
    """The path of the preview of a refused license, and the text of the edit."""
    before = values.read_bytes()
    text = before.decode().replace(ADMITTED, REFUSED)
    page = edited(visitor, text, before)
    assert page.status == 303, page.html.text
    return page.headers["location"], text


def test_an_edit_is_previewed_then_saved_and_changes_its_line_alone(
    bench: Workbench, visitor: Visitor, values: Path
) -> None:
    before, record = values.read_text(), (bench.state / DECISIONS).read_bytes()
    path, text = previewed(visitor, values)
    shown = visitor.get(path)
    for words in (
        '"admit" becomes "refuse"',
        "3 recorded decisions",
        "Outcomes or limits change.",
        "license: 3 newly denied",
        "Newly denied at license: license_incompatible, 3 decisions",
    ):
        assert words in shown.html.text, shown.html.text
    assert len([link for link in shown.html.values("a", "href") if link.startswith("/decisions/")]) == 6
    assert values.read_text() == before
    assert visitor.post(path).headers["location"] == f"/values?saved={FILE}"
    assert values.read_text() == text
    changed = [one for one in difflib.ndiff(before.splitlines(), text.splitlines()) if one[:1] in "+-"]
    assert changed == [f"- {ADMITTED}", f"+ {REFUSED}"]
    assert "Running engines decide by it after" in visitor.get(f"/values?saved={FILE}").html.text
    assert visitor.post(path).status == 404  # saved once
    assert (bench.state / DECISIONS).read_bytes() == record
    assert [one.name for one in values.parent.parent.iterdir()] == ["policy"]


def test_an_edit_that_was_previewed_can_be_changed_further(visitor: Visitor, values: Path) -> None:
    path, _ = previewed(visitor, values)
    (link,) = [one for one in visitor.get(path).html.values("a", "href") if "draft=" in one]
    page = visitor.get(link)
    assert REFUSED in page.body
    assert page.html.field("before") == digest(values.read_bytes())
    assert visitor.get("/edit?draft=unknown").status == 404


def test_an_edit_is_not_blamed_for_what_the_folder_decides_otherwise_already(visitor: Visitor, values: Path) -> None:
    saved = values.read_text().replace(ADMITTED, REFUSED)
    values.write_text(saved)
    page = edited(visitor, f"{saved}# seen\n", saved.encode())
    shown = visitor.get(page.headers["location"]).html.text
    assert "No outcome and no limits change." in shown, shown
    assert "Apart from this edit, the folder as saved already decides 3 of them differently from the record." in shown
    page = edited(visitor, values.read_text().replace(REFUSED, ADMITTED), saved.encode())
    assert "license: 3 newly allowed" in visitor.get(page.headers["location"]).html.text


@pytest.mark.parametrize(("limit", "words"), [(100, "No outcome and no limits change."), (0, "3 newly denied")])
def test_a_new_budget_counts_as_unused_in_a_preview(visitor: Visitor, policy: Path, limit: int, words: str) -> None:
    file = policy / "budgets.yaml"
    before = file.read_text()
    row = "  license: {principal: unlimited"
    text = before.replace(row, row.replace("unlimited", f"{{limit: {limit}, window_seconds: 3600}}"))
    page = edited(visitor, text, before.encode(), file="policy/budgets.yaml")
    shown = visitor.get(page.headers["location"]).html.text
    assert words in shown, shown
    assert "budget_unknown" not in shown
    assert "license: the budget principal was not counted then, so it is taken as unused (3)" in shown


def test_the_editor_shows_a_file_unchanged(visitor: Visitor, values: Path) -> None:
    """A browser drops the newline after the tag; all else is the text."""
    page = visitor.get(f"/edit?file={FILE}")
    area = search(r"<textarea id=\"text\"[^>]*>\n(.*?)</textarea>", page.body, DOTALL)
    assert area is not None
    assert unescape(area[1]).encode() == values.read_bytes()
    assert page.html.field("before") == digest(values.read_bytes())


def test_problems_shown_while_typing_equal_those_of_lint(visitor: Visitor, values: Path, command: Command) -> None:
    text = values.read_text()
    wrong = text.replace(ADMITTED, ADMITTED.replace("admit", "perhaps"))
    assert json.loads(visitor.post("/lint", {"file": FILE, "text": text}).body) == {"problems": []}
    (one,) = json.loads(visitor.post("/lint", {"file": FILE, "text": wrong}).body)["problems"]
    assert values.read_text() == text
    values.write_text(wrong)
    said = command("policy", "lint", "--policy", values.parent).stdout
    assert f"{one['message']}\n  {one['remedy']}" in said
    assert one["line"] == text.splitlines().index(ADMITTED) + 1


def test_rows_without_effect_are_reported_while_typing_and_can_be_previewed(visitor: Visitor, policy: Path) -> None:
    file = policy / "levels.yaml"
    row = '{level: warn, owner: data@example.org, reason: moved, until: "2025-03-31"}'
    kept = "  source: {license_review_required: confirm"
    text = file.read_text().replace(kept, f"{kept}, retention_unknown: {row}")
    (one,) = json.loads(visitor.post("/lint", {"file": "policy/levels.yaml", "text": text}).body)["problems"]
    assert "denies again" in one["message"]
    again = {"file": "policy/levels.yaml"}
    assert edited(visitor, text, file.read_bytes(), **again).status == 303


def test_an_edit_that_lint_refuses_is_not_previewed(visitor: Visitor, values: Path) -> None:
    before = values.read_bytes()
    page = edited(visitor, "licenses: [", before)
    assert page.status == 422
    assert "Nothing was written." in page.html.text
    assert "licenses: [" in page.body  # what was typed is still there
    assert values.read_bytes() == before


def test_a_concurrent_change_by_another_program_is_not_overwritten(visitor: Visitor, values: Path) -> None:
    path, _ = previewed(visitor, values)
    values.write_bytes(by_hand := values.read_bytes() + b"# by hand\n")
    late = visitor.post(path)
    assert late.status == 409
    assert "has changed since you opened it; nothing was saved" in late.html.text
    assert late.body.count(REFUSED) == 2  # among the lines that differ, and in the text, which is not lost
    assert values.read_bytes() == by_hand


@pytest.mark.full
def test_of_two_concurrent_editors_the_first_one_saves(bench: Workbench, visitor: Visitor, values: Path) -> None:
    path, text = previewed(visitor, values)
    other = bench.visitor()
    second, _ = previewed(other, values)
    assert visitor.post(path).status == 303
    late = other.post(second)
    assert late.status == 409
    assert values.read_text() == text
    third, _ = previewed(other, values)
    values.unlink()
    assert other.post(third).status == 422
    assert not values.exists()


def test_a_full_disk_leaves_the_old_file(bench: Workbench, visitor: Visitor, values: Path) -> None:
    before = values.read_bytes()
    path, text = previewed(visitor, values)
    with bench.full_disk(len(before) // 2):
        full = visitor.post(path)
    assert full.status == 422
    assert "was not saved: file too large" in full.html.text
    assert values.read_bytes() == before
    assert [one.name for one in values.parent.parent.iterdir()] == ["policy"]
    assert visitor.post(path).status == 303  # once there is room
    assert values.read_text() == text


@pytest.mark.full
def test_the_mode_of_a_file_stays(visitor: Visitor, values: Path) -> None:
    values.chmod(0o640)
    path, _ = previewed(visitor, values)
    assert visitor.post(path).status == 303
    assert values.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "content", [b"a: 1\r\nb: 2\r\n", b"\xef\xbb\xbfa: 1\n", b"a: \xff\n"], ids=["crlf", "bom", "latin"]
)
def test_a_file_that_a_form_would_change_is_read_only(visitor: Visitor, values: Path, content: bytes) -> None:
    values.write_bytes(content)
    page = visitor.get(f"/edit?file={FILE}")
    assert (page.status, "readonly" in page.body) == (200, True)
    assert edited(visitor, "a: 1\n", content).status == 422
    assert values.read_bytes() == content


def test_a_link_is_not_replaced(visitor: Visitor, values: Path, tmp_path: Path) -> None:
    target = tmp_path / "licenses.yaml"
    values.rename(target)
    values.symlink_to(target)
    before = target.read_bytes()
    page = edited(visitor, before.decode().replace(ADMITTED, REFUSED), before)
    assert page.status == 422
    assert "it is a link" in page.html.text
    assert values.is_symlink()


@pytest.mark.parametrize(
    "name", ["policy/../../etc/passwd", "/etc/passwd", "rego/inventory.yaml", "policy/new.yaml", ""]
)
def test_no_other_file_is_shown_or_written(visitor: Visitor, name: str) -> None:
    assert visitor.get(f"/edit?file={name}").status == 422
    assert visitor.post("/edit", {"file": name, "text": "a: 1", "before": "none"}).status == 422
    assert visitor.post("/lint", {"file": name, "text": "a: 1"}).status == 422


def test_an_invalid_policy_can_be_repaired(visitor: Visitor, values: Path) -> None:
    good = values.read_text()
    values.write_text(good.replace(ADMITTED, ADMITTED.replace("admit", "perhaps")))
    assert visitor.get("/policy").status == 409
    page = edited(visitor, good, values.read_bytes())
    assert "this edit solves them" in visitor.get(page.headers["location"]).html.text
    assert visitor.post(page.headers["location"]).status == 303
    assert visitor.get("/policy").status == 200


def test_a_broken_record_blocks_a_preview_until_overridden(bench: Workbench, visitor: Visitor, values: Path) -> None:
    record, before = bench.state / DECISIONS, values.read_bytes()
    text = before.decode().replace(ADMITTED, REFUSED)
    whole = record.read_bytes()
    record.write_bytes(whole.replace(b'"outcome":"allow"', b'"outcome":"deny"', 1))
    try:
        stopped = edited(visitor, text, before)
        assert stopped.status == 409
        assert "The record does not verify" in stopped.html.text
        assert f"{DECISIONS}:" in stopped.html.text
        assert REFUSED in stopped.body
        assert edited(visitor, text, before, broken="yes").status == 303
    finally:
        record.write_bytes(whole)


@pytest.mark.full
def test_an_own_policy_folder_overlays_the_shipped_values(command: Command, tmp_path: Path, cache: Path) -> None:
    own = tmp_path / "my-policy"
    assert command("policy", "init", own).code == 0
    name = "bundles/my-policy/values/networks.yaml"
    with workbench(tmp_path, cache, "--policy", own) as running:
        visitor = running.visitor()
        assert "it belongs" not in visitor.get(f"/edit?file={name}").html.text
        assert "your policy folder is laid over it" in visitor.get(f"/edit?file={FILE}").html.text
        text = "hosts: [data.example.com]\n"
        page = visitor.post("/edit", {"file": name, "text": text, "before": "none", "count": "100"})
        shown = visitor.get(page.headers["location"]).html.text
        assert '["data.example.org"] becomes ["data.example.com"]' in shown
        assert "Nothing has been recorded yet" in shown
        assert not (own / "values" / "networks.yaml").exists()
        assert visitor.post(page.headers["location"]).status == 303
    assert (own / "values" / "networks.yaml").read_text() == text
    assert not [*own.glob(".*.partial")]
    assert command("policy", "values", "networks", "--policy", own).json["hosts"] == ["data.example.com"]


@pytest.mark.full
def test_an_edit_counts_once_it_is_activated(tmp_path: Path, cache: Path, command: Command) -> None:
    """As an edit by hand: a running server goes on with the old values until then, and back again."""
    policy = copied(tmp_path)
    with (
        serving(tmp_path, cache, "--policy", policy) as server,
        workbench(tmp_path, cache, "--policy", policy) as pages,
    ):
        visitor, file = pages.visitor(), policy / "licenses.yaml"

        def outcomes() -> Iterator[str]:
            yield server.decide("license", ALLOWED).json["outcome"]
            assert command("policy", "activate", "--state", server.state).code == 0
            yield server.decide("license", ALLOWED).json["outcome"]

        path, _ = previewed(visitor, file)
        assert visitor.post(path).status == 303
        assert [*outcomes()] == ["allow", "deny"]
        refused = file.read_bytes()
        page = edited(visitor, refused.decode().replace(REFUSED, ADMITTED), refused)
        assert "newly allowed" in visitor.get(page.headers["location"]).html.text
        assert visitor.post(page.headers["location"]).status == 303
        assert [*outcomes()] == ["deny", "allow"]
        assert file.read_bytes() == (ROOT / "policy" / "licenses.yaml").read_bytes()
