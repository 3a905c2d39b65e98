"""A fetch end to end, over real TLS on loopback: what is accepted, what each bad answer gets, and what is recorded."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import socket
import ssl
import threading
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpcore
import pytest

from admission_adapters import fetch
from admission_adapters.connecting import connected
from admission_adapters.fetch import Fetcher, Sent, Transfer, _Pinned, _Wire
from admission_adapters.files.new_folder import NewFolder
from engine.engine import AsyncEngine, Engine
from engine.errors import DecideError, Exit, GatherError, WorkError
from engine.fetching import Fetched
from engine.flow import Context
from engine.model import Caller, Outcome, Permit, StopSignal, Via
from engine.points.network import NetworkLimits
from engine.settings import Settings
from tests.administration.test_stops import stopped
from tests.command import decisions, events, lines
from tests.documents.test_json_pieces import bomb
from tests.expect import refused, there
from tests.processes import until
from tests.sources.https import BODY, HOST, Authority, drips, endless, response
from tests.sources.world import World, at_world, authority, codes, resolving

__all__ = ["authority"]

CAP = 200_000
SECONDS = 30


@pytest.fixture(scope="module")
def opened(module_settings: Settings, authority: Authority) -> Iterator[World]:
    with at_world(
        module_settings,
        authority,
        f"networks.fetch.max_bytes={CAP}",
        f"networks.fetch.seconds={SECONDS}",
        "networks.fetch.max_urls=2",
    ) as world:
        yield world


@pytest.fixture
def world(opened: World) -> Iterator[World]:
    context = opened.server.context
    opened.server.answers(response())
    opened.looked_up.clear()
    opened.addresses = ("127.0.0.1",)
    yield opened
    opened.server.context = context


def ended(world: World, done: Fetched) -> list[dict[str, Any]]:
    """The events of this run, and its alias in them; the decisions that cover them are in the record."""
    own = {one.decision.decision_id for one in done.answers}
    covered = [one["source_events"]["count"] for one in decisions(world.state) if one["decision_id"] in own]
    return events(world.state)[-sum(covered) :]


# covers: A30.1, A40.1-2, A42, A06.2
def test_a_good_answer_becomes_a_source_bundle(world: World, tmp_path: Path) -> None:
    into = tmp_path / "contacts"
    done = world.fetch(into, world.server.url("/contacts.json?page=1"))
    assert (done.exit, done.folder, [one.decision.point for one in done.answers]) == (
        Exit.ALLOW,
        into,
        ["network", "network_response"],
    )
    assert (into / "content" / "contacts.json").read_bytes() == BODY
    text = (into / "bundle.yaml").read_text(encoding="utf-8")
    assert hashlib.sha256(BODY).hexdigest() in text
    assert "# purpose: # state" in text
    assert {path.name for path in into.rglob("*")} == {"bundle.yaml", "content", "contacts.json"}
    assert [path.name for path in tmp_path.iterdir()] == ["contacts"]  # no draft is left
    (request,) = world.server.requests
    head = request.decode("ascii").lower()
    assert head.startswith("get /contacts.json?page=1 http/1.1\r\n")
    assert f"host: {HOST}:{world.server.port}\r\n" in head
    assert "accept-encoding: identity\r\n" in head
    found = ended(world, done)
    assert [(one["event"], one["origin_alias"], one["source_id"]) for one in found] == [
        ("fetch_attempt", "contacts", None),
        ("fetch_accepted", "contacts", None),
    ]
    assert found[1]["hashes"]["computed"] == hashlib.sha256(BODY).hexdigest()


# covers: A40.1
def test_the_attempt_is_on_disk_before_the_request_leaves(world: World, tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def script(stream: ssl.SSLSocket, _: object) -> None:
        path = next((world.state).rglob("source_events.jsonl"))
        written = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        seen.append([one["event"] for one in written if one["origin_alias"] == "early"])
        stream.sendall(response())

    world.server.answers(script)
    assert world.fetch(tmp_path / "early").folder is not None
    assert seen == [["fetch_attempt"]]


REDIRECT = tuple(f"{status} Moved" for status in (301, 302, 303, 307, 308))
CHUNKED = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
BOMB = gzip.compress(b"[" + b"0," * 500_000 + b"0]")


def raw(*more: str, body: bytes = b"", head: str = "HTTP/1.1 200 OK") -> bytes:
    return "\r\n".join([head, *more, "", ""]).encode("latin-1") + body


BAD: dict[str, tuple[bytes, str]] = {
    **{
        f"redirect {status[:3]}": (
            response(b"", status=status, type_=None, more=(f"Location: https://{HOST}/other.json",)),
            "redirect_blocked",
        )
        for status in REDIRECT
    },
    "created": (response(status="201 Created"), "http_status_not_200"),
    "no content": (raw(head="HTTP/1.1 204 No Content"), "http_status_not_200"),
    "part": (response(status="206 Partial Content"), "http_status_not_200"),
    "missing": (response(b"gone", status="404 Not Found"), "http_status_not_200"),
    "broken": (response(b"sorry", status="500 Internal Server Error"), "http_status_not_200"),
    "page": (response(b"<html>", type_="text/html"), "unsupported_content_type"),
    "no type": (response(type_=None), "unsupported_content_type"),
    "like json": (response(type_="application/ld+json"), "unsupported_content_type"),
    "two types": (response(more=("Content-Type: text/html",)), "unsupported_content_type"),
    "charset": (response(type_="application/json; charset=utf-16"), "unsupported_charset"),
    "odd charset": (response(type_='application/json; charset="x y"'), "unsupported_charset"),
    "gzip bomb": (response(BOMB, more=("Content-Encoding: gzip",)), "content_encoded"),
    "br": (response(more=("Content-Encoding: br",)), "content_encoded"),
    "zstd": (response(more=("Content-Encoding: zstd",)), "content_encoded"),
    "no encoding": (response(more=("Content-Encoding:",)), "content_encoded"),
    "a long encoding": (response(more=("Content-Encoding: " + "y" * 5_000,)), "content_encoded"),
    "a long type": (response(type_="text/" + "y" * 5_000), "unsupported_content_type"),
    "packed twice": (response(more=("Content-Encoding: gzip", "Content-Encoding: br")), "content_encoded"),
    "declared too long": (response(b"", length=CAP + 1), "payload_too_large"),
    "declared far too long": (response(b"", length=10**17), "payload_too_large"),
    "declared as long as HTTP can": (response(b"", length=10**20 - 1), "payload_too_large"),
    "longer than declared": (response(BODY + b"more", length=len(BODY)), "payload_too_large"),
    "cut off": (response(BODY, length=len(BODY) + 1), "payload_incomplete"),
    "cut off in a chunk": (raw(*CHUNKED.strip().split("\r\n")[1:], body=b"ff\r\nshort"), "payload_incomplete"),
    "bad chunk": (raw(*CHUNKED.strip().split("\r\n")[1:], body=b"zz\r\n"), "payload_incomplete"),
    "two lengths": (response(more=("Content-Length: 7",)), "response_malformed"),
    "length and chunks": (
        raw("Content-Type: application/json", "Content-Length: 2", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
        "framing_ambiguous",
    ),
    "no framing": (raw("Content-Type: application/json", body=BODY), "framing_ambiguous"),
    "packed framing": (
        raw("Content-Type: application/json", "Transfer-Encoding: gzip", body=BODY),
        "response_malformed",
    ),
    "20,000 headers": (response(more=tuple(f"X-{number}: y" for number in range(20_000))), "response_malformed"),
    "a long header": (response(more=("X-Long: " + "y" * (1 << 20),)), "response_malformed"),
    "no json": (response(b"[{'name': 1}]"), "content_type_mismatch"),
    "an image": (response(b"\x89PNG\r\n\x1a\n" + bytes(16)), "content_type_mismatch"),
    "no text": (response(b'["\xff"]'), "content_type_mismatch"),
    "empty": (response(b""), "content_type_mismatch"),
    "deep": (response(b"[" * 200 + b"]" * 200), "content_ambiguous"),
    "a key twice": (response(b'{"a": 1, "a": 2}'), "content_ambiguous"),
    "not a number": (response(b"[NaN]"), "content_ambiguous"),
    "a large integer": (response(b"[9007199254740993]"), "content_ambiguous"),
    "an infinite number": (response(b"[1e999]"), "content_ambiguous"),
    "no http": (b"SSH-2.0-OpenSSH\r\n\r\n", "response_malformed"),
    "nothing": (b"", "response_malformed"),
    "upgrade": (raw("Upgrade: h2c", "Connection: upgrade", head="HTTP/1.1 101 Switching"), "response_malformed"),
}


# covers: A34.1-5, A36.1-2, A37.1-3, A38.1-5, A40.3, H07.1-4
@pytest.mark.parametrize("name", BAD)
def test_a_bad_answer_is_refused_and_leaves_nothing(name: str, world: World, tmp_path: Path) -> None:
    answer, code = BAD[name]
    world.server.answers(answer)
    done = world.fetch(tmp_path / "bad")
    assert (done.exit, codes(done), done.folder) == (Exit.DENY, [code], None)
    assert not list(tmp_path.iterdir())
    assert len(world.server.requests) == 1, "it asked again, or elsewhere"
    found = ended(world, done)
    assert [one["event"] for one in found] == ["fetch_attempt", "fetch_rejected"]
    assert found[1]["rejection_causes"] == [code]


# covers: A36.3
def test_an_endless_body_ends_at_the_cap(world: World, tmp_path: Path) -> None:
    world.server.answers(endless(CHUNKED.encode() + b"\r\n", b"1000\r\n" + b"0" * 4096 + b"\r\n"))
    done = world.fetch(tmp_path / "endless")
    assert (codes(done), done.folder) == (["payload_too_large"], None)
    document = done.answers[-1].document
    assert document is not None
    assert document["body"]["bytes"] == CAP


def test_bytes_behind_the_declared_length_are_seen_also_in_a_record_of_their_own(world: World, tmp_path: Path) -> None:
    def script(stream: ssl.SSLSocket, ended_: threading.Event) -> None:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        stream.sendall(response())
        stream.sendall(b"more")
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)  # both records leave together
        ended_.wait()

    world.server.answers(script)
    assert codes(world.fetch(tmp_path / "more")) == ["payload_too_large"]
    world.server.answers(drips([response()]))  # the connection stays open: nothing is waited for
    assert world.fetch(tmp_path / "open").folder is not None


ENDLESS = {
    "chunks": endless(CHUNKED.encode() + b"\r\n", b"8000\r\n" + b"0" * 0x8000 + b"\r\n"),
    "one chunk": endless(CHUNKED.encode() + b"\r\nfffffffff\r\n", b"0" * 65_536),
    "a head": endless(b"HTTP/1.1 200 OK\r\n", b"X: " + b"y" * 1_000 + b"\r\n"),
    "no framing": endless(raw("Content-Type: application/json"), b"0" * 65_536),
}


@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", ENDLESS)
def test_no_answer_takes_more_memory_than_twice_the_cap(name: str, world: World) -> None:
    cap = 8 << 20
    world.server.answers(ENDLESS[name])
    url, digest = world.server.url(), "sha256:" + "ab" * 32
    permit = Permit.seal(
        decision_id="d", point="network", input_digest=digest,
        limits=limits_for(world, url).model_copy(update={"max_bytes": cap, "seconds": 60}),
    )  # fmt: skip
    fetcher = Fetcher(world.authority.path)
    tracemalloc.start()
    try:
        _, moved = fetcher.fetch(permit, digest, url, StopSignal())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not moved.complete
    assert len(moved.data) <= cap
    assert peak <= 2 * cap


# The body itself is one of the two: what its reading takes is measured in tests/documents/test_json_pieces.py.
@pytest.mark.full
@pytest.mark.parametrize("name", ["lists", "texts", "keys"])
def test_no_content_takes_more_memory_than_twice_the_cap(name: str, world: World, tmp_path: Path) -> None:
    cap = 4_000_000
    values = (*world.values, f"networks.fetch.max_bytes={cap}", "networks.fetch.seconds=300")
    with Engine(replace(world.engine.settings, state=tmp_path / "state"), values=values) as engine:
        resolving(engine, world)
        assert engine.fetch(world.order(tmp_path / "before")).folder is not None  # what is loaded once is loaded
        world.server.answers(response(bytes(bomb(name, cap - 100))))
        tracemalloc.start()
        try:
            done = engine.fetch(world.order(tmp_path / "after"))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert done.folder is not None, codes(done)
    assert (tmp_path / "after" / "content" / "after.json").stat().st_size > 0.8 * cap
    assert peak <= 2 * cap


DRIPS = {
    "head": [b"HTTP/1.1 200 OK\r\n", *[b"X: y\r\n"] * 10_000],
    "body": [response(b"", length=CAP), *[b"0"] * 10_000],
    "interim answers": [b"HTTP/1.1 100 Continue\r\n\r\n"] * 10_000,
    "silence": [],
}


# covers: H06
@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", DRIPS)
def test_a_slow_answer_ends_at_the_deadline(name: str, world: World, settings: Settings, tmp_path: Path) -> None:
    values = (*world.values, "networks.fetch.seconds=1")
    with Engine(replace(settings, ca_file=world.authority.path), values=values) as engine:
        resolving(engine, world)
        world.server.answers(drips(DRIPS[name]))
        done = engine.fetch(world.order(tmp_path / "slow"))
    assert (codes(done), done.folder) == (["fetch_deadline_exceeded"], None)
    assert not world.server.ended.is_set()  # it would have gone on; `scripts/bench F2` measures how late it ends


# covers: C68.1
def test_a_stop_closes_the_connection(world: World, settings: Settings, tmp_path: Path) -> None:
    values = (*world.values, "networks.fetch.seconds=60")
    with Engine(replace(settings, ca_file=world.authority.path), values=values) as engine:
        resolving(engine, world)
        for name in ("body", "silence"):
            world.server.answers(drips(DRIPS[name]))
            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(engine.fetch, world.order(tmp_path / "stopped"))
                until(lambda: world.server.requests)
                with stopped(engine):
                    done = running.result(60)
                    assert (there(done.fault).code, done.folder) == ("engine.transfer_stopped", None)
                    assert codes(engine.fetch(world.order(tmp_path / "later"))) == ["stopped"]
        results = [line for line in lines(settings.state) if line["kind"] == "result" and "stopped" in line["facts"]]
        assert {line["status"] for line in results} == {"engine.transfer_stopped"}
        world.server.answers(response())
        key = Context(idempotency_key="once")
        assert engine.fetch(world.order(tmp_path / "kept"), key).folder is not None
        with stopped(engine), refused(DecideError, "engine.idempotency_stale"):
            engine.fetch(world.order(tmp_path / "kept"), key)
        assert engine.fetch(world.order(tmp_path / "kept"), key).replayed
    assert [path.name for path in tmp_path.iterdir() if path.name != "state"] == ["kept"]


def test_a_stop_ends_an_attempt_to_connect() -> None:
    stop, wire = StopSignal(), _Wire(Transfer(), time.monotonic() + 600)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as stack:
        address, port = full.getsockname()[:2]
        for _ in range(3):  # its queue is full: a further attempt gets no answer
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex((address, port))
        with ThreadPoolExecutor(1) as pool, wire.until(stop):
            trying = pool.submit(connected, [address], port, lambda: 600.0, wire.opened)
            until(lambda: wire._open)
            assert not trying.done()
            stop.set()
            assert isinstance(trying.exception(60), OSError)


@pytest.mark.parametrize("fault", ["another name", "unknown authority", "expired"])
def test_a_host_that_cannot_prove_its_name_gets_no_request(fault: str, world: World, tmp_path: Path) -> None:
    made = {
        "another name": lambda: world.authority.context("other.example.org"),
        "unknown authority": lambda: Authority(tmp_path, "another authority").context(),
        "expired": lambda: world.authority.context(days=0),
    }
    world.server.context = made[fault]()
    done = world.fetch(tmp_path / "into" / "tls")
    assert (codes(done), done.folder) == (["tls_failed"], None)
    assert world.server.requests == []


# covers: A33.1-6, A32.1-5, A95.1, A35.1-2
@pytest.mark.parametrize(
    ("urls", "changes", "code"),
    [
        ((f"http://{HOST}/a",), {}, "unsafe_scheme"),
        (("file:///etc/passwd",), {}, "unsafe_scheme"),
        ((f"https://x.{HOST}/a",), {}, "host_not_allowlisted"),
        ((f"https://not{HOST}/a",), {}, "host_not_allowlisted"),
        (("https://127.0.0.1/a",), {}, "host_not_allowlisted"),
        ((f"https://{HOST}@evil.example/a",), {}, "host_not_allowlisted"),
        ((f"https://{HOST}./a",), {}, "host_not_allowlisted"),
        ((f"https://{HOST}:444/a",), {}, "url_not_canonical"),
        ((), {"hosts": ()}, "network_disabled"),
        ((), {"hosts": ("*.example.org", HOST)}, "allowed_host_not_exact"),
        ((), {"license": None}, "license_missing"),
        ((), {"max_requests": 0}, "request_budget_exhausted"),
        (("a", "b", "c"), {}, "url_count_not_admitted"),
    ],
)
def test_a_denied_fetch_opens_no_connection(
    urls: tuple[str, ...], changes: dict[str, Any], code: str, world: World, tmp_path: Path
) -> None:
    done = world.fetch(tmp_path / "refused", *urls, **changes)
    assert code in codes(done)
    assert (done.exit, len(done.answers), done.folder, world.server.connections) == (Exit.DENY, 1, None, 0)
    assert not list(tmp_path.iterdir())
    assert [one["event"] for one in ended(world, done)] == ["fetch_attempt", "fetch_rejected"]


# covers: A06.1
def test_without_an_enabled_fetch_not_even_the_name_is_looked_up(world: World, tmp_path: Path) -> None:
    world.fetch(tmp_path / "a", hosts=())
    world.fetch(tmp_path / "b", "https://secret.of.the.prompt.example/", hosts=("secret.of.the.prompt.example",))
    assert world.looked_up == []
    world.fetch(tmp_path / "c")
    assert world.looked_up == [HOST]  # the control


# covers: H06.1-3
def test_one_internal_address_refuses_the_host(world: World, tmp_path: Path) -> None:
    world.addresses = ("127.0.0.1", "10.0.0.7")
    assert codes(world.fetch(tmp_path / "internal")) == ["address_not_public"]
    assert world.server.connections == 0


# covers: H06.4
def test_the_name_is_looked_up_once_and_a_second_answer_is_never_used(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rebound(*arguments: Any, **_: Any) -> Any:
        assert arguments[0] == "127.0.0.1", "a name was resolved again"
        return [(2, 1, 6, "", ("127.0.0.1", arguments[1]))]

    monkeypatch.setattr("socket.getaddrinfo", rebound)
    assert world.fetch(tmp_path / "once").folder is not None
    assert world.looked_up == [HOST]


def test_an_address_that_refuses_connections_is_passed_over(world: World, tmp_path: Path) -> None:
    world.addresses = ("127.0.0.1", "127.0.0.2")
    assert world.fetch(tmp_path / "one").folder is not None
    world.addresses = ("127.0.0.2",)
    assert codes(world.fetch(tmp_path / "two")) == ["connection_failed"]


# covers: H06.5
def test_environment_variables_do_not_affect_a_fetch(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, keys = Authority(tmp_path, "foreign"), tmp_path / "keys.log"
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.setenv(name, str(other.path))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    monkeypatch.setenv("SSLKEYLOGFILE", str(keys))
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine {HOST} login canary password canary", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    assert ssl.create_default_context().keylog_filename == str(keys)  # the control
    keys.unlink(missing_ok=True)
    assert world.fetch(tmp_path / "direct").folder is not None
    assert b"uthorization" not in world.server.requests[0]
    world.server.context = other.context()
    fresh = replace(world.engine.settings, state=tmp_path / "state")
    with Engine(fresh, values=world.values) as engine:
        resolving(engine, world)
        assert codes(engine.fetch(world.order(tmp_path / "foreign"))) == ["tls_failed"]
    assert not keys.exists()


# covers: A42.1-2
def test_no_log_holds_path_query_header_or_body(world: World, tmp_path: Path) -> None:
    body = json.dumps([{"name": "canary-body"}]).encode()
    header = "canary-header/canary-header"
    for number, answer in enumerate(
        (response(body, more=(f"X: {header}",)), response(more=(f"Content-Encoding: {header}",)))
    ):
        world.server.answers(answer)
        done = world.fetch(tmp_path / f"{number}.{HOST}", world.server.url("/canary-path?key=canary-query"))
        told = [one.decision.model_dump_json() for one in done.answers]
        assert not any("canary-path" in text or "canary-query" in text or "canary-body" in text for text in told)
    written = b"".join(path.read_bytes() for path in world.state.rglob("*") if path.is_file())
    for word in (b"canary-path", b"canary-query", b"canary-header", b"canary-body"):
        assert word not in written
    for event in events(world.state):
        assert HOST not in json.dumps(event)
        assert "127.0.0.1" not in json.dumps(event)


# covers: A95.1
def test_two_addresses_become_one_source_bundle_or_none(world: World, tmp_path: Path) -> None:
    urls = (world.server.url("/a.json"), world.server.url("/b.json"))
    done = world.fetch(tmp_path / "both", *urls, max_requests=2)
    assert (done.exit, len(done.answers)) == (Exit.ALLOW, 4)
    assert sorted(path.name for path in (tmp_path / "both" / "content").iterdir()) == ["both-1.json", "both-2.json"]
    done = world.fetch(tmp_path / "half", *urls, max_requests=1)
    assert (codes(done), len(done.answers)) == (["request_budget_exhausted"], 3)
    assert [path.name for path in tmp_path.iterdir()] == ["both"]


def test_a_folder_with_content_is_left_alone(world: World, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    with pytest.raises(GatherError, match="not an empty folder"):
        world.fetch(tmp_path)
    assert world.server.connections == 0
    (tmp_path / "empty").mkdir()
    assert world.fetch(tmp_path / "empty").folder is not None


def test_a_folder_that_cannot_be_written_is_a_fault_and_leaves_nothing(world: World, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = world.fetch(tmp_path / "file" / "contacts")
    assert (done.exit, done.folder) == (Exit.FAILED_CLOSED, None)
    assert done.fault is not None
    assert "cannot be written" in done.fault.message
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_content_whose_keeping_failed_leaves_nothing_and_its_key_is_free(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = NewFolder.keep

    def failing(folder: NewFolder, *given: Any) -> None:
        keep(folder, *given)
        raise WorkError("a test", remedy="none")

    key, order = Context(idempotency_key="failing"), world.order(tmp_path / "contacts")
    with monkeypatch.context() as patched:
        patched.setattr(NewFolder, "keep", failing)
        done = world.engine.fetch(order, key)
    assert (done.exit, done.folder, there(done.fault).message) == (Exit.FAILED_CLOSED, None, "a test")
    assert [one.decision.outcome for one in done.answers] == [Outcome.ALLOW, Outcome.ALLOW]
    assert not list(tmp_path.iterdir())
    again = world.engine.fetch(order, key)
    assert (again.folder, again.replayed) == (order.into, False)


def test_an_approval_is_for_the_fetch_and_not_for_its_response(
    world: World, settings: Settings, tmp_path: Path
) -> None:
    level = '{license_missing: {level: confirm, owner: a, reason: a test, until: "2099-01-01"}}'
    values = (*world.values, f"levels.levels.network={level}")
    order, asking = world.order(tmp_path / "a", license=None), Context(Caller(via=Via.PROCESS, principal="pipeline"))
    with Engine(replace(settings, ca_file=world.authority.path), values=values) as engine:
        resolving(engine, world)
        first = engine.fetch(order, asking)
        assert (first.exit, codes(first), world.server.connections) == (Exit.CONFIRM, ["license_missing"], 0)
        asked_for = there(first.answers[-1].decision.approval).id
        engine.store().resolve(asked_for, "granted", "user:ana", "seen it", int(time.time()))
        done = engine.fetch(order, replace(asking, approval=asked_for))
        assert done.folder == order.into, codes(done)
        used = [one.decision.approval and one.decision.approval.state for one in done.answers]
        assert used == ["used", None]


def test_a_refused_fetch_is_refused_again_for_its_key(world: World, tmp_path: Path) -> None:
    key = Context(idempotency_key="refused")
    first, again = (world.engine.fetch(world.order(tmp_path / "a", hosts=()), key) for _ in range(2))
    assert (first.replayed, again.replayed) == (False, True)
    assert (first.folder, again.folder, first.exit, again.exit) == (None, None, Exit.DENY, Exit.DENY)
    assert [one.decision for one in again.answers] == [one.decision for one in first.answers]


def test_the_draft_of_a_killed_fetch_is_removed_by_the_next_one(world: World, tmp_path: Path) -> None:
    dead, other = tmp_path / f".draft-{'0' * 16}", tmp_path / ".draft-letters"
    for folder in (dead, other):  # the second one is not ours
        (folder / "content").mkdir(parents=True)
        (folder / "content" / "contacts.json").write_bytes(b"half")
    assert world.fetch(tmp_path / "contacts").folder is not None
    assert {path.name for path in tmp_path.iterdir()} == {"contacts", other.name}


def test_an_interrupted_fetch_leaves_no_files(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        assert any(tmp_path.iterdir())  # the control: there was a draft
        raise KeyboardInterrupt

    monkeypatch.setattr("admission_adapters.files.new_folder.NewFolder.finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        world.fetch(tmp_path / "contacts")
    assert not list(tmp_path.iterdir())


def test_a_decision_alone_fetches_nothing_and_records_no_event(world: World, tmp_path: Path) -> None:
    world.fetch(tmp_path / "a", hosts=())
    before = events(world.state)
    request = {
        "id": "a", "alias": "a", "urls": [world.server.url()], "license": "MIT",
        "network": {"enabled": True, "allowed_hosts": [HOST], "budget": {"max_requests": 1}},
    }  # fmt: skip
    assert world.engine.check("network", request).decision.outcome is Outcome.ALLOW
    enforced = world.engine.decide("network", request)
    assert [finding.code for finding in enforced.decision.findings] == ["engine.request_invalid"]
    assert world.server.connections == 0
    assert events(world.state) == before


def limits_for(world: World, url: str) -> NetworkLimits:
    return NetworkLimits(
        purpose="material",
        url_digest="sha256:" + hashlib.sha256(url.encode()).hexdigest(), host=HOST, port=world.server.port,
        addresses=("127.0.0.1",), status=200, max_bytes=CAP, seconds=SECONDS,
    )  # fmt: skip


def test_the_executor_works_only_for_the_address_of_its_permit(world: World) -> None:
    url, digest = world.server.url(), "sha256:" + "ab" * 32
    limits = limits_for(world, url)
    fetcher = Fetcher(world.authority.path)
    permit = Permit.seal(decision_id="d", point="network", input_digest=digest, limits=limits)
    _, moved = fetcher.fetch(permit, digest, url, StopSignal())
    assert bytes(moved.data) == BODY
    other = Permit.seal(decision_id="d", point="media", input_digest=digest, limits=limits)
    for wrong, about, asked, code in (
        (permit, digest, f"{url}x", "engine.limit_unenforceable"),
        (permit, "sha256:" + "00" * 32, url, "engine.permit_missing"),
        (other, digest, url, "engine.permit_missing"),
        (replace(permit, limits=limits.model_copy(update={"port": 443})), digest, url, "engine.permit_missing"),
    ):
        with refused(WorkError, code):
            fetcher.fetch(wrong, about, asked, StopSignal())
    assert len(world.server.requests) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"purpose": "tunnel"},
        {"addresses": ()},
        {"max_bytes": -1},
        {"seconds": -1},
    ],
    ids=["of a tunnel", "no address", "fewer bytes than none", "less time than none"],
)
def test_limits_that_cannot_be_held_open_no_connection(changes: dict[str, Any], world: World) -> None:
    url, digest = world.server.url(), "sha256:" + "ab" * 32
    granted = limits_for(world, url).model_copy(update=changes)
    permit = Permit.seal(decision_id="d", point="network", input_digest=digest, limits=granted)
    with refused(WorkError, "engine.limit_unenforceable"):
        Fetcher(world.authority.path).fetch(permit, digest, url, StopSignal())
    assert world.server.connections == 0


def exchanged(world: World, url: str | None = None, **changes: Any) -> Transfer:
    """One request under limits that are changed like this."""
    url = url or world.server.url()
    granted: Any = limits_for(world, url).model_copy(update=changes)
    return Fetcher(world.authority.path).exchange(granted, url, Sent(), StopSignal())


def test_an_address_that_is_not_ascii_is_refused(world: World) -> None:
    with refused(WorkError, "engine.limit_unenforceable"):
        exchanged(world, world.server.url("/caf\xe9.json"))
    assert world.server.connections == 0


@pytest.mark.parametrize("chunked", [False, True], ids=["of a stated length", "in chunks"])
def test_a_body_of_exactly_the_cap_is_whole_and_one_byte_more_is_not(*, chunked: bool, world: World) -> None:
    def answer(size: int) -> bytes:
        body = b"0" * size
        return (
            raw(*CHUNKED.strip().split("\r\n")[1:], body=b"%x\r\n%s\r\n0\r\n\r\n" % (size, body))
            if chunked
            else (response(body))
        )

    world.server.answers(answer(5_000))
    for cap, seen in ((5_000, (True, True, 5_000)), (4_999, (False, False, 4_999 if chunked else 0))):
        moved = exchanged(world, max_bytes=cap)
        assert (moved.within_cap, moved.complete, len(moved.data)) == seen
    world.server.answers(response(b""))
    empty = exchanged(world, max_bytes=0)
    assert (empty.within_cap, empty.complete, empty.in_time) == (True, True, True)
    assert not exchanged(world, seconds=0).in_time


@pytest.mark.parametrize("name", ["created", "missing", "br", "declared too long"])
def test_the_body_of_an_answer_that_is_refused_by_its_head_is_not_read(name: str, world: World) -> None:
    world.server.answers(BAD[name][0])
    moved = exchanged(world)
    assert (moved.well_formed, moved.read, moved.complete, bytes(moved.data)) == (True, False, False, b"")
    assert "body" not in moved.facts()
    world.server.answers(b"")
    assert exchanged(world).facts().keys() == {"transfer"}


def test_interim_responses_are_not_part_of_the_body(world: World, tmp_path: Path) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    world.server.answers(early + early + response())
    assert world.fetch(tmp_path / "early").folder is not None
    world.server.answers(early + response(BODY + b"more", length=len(BODY)))
    assert codes(world.fetch(tmp_path / "more")) == ["payload_too_large"]


def test_the_default_port_is_in_neither_address_nor_header(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def there_instead(addresses: Sequence[str], port: int, *more: Any) -> socket.socket:
        assert port == 443
        return connected(addresses, world.server.port, *more)

    monkeypatch.setattr(fetch, "connected", there_instead)
    moved = exchanged(world, f"https://{HOST}/contacts.json", port=443)
    assert bytes(moved.data) == BODY
    (request,) = world.server.requests
    assert f"\r\nhost: {HOST}\r\n" in request.decode("ascii").lower()


def test_no_other_destination_is_connected_to_than_that_of_the_permit(world: World) -> None:
    granted: Any = limits_for(world, world.server.url())
    wire = _Wire(Transfer(), time.monotonic() + 60)
    pinned = _Pinned(granted, wire)
    for host, port in (("other.example.org", world.server.port), (HOST, world.server.port + 1)):
        with pytest.raises(httpcore.ConnectError, match="not the decided destination"):
            pinned.connect_tcp(host, port)
    with pytest.raises(httpcore.ConnectError):
        pinned.connect_unix_socket("/run/other.sock")
    assert world.server.connections == 0
    with wire.until(StopSignal()):
        pinned.connect_tcp(HOST, world.server.port).close()  # the control


@pytest.mark.parametrize("address", ["0.0.0.0", "127.1"])  # noqa: S104  (both lead to loopback)
def test_a_peer_with_another_address_than_the_decided_one_is_refused(address: str, world: World) -> None:
    kept: list[socket.socket] = []
    with pytest.raises(ConnectionError, match="another peer"):
        connected([address], world.server.port, lambda: 60.0, kept.append)
    assert [one.fileno() for one in kept] == [-1]


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_an_address_of_ipv6_is_connected_to() -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("NOT TRIED, this machine has no IPv6 loopback")
    with listener:
        port = listener.getsockname()[1]
        with connected(["::1"], port, lambda: 60.0, lambda _: None) as own:
            assert own.getpeername()[:2] == ("::1", port)


def test_a_source_bundle_of_a_fetch_is_admitted_once_a_person_has_completed_it(world: World, tmp_path: Path) -> None:
    into = tmp_path / "contacts"
    assert world.fetch(into).folder == into
    open_still = world.engine.check("source", {"path": str(into), "digest": None})
    assert open_still.decision.outcome is Outcome.DENY
    document = into / "bundle.yaml"
    text = document.read_text(encoding="utf-8")
    sha256 = hashlib.sha256(BODY).hexdigest()
    text = text.replace("# purpose: # state train, eval, tool or environment", "purpose: eval")
    text = text.replace("# retention:", "retention:")
    text = text.replace(
        "license_decisions: []",
        f"license_decisions:\n  - {{record: contacts, sha256: {sha256}, decision: accepted,"
        ' decided_by: legal, decided_at: "2026-01-01T00:00:00Z"}',
    )
    document.write_text(text, encoding="utf-8")
    checked = world.engine.check("source", {"path": str(into), "digest": None})
    assert checked.decision.outcome is Outcome.ALLOW, checked.decision.findings
    assert world.engine.admit(into, tmp_path / "staged").result is not None


def test_the_async_engine_fetches_alike(world: World, tmp_path: Path) -> None:
    async def fetched() -> Fetched:
        settings = replace(world.engine.settings, state=tmp_path / "state")
        async with AsyncEngine(settings, values=world.values) as engine:
            resolving(engine, world)
            return await engine.fetch(world.order(tmp_path / "loop"))

    assert asyncio.run(fetched()).folder == tmp_path / "loop"


def test_an_engine_fault_leaves_no_fetched_folder(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError

    monkeypatch.setattr("admission_adapters.fetch.Fetcher.fetch", broken)
    done = world.fetch(tmp_path / "fault")
    assert (done.exit, done.folder) == (Exit.FAILED_CLOSED, None)
    assert [one["event"] for one in ended(world, done)] == ["fetch_attempt", "fetch_rejected"]
    assert not list(tmp_path.iterdir())
