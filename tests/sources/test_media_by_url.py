"""Media by URL: the permit of point `media` leads to the decisions and the transfer of a fetch, and to no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import RecordError
from engine.fetching import Fetched
from engine.record.model import Body, ResultRecord
from engine.record.standing import StandingLog
from engine.settings import Settings
from tests.command import decisions, events
from tests.expect import there
from tests.sources.https import HOST, Authority, endless, response
from tests.sources.world import World, at_world, authority, codes, resolving

__all__ = ["authority"]

PNG = b"\x89PNG\r\n\x1a\n" + bytes(200)
CAP = 5_000
OTHER = "other.example.org"


@pytest.fixture(scope="module")
def opened(module_settings: Settings, authority: Authority) -> Iterator[World]:
    url = {"schemes": ["https"], "hosts": [HOST, OTHER], "max_bytes": CAP}
    values = ("media.allow_url_media_sources=true", f"media.url={json.dumps(url)}")
    with at_world(module_settings, authority, *values) as world:
        yield world


@pytest.fixture
def world(opened: World) -> World:
    opened.server.answers(response(PNG, type_="image/png"))
    opened.looked_up.clear()
    opened.addresses = ("127.0.0.1",)
    return opened


def media(world: World, url: str | None = None, **changes: Any) -> Fetched:
    asked = {"kind": "image", "media_type": "image/png", "license": "CC-BY-4.0", **changes}
    return world.engine.get_media(url or world.server.url("/a.png?key=canary-query"), **asked)


# covers: B40
def test_media_by_url_is_decided_on_at_each_point_and_looked_up_once(world: World) -> None:
    before = len(decisions(world.state))
    done = media(world)
    assert bytes(done.content or b"") == PNG, done.answers[-1].decision.findings
    points = ["media", "network", "network_response"]
    assert [one.decision.point for one in done.answers] == points
    assert [(one["point"], one["outcome"], one["mode"]) for one in decisions(world.state)[before:]] == [
        (point, "allow", "enforce") for point in points
    ]
    assert world.looked_up == [HOST]
    assert len(world.server.requests) == 1
    assert [one["event"] for one in events(world.state)[-2:]] == ["fetch_attempt", "fetch_accepted"]
    assert b"canary-query" not in b"".join(path.read_bytes() for path in world.state.rglob("*.jsonl"))


# covers: B40.3
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (response(PNG + bytes(CAP), type_="image/png"), "payload_too_large"),
        (endless(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nTransfer-Encoding: chunked\r\n\r\n",
                 b"1000\r\n" + bytes(4096) + b"\r\n"), "payload_too_large"),
        (response(b"\xff\xd8\xff\xe0", type_="image/jpeg"), "unsupported_content_type"),
        (response(b"[1]"), "unsupported_content_type"),
        (response(b"<svg/>", type_="image/png"), "content_type_mismatch"),
        (response(b"", status="302 Found", more=("Location: /b.png",)), "redirect_blocked"),
        (response(PNG, type_="image/png", length=len(PNG) + 1), "payload_incomplete"),
    ],
)  # fmt: skip
def test_an_invalid_answer_is_refused_as_media(answer: Any, code: str, world: World) -> None:
    world.server.answers(answer)
    done = media(world)
    assert (codes(done), done.content) == ([code], None)
    document = done.answers[-1].document
    assert document is not None
    assert document.get("body", {}).get("bytes", 0) <= CAP


# covers: B40.1-2, B40.4
@pytest.mark.parametrize(
    ("url", "changes", "code", "point"),
    [
        (f"http://{HOST}/a.png", {}, "scheme_not_allowlisted", "media"),
        ("https://third.example.org/a.png", {}, "host_not_allowlisted", "media"),
        (None, {"media_type": "image/svg+xml"}, "media_type_not_admitted", "media"),
        (None, {"license": " "}, "license_missing", "network"),
        (f"https://{OTHER}/a.png", {}, "host_not_allowlisted", "network"),
    ],
)
def test_denied_media_opens_no_connection(
    url: str | None, changes: dict[str, str], code: str, point: str, world: World
) -> None:
    done = media(world, url, **changes)
    last = done.answers[-1].decision
    assert (last.point, code in codes(done), done.content) == (point, True, None), last.findings
    assert world.server.connections == 0


# covers: B40.4
def test_an_internal_address_gets_no_connection(world: World) -> None:
    world.addresses = ("127.0.0.1", "10.0.0.7")
    assert codes(media(world)) == ["address_not_public"]
    assert world.server.connections == 0


def test_media_whose_permit_has_no_recorded_result_is_not_fetched(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = StandingLog.append

    def failing(log: StandingLog, body: Body, *events: Any) -> int:
        if isinstance(body, ResultRecord):
            raise RecordError("a test", remedy="none")
        return append(log, body, *events)

    monkeypatch.setattr(StandingLog, "append", failing)
    done = media(world)
    assert (done.content, [one.decision.point for one in done.answers]) == (None, ["media"])
    assert (there(done.fault).message, world.server.connections) == ("a test", 0)


# covers: B39.1-3
def test_as_shipped_no_media_is_fetched(world: World, settings: Settings) -> None:
    with Engine(replace(settings, ca_file=world.authority.path)) as engine:
        resolving(engine, world)
        shipped = replace(world, engine=engine)
        for kind, media_type in (("image", "image/png"), ("document", "application/pdf"), ("audio", "audio/ogg")):
            assert "url_media_disabled" in codes(media(shipped, kind=kind, media_type=media_type))
    assert (world.looked_up, world.server.connections) == ([], 0)
