"""The page of runs: code and episodes in a list, one in full, and what it left as files that do nothing."""

from __future__ import annotations

import base64
import json
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from admission_adapters.files.artifact_store import ArtifactStore
from engine.engine import Engine
from engine.episodes.definition import read_definition
from engine.flow import Context
from engine.model import Caller, Via
from engine.settings import ReadLimits, Settings
from engine.state import open_store
from engine.state.rows import CodeRunRow
from tests.code.conftest import golden
from tests.command import Command, lines
from tests.conftest import ROOT
from tests.episodes.scripts import episode, proposal, text
from tests.facilities import needs
from tests.workbench.conftest import NASTY
from tests.workbench.pages import Page, Visitor, workbench
from tests.workbench.test_pages import SHOWN, harmless

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")
"""A picture of one pixel."""

PAGE = f"<!doctype html><script>{NASTY}</script>".encode()
OWNER = f"process:{NASTY}"
MARKET = read_definition(ROOT / "fixtures" / "episodes" / "market.yaml", ReadLimits())


@dataclass(frozen=True, slots=True)
class Office:
    """A workbench on runs of many kinds."""

    state: Path
    visitor: Visitor
    refused: str
    """The id of a run of code that a policy refused."""

    hostile: str
    """The id of one whose every text is hostile."""


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Office]:
    folder = tmp_path_factory.mktemp("runs")
    state = folder / "state"
    by = Context(caller=Caller(via=Via.PROCESS, principal=NASTY), run=NASTY)
    with Engine(Settings(state=state, cache=cache)) as engine:
        refused = engine.run_code(golden("import socket"), Context(caller=Caller(via=Via.PROCESS, principal="ana")))
        engine.episode(MARKET, episode="market")
        engine.episode(
            episode([proposal(dialogue=NASTY)], [proposal(resolution=True)], _judge(NASTY)), episode="nasty", context=by
        )
        engine.decide("episode", {"episode": "x", "event": {"kind": "end", "review": []}, **_request("lonely")})
    hostile = planted(state)
    with workbench(folder, cache) as running:
        yield Office(state, running.visitor(), str(refused.document["run_id"]), hostile)


def _judge(words: str) -> dict[str, object]:
    return {"id": "judge", "role": "Judge", "rounds": [1], "script": [text(words)]}


def _request(name: str) -> dict[str, object]:
    """An episode that never started."""
    ceilings = {"max_episode_tokens": 10, "max_turns": 1, "max_steps": 1, "max_spend_micros": 1}
    ceilings |= {"forced_concession_threshold": 1, "retries": 0}
    rest = {"actors": [], "state": [], "ceilings": ceilings, "history": [], "running": []}
    return {**rest, "episode": name, "ended": False, "broken": False}


def planted(state: Path) -> str:
    """A kept run in which every text that others choose is hostile, with files of three kinds."""
    now, store = int(time.time()), ArtifactStore(state / "artifacts")
    left = {f"{NASTY}/../page.html": PAGE, "chart.png": PNG, "chart.svg": b"<svg onload='alert(1)'/>", "x.png": PAGE}
    document = {
        "phase": NASTY,
        "answer": NASTY,
        "trace": [{"step": 1, "phase": NASTY, "ok": False, "error": NASTY, "stdout_snippet": NASTY}],
        "findings": [{"point": NASTY, "code": NASTY, "subject": NASTY, "requirement": NASTY, "remedy": NASTY}],
        "stored": {"code": store.put(b"print(1)", now, 1), "log": "sha256:" + "0" * 64},
        "artifacts": [
            {"path": path, "bytes": len(data), "sha256": sha256(data).hexdigest(), "stored": store.put(data, now, 1)}
            for path, data in left.items()
        ],
        "artifacts_not_kept": [{"name": NASTY, "reason": NASTY}],
        "stop_reason": NASTY,
    }
    row = CodeRunRow(str(uuid.uuid4()), OWNER, "stopped", NASTY, NASTY, json.dumps(document), now, now, now + 900)
    with closing(open_store(state)) as kept:
        kept.add_code_run(row)
    return row.id


def times(page: Page) -> list[str]:
    return re.findall(r'<time datetime="([^"]+)"', page.body)


def test_runs_are_listed_the_newest_first_and_found_by_filters(office: Office) -> None:
    page = office.visitor.get("/runs")
    links = [link for link in page.html.values("a", "href") if link.startswith(("/runs/", "/episodes/"))]
    assert links == [f"/runs/{office.hostile}", f"/runs/{office.refused}", "/episodes/nasty", "/episodes/market"]
    assert "completed" in page.html.text
    for query, wanted in {
        "kind=code": links[:2],
        "kind=episode": links[2:],
        "caller=ana": links[1:2],
        "run=mark": links[3:],
        "ended=completed&kind=episode": ["/episodes/market"],
        "ended=policy_block": links[1:2],
        "kind=episode&run=none": [],
    }.items():
        found = office.visitor.get(f"/runs?{query}").html.values("a", "href")
        assert [link for link in found if link in links] == wanted, query
    assert office.visitor.get("/runs?kind=code&after=x").status == 400
    assert office.visitor.get("/runs?kind=episode&after=x").status == 400


def test_a_refused_run_of_code_is_shown_as_it_was_recorded(office: Office, command: Command) -> None:
    page = office.visitor.get(f"/runs/{office.refused}")
    listed = command("code", "runs", "--state", office.state, "--format", "json").json["runs"]
    (told,) = [one for one in listed if one["id"] == office.refused]
    assert told["stop_reason"] in page.html.text
    recorded = [line for line in lines(office.state) if line.get("request_id") == office.refused]
    assert times(page) == [line["time"] for line in recorded]
    assert len(recorded) > 2
    links = page.html.values("a", "href")
    ids = [line["decision_id"] for line in recorded if line["kind"] == "decision"]
    assert [link for link in links if link.startswith("/decisions/")] == [f"/decisions/{id_}" for id_ in ids]
    codes = [finding["code"] for line in recorded for finding in line.get("findings", ())]
    assert codes
    assert all(code in page.html.text for code in codes)


def test_an_episode_is_shown_decision_by_decision_with_its_texts_and_end(office: Office) -> None:
    page = office.visitor.get("/episodes/market")
    for words in (
        "completed Episode market",
        "agent_a (Actor)",
        "8, 8 replies accepted, 1 rejected",
        "Tokens 560",
        "deny proposal 3.1 of agent_b unauthorized_state_transition",
        "Agent_B_Concessions.price becomes 90",
        "Entry 5, hint of hints (Capitalizer) for hints, agent_b, for review: A thinks:",
        "I can go down to 110.",
        "Agent_B_Concessions price 100, warranty true",
    ):
        assert words in page.html.text, page.html.text
    assert (
        len(times(page)) == len([one for one in page.html.values("a", "href") if one.startswith("/decisions/")]) == 29
    )
    assert times(page) == sorted(times(page))
    assert "deny end" in office.visitor.get("/episodes/lonely").html.text
    assert "not allowed to start" in office.visitor.get("/episodes/lonely").html.text
    for name in ("nobody", "..", "%2e%2e%2fkeys", "x" * 65):
        assert office.visitor.get(f"/episodes/{name}").status == 404
        assert office.visitor.get(f"/episodes/{name}/transcript").status == 404


def test_a_changed_transcript_is_reported_and_not_shown(office: Office) -> None:
    file = office.state / "episodes" / "market.jsonl"
    before = file.read_bytes()
    file.write_bytes(before.replace(b"I can go down to 110.", b"I can go down to 10."))
    try:
        shown = office.visitor.get("/episodes/market").html.text
    finally:
        file.write_bytes(before)
    assert "is not the one that was recorded" in shown
    assert "I can go down to 10" not in shown


@pytest.mark.threat("injection")
def test_hostile_text_in_runs_is_shown_and_does_nothing(office: Office) -> None:
    for path in (
        "/runs",
        f"/runs?caller={'%3Cscript%3E'}&run=%22onfocus=alert(1)&ended=%3Cimg%20src=x%3E",
        "/episodes/nasty",
        "/runs/%3Cscript%3Ealert(1)",
        "/episodes/%3Cscript%3Ealert(1)",
    ):
        page = office.visitor.get(path)
        assert page.status in {200, 404}, page.html.text
        harmless(page.html)
    assert office.visitor.get("/episodes/nasty").html.text.count(SHOWN) > 3
    html = office.visitor.get(f"/runs/{office.hostile}").html
    assert html.text.count(SHOWN) > 10
    pictures = [found for tag, found in html.elements if tag == "img"]
    assert [(one["alt"], one["class"]) for one in pictures] == [("chart.png", "kept")]
    assert all(one["src"].startswith(f"/runs/{office.hostile}/file?") for one in pictures)
    html.elements = [one for one in html.elements if one[0] != "img"]
    harmless(html)


@pytest.mark.threat("injection")
def test_a_file_of_a_run_is_sent_as_an_inert_attachment(office: Office) -> None:
    page = office.visitor.get(f"/runs/{office.hostile}")
    links = [link for link in page.html.values("a", "href") if "/file?" in link]
    assert len(links) == 6
    found = {link: office.visitor.get_bytes(link) for link in links}
    assert {one.status for one, _ in found.values()} == {200, 404}  # the log is no longer kept
    kinds = set()
    for answer, data in found.values():
        if answer.status == 200:
            kinds.add((answer.headers["content-type"], data[:4]))
            assert answer.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
            assert re.fullmatch(r"attachment; filename\*=UTF-8''[\w.%~-]+", answer.headers["content-disposition"])
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox; frame-ancestors 'none'"
    any_ = "application/octet-stream"
    assert kinds == {(any_, PAGE[:4]), ("image/png", PNG[:4]), (any_, b"<svg"), (any_, b"prin")}
    assert Visitor(office.visitor.port).get(links[0]).status == 403
    other = "sha256:" + sha256(b"of another run").hexdigest()
    ArtifactStore(office.state / "artifacts").put(b"of another run", int(time.time()), 1)
    assert office.visitor.get(f"/runs/{office.hostile}/file?digest={other}").status == 404
    transcript, data = office.visitor.get_bytes("/episodes/market/transcript")
    assert transcript.headers["content-disposition"] == "attachment; filename*=UTF-8''market.jsonl"
    assert data == (office.state / "episodes" / "market.jsonl").read_bytes()
    assert f"sha256:{sha256(data).hexdigest()}" in office.visitor.get("/episodes/market").html.text


def test_an_artifact_that_was_changed_is_not_sent(office: Office) -> None:
    digest = sha256(b"print(1)").hexdigest()
    path = office.state / "artifacts" / digest[:2] / digest
    kept = path.stat()
    path.chmod(0o600)
    path.write_bytes(b"print(2)")
    try:
        answer = office.visitor.get(f"/runs/{office.hostile}/file?digest=sha256:{digest}")
        assert (answer.status, "was changed after it was stored" in answer.html.text) == (500, True)
        assert "not kept" in office.visitor.get(f"/runs/{office.hostile}").html.text
    finally:
        path.write_bytes(b"print(1)")
        import os

        os.utime(path, (kept.st_mtime, kept.st_mtime))


@pytest.mark.full
@needs("bubblewrap")
def test_a_run_that_succeeded_is_shown_with_its_sandbox_and_what_it_left(tmp_path: Path, cache: Path) -> None:
    with Engine(Settings(state=tmp_path / "state", cache=cache)) as engine:
        done = engine.run_code(golden())
    assert done.ok, done.document
    with workbench(tmp_path, cache) as running:
        visitor = running.visitor()
        page = visitor.get(f"/runs/{done.document['run_id']}")
        text_ = page.html.text
        names = ["code_action", "code_scan", "code_execution", "code_output"]
        assert re.findall(r'href="/decisions/[^"]+">(\w+)</a>', page.body) == names
        assert "end success, root cause none" in text_
        assert done.document["answer"] in text_
        (code,) = [
            link for link in page.html.values("a", "href") if done.document["stored"]["code"].split(":")[1] in link
        ]
        _, data = visitor.get_bytes(code)
        assert data.decode() == golden()["action"]["code"]
        shutil.rmtree(running.state / "artifacts")
        assert visitor.get(code).status == 404


@pytest.mark.full
def test_a_long_list_is_read_page_by_page(tmp_path: Path, cache: Path) -> None:
    now = int(time.time())
    quick = episode([proposal(resolution=True)], [proposal(resolution=True)])
    with Engine(Settings(state=tmp_path / "state", cache=cache)) as engine:
        for first in range(0, 120, 40):
            engine.episodes([(f"e{number}", quick) for number in range(first, first + 40)])
        store = engine.store()
        for number in range(120):
            id_ = str(uuid.UUID(int=number))
            store.add_code_run(CodeRunRow(id_, "process:x", "ok", "success", None, None, now, now, now + 900))
    with workbench(tmp_path, cache) as running:
        visitor = running.visitor()
        for kind, start in (("code", "/runs/"), ("episode", "/episodes/")):
            path, found = f"/runs?kind={kind}", list[str]()
            for _ in range(9):
                page = visitor.get(path)
                own = [link for link in page.html.values("a", "href") if link.startswith(start)]
                assert 0 < len(own) < 120
                assert "unknown" not in page.html.text
                assert "not ended" not in page.html.text
                found += own
                further = [link for link in page.html.values("a", "href") if link.startswith("/runs?")]
                if not further:
                    break
                (path,) = further
            assert len(found) == len(set(found)) == 120, kind
