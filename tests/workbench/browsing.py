"""A real browser at the workbench, and what its pages said on their consoles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.workbench.pages import Workbench

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MOST_BYTES = 200_000
"""Of a picture in the documentation."""


def opened(browser: Browser, running: Workbench, **options: Any) -> Page:
    """A page of a browser that has opened the newest link."""
    context = browser.new_context(
        locale="en-GB", timezone_id="UTC", reduced_motion="reduce", viewport={"width": 1000, "height": 760}, **options
    )
    page = context.new_page()
    watched(page)
    page.goto(running.link())
    if not options.get("java_script_enabled", True):
        page.get_by_role("button", name="Open the workbench").click()
    page.wait_for_url("**/decisions")
    return page


MESSAGES: dict[int, list[str]] = {}
"""What a page said on its console or threw, by its id."""


def watched(page: Page) -> list[str]:
    said = MESSAGES.setdefault(id(page), [])
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(f"dialog {dialog.message}"))
    return said


def said(page: Page) -> list[str]:
    """The same, without what a browser reports of answers that are errors."""
    return [text for text in MESSAGES[id(page)] if not text.startswith("Failed to load resource")]


def pictured(page: Page, path: Path, height: int) -> None:
    """Take a picture for the documentation, of a window of this height."""
    page.set_viewport_size({"width": 760, "height": height})
    page.screenshot(path=path, animations="disabled", caret="hide", scale="css")
    assert path.stat().st_size < MOST_BYTES
