"""What the pages show: the record, the policy and approvals, with every text escaped."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from engine.engine import Engine
from engine.flow import Context
from engine.model import Caller, Via
from engine.record.layout import DECISIONS
from engine.settings import Settings
from engine.state import open_store
from tests.api.serving import ALLOWED, issue
from tests.cli.test_approvals import ME
from tests.command import Command, lines
from tests.conftest import BUNDLES, NOW, ROOT
from tests.policy_bundle.test_waivers import BUNDLE
from tests.workbench.conftest import NASTY, ask, copied, waive
from tests.workbench.pages import Html, Visitor, Workbench, workbench

SHOWN = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\\x1b[31m\\u202e{{7*7}}"
"""The hostile text as a person reads it."""


def found(visitor: Visitor, query: str = "") -> list[str]:
    """Ids of the decisions on a page of the list."""
    links = visitor.get(f"/decisions{query}").html.values("a", "href")
    return [link.removeprefix("/decisions/") for link in links if link.startswith("/decisions/")]


@pytest.mark.threat("injection")
def test_hostile_text_is_shown_and_does_nothing(bench: Workbench, visitor: Visitor) -> None:
    ids = found(visitor)
    with closing(open_store(bench.state)) as store:
        approvals = [row.id for row in store.approvals(None, 10)]
    pages = [visitor.get(f"/decisions/{one}") for one in ids[:3]]
    assert all(SHOWN in page.html.text for page in pages[:1])
    pages += [visitor.get(f"/approvals/{one}") for one in approvals]
    pages += [visitor.get(path) for path in ("/approvals", "/waivers", "/coverage", "/machine")]
    pages += [visitor.get("/edit?file=policy/licenses.yaml"), visitor.get("/edit?file=<script>alert(1)</script>")]
    filters = "?code=%3Cscript%3Ealert(1)%3C/script%3E&principal=%22onfocus=alert(1)%20autofocus=%22"
    pages += [visitor.get(f"/decisions{filters}"), visitor.get("/<script>alert(1)</script>")]
    pages.append(
        visitor.post("/edit", {"file": "policy/licenses.yaml", "text": "<script>alert(1)</script>", "before": "\"'>"})
    )
    pages.append(visitor.post(f"/decisions/{ids[0]}", {"overrides": NASTY}))
    for page in pages:
        assert page.status in {200, 404, 422}, page.html.text
        harmless(page.html)


def test_tables_of_the_policy_are_decided_apart_from_the_state_that_engines_share(tmp_path: Path, cache: Path) -> None:
    """They would be refused once the engines agreed on a release, and while the state cannot be reached."""
    away = {"ENGINE_STATE_DATABASE": "postgresql://nobody@/none?host=/nowhere"}
    with workbench(tmp_path, cache, env=away) as running:
        visitor = running.visitor()
        for path, named in (("/licenses", "CC-BY-4.0"), ("/tools", "http_get")):
            page = visitor.get(path)
            assert (page.status, named in page.html.text) == (200, True), page.html.text


def harmless(page: Html) -> None:
    """Everything in a page that a browser would act on is ours."""
    for tag, attributes in page.elements:
        assert tag not in {"img", "iframe", "object", "embed", "base", "style"}
        assert not [name for name in attributes if name.startswith("on") or name in {"style", "srcdoc"}]
        assert tag != "script" or attributes == {"src": "/static/workbench.js", "type": "module"}
        for name in ("href", "action", "src"):
            assert re.match(r"/(?!/)|#|data:,$", attributes.get(name, "/")), attributes


def test_decisions_are_found_by_what_the_record_has(visitor: Visitor) -> None:
    ids = found(visitor)
    assert len(ids) == 23
    assert found(visitor, f"?decision_id={ids[4][:9]}") == [ids[4]]
    assert len(found(visitor, "?outcome=allow&principal=pipeline")) == 20
    assert found(visitor, "?mode=check") == [ids[2]]
    assert found(visitor, "?code=license_decision_missing") == [ids[0], ids[2]]
    assert found(visitor, "?since=2026-01-01&until=2026-01-02") == []
    assert found(visitor, "?code=engine.request_invalid") == [ids[1]]
    mistyped = visitor.get("/decisions?since=yesterday&point=license")
    assert (mistyped.status, "yesterday is not a time" in mistyped.html.text) == (400, True)
    assert ("input", {"name": "since", "value": "yesterday"}) in [
        (tag, {name: attributes.get(name) for name in ("name", "value")}) for tag, attributes in mistyped.html.elements
    ]
    assert visitor.get("/decisions?cursor=abc").status == 400


def test_a_decision_is_shown_in_full(bench: Workbench, visitor: Visitor) -> None:
    last = found(visitor)[0]
    text = visitor.get(f"/decisions/{last}").html.text
    line = lines(bench.state)[-1]
    for words in (
        "deny at license enforced",
        last,
        f"line {line['seq']} of chain 1, after the line with SHA-256 {line['prev']}",
        line["policy"]["rules"],
        "The decision was taken by another policy than the one in the folders now.",
        "deny license_decision_missing",
        "Rule: rego/admission/requirements/license/",
        '"purpose": "train"',
    ):
        assert words in text, text
    assert "The engine itself refused the request" in visitor.get(f"/decisions/{found(visitor)[1]}").html.text
    assert visitor.get("/decisions/0000").status == 404


def test_a_decision_is_tried_with_other_values_and_nothing_is_recorded(bench: Workbench, visitor: Visitor) -> None:
    record = (bench.state / DECISIONS).read_bytes()
    allowed = found(visitor, "?outcome=allow")[0]
    tried = visitor.post(f"/decisions/{allowed}", {"overrides": "licenses.licenses.MIT.decision=refuse"}).html.text
    assert "It would be deny: newly denied." in tried
    assert "license_incompatible: no finding before, deny now" in tried
    same = visitor.post(f"/decisions/{allowed}", {"overrides": ""}).html.text
    assert "It would be allow, with the same findings and limits." in same
    wrong = visitor.post(f"/decisions/{allowed}", {"overrides": "licenses.licenses.MIT.decision=perhaps"}).html.text
    assert "1 problem. Nothing was written." in wrong
    assert (bench.state / DECISIONS).read_bytes() == record


def test_the_matrix_has_the_answers_of_the_policy(visitor: Visitor) -> None:
    page = visitor.get("/licenses")
    harmless(page.html)
    row = re.search(r'<th scope="row">CC-BY-NC-4.0</th>(.*?)</tr>', page.body, re.DOTALL)
    assert row is not None
    assert re.findall(r'class="tag ([a-z]+)"', row[1]) == ["deny", "confirm", "deny", "deny"]  # train, eval, tool, …
    assert "policy/licenses.yaml#L" in row[1]
    assert visitor.get("/licenses?export=Nobody-1.0").status == 404


@pytest.mark.full
def test_the_matrix_shows_the_outcomes_for_an_export_license(visitor: Visitor) -> None:
    exported = visitor.get("/licenses?export=CC0-1.0")
    row = re.search(r'<th scope="row">CC-BY-4.0</th>(.*?)</tr>', exported.body, re.DOTALL)
    assert row is not None
    assert re.findall(r'class="tag ([a-z]+)"', row[1]) == ["deny"] * 4  # attribution cannot be passed on under CC0


def test_requirements_are_shown_with_words_rows_and_tests(visitor: Visitor) -> None:
    assert "license" in visitor.get("/policy").html.text
    text = visitor.get("/policy/license").html.text
    for words in ("license_incompatible", "Row A", "test_", "Reads licenses.licenses.", "Remedy Replace the content"):
        assert words in text, text
    assert visitor.get("/policy/nowhere").status == 404


def test_tools_are_shown_by_profile(visitor: Visitor) -> None:
    page = visitor.get("/tools?policy=assistant")
    row = re.search(r'<th scope="row">files_write<br>(.*?)</tr>', page.body, re.DOTALL)
    assert row is not None
    assert re.findall(r">(visible|hidden)<", row[1]) == ["visible", "hidden", "hidden", "hidden"]
    for words in ("workspace/ask_before_delete confirm contacts_delete", "data.example.org"):
        assert words in page.html.text


def test_coverage_and_machine_say_what_the_commands_say(visitor: Visitor) -> None:
    coverage = visitor.get("/coverage").html
    assert "Points at which no recorded decision was taken" in coverage.text
    assert re.search(r":\d\d UTC. None of this changes a decision", coverage.text)
    assert re.search(r"no rule covers the tool contacts_add \S+/policy/tools.yaml:\d", coverage.text)
    assert "opa answers" in visitor.get("/machine").html.text
    assert "The record is intact: " in visitor.post("/machine").html.text


def test_waivers_are_shown_with_owner_approver_and_faults(visitor: Visitor) -> None:
    page = visitor.get("/waivers")
    harmless(page.html)
    idle, applying = (part for part in page.html.text.split("retention_unknown at source") if "Subject" in part)
    for words in (
        "Subject records/contacts-1 Principal any",
        "bundle.digest sha256:",
        "Reason terms are being renewed",
    ):
        assert words in applying, page.html.text
    assert "Owner data@example.org Approver compliance@example.org Let through 0 decisions" in applying
    for words in ("It does nothing: its approver is its owner. Remedy: have", f"Reason {SHOWN}", f"Approver {SHOWN}"):
        assert words in idle, page.html.text
    assert [link for link in page.html.values("a", "href") if link.startswith("/edit?file=policy/waivers.yaml#L")]
    assert "tool_call tool_not_in_profile call.tool nothing" in page.html.text


@pytest.mark.full
def test_a_waiver_is_shown_with_what_it_let_through(tmp_path: Path, cache: Path) -> None:
    policy, then = copied(tmp_path), datetime.fromisoformat(NOW)
    waive(policy, "terms", then.date())
    own = Settings(state=tmp_path / "state", cache=cache, policy=policy)
    with Engine(own, now=lambda: then, points=frozenset({"source"})) as engine:
        allowed = engine.decide("source", {"path": str(BUNDLE), "digest": None}).decision
    with workbench(tmp_path, cache, "--policy", policy) as running:
        visitor = running.visitor()
        page = visitor.get("/waivers").html
        assert "Let through 1 decision; 0 dry runs" in page.text
        assert f"/decisions/{allowed.decision_id}" in page.values("a", "href")
        (policy / "waivers.yaml").write_bytes((ROOT / "policy" / "waivers.yaml").read_bytes())
        assert "does nothing: it is no longer in the policy" in visitor.get("/waivers").html.text


def test_a_request_for_approval_is_told_in_words(bench: Workbench, visitor: Visitor, cache: Path) -> None:
    with Engine(Settings(state=bench.state, cache=cache)) as engine:
        by = Context(caller=Caller(via=Via.PROCESS, principal="pipeline-5"), run="nightly")
        decision = engine.decide("license", {**ALLOWED, "license": "EPL-2.0 OR MPL-2.0"}, context=by).decision
    assert decision.approval is not None
    listed = visitor.get("/approvals").html.text
    assert "license EPL-2.0 or MPL-2.0" in listed, listed
    shown = visitor.get(f"/approvals/{decision.approval.id}")
    for words in (
        "Approval of license: EPL-2.0 or MPL-2.0",
        "pipeline-5 asked at",
        "in run nightly",
        "License EPL-2.0 or MPL-2.0 Purpose train",
        "Why it waits",
        "because this does not hold: The license is admitted without review license_review_required",
        "licenses.licenses.MPL-2.0",
        "exactly this request",
        f"once, until {decision.approval.expires_at}",
    ):
        assert words in shown.html.text, shown.html.text
    assert shown.body.index("<details>") < shown.body.index("alternatives")  # the facts are in the fold


def test_decisions_on_sources_name_their_bundle(tmp_path: Path, cache: Path) -> None:
    with Engine(Settings(state=tmp_path / "state", cache=cache)) as engine:
        engine.check("source", {"path": str(BUNDLES / "offline_fixture"), "digest": None})
    with workbench(tmp_path, cache) as running:
        assert "source contacts-2026-11" in running.visitor().get("/decisions").html.text


def test_a_named_person_decides_on_an_approval(bench: Workbench, visitor: Visitor) -> None:
    row, other = ask(bench.state, requester="pipeline-8"), ask(bench.state, requester="pipeline-9")
    assert f"You act as {ME}." in visitor.get("/approvals").html.text
    assert visitor.post(f"/approvals/{row.id}", {"verb": "grant", "reason": "looked at it"}).status == 303
    shown = visitor.get(f"/approvals/{row.id}").html
    assert f"Decided by {ME}" in shown.text
    assert "looked at it" in shown.text
    assert "verb" not in shown.values("button", "name")
    silent = visitor.post(f"/approvals/{other.id}", {"verb": "refuse"})
    assert (silent.status, "reason_missing: required: The act has a reason" in silent.html.text) == (409, True)
    assert "--reason" not in silent.html.text
    assert visitor.post(f"/approvals/{other.id}", {"verb": "refuse", "reason": "not like this"}).status == 303
    act = [line for line in lines(bench.state) if line.get("point") == "administration"][-1]
    assert (act["principal"], act["input"]["act"], act["outcome"]) == (ME, "refuse_approval", "allow")
    assert visitor.post(f"/approvals/{other.id}", {"verb": "approve"}).status == 404


def test_a_request_that_waits_is_listed_however_many_were_decided_since(tmp_path: Path, cache: Path) -> None:
    state = tmp_path / "state"
    waiting = ask(state, requester="patient")
    with closing(open_store(state)) as store:
        for number in range(200):
            new = replace(waiting, id=f"{number:032x}", requester=f"quick-{number}")
            store.resolve(store.request_approval(new).id, "refused", ME, "no", waiting.created_at)
    with workbench(tmp_path, cache) as running:
        page = running.visitor().get("/approvals").html
    assert f"/approvals/{waiting.id}" in page.values("a", "href")
    assert "quick-199" in page.text


def test_an_approval_that_expired_while_the_page_was_open_is_refused(bench: Workbench, visitor: Visitor) -> None:
    row = ask(bench.state, requester="slow")
    assert "verb" in visitor.get(f"/approvals/{row.id}").html.values("button", "name")
    with closing(open_store(bench.state)) as store:
        store._database.write(
            lambda connection: connection.execute("UPDATE approvals SET created_at = 1, expires_at = 2")
        )
    refused = visitor.post(f"/approvals/{row.id}", {"verb": "grant"})
    assert refused.status == 409
    assert "expired Approval of license" in refused.html.text
    assert "verb" not in refused.html.values("button", "name")
    with closing(open_store(bench.state)) as store:
        assert [one.state for one in store.approvals(None, 100) if one.id == row.id] == ["requested"]


@pytest.mark.full
def test_a_token_names_the_person_who_decides(tmp_path: Path, cache: Path) -> None:
    state = tmp_path / "state"
    row, token = ask(state), issue(state, "user:lee", points=(), approves=("license",))
    with workbench(tmp_path, cache, env={"ENGINE_TOKEN": token}) as running:
        visitor = running.visitor()
        assert "You act as user:lee." in visitor.get("/approvals").html.text
        assert visitor.post(f"/approvals/{row.id}", {"verb": "grant"}).status == 303
    with closing(open_store(state)) as store:
        (granted,) = store.approvals("granted", 1)
    assert granted.approver == "user:lee"


def test_an_empty_record_is_reported_on_the_pages(tmp_path: Path, cache: Path) -> None:
    with workbench(tmp_path, cache) as running:
        visitor = running.visitor()
        assert "Nothing has been recorded yet" in visitor.get("/decisions").html.text
        assert "None." in visitor.get("/approvals").html.text
        assert "No decision is recorded yet" in visitor.get("/coverage").html.text
        assert visitor.get("/decisions/0000").status == 404
        assert not running.state.exists()
        running.process.terminate()
        assert running.process.wait(30) == 0


def test_a_wrong_token_or_a_used_port_ends_the_command(command: Command, bench: Workbench) -> None:
    command("workbench", env={"ENGINE_TOKEN": "guess"}).refused("credentials are missing or wrong", code=4)
    command("workbench", "--port", str(bench.port)).refused(f"cannot listen on `127.0.0.1` port {bench.port}")
