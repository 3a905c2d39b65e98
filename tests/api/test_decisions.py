"""Reading the record over HTTP: one's own decisions with a token, everyone's where the policy says so."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.serving import ALLOWED, LICENSE, Reply, Serving, issue, serving
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Serving]:
    """An engine that ana and lee have asked, in turns; an auditor may read everything."""
    folder = tmp_path_factory.mktemp("decisions")
    policy = folder / "policy"
    shutil.copytree(ROOT / "policy", policy)
    callers = policy / "callers.yaml"
    callers.write_text(callers.read_text().replace("  principals: []", "  principals: [auditor]"))
    with serving(folder, cache, "--policy", policy) as running:
        for number in range(6):
            who, asked = ("ana", "lee")[number % 2], (ALLOWED, LICENSE)[number // 3]
            assert running.ask("POST", "/v1/decide/license", asked, token(running, who)).status == 200
        yield running


_TOKENS: dict[tuple[Path, str], dict[str, str]] = {}


def token(running: Serving, principal: str, points: tuple[str, ...] = ("license", "record_read")) -> dict[str, str]:
    """The header of a token, the same for the same principal."""
    key = (running.state, principal)
    if key not in _TOKENS:
        _TOKENS[key] = {"Authorization": f"Bearer {issue(running.state, principal, points)}"}
    return _TOKENS[key]


def read(running: Serving, who: str, query: str = "", **how: Any) -> Reply:
    return running.ask("GET", f"/v1/decisions{query}", headers=token(running, who), **how)


def licenses(reply: Reply) -> list[tuple[str, str]]:
    assert reply.status == 200, reply.body
    return [(one["principal"], one["outcome"]) for one in reply.json["decisions"] if one["point"] == "license"]


def test_a_caller_reads_its_own_decisions_and_no_others(api: Serving) -> None:
    assert licenses(read(api, "ana")) == [("ana", "deny"), ("ana", "allow"), ("ana", "allow")]
    assert licenses(read(api, "lee")) == [("lee", "deny"), ("lee", "deny"), ("lee", "allow")]
    reply = read(api, "ana", "?whose=all")
    assert (reply.status, reply.json["code"]) == (403, "engine.not_permitted")
    assert [one["code"] for one in reply.json["decision"]["findings"]] == ["record_read_out_of_scope"]


def test_an_auditor_reads_everyones(api: Serving) -> None:
    found = licenses(read(api, "auditor", "?whose=all&point=license"))
    assert [who for who, _ in found] == ["lee", "ana"] * 3
    assert licenses(read(api, "auditor", "?point=license")) == []


def test_filters_and_pages(api: Serving) -> None:
    assert licenses(read(api, "lee", "?point=license&outcome=allow")) == [("lee", "allow")]
    first = read(api, "lee", "?point=license&limit=2").json
    second = read(api, "lee", f"?point=license&limit=2&cursor={first['next']}").json
    times = [one["time"] for page in (first, second) for one in page["decisions"]]
    assert (len(times), times) == (3, sorted(times, reverse=True))
    assert second["next"] is None
    assert licenses(read(api, "lee", f"?point=license&since={times[1]}&until={times[0]}")) == [("lee", "deny")]
    since, until = times[1].replace("Z", "%2B00:00"), times[0].replace("Z", "%2B00:00")
    assert licenses(read(api, "lee", f"?point=license&since={since}&until={until}")) == [("lee", "deny")]
    assert licenses(read(api, "lee", "?until=2026-01-01T00:00:00Z")) == []


def test_one_decision_with_its_input(api: Serving) -> None:
    mine = read(api, "ana", "?point=license").json["decisions"][0]["decision_id"]
    found = read(api, "ana", f"/{mine}").json
    assert (found["decision_id"], found["input"]["purpose"]) == (mine, "train")
    for who, status in (("lee", 404), ("auditor", 404)):
        assert read(api, who, f"/{mine}").status == status
    assert read(api, "auditor", f"/{mine}?whose=all").json == found
    assert read(api, "ana", f"/{'0' * 32}").json["code"] == "engine.decision_unknown"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?whose=others", 422),
        ("?limit=0", 422),
        ("?limit=many", 422),
        ("?outcome=maybe", 422),
        ("?since=yesterday", 422),
        ("/nothing", 422),
        ("?cursor=AAAA", 400),
        ("?principal=lee", 400),
        ("?point=license&point=source", 400),
        ("?mode=check", 400),
    ],
)
def test_another_query_is_refused_by_name(api: Serving, query: str, status: int) -> None:
    reply = read(api, "ana", query)
    assert (reply.status, reply.json["type"].startswith("urn:")) == (status, True)


def test_without_the_scope_or_a_name_nothing_is_read(api: Serving) -> None:
    scoped = api.ask("GET", "/v1/decisions", headers=token(api, "bo", ("license",)))
    assert [one["code"] for one in scoped.json["decision"]["findings"]] == ["caller_out_of_scope"]
    assert (scoped.status, api.ask("GET", "/v1/decisions").status) == (403, 401)


def test_the_user_who_runs_the_engine_reads_everything_and_each_reading_is_recorded(
    tmp_path: Path, cache: Path
) -> None:
    with serving(tmp_path, cache) as running:
        assert running.decide("license", LICENSE).status == 200
        unnamed = running.ask("GET", "/v1/decisions")
        assert unnamed.status == 403
        found = running.ask("GET", "/v1/decisions?whose=all&point=license", control=True).json
        assert [one["principal"] for one in found["decisions"]] == [None]
        assert running.stop() == 0
        lines = running.records()
    read_ = [one for one in lines if one.get("point") == "record_read"]
    assert [(one["outcome"], one["input"]["whose"]) for one in read_] == [("deny", "own"), ("allow", "all")]
    assert [one["facts"]["decisions"] for one in lines if one["kind"] == "result"] == [1]
