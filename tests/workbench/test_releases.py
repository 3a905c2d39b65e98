"""Releases in the workbench: built, approved by another person, and never over what a page did not show."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier

import pytest

from engine.binaries import find_binary
from engine.engine import Engine
from engine.model import Revisions
from engine.points.registry import POINTS
from engine.policy_bundle.build import build as built
from engine.policy_bundle.release import approve_release, sign_release
from engine.policy_bundle.release_folder import CHANGES, STATEMENT, read
from engine.policy_bundle.sources import PolicySources
from engine.record.log import RecordLog
from engine.record.model import PolicyRecord, RecordedRelease
from engine.record.storage import Storage
from engine.settings import Settings
from engine.state import open_store
from tests.api.serving import ALLOWED, issue, serving
from tests.cli.test_approvals import ME
from tests.command import Command, lines
from tests.conftest import ROOT
from tests.policy_bundle.releases import Keys, released, restate
from tests.workbench.conftest import NASTY, copied
from tests.workbench.pages import Page, Visitor, workbench
from tests.workbench.test_pages import SHOWN, harmless

FILE = "licenses.yaml"
ADMITTED, REFUSED = "  MIT: {category: permissive, decision: admit}", "  MIT: {category: permissive, decision: refuse}"
LEE = "user:lee"


@dataclass(frozen=True, slots=True)
class House:
    """Two people at the policy: its author at a workbench of their own, and `lee`."""

    folder: Path
    author: Visitor
    lee: Visitor

    @property
    def releases(self) -> Path:
        return self.folder / "releases"

    @property
    def state(self) -> Path:
        return self.folder / "state"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[House]:
    """Release 1 of the shipped policy was built; then MIT was refused, and release 2 built after one decision."""
    folder = tmp_path_factory.mktemp("releases")
    policy, releases = copied(folder), folder / "releases"
    releases.mkdir()
    with Engine(Settings(state=folder / "state", cache=cache, policy=policy)) as engine:
        engine.decide("license", ALLOWED)
    token = issue(folder / "state", LEE, points=(), approves=("administration",))
    own: tuple[str | Path, ...] = ("--policy", policy, "--releases", releases)
    with (
        workbench(folder, cache, *own) as one,
        workbench(folder, cache, *own, env={"ENGINE_TOKEN": token}, name="lee") as two,
    ):
        found = House(folder, one.visitor(), two.visitor())
        build(found.author, notes="the first one")
        text = (policy / FILE).read_text(encoding="utf-8")
        (policy / FILE).write_text(text.replace(ADMITTED, REFUSED), encoding="utf-8")
        build(found.author, notes="without MIT", replay="yes")
        yield found


def build(visitor: Visitor, status: int = 303, **more: str) -> Page:
    """Build a release, as the page says."""
    shown = visitor.get("/releases").html
    fields = {name: shown.field(name) for name in ("policy", "newest")}
    built = visitor.post("/releases", fields | more)
    assert built.status == status, built.html.text
    return built


def step(visitor: Visitor, name: str, verb: str, **more: str) -> Page:
    """Send a form of the page of a release, as it is now."""
    path = f"/releases/{name}"
    shown = visitor.get(path).html
    fields = {field: shown.field(field) for field in ("seen", "newest")}
    return visitor.post(path, {"verb": verb, "reason": "because", **fields, **more})


def test_an_edit_that_was_saved_leads_to_its_release(house: House) -> None:
    page = house.author.get(f"/values?saved=policy/{FILE}").html
    assert "once it is built, approved, signed and activated on the page Releases" in page.text


def test_a_release_page_shows_its_changes_and_a_replay(house: House) -> None:
    page = house.author.get("/releases/release-2")
    for words in (
        f"by {ME}, with engine",
        "Notes without MIT",
        'licenses.licenses.MIT.decision: "admit" becomes "refuse"',
        "Against release 1",
        "1 recorded decision,",
        "newly denied 1",
        "You are its author, so another person approves it",
        f"engine policy sign {house.releases}/release-2 --key private.pem",
    ):
        assert words in page.html.text, page.html.text
    harmless(page.html)
    assert [*house.author.get("/releases/release-1").html.values("button", "value")] == ["approve", "rollback"]
    listed = house.author.get("/releases").html.text
    assert listed.index("release-2") < listed.index("release-1")
    assert house.author.get("/releases/..").status == 404
    assert house.author.post("/releases/release-2", {"verb": "sign"}).status == 404


def test_a_release_is_approved_by_a_person_other_than_its_author(house: House) -> None:
    """The policy decides, and the act is recorded as that of the command is."""
    refused = step(house.author, "release-1", "approve")
    assert (refused.status, "approver_is_requester" in refused.html.text) == (409, True)
    assert read(house.releases / "release-1").approval is None
    done = step(house.lee, "release-1", "approve", reason="seen")
    assert done.status == 303, done.html.text
    approval = read(house.releases / "release-1").approval
    assert approval is not None
    assert (approval.approver, approval.reason) == (LEE, "seen")
    assert f"Approved by {LEE}" in house.author.get("/releases/release-1").html.text
    acts = [line for line in lines(house.state) if line.get("point") == "administration"][-2:]
    assert [(one["principal"], one["input"]["act"], one["outcome"]) for one in acts] == [
        (ME, "approve_release", "deny"),
        (LEE, "approve_release", "allow"),
    ]


@pytest.mark.full
def test_of_two_concurrent_approvals_one_succeeds_and_the_other_gets_a_conflict(house: House, cache: Path) -> None:
    kim, together = "user:kim", Barrier(2)
    token = issue(house.state, kim, points=(), approves=("administration",))
    folder = Path(shutil.copytree(house.releases / "release-2", house.releases / "twice"))
    own: tuple[str | Path, ...] = ("--policy", house.folder / "policy", "--releases", house.releases)
    try:
        with workbench(house.folder, cache, *own, env={"ENGINE_TOKEN": token}, name="kim") as third:
            visitors = {LEE: house.lee, kim: third.visitor()}
            shown = {name: visitor.get("/releases/twice").html for name, visitor in visitors.items()}

            def approve(name: str) -> Page:
                seen = {field: shown[name].field(field) for field in ("seen", "newest")}
                together.wait()
                return visitors[name].post("/releases/twice", {"verb": "approve", "reason": f"by {name}", **seen})

            with ThreadPoolExecutor(2) as pool:
                pages = dict(zip(visitors, pool.map(approve, visitors), strict=True))
        approval = read(folder).approval
        assert approval is not None
        (loser,) = visitors.keys() - {approval.approver}
        assert (pages[approval.approver].status, pages[loser].status) == (303, 409)
        assert f"Approved by {approval.approver} at {approval.approved_at}" in pages[loser].html.text
        assert approval.reason == f"by {approval.approver}"
        acts = [line for line in lines(house.state) if line.get("point") == "administration"]
        id_ = approval.release.removeprefix("sha256:")[:32]
        assert [one["principal"] for one in acts if one["input"]["id"] == id_] == [approval.approver]
    finally:
        shutil.rmtree(folder)


@pytest.mark.full
def test_an_activation_is_recorded_as_done_by_the_person_of_the_workbench(tmp_path: Path, cache: Path) -> None:
    policy, releases = copied(tmp_path), tmp_path / "releases"
    releases.mkdir()
    token = issue(tmp_path / "state", LEE, points=(), approves=("administration",))
    own: tuple[str | Path, ...] = ("--policy", policy, "--releases", releases)
    with (
        serving(tmp_path, cache, "--policy", policy),
        workbench(tmp_path, cache, *own, env={"ENGINE_TOKEN": token}) as running,
    ):
        visitor = running.visitor()
        build(visitor)
        approve_release(
            releases / "release-1", read(releases / "release-1").statement.digest, ME, None, datetime.now(UTC)
        )
        keys = Keys.make(tmp_path / "keys")
        sign_release(releases / "release-1", keys.private, find_binary())
        shown = visitor.get("/releases/release-1").html
        assert f"You activate as {LEE}, and servers record that." in shown.text
        assert "Running servers decide by it at once" in shown.text
        step(visitor, "release-1", "activate", last=shown.field("last"))
        assert (lines(running.state)[-1]["outcome"], lines(running.state)[-1]["principal"]) == ("activated", LEE)
        with closing(open_store(running.state)) as store:
            (row,) = store.tokens()
            store.revoke(row.id, int(time.time()))
        count = len(lines(running.state))
        refused = step(visitor, "release-1", "activate", last=visitor.get("/releases/release-1").html.field("last"))
        assert (refused.status, "credentials are missing or wrong" in refused.html.text) == (409, True)
        assert len(lines(running.state)) == count


def test_a_form_of_an_outdated_page_is_refused(house: House) -> None:
    path, policy = "/releases/release-2", house.folder / "policy" / FILE
    seen = {field: house.lee.get(path).html.field(field) for field in ("seen", "newest")}
    build_form = {field: house.author.get("/releases").html.field(field) for field in ("policy", "newest")}
    before, statement = policy.read_bytes(), (house.releases / "release-2" / STATEMENT).read_bytes()
    policy.write_bytes(before.replace(REFUSED.encode(), ADMITTED.encode()))
    other = house.author.post("/releases", build_form)
    policy.write_bytes(before)
    restate(house.releases / "release-2", notes="something else")
    try:
        changed = [
            house.lee.post(path, {"verb": "approve", "reason": "seen", **seen, **more}) for more in ({}, {"seen": ""})
        ]
        changed.append(house.author.post("/releases", build_form))
    finally:
        (house.releases / "release-2" / STATEMENT).write_bytes(statement)
    changed.append(house.lee.post(path, {"verb": "activate", "last": "1/1", **seen}))
    for page in (other, *changed):
        assert page.status == 409, page.html.text
        assert "has changed since you opened the page; nothing was done" in page.html.text
    assert read(house.releases / "release-2").approval is None
    assert sorted(one.name for one in house.releases.iterdir()) == ["release-1", "release-2"]


def test_without_a_server_nothing_is_activated(house: House) -> None:
    refused = step(house.author, "release-2", "activate", last="none")
    assert (refused.status, "nothing listens" in refused.html.text) == (409, True)


def test_an_agreed_release_is_activated_for_all_engines_of_the_state(
    tmp_path: Path, cache: Path, command: Command
) -> None:
    """By the button if the workbench can verify it; else the page shows the command, and does nothing."""
    keys, releases = Keys.make(tmp_path / "keys"), tmp_path / "releases"
    for number, values in ((1, ()), (2, ("licenses.licenses.MIT.decision=refuse",))):
        sources = PolicySources(ROOT / "rego", ROOT / "policy", ROOT / "bundles" / "default", values)
        released(built(sources, POINTS, find_binary(), cache), releases / f"release-{number}", keys, number)
    state, key = tmp_path / "state", ("--release-key", keys.public)
    assert command("policy", "activate", releases / "release-1", *key, "--state", state).code == 0
    with (
        serving(tmp_path, cache, "--releases", releases, *key) as engine,
        workbench(tmp_path, cache, "--releases", releases, name="without") as without,
        workbench(tmp_path, cache, "--releases", releases, *key, name="with") as able,
    ):
        assert engine.decide("license", ALLOWED).json["outcome"] == "allow"
        visitor = without.visitor()
        page = visitor.get("/releases/release-2").html
        assert "The engines of this state agreed on release 1 of default" in page.text
        assert f"engine policy activate {releases}/release-2 --release-key public.pem" in page.text
        assert "activate" not in page.values("button", "value")
        lee = able.visitor()
        form = lee.get("/releases/release-2").html
        fields = {name: form.field(name) for name in ("seen", "newest", "last")}
        fields |= {"verb": "activate", "reason": "because"}
        refused = visitor.post("/releases/release-2", fields)
        assert (refused.status, "has no key to verify another one" in refused.html.text) == (409, True)
        assert engine.decide("license", ALLOWED).json["outcome"] == "allow"
        done = lee.post("/releases/release-2", fields)
        assert done.status == 303, done.html.text
        assert engine.decide("license", ALLOWED).json["outcome"] == "deny"
        assert f"activated by {ME}: because" in lee.get("/releases/release-2").html.text
        again = lee.post("/releases/release-2", fields)
        assert (again.status, "has changed since you opened the page" in again.html.text) == (409, True)
        assert "activate" not in lee.get("/releases/release-2").html.values("button", "value")
        shown = lee.get("/releases/release-1").html
        again = lee.post("/releases/release-2", fields | {"last": shown.field("last")})
        assert (again.status, "is active already; nothing was changed" in again.html.text) == (409, True)
        refused = step(lee, "release-1", "activate", last=shown.field("last"))
        assert (refused.status, "this is a rollback" in refused.html.text) == (409, True)
        status = command("policy", "status", "--state", state)
        assert (status.code, status.stdout.count(" serves release 2, last seen ")) == (0, 1)


@pytest.mark.full
def test_a_rollback_is_a_release_with_the_next_number_and_a_reason(house: House) -> None:
    assert "the rollback has no reason" in step(house.author, "release-1", "rollback", reason=" ").html.text
    assert "is not earlier than" in step(house.author, "release-2", "rollback").html.text
    done = step(house.author, "release-1", "rollback", reason="too strict")
    try:
        assert done.headers.get("location") == "/releases/release-3", done.html.text
        text = house.author.get("/releases/release-3").html.text
        assert "rollback to release 1: too strict" in text
        assert '"refuse" becomes "admit"' in text
        assert (
            read(house.releases / "release-3").statement.values == read(house.releases / "release-1").statement.values
        )
    finally:
        shutil.rmtree(house.releases / "release-3")


@pytest.mark.full
@pytest.mark.threat("injection")
def test_hostile_text_in_releases_and_their_history_does_nothing(house: House) -> None:
    name = "<script>alert(1)<" + chr(92) + "img onerror=alert(1)>\"'&{{7*7}}"
    folder = Path(shutil.copytree(house.releases / "release-2", house.releases / name))
    broken = Path(shutil.copytree(house.releases / "release-1", house.releases / "<b>broken"))
    (broken / CHANGES).write_text("<script>alert(1)</script>")
    revisions = Revisions(rules="sha256:" + "1" * 64, values="sha256:" + "2" * 64)
    release = RecordedRelease(name=NASTY, sequence=1, digest=revisions.rules, author=NASTY, approver=NASTY, notes=NASTY)
    with RecordLog.open(Storage(house.state), lock_seconds=5) as log:
        log.append(
            PolicyRecord(
                time="2026-11-21T00:00:00.000000Z",
                outcome="activated",
                principal=NASTY,
                reason=NASTY,
                previous=None,
                revisions=revisions,
                code=None,
                release=release,
            )
        )
    restate(folder, author=NASTY, notes=NASTY)
    approve_release(folder, read(folder).statement.digest, LEE + NASTY, NASTY, datetime.now(UTC))
    try:
        listed = house.author.get("/releases")
        links = [link for link in listed.html.values("a", "href") if link.startswith("/releases/")]
        assert len(links) == 4
        assert listed.html.text.count(SHOWN) == 3 + 6
        pages = [listed, *map(house.author.get, links)]
        pages.append(house.author.post("/releases", {"notes": NASTY}))
        pages.append(house.author.post("/releases/release-2", {"verb": "approve", "reason": NASTY}))
        for page in pages:
            assert page.status in {200, 409}, page.html.text
            harmless(page.html)
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(broken)


@pytest.mark.threat("injection")
@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/releases", {"notes": "x"}),
        *(("/releases/release-2", {"verb": one}) for one in ("approve", "activate", "rollback")),
    ],
    ids=str,
)
def test_forms_of_other_sites_and_without_the_key_do_nothing(house: House, path: str, fields: dict[str, str]) -> None:
    before = sorted(house.releases.rglob("*"))
    record = len(lines(house.state))
    for headers in ({"Origin": "http://evil.example"}, {"Origin": ""}, {"Sec_Fetch_Site": "cross-site"}):
        assert house.lee.post(path, fields, **headers).status == 403
    assert house.lee.post(path, {**fields, "form_key": house.author.key}).status == 403
    assert (sorted(house.releases.rglob("*")), len(lines(house.state))) == (before, record)


def test_without_a_folder_of_releases_the_page_says_so(visitor: Visitor) -> None:
    assert "No folder for releases was named" in visitor.get("/releases").html.text
    assert "there is no folder for releases" in visitor.post("/releases", {"notes": "x"}).html.text


@pytest.mark.full
def test_a_record_that_is_broken_or_a_policy_with_problems_is_not_released(tmp_path: Path, cache: Path) -> None:
    policy, releases = copied(tmp_path), tmp_path / "releases"
    releases.mkdir()
    with Engine(Settings(state=tmp_path / "state", cache=cache, policy=policy)) as engine:
        engine.decide("license", ALLOWED)
    record = next((tmp_path / "state").rglob("decisions*.jsonl"))
    with workbench(tmp_path, cache, "--policy", policy, "--releases", releases) as running:
        visitor = running.visitor()
        whole = record.read_bytes()
        record.write_bytes(whole.replace(b'"outcome":"allow"', b'"outcome":"deny"', 1))
        assert "the record does not verify" in build(visitor, 409, replay="yes").html.text
        record.write_bytes(whole)
        shown = visitor.get("/releases").html
        fields = {name: shown.field(name) for name in ("policy", "newest")}
        text = (policy / FILE).read_text(encoding="utf-8")
        (policy / FILE).write_text(text.replace(ADMITTED, ADMITTED.replace("admit", "perhaps")), encoding="utf-8")
        assert "must be 'admit', 'review' or 'refuse'" in visitor.post("/releases", fields).html.text
        assert "so no release can be built of it" in visitor.get("/releases").html.text
    assert not [*releases.iterdir()]
