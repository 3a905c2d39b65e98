"""The workbench in a real browser: what a compliance officer does, by mouse, by keyboard and without scripts."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from engine.engine import Engine
from engine.settings import Settings
from tests.api.serving import ALLOWED
from tests.cli.test_approvals import ME
from tests.conftest import BUNDLES, ROOT
from tests.facilities import needs
from tests.workbench.browsing import opened, pictured, said
from tests.workbench.conftest import ask, copied, waive
from tests.workbench.pages import Workbench, workbench
from tests.workbench.test_runs import MARKET, planted

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = [pytest.mark.full, needs("chromium", "playwright")]

ADMITTED = "  CC-BY-4.0: {category: attribution, decision: admit, "
FORM = "/form?file=policy/licenses.yaml&path="
PAGES = (
    *("/decisions", "/policy", "/policy/source", "/licenses", "/tools", "/values", "/edit?file=policy/licenses.yaml"),
    *("/runs", "/shadow", f'{FORM}["licenses","CC-BY-4.0"]', f'{FORM}["licenses"]', f"{FORM}[]"),
    *("/approvals", "/waivers", "/releases", "/coverage", "/machine", "/nowhere"),
)
PICTURE = ROOT / "docs" / "workbench.png"


@pytest.fixture
def office(tmp_path: Path, cache: Path) -> Iterator[tuple[Workbench, Path]]:
    """A workbench on a record of source bundles and licenses, with an approval that waits, and its policy folder."""
    policy = copied(tmp_path)
    with Engine(Settings(state=tmp_path / "state", cache=cache)) as engine:
        for name in ("offline_fixture", "non_commercial_for_training"):
            engine.check("source", {"path": str(BUNDLES / name), "digest": None})
        for license_ in ("MIT", "CC-BY-4.0", "CC-BY-4.0", "CC0-1.0"):
            engine.decide("license", {**ALLOWED, "license": license_})
    ask(tmp_path / "state")
    releases = tmp_path / "releases"
    releases.mkdir()
    with workbench(tmp_path, cache, "--policy", policy, "--releases", releases) as running:
        yield running, policy


@pytest.fixture
def busy(office: tuple[Workbench, Path], cache: Path) -> tuple[Workbench, Path]:
    """The same with an episode and a run of code."""
    running, policy = office
    with Engine(Settings(state=running.state, cache=cache)) as engine:
        engine.episode(MARKET, episode="market")
    planted(running.state)
    return running, policy


def test_a_license_is_refused_after_a_preview_of_the_changes(chromium: Browser, office: tuple[Workbench, Path]) -> None:
    running, policy = office
    file = policy / "licenses.yaml"
    before = file.read_bytes().decode()
    page = opened(chromium, running)
    page.get_by_label("Outcome").select_option("deny")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("region", name="Table of decisions").get_by_role("link").click()
    assert page.get_by_role("heading", level=1).inner_text().startswith("deny at source")
    assert page.get_by_text("license_incompatible").first.is_visible()
    page.get_by_role("link", name="Licenses").click()
    page.get_by_label("Show those with").fill("CC-BY-4.0")
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="CC-BY-4.0", exact=True))
    row.get_by_role("link").click()
    editor = page.get_by_label("Text of the file")
    selected = "(e) => e.value.slice(e.selectionStart, e.selectionEnd)"
    assert editor.evaluate(selected).startswith(ADMITTED)  # the row that the link named

    editor.fill(before.replace(ADMITTED, ADMITTED.replace("admit", "perhaps")))
    page.get_by_role("button", name="Line").wait_for()
    assert "must be 'admit', 'review' or 'refuse'" in page.locator("#lint").inner_text()
    editor.evaluate("(e) => e.setSelectionRange(0, 0)")
    page.get_by_role("button", name="Line").click()
    assert "perhaps" in editor.evaluate(selected)
    editor.fill(before.replace(ADMITTED, ADMITTED.replace("admit", "refuse")))
    page.get_by_text("No problems").wait_for()
    assert file.read_bytes().decode() == before

    page.get_by_role("button", name="Preview").click()
    page.get_by_role("heading", name="What it would have decided differently").wait_for()
    assert page.get_by_role("img", name="Decisions by point and change").is_visible()
    flips = page.get_by_role("region", name="Decisions that change").get_by_role("link")
    assert flips.count() == 3  # a source bundle and two licenses
    flips.last.click()
    assert page.get_by_role("heading", level=1).inner_text().startswith("allow at license")
    page.go_back()
    page.get_by_role("button", name="Save to policy/licenses.yaml").click()
    page.get_by_text("policy/licenses.yaml is saved.").wait_for()
    lines = list(difflib.ndiff(before.splitlines(), file.read_bytes().decode().splitlines()))
    assert [one[:1] for one in lines if one[:1] in "+-"] == ["-", "+"]
    assert said(page) == []


def test_the_picture_of_the_documentation_is_small(
    chromium: Browser, tmp_path: Path, cache: Path, pytestconfig: pytest.Config
) -> None:
    """It is written anew with `--snapshot-update`."""
    with Engine(Settings(state=tmp_path / "state", cache=cache)) as engine:
        for name in ("offline_fixture", "non_commercial_for_training", "offline_fixture"):
            engine.check("source", {"path": str(BUNDLES / name), "digest": None})
        for license_ in ("MIT", "CC-BY-4.0", "CC0-1.0", "Apache-2.0", "CC-BY-4.0", "MIT", "CC0-1.0"):
            engine.decide("license", {**ALLOWED, "license": license_})
    path = PICTURE if pytestconfig.getoption("update_snapshots") else tmp_path / "preview.png"
    with workbench(tmp_path, cache) as running:  # on the policy of this tree, which is not saved
        page = opened(chromium, running)
        page.goto(preview_of(page, running))
        pictured(page, path, 960)


def test_a_person_grants_a_pending_approval(chromium: Browser, office: tuple[Workbench, Path]) -> None:
    running, _ = office
    page = opened(chromium, running)
    page.get_by_role("link", name="Approvals").click()
    page.get_by_label("Keep this list current").check()
    later = ask(running.state, requester="pipeline-8")
    page.get_by_role("link", name=later.id[:12]).click()  # it appears by itself
    page.get_by_label("Reason").fill("looked at it")
    page.get_by_role("button", name="Grant").click()
    page.get_by_text(f"{ME} at ").wait_for()
    assert page.get_by_role("button", name="Grant").count() == 0
    assert said(page) == []


def test_a_reason_that_is_entered_decides_nothing_until_a_button_is_pressed(
    chromium: Browser, office: tuple[Workbench, Path]
) -> None:
    """A person who types why not, and presses Enter, has not said yes."""
    page = opened(chromium, office[0])
    page.goto(f"http://127.0.0.1:{office[0].port}{approval(page)}")
    page.get_by_role("button", name="Refuse").press("Enter")
    page.get_by_role("alert").wait_for()
    assert page.evaluate("document.activeElement.role") == "alert"  # so it is read out
    page.get_by_label("Reason").fill("not like this")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.value") == "refuse"
    page.keyboard.press("Enter")
    page.get_by_text(f"{ME} at ").wait_for()
    assert page.get_by_role("heading", level=1).inner_text().startswith("refused")
    assert said(page) == []


def test_a_list_that_is_kept_current_says_so_and_keeps_the_focus(
    chromium: Browser, office: tuple[Workbench, Path]
) -> None:
    running, _ = office
    page = opened(chromium, running)
    page.goto(f"http://127.0.0.1:{running.port}/approvals")
    page.get_by_label("Keep this list current").check()
    page.get_by_role("region", name="Approvals that wait").get_by_role("link").focus()
    at = page.evaluate("document.activeElement.href")
    later = ask(running.state, requester="pipeline-8")
    page.get_by_role("link", name=later.id[:12]).wait_for()
    assert page.get_by_role("status").inner_text() == "The list has changed."
    assert page.evaluate("document.activeElement.href") == at


def test_the_link_of_a_row_is_seen_in_a_narrow_window(chromium: Browser, bench: Workbench) -> None:
    page = opened(chromium, bench)
    page.set_viewport_size({"width": 360, "height": 740})
    for path in ("decisions", "approvals"):
        page.goto(f"http://127.0.0.1:{bench.port}/{path}")
        box = page.get_by_role("main").get_by_role("table").first.get_by_role("link").first.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] < 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_pass_the_accessibility_checks(chromium: Browser, busy: tuple[Workbench, Path], scheme: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    running, policy = busy
    page = opened(chromium, running, color_scheme=scheme)
    own = [f"/decisions/{running_id(page)}", page.url, approval(page), *releases_of(page, running, policy)]
    own += ["/episodes/market", run_of(page, running)]
    found = {}
    for path in (*PAGES, *own, preview_of(page, running)):
        page.goto(path if path.startswith("http") else f"http://127.0.0.1:{running.port}{path}")
        assert "cannot be shown" not in page.get_by_role("heading", level=1).inner_text() or path == "/nowhere"
        violations = Axe().run(page).response["violations"]
        if serious := [one["id"] for one in violations if one["impact"] in {"serious", "critical"}]:
            found[path] = serious, [node["html"][:200] for one in violations for node in one["nodes"]][:5]
        assert page.get_by_role("main").count() == page.get_by_role("banner").count() == 1
        assert page.get_by_role("heading", level=1).count() == 1
    assert found == {}
    assert said(page) == []
    page.evaluate("document.querySelector('h1').append(document.createElement('img'))")  # the control: it is seen
    assert "image-alt" in [one["id"] for one in Axe().run(page).response["violations"]]


def running_id(page: Page) -> str:
    """The id of a decision in the list."""
    link = page.get_by_role("region", name="Table of decisions").get_by_role("link").last.get_attribute("href")
    assert link is not None
    return link.rpartition("/")[2]


def run_of(page: Page, running: Workbench) -> str:
    """The path of a run of code in the list."""
    page.goto(f"http://127.0.0.1:{running.port}/runs")
    link = page.get_by_role("region", name="Runs of code").get_by_role("link").first.get_attribute("href")
    assert link is not None
    return link


def approval(page: Page) -> str:
    """The path of an approval that waits."""
    page.goto(page.url.replace("/decisions", "/approvals"))
    link = page.get_by_role("region", name="Approvals that wait").get_by_role("link").first.get_attribute("href")
    assert link is not None
    return link


def releases_of(page: Page, running: Workbench, policy: Path) -> list[str]:
    """The addresses of two releases, the second with another waiver than the first."""
    found = []
    for id_ in ("terms", "more-terms"):
        waive(policy, id_, datetime.now(UTC).date())
        page.goto(f"http://127.0.0.1:{running.port}/releases")
        page.get_by_role("button", name="Build").click()
        page.wait_for_url("**/releases/*")
        found.append(page.url)
    return found


def preview_of(page: Page, running: Workbench) -> str:
    """The address of a preview in which decisions change."""
    page.goto(f"http://127.0.0.1:{running.port}/edit?file=policy/licenses.yaml")
    editor = page.get_by_label("Text of the file")
    editor.fill(editor.input_value().replace(ADMITTED, ADMITTED.replace("admit", "refuse")))
    page.get_by_role("button", name="Preview").click()
    page.wait_for_url("**/previews/*")
    return page.url


def test_narrow_screens_scroll_in_one_direction(chromium: Browser, busy: tuple[Workbench, Path]) -> None:
    running, policy = busy
    page = opened(chromium, running)
    page.set_viewport_size({"width": 320, "height": 640})
    wide = {}
    own = [f"/decisions/{running_id(page)}", *releases_of(page, running, policy), run_of(page, running)]
    own.append("/episodes/market")
    for path in (*PAGES, *own, preview_of(page, running)):
        page.goto(path if path.startswith("http") else f"http://127.0.0.1:{running.port}{path}")
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > 320:
            wide[path] = width
    assert wide == {}


def test_the_keyboard_is_enough(chromium: Browser, office: tuple[Workbench, Path]) -> None:
    running, policy = office
    page = opened(chromium, running)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) != "none"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.goto(f"http://127.0.0.1:{running.port}/edit?file=policy/networks.yaml")
    editor = page.get_by_label("Text of the file")
    editor.focus()
    page.keyboard.press("Control+End")
    page.keyboard.type("# seen\n")
    for wanted in ("SELECT", "BUTTON"):  # Tab leaves the editor
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.tagName") == wanted
        assert page.evaluate(outline) != "none"
    page.keyboard.press("Enter")
    page.wait_for_url("**/previews/*")
    save = page.get_by_role("button", name="Save to")
    while not save.evaluate("(e) => e === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("is saved.").wait_for()
    assert (policy / "networks.yaml").read_text().endswith("# seen\n")


def test_a_value_is_changed_in_a_form_by_the_keyboard(chromium: Browser, office: tuple[Workbench, Path]) -> None:
    running, policy = office
    file = policy / "licenses.yaml"
    before = file.read_text()
    page = opened(chromium, running)
    page.goto(f"http://127.0.0.1:{running.port}/edit?file=policy/licenses.yaml")
    page.get_by_role("link", name="Edit in forms").click()
    page.get_by_role("link", name="licenses", exact=True).click()
    page.get_by_label("Show those with").fill("CC-BY-4.0")
    page.get_by_role("link", name="CC-BY-4.0", exact=True).click()
    page.get_by_label("category").fill("Not A Name")
    page.get_by_role("button", name="Preview", exact=True).click()
    assert (
        page.get_by_label("category").evaluate("(e) => e.validationMessage").startswith("“Not A Name” does not match")
    )
    page.get_by_label("category").fill("attribution")
    decision = page.get_by_label("decision", exact=True)
    decision.focus()
    page.keyboard.type("refuse")
    save = page.get_by_role("button", name="Preview", exact=True)
    while not save.evaluate("(e) => e === document.activeElement"):
        page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="What it would have decided differently").wait_for()
    assert page.get_by_role("region", name="Decisions that change").get_by_role("link").count() == 3
    page.get_by_role("button", name="Save to policy/licenses.yaml").click()
    page.get_by_text("policy/licenses.yaml is saved.").wait_for()
    lines = list(difflib.ndiff(before.splitlines(), file.read_text().splitlines()))
    assert [one[:1] for one in lines if one[:1] in "+-"] == ["-", "+"]
    assert said(page) == []


def test_the_files_of_a_run_are_downloaded_and_a_picture_does_nothing(
    chromium: Browser, busy: tuple[Workbench, Path]
) -> None:
    running, _ = busy
    page = opened(chromium, running)
    page.goto(f"http://127.0.0.1:{running.port}{run_of(page, running)}")
    picture = page.get_by_role("img", name="chart.png")
    picture.wait_for()
    assert picture.evaluate("(e) => e.naturalWidth") == 1
    with page.expect_download() as downloading:
        page.get_by_role("link", name="page.html").click()
    assert downloading.value.suggested_filename == "page.html"
    assert said(page) == []
    answer = page.context.request.get(f"http://127.0.0.1:{running.port}{picture.get_attribute('src')}")
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox; frame-ancestors 'none'"


def test_without_scripts_everything_works(chromium: Browser, office: tuple[Workbench, Path]) -> None:
    running, policy = office
    page = opened(chromium, running, java_script_enabled=False)
    page.goto(f"http://127.0.0.1:{running.port}/edit?file=policy/networks.yaml")
    before = (policy / "networks.yaml").read_bytes()
    editor = page.get_by_label("Text of the file")
    editor.fill(f"{editor.input_value()}# seen\n")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Save to").click()
    page.get_by_text("is saved.").wait_for()
    assert (policy / "networks.yaml").read_bytes() == before + b"# seen\n"


@pytest.mark.threat("injection")
def test_hostile_text_runs_nothing(chromium: Browser, bench: Workbench) -> None:
    page = opened(chromium, bench)
    links = page.get_by_role("region", name="Table of decisions").get_by_role("link").all()[:3]
    paths = [link.get_attribute("href") for link in links]
    page.goto(f"http://127.0.0.1:{bench.port}/approvals")
    paths += [link.get_attribute("href") for link in page.get_by_role("main").get_by_role("link").all()[:3]]
    for path in (
        *paths,
        "/licenses",
        "/waivers",
        "/edit?file=policy/licenses.yaml",
        "/decisions?code=<script>alert(1)</script>",
    ):
        page.goto(f"http://127.0.0.1:{bench.port}{path}")
        assert page.evaluate("document.querySelectorAll('main script, main img, [onerror]').length") == 0
    assert said(page) == []


@pytest.fixture
def evil(tmp_path: Path) -> Iterator[str]:
    """Another site on this machine, to which the browser sends our cookie too; its origin."""
    folder = tmp_path / "evil"
    folder.mkdir()
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.threat("injection")
def test_another_site_can_neither_frame_the_pages_nor_send_their_forms(
    chromium: Browser, office: tuple[Workbench, Path], evil: str, tmp_path: Path
) -> None:
    running, _ = office
    page = opened(chromium, running)
    ours, key = f"http://127.0.0.1:{running.port}", page.evaluate("document.body.dataset.formKey")
    context: BrowserContext = page.context
    path = approval(page)
    (tmp_path / "evil" / "index.html").write_text(
        f'<iframe src="{ours}/decisions"></iframe><form method="post" action="{ours}{path}">'
        f'<input name="form_key" value="{key}"><button name="verb" value="grant">Win a prize</button></form>'
    )
    other = context.new_page()
    other.goto(evil)
    other.wait_for_load_state()
    assert [frame for frame in other.frames if frame.url.startswith(ours)] == []
    other.get_by_role("button").click()
    other.get_by_text("came from a web page of another site").wait_for()
    page.reload()
    assert page.get_by_role("region", name="Approvals that wait").get_by_role("link").count() == 1
