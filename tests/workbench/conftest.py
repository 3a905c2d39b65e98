"""A workbench on a record, a state and a policy in which every text that others choose is hostile."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.engine import Engine
from engine.flow import Context
from engine.model import Caller, Via
from engine.settings import Settings
from engine.state import open_store
from engine.state.rows import ApprovalRow
from tests.api.serving import ALLOWED, LICENSE
from tests.conftest import ROOT
from tests.policy_bundle.test_waivers import ROW
from tests.workbench.pages import Visitor, Workbench, workbench

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NASTY = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x1b[31m\u202e{{7*7}}"
"""What a page must show and not do."""


def ask(state: Path, **changes: Any) -> ApprovalRow:
    """A request for approval that waits, as the engine leaves it."""
    now = int(time.time())
    row: dict[str, Any] = {
        "point": "license",
        "input_digest": "sha256:" + "c" * 64,
        "rules": "sha256:" + "1" * 64,
        "values": "sha256:" + "2" * 64,
        "requester": "pipeline-7",
    }
    with closing(open_store(state)) as store:
        return store.request_approval(
            ApprovalRow(**(row | changes), codes=("license_review_required",), created_at=now, expires_at=now + 3600)
        )


def copied(folder: Path) -> Path:
    """A copy of policy/ to edit."""
    return Path(shutil.copytree(ROOT / "policy", folder / "policy"))


def waive(policy: Path, id_: str, starts: date, **changes: Any) -> None:
    """Add a waiver of a source bundle's retention, for thirty days."""
    file = policy / "waivers.yaml"
    head, _, rows = file.read_text(encoding="utf-8").rpartition("\nwaivers: ")
    found = json.loads(rows)
    days = {"starts": str(starts), "until": str(starts + timedelta(days=29))}
    found.setdefault("source", {}).setdefault("retention_unknown", {})[id_] = ROW | days | changes
    file.write_text(f"{head}\nwaivers: {json.dumps(found)}\n", encoding="utf-8")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)  # of this machine: none is downloaded
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Workbench]:
    """Two dozen decisions, some with hostile texts; the last was denied."""
    folder = tmp_path_factory.mktemp("workbench")
    policy = copied(folder)
    file = policy / "licenses.yaml"
    note = '  MIT: {category: permissive, decision: admit, note: "<script>alert(2)</script>"}'
    text = file.read_text().replace("  MIT: {category: permissive, decision: admit}", note)
    file.write_text(text.replace("# Which licenses we admit", "# </textarea><script>alert(3)</script>"))
    hostile = dict.fromkeys(("subject", "principal", "owner", "approver", "reason"), NASTY)
    today = datetime.now(UTC).date()
    waive(policy, "terms", today)
    waive(policy, "long", today, until=str(today + timedelta(days=300)), **hostile)
    state = folder / "state"
    by = Context(caller=Caller(via=Via.PROCESS, principal=NASTY), run=NASTY, request_id=NASTY)
    with Engine(Settings(state=state, cache=cache)) as engine:
        for _ in range(20):
            engine.decide("license", ALLOWED, context=Context(caller=Caller(via=Via.PROCESS, principal="pipeline")))
        engine.check("license", {**LICENSE, "license": NASTY, "purpose": NASTY}, by)
        engine.decide("license", {NASTY: NASTY}, context=by)
        engine.decide("license", LICENSE, context=by)
    ask(state, requester=NASTY, point=NASTY)
    with workbench(folder, cache, "--policy", policy) as running:
        yield running


@pytest.fixture(scope="module")
def visitor(bench: Workbench) -> Visitor:
    """A browser that is logged in."""
    return bench.visitor()
