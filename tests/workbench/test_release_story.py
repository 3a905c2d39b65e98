"""From an edit to a release that is served, and back, as two people do it in two browsers beside a running server."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.api.serving import ALLOWED, issue, serving
from tests.cli.test_approvals import ME
from tests.command import Command
from tests.conftest import ROOT
from tests.facilities import needs
from tests.policy_bundle.releases import Keys
from tests.workbench.browsing import opened, pictured, said
from tests.workbench.conftest import copied
from tests.workbench.pages import workbench

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.full, needs("chromium", "playwright")]

ADMITTED = "  CC-BY-4.0: {category: attribution, decision: admit, "
LEE = "user:lee"
DECIDED = 3
"""Decisions before the edit."""

PICTURE = ROOT / "docs" / "release.png"


@dataclass(frozen=True, slots=True)
class Office:
    """A compliance officer and `lee`, each at a browser; the officer runs what the pages show as commands."""

    officer: Page
    lee: Page
    command: Command
    keys: Keys

    def build(self, notes: str) -> None:
        """Build a release of the policy as it is."""
        page = self.officer
        page.get_by_role("navigation").get_by_role("link", name="Releases").click()
        page.get_by_label("Notes").fill(notes)
        page.get_by_role("button", name="Build").click()
        page.wait_for_url("**/releases/release-*")

    def signed(self, name: str, reason: str) -> None:
        """Lee approves a release; then it is signed and put where the server reads it."""
        approve(self.lee, name, reason)
        self.lee.get_by_text(f"Approved by {LEE}").wait_for()
        go(self.officer, f"/releases/{name}")
        self.run("Command that signs the release")
        self.officer.reload()
        self.run("Command that puts the release where servers read it")

    def run(self, label: str) -> None:
        """Run a command of the page, with the key of this test."""
        text = self.officer.get_by_label(label, exact=True).inner_text()
        program, *arguments = shlex.split(text.replace("private.pem", str(self.keys.private)))
        if program == "engine":
            done = self.command(*arguments)
            assert done.code == 0, done.stderr
        else:
            subprocess.run([program, *arguments], check=True)

    def activate(self, name: str, reason: str, told: str = "active release-") -> None:
        """Have the server load what it was given; the page then has these words."""
        page = self.officer
        go(page, f"/releases/{name}")
        page.get_by_label("Reason (one line").fill(reason)
        page.get_by_role("checkbox", name="decide by it at once").check()
        page.get_by_role("button", name="Activate").click()
        page.get_by_text(told).wait_for()

    def refuse_license(self) -> None:
        """Refuse a license after looking at the decisions that this changes."""
        page = self.officer
        go(page, "/edit?file=policy/licenses.yaml")
        editor = page.get_by_label("Text of the file")
        editor.fill(editor.input_value().replace(ADMITTED, ADMITTED.replace("admit", "refuse")))
        page.get_by_role("button", name="Preview").click()
        rows = page.get_by_role("region", name="Decisions that change").get_by_role("row")
        flips = rows.filter(has_text="newly denied")
        flips.first.wait_for()
        assert flips.count() == DECIDED
        page.get_by_role("button", name="Save to policy/licenses.yaml").click()
        page.get_by_text("policy/licenses.yaml is saved.").wait_for()

    def roll_back(self, name: str, reason: str) -> None:
        """Release the content of a release again."""
        page = self.officer
        go(page, f"/releases/{name}")
        page.get_by_label("Reason, which becomes").fill(reason)
        page.get_by_role("button", name="Roll back to it").click()
        page.wait_for_url("**/releases/release-3")

    def history(self) -> list[str]:
        """What the page of releases says was active, the newest first."""
        self.officer.get_by_role("link", name="Releases").click()
        region = self.officer.get_by_role("region", name="What was active when")
        return region.get_by_role("row").all_inner_texts()[1:]


def go(page: Page, path: str) -> None:
    scheme, _, host, *_ = page.url.split("/")
    page.goto(f"{scheme}//{host}{path}")


def approve(page: Page, name: str, reason: str) -> None:
    go(page, f"/releases/{name}")
    page.get_by_label("Reason (one line").fill(reason)
    page.get_by_role("button", name="Approve").click()


@pytest.fixture
def office(chromium: Browser, tmp_path: Path, cache: Path) -> Iterator[Office]:
    """Two workbenches on one policy, one record and one folder of releases."""
    policy, releases = copied(tmp_path), tmp_path / "releases"
    releases.mkdir()
    token = issue(tmp_path / "state", LEE, points=(), approves=("administration",))
    own: tuple[str | Path, ...] = ("--policy", policy, "--releases", releases)
    with (
        workbench(tmp_path, cache, *own) as one,
        workbench(tmp_path, cache, *own, env={"ENGINE_TOKEN": token}, name="lee") as two,
    ):
        pages = opened(chromium, one), opened(chromium, two)
        yield Office(*pages, Command.of(tmp_path, cache), Keys.make(tmp_path / "keys"))
        assert [*map(said, pages)] == [[], []]


def test_an_edit_is_released_by_two_people_activated_and_rolled_back(
    office: Office, tmp_path: Path, cache: Path, pytestconfig: pytest.Config
) -> None:
    """The picture of the tutorial is written anew with `--snapshot-update`, without the paths of this machine."""
    served = tmp_path / "releases" / "served"
    office.build("the first release")
    office.signed("release-1", "as shipped")
    with serving(tmp_path, cache, "--release", served, "--release-key", office.keys.public) as server:
        server.headers["Authorization"] = f"Bearer {issue(server.state)}"

        def decide() -> str:
            return str(server.decide("license", {**ALLOWED, "license": "CC-BY-4.0"}).json["outcome"])

        assert {decide() for _ in range(DECIDED)} == {"allow"}
        office.refuse_license()
        office.build("without CC-BY-4.0")
        told = office.officer.get_by_role("main").inner_text()
        assert '"admit" becomes "refuse"' in told
        assert f"newly denied\n{DECIDED}" in told
        approve(office.officer, "release-2", "it is mine")
        office.officer.get_by_text("approver_is_requester").wait_for()
        go(office.lee, "/releases/release-2")
        office.lee.locator("li .faint").evaluate_all("(all) => all.forEach((one) => one.remove())")
        pictured(office.lee, PICTURE if pytestconfig.getoption("update_snapshots") else tmp_path / "release.png", 900)
        office.signed("release-2", "as asked for")
        assert decide() == "allow"
        office.activate("release-2", "as decided")
        assert decide() == "deny"
        office.roll_back("release-1", "too strict")
        office.signed("release-3", "back to what was")
        served.unlink()
        served.symlink_to("release-2")
        office.activate("release-3", "too early", "activated another policy, and not this release")
        office.run("Command that puts the release where servers read it")
        office.activate("release-3", "rolled back")
        assert decide() == "allow"
        rows = office.history()
        assert server.stop() == 0
    changes = [("activated", 3, "rolled back"), ("activated", 2, "too early")]
    changes += [("activated", 2, "as decided"), ("started", 1, "")]
    for row, (outcome, number, reason) in zip(rows, changes, strict=True):
        for words in (outcome, reason, f"{number} of default, built by {ME}, approved by {LEE}"):
            assert words in row
    assert "rollback to release 1: too strict" in rows[0]
    assert office.command("record", "verify", "--state", server.state).code == 0
