"""Which requests are refused for their way here: another host, another site, a proxy, a body with two ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.api.routes import routes
from tests.api.serving import ALLOWED, Serving, serving, until
from tests.api.test_access import SHARED
from tests.api.test_connection import status

ROUTES = [
    (method, path.replace("{run_id}", "x").replace("{id}", "x"))
    for path, methods in routes().items()
    for method in methods
]
CHANGING = [(method, path) for method, path in ROUTES if method != "GET"]
PROXIED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("guarded")
    with serving(folder, cache, "--server-name", "Engine.example", env={"AGENTA_AGENT_RUNNER_TOKEN": SHARED}) as api:
        yield api


def send(api: Serving, method: str, path: str, *headers: str, version: str = "1.1", body: str = "") -> tuple[int, str]:
    """Status and code of a request with exactly these headers."""
    head = [f"{method} {path} HTTP/{version}", *headers, f"Content-Length: {len(body)}", "Connection: close"]
    answer = api.raw("\r\n".join([*head, "", body]).encode())
    content = answer.partition(b"\r\n\r\n")[2]
    return status(answer), json.loads(content).get("code", "") if content.startswith(b"{") else ""


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_answers_to_names_of_this_machine_only(api: Serving, method: str, path: str) -> None:
    assert send(api, method, path, "Host: evil.example") == (421, "engine.host_unknown")
    assert send(api, method, path, "Host: 192.0.2.1:8642") == (421, "engine.host_unknown")
    for host in ("localhost", f"127.0.0.1:{api.port}", "[::1]:1"):
        assert send(api, method, path, f"Host: {host}")[1] not in {"engine.host_unknown", "engine.header_invalid"}


@pytest.mark.parametrize("path", ["/health", "/v1/decide/license", "/nowhere"])
@pytest.mark.parametrize(
    "hosts",
    [
        *((), ("Host:",), ("Host: localhost", "Host: localhost"), ("Host: localhost, localhost",), ("Host: a b",)),
        *(("Host: localhost:x",), ("Host: [::1",), ("Host: [fe80]",), ("Host: user@localhost",)),
    ],
)
def test_a_missing_repeated_or_invalid_host_header_is_refused(api: Serving, path: str, hosts: tuple[str, ...]) -> None:
    assert send(api, "POST", path, *hosts) == (400, "engine.header_invalid")
    assert send(api, "GET", path, *hosts, version="1.0") == (400, "engine.header_invalid")


def test_names_from_the_command_line_are_served(guarded: Serving) -> None:
    token = f"Authorization: Bearer {SHARED}"
    assert send(guarded, "GET", "/health", "Host: engine.example:443") == (200, "")
    assert send(guarded, "GET", "/metrics", "Host: ENGINE.example", token) == (200, "")
    assert send(guarded, "GET", "/metrics", "Host: engine.example.evil.example", token)[0] == 421


@pytest.mark.parametrize(("method", "path"), CHANGING)
def test_pages_of_other_sites_change_and_decide_nothing(api: Serving, method: str, path: str) -> None:
    own = f"127.0.0.1:{api.port}"
    for header in (
        *("Origin: https://evil.example", "Origin: null", "Origin: http://localhost:1", f"Origin: ftp://{own}"),
        *("Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: none, cross-site"),
    ):
        assert send(api, method, path, f"Host: {own}", header) == (403, "engine.origin_foreign"), header
    for headers in (
        (f"Origin: http://{own}", "Sec-Fetch-Site: same-origin"),
        ("Sec-Fetch-Site: none",),
        (f"Origin: https://{own}",),  # a proxy in between speaks TLS
    ):
        assert send(api, method, path, f"Host: {own}", *headers)[1] != "engine.origin_foreign", headers


def test_pages_are_read_from_links_of_other_sites(api: Serving) -> None:
    assert send(api, "GET", "/docs", "Host: localhost", "Sec-Fetch-Site: cross-site") == (200, "")


@pytest.mark.parametrize("header", PROXIED)
def test_without_a_token_forwarded_requests_are_refused(api: Serving, header: str) -> None:
    for method, path in (("POST", "/v1/decide/license"), ("POST", "/run"), ("GET", "/metrics")):
        assert send(api, method, path, "Host: localhost", f"{header}: 192.0.2.1") == (403, "engine.forwarded")
    reply = api.decide("license", ALLOWED, **{header: "192.0.2.1"})
    assert "token" in reply.json["remedy"]
    assert api.ask("GET", "/health", headers={header: "192.0.2.1"}).json == {"status": "ok"}


@pytest.mark.parametrize("header", PROXIED)
def test_with_a_token_a_proxy_may_be_in_between_and_its_clients_show_the_token(guarded: Serving, header: str) -> None:
    proxied = {header: "192.0.2.1"}
    token = {"Authorization": f"Bearer {SHARED}"}
    assert guarded.decide("license", ALLOWED, **proxied, **token).json["outcome"] == "allow"
    assert guarded.ask("GET", "/metrics").status == 200
    assert guarded.ask("GET", "/metrics", headers=proxied).status == 401
    assert guarded.ask("GET", "/metrics", headers={**proxied, **token}).status == 200


@pytest.mark.full(after=3)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize(
    "headers",
    [
        *(("gzip, chunked",), ("gzip,chunked",), ("gzip",), ("identity",), ("chunked;q=1",), ("",)),
        *(("chunked, chunked",), ("chunked", "chunked"), ("Chunked, identity",), ("gzip", "chunked")),
    ],
)
def test_a_body_of_another_coding_is_refused_and_nothing_after_it_is_a_request(
    api: Serving, version: str, headers: tuple[str, ...]
) -> None:
    refused_alone(api, version, *(f"Transfer-Encoding: {coding}" for coding in headers))


@pytest.mark.parametrize(
    ("version", "headers"),
    [
        ("1.1", ("Content-Length: 5", "Transfer-Encoding: chunked")),
        ("1.1", ("Transfer-Encoding: chunked", "Content-Length: 5")),
        ("1.0", ("Transfer-Encoding: chunked",)),
        ("1.0", ("Connection: keep-alive", "Transfer-Encoding: chunked")),
    ],
)
def test_a_body_with_two_ends_is_refused_and_nothing_after_it_is_a_request(
    api: Serving, version: str, headers: tuple[str, ...]
) -> None:
    refused_alone(api, version, *headers)


def refused_alone(api: Serving, version: str, *headers: str) -> None:
    """The request is refused with 400, and the connection closes without an answer to the one sent behind it."""
    head = [f"POST /v1/decide/license HTTP/{version}", "Host: localhost", "Content-Type: application/json", *headers]
    data = json.dumps(ALLOWED).encode()
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)
    behind = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = api.raw("\r\n".join([*head, "", ""]).encode() + body + behind)
    assert status(answer) == 400
    assert b"\r\nconnection: close\r\n" in answer
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b'"outcome":"allow"' not in answer


def test_a_chunked_body_is_one_of_http_1_1(api: Serving) -> None:
    for version, code in (("1.0", 400), ("1.1", 200)):
        data = json.dumps(ALLOWED).encode()
        head = f"POST /v1/decide/license HTTP/{version}\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)
        end = b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert status(api.raw(head.encode() + end + body)) == code


@pytest.mark.full
def test_refusals_of_the_unidentified_are_counted_and_do_not_fill_the_record(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache, env={"AGENTA_AGENT_RUNNER_TOKEN": SHARED}) as running:
        replies = [running.decide("license", ALLOWED, Host="evil.example") for _ in range(50)]
        replies += [running.decide("license", ALLOWED, Origin="https://evil.example") for _ in range(30)]
        wrong = [running.decide("license", ALLOWED) for _ in range(5)]
        batch = running.decide("license/batch", {"inputs": {}})
        assert {reply.status for reply in (*wrong, batch)} == {401}
        metrics = running.ask("GET", "/metrics").body.decode()
        assert 'engine_unidentified_total{code="engine.host_unknown"} 50.0' in metrics
        assert 'engine_unidentified_total{code="unauthorized"} 6.0' in metrics
        logged = until(lambda: [line for line in running.log_lines() if line["event"] == "unidentified"])
        assert len([line for line in running.log_lines() if line["event"] == "request"]) < 10
        assert logged[0]["engine.host_unknown"] >= 1
        assert running.stop() == 0
    lines = running.records()
    denies = {line["decision_id"]: line["findings"][0]["code"] for line in lines if line.get("findings")}
    again = {denies[line["decision_id"]]: line["times"] for line in lines if line["kind"] == "replay"}
    assert again == {"engine.host_unknown": 49, "engine.origin_foreign": 29, "unauthorized": 5}
    codes = [code for code in denies.values() if code in again]
    assert sorted(codes) == sorted(again)
    for reply in (*replies, *wrong, batch):
        assert denies[reply.json["decision"]["decision_id"]] == reply.json["code"]
