"""Values in forms made from their schemas: the edit of a form is one of the text, and goes the same way."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from engine.engine import Engine
from engine.settings import Settings
from engine.values import DOCUMENTS
from tests.api.serving import ALLOWED
from tests.command import Command
from tests.workbench.conftest import NASTY, copied
from tests.workbench.pages import Html, Page, Visitor, Workbench, workbench
from tests.workbench.test_pages import harmless

FILE = "policy/licenses.yaml"


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("forms"))


@pytest.fixture
def values(policy: Path) -> Iterator[Path]:
    """The folder of values, as it was after each test."""
    before = {file: file.read_bytes() for file in policy.iterdir()}
    yield policy
    for file, data in before.items():
        file.write_bytes(data)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, cache: Path, policy: Path) -> Iterator[Workbench]:
    folder = tmp_path_factory.mktemp("forms-state")
    with Engine(Settings(state=folder / "state", cache=cache)) as engine:
        engine.decide("license", ALLOWED)
    with workbench(folder, cache, "--policy", policy) as running:
        yield running


def form(visitor: Visitor, file: str, *path: str) -> Page:
    return visitor.get("/form?" + urlencode({"file": file, "path": json.dumps(path)}))


def filled(html: Html) -> dict[str, str]:
    """What a browser would send of the form as it is; texts of areas and choices are left out."""
    hidden = {name: html.field(name) for name in ("file", "path", "before")}
    texts = [one for tag, one in html.elements if tag == "input" and one.get("name", "").startswith("f.")]
    return hidden | {one["name"]: one["value"] for one in texts} | {"count": "100"}


def sent(visitor: Visitor, page: Page, **changes: str) -> Page:
    """Send the form of a page with these changes."""
    return visitor.post("/form", filled(page.html) | {f"f.{name}": text for name, text in changes.items()})


def differs(before: str, after: str) -> list[str]:
    return [one for one in difflib.ndiff(before.splitlines(), after.splitlines()) if one[:1] in "+-"]


def test_a_row_is_changed_in_a_form_previewed_and_saved_in_its_line(visitor: Visitor, values: Path) -> None:
    file = values / "licenses.yaml"
    before = file.read_text()
    page = form(visitor, FILE, "licenses", "MIT")
    selects = [one for tag, one in page.html.elements if tag == "select"]
    assert [one["name"] for one in selects] == ["f.decision", "count"]
    assert page.html.values("option", "selected") == ["", ""]
    assert "Decision on this license for every use." in page.html.text
    moved = sent(visitor, page, category="permissive", decision="refuse")
    assert moved.status == 303, moved.html.text
    shown = visitor.get(moved.headers["location"]).html.text
    assert 'licenses.licenses.MIT.decision: "admit" becomes "refuse"' in shown
    assert "license: 1 newly denied" in shown
    assert file.read_text() == before  # nothing is written before the preview
    assert visitor.post(moved.headers["location"]).headers["location"] == f"/values?saved={FILE}"
    assert differs(before, file.read_text()) == [
        "-   MIT: {category: permissive, decision: admit}",
        "+   MIT: {category: permissive, decision: refuse}",
    ]


def test_a_form_that_changes_nothing_changes_no_line(visitor: Visitor, values: Path) -> None:
    for path in (("licenses", "CC-BY-4.0"), ("categories", "attribution"), ("aliases", "apache 2.0"), ()):
        page = form(visitor, FILE, *path)
        areas = {"export_under": "\n".join(_export(values))} if path[-1:] == ("CC-BY-4.0",) else {}
        chosen = _chosen(page)
        moved = sent(visitor, page, **chosen, **areas) if page.html.values("input", "value")[3:] or chosen else None
        if moved is not None:
            assert "No line changes." in visitor.get(moved.headers["location"]).html.text, path


def _export(values: Path) -> list[str]:
    text = (values / "licenses.yaml").read_text()
    row = text[text.index("  CC-BY-4.0: {") :].partition("}")[0]
    return [one.strip() for one in row.partition("export_under: [")[2].partition("]")[0].split(",")]


def _chosen(page: Page) -> dict[str, str]:
    """What the choices of a form stand at."""
    import re

    found = {}
    for name, options in re.findall(r'<select id="[^"]+" name="f\.([^"]+)"[^>]*>(.*?)</select>', page.body, re.DOTALL):
        selected = re.search(r"<option selected>([^<]+)</option>", options)
        found[name] = "" if selected is None else selected[1]
    return found


def test_lists_numbers_and_booleans_have_fields_of_their_kind(visitor: Visitor, values: Path) -> None:
    page = form(visitor, "policy/networks.yaml")
    areas = [one["name"] for tag, one in page.html.elements if tag == "textarea"]
    assert {"f.hosts", "f.schemes", "f.ports"} <= {*areas}
    moved = sent(visitor, page, hosts="data.example.org\nother.example.org\n", schemes="https", ports="443")
    assert '"data.example.org", "other.example.org"' in visitor.get(moved.headers["location"]).html.text
    assert visitor.post(moved.headers["location"]).status == 303
    assert "\nhosts: [data.example.org, other.example.org]\n" in (values / "networks.yaml").read_text()
    inner = form(visitor, "policy/networks.yaml", "fetch")
    numbers = [one for tag, one in inner.html.elements if tag == "input" and one.get("type") == "number"]
    assert next((one["name"], one["value"], one["step"]) for one in numbers) == ("f.max_urls", "1", "1")
    lists = {"media_types": "application/json", "charsets": "UTF-8", "text_types": "application/jsonl"}
    wrong = sent(visitor, inner, max_urls="many", **lists)
    assert (wrong.status, "max_urls is not a whole number" in wrong.html.text) == (422, True)
    assert "many" in wrong.html.values("input", "value")  # what was entered is still there


def test_a_value_with_another_form_says_where_that_is_edited(visitor: Visitor) -> None:
    shown = form(visitor, "policy/budgets.yaml", "budgets", "license").html.text
    assert "Budget per principal. In another form, it is edited as text." in shown


def test_a_row_is_added_and_removed(visitor: Visitor, values: Path) -> None:
    file = values / "licenses.yaml"
    before = file.read_text()
    empty = visitor.get("/form?" + urlencode({"file": FILE, "path": '["licenses"]', "key": "LicenseRef-Ours"}))
    assert "It is not stated yet." in empty.html.text
    moved = sent(visitor, empty, category="permissive", decision="review", note="ours: ask")
    assert visitor.post(moved.headers["location"]).status == 303
    row = '+   LicenseRef-Ours: {category: permissive, decision: review, note: "ours: ask"}'
    assert differs(before, file.read_text()) == [row]
    page = form(visitor, FILE, "licenses", "LicenseRef-Ours")
    moved = visitor.post("/form", filled(page.html) | {"verb": "remove"})
    assert visitor.post(moved.headers["location"]).status == 303
    assert file.read_text() == before


def test_an_edit_that_lint_refuses_is_shown_again_as_text(visitor: Visitor, values: Path) -> None:
    before = (values / "licenses.yaml").read_bytes()
    page = form(visitor, FILE, "licenses", "MIT")
    refused = sent(visitor, page, category="nothing", decision="admit")
    assert (refused.status, "Nothing was written." in refused.html.text) == (422, True)
    assert "MIT: {category: nothing, decision: admit}" in refused.body
    other = sent(visitor, page, category="permissive", decision="perhaps")
    assert (other.status, "decision is none of admit, review, refuse" in other.html.text) == (422, True)
    assert (values / "licenses.yaml").read_bytes() == before


def test_a_concurrent_change_by_another_editor_is_not_overwritten(
    bench: Workbench, visitor: Visitor, values: Path
) -> None:
    file = values / "licenses.yaml"
    page, other = form(visitor, FILE, "licenses", "MIT"), bench.visitor()
    moved = sent(other, form(other, FILE, "licenses", "CC0-1.0"), category="public_domain", decision="review")
    preview = sent(visitor, page, category="permissive", decision="refuse").headers["location"]
    assert other.post(moved.headers["location"]).status == 303
    saved = file.read_bytes()
    late = sent(visitor, page, category="permissive", decision="refuse")
    assert (late.status, "has changed since you opened the form; nothing was done" in late.html.text) == (409, True)
    assert visitor.post(preview).status == 409
    assert file.read_bytes() == saved


@pytest.mark.threat("injection")
def test_hostile_text_in_a_form_does_nothing(visitor: Visitor, values: Path) -> None:
    file = values / "licenses.yaml"
    text = file.read_text().replace(
        "  MIT: {category: permissive, decision: admit}",
        f"  MIT: {{category: permissive, decision: admit, note: {json.dumps(NASTY)}}}\n"
        '  "LicenseRef-<script>alert(1)</script>": {category: permissive, decision: admit}',
    )
    file.write_text(text)
    page = form(visitor, FILE, "licenses", "MIT")
    pages = [
        page,
        form(visitor, FILE, "licenses"),
        form(visitor, FILE, "licenses", "LicenseRef-<script>alert(1)</script>"),
    ]
    pages.append(sent(visitor, page, category=NASTY, decision=NASTY, note=NASTY))
    pages.append(visitor.get("/form?" + urlencode({"file": FILE, "path": '["licenses"]', "key": NASTY})))
    for one in pages:
        assert one.status in {200, 422}, one.html.text
        harmless(one.html)
    for query in (
        {"file": NASTY, "path": "[]"},
        {"file": FILE, "path": NASTY},
        {"file": FILE, "path": json.dumps([NASTY])},
    ):
        refused = visitor.get("/form?" + urlencode(query))
        assert refused.status in {404, 422}
        harmless(refused.html)
    assert file.read_text() == text


@pytest.mark.threat("injection")
def test_a_form_of_another_site_or_without_the_key_changes_nothing(bench: Workbench, visitor: Visitor) -> None:
    fields = filled(form(visitor, FILE, "licenses", "MIT").html) | {"f.decision": "refuse"}
    for headers in ({"Origin": "http://evil.example"}, {"Origin": ""}, {"Sec_Fetch_Site": "cross-site"}):
        assert visitor.post("/form", fields, **headers).status == 403
    assert visitor.post("/form", fields | {"form_key": bench.visitor().key}).status == 403


@pytest.mark.parametrize("name", ["policy/../../etc/passwd", "rego/inventory.yaml", ""])
def test_no_other_file_has_a_form(visitor: Visitor, name: str) -> None:
    assert form(visitor, name).status == 422
    assert visitor.post("/form", {"file": name, "path": "[]", "before": "none"}).status == 422


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_every_level_of_every_document_has_a_form(visitor: Visitor, name: str) -> None:
    waiting, seen = [f"/form?{urlencode({'file': f'policy/{name}.yaml', 'path': '[]'})}"], set[str]()
    while waiting and len(seen) < 40:
        page = visitor.get(waiting.pop())
        assert page.status == 200, page.html.text
        harmless(page.html)
        new = {link for link in page.html.values("a", "href") if link.startswith("/form?")} - seen
        seen |= new
        waiting += sorted(new)


@pytest.mark.full
def test_values_laid_over_the_shipped_ones_are_written_into_the_own_file_alone(
    command: Command, tmp_path: Path, cache: Path
) -> None:
    own = tmp_path / "my-policy"
    assert command("policy", "init", own).code == 0
    name = "bundles/my-policy/values/licenses.yaml"
    file = own / "values" / "licenses.yaml"
    before = file.read_text() if file.exists() else ""
    with workbench(tmp_path, cache, "--policy", own) as running:
        visitor = running.visitor()
        page = form(visitor, name, "licenses", "MIT")
        moved = sent(visitor, page, category="permissive", decision="refuse")
        assert visitor.post(moved.headers["location"]).status == 303
        new = [one for one in differs(before, file.read_text()) if "MIT" in one]
        assert new == ["+   MIT: {decision: refuse}"]
        page = form(visitor, name, "licenses", "MIT")
        moved = visitor.post("/form", filled(page.html) | {"verb": "remove"})
        assert visitor.post(moved.headers["location"]).status == 303
        assert "  MIT: null\n" in file.read_text()
        assert form(visitor, name, "licenses", "MIT").html.text.count("It is not stated yet.") == 1
        networks = "bundles/my-policy/values/networks.yaml"
        moved = sent(visitor, form(visitor, networks), hosts="data.example.com", schemes="https", ports="443")
        assert visitor.post(moved.headers["location"]).status == 303
        assert "my-policy/values/networks.yaml: where material" in form(visitor, networks).html.text
    assert (own / "values" / "networks.yaml").read_text() == "hosts: [data.example.com]\n"
