"""Who gets a page of the workbench: only a browser that has spent a link, and only for forms of its own pages."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import pytest

from engine.state import open_store
from engine.workbench.serve import routes
from tests.api.serving import until
from tests.workbench.conftest import ask
from tests.workbench.pages import Visitor, Workbench

GETS = [path.replace("{id}", "x") for path, methods in routes().items() if "GET" in methods]
POSTS = [path.replace("{id}", "x") for path, methods in routes().items() if "POST" in methods]
OPEN = {"/login", "/static/workbench.css", "/static/workbench.js"}


def test_without_a_login_every_page_and_form_is_refused(bench: Workbench) -> None:
    stranger = Visitor(bench.port)
    assert {path for path in GETS if stranger.get(path).status != 403} == OPEN
    assert {stranger.post(path, {"token": "guess"}).status for path in POSTS} == {403}
    assert "/decisions" not in stranger.get("/decisions").html.values("a", "href")


@pytest.mark.threat("injection")
def test_a_link_is_spent_by_its_form_alone_and_works_once(bench: Workbench) -> None:
    link, token = bench.link(), bench.token
    stranger = Visitor(bench.port)
    for _ in range(2):  # a program that shows what links lead to
        assert stranger.get(f"/login?token={token}").status == 200
    assert bench.link() == link
    assert stranger.post("/login", {"token": token}).status == 303
    stolen = stranger.post("/login", {"token": token})
    assert stolen.status == 403
    assert "stop the workbench: another person did" in stolen.html.text
    assert "set-cookie" not in stolen.headers
    until(lambda: bench.link() != link)
    assert bench.visitor().get("/decisions").status == 200


@pytest.mark.threat("injection")
def test_a_planted_cookie_never_becomes_a_session(bench: Workbench) -> None:
    name = f"workbench-{bench.port}"
    planted = Visitor(bench.port, f"{name}=planted")
    assert planted.get("/decisions").status == 403
    link = bench.link()
    entered = planted.post("/login", {"token": bench.token})
    until(lambda: bench.link() != link)
    cookie, *attributes = entered.headers["set-cookie"].split("; ")
    assert cookie.startswith(f"{name}=")
    assert cookie != planted.cookie
    assert {*attributes} == {"HttpOnly", "SameSite=Strict", "Path=/"}
    assert planted.get("/decisions").status == 403
    assert Visitor(bench.port, cookie).get("/decisions").status == 200
    assert Visitor(bench.port, f"{cookie}; {name}=planted").get("/decisions").status == 403
    assert Visitor(bench.port, f"other=1; {cookie}").get("/decisions").status == 200


def test_a_session_ends_when_its_browser_logs_out(bench: Workbench) -> None:
    leaving = bench.visitor()
    left = leaving.post("/logout")
    assert (left.status, "Max-Age=0" in left.headers["set-cookie"]) == (303, True)
    assert leaving.get("/decisions").status == 403


@pytest.mark.threat("injection")
@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example", "192.0.2.1", ""])
def test_a_name_of_another_site_is_refused(bench: Workbench, visitor: Visitor, host: str) -> None:
    named = host.format(port=bench.port)
    for page in (
        visitor.send("GET", "/decisions", None, {"Host": named or " "}),
        visitor.post("/lint", {"file": "policy/licenses.yaml"}, Host=named or " "),
        visitor.send("GET", f"/login?token={bench.token}", None, {"Host": named or " "}),
    ):
        assert page.status in {400, 421}
        assert bench.token not in page.body
    assert visitor.send("GET", "/decisions", None, {"Host": f"localhost:{bench.port}"}).status == 200


@pytest.mark.threat("injection")
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": ""},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost:{port}"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Content_Type": "application/json"},
        {"Content_Type": "text/plain"},
    ],
    ids=str,
)
def test_a_form_of_another_origin_does_nothing(bench: Workbench, visitor: Visitor, headers: dict[str, str]) -> None:
    row = ask(bench.state, requester=str(headers))
    sent = {name: value.format(port=bench.port) for name, value in headers.items()}
    refused = visitor.post(f"/approvals/{row.id}", {"verb": "grant"}, **sent)
    assert refused.status in {400, 403, 415}
    assert state_of(bench.state, row.id) == "requested"


@pytest.mark.threat("injection")
def test_a_form_without_the_key_of_its_session_does_nothing(bench: Workbench, visitor: Visitor) -> None:
    row, other = ask(bench.state, requester="keys"), bench.visitor()
    for key in ("", "guess", other.key):
        refused = visitor.post(f"/approvals/{row.id}", {"verb": "grant", "form_key": key})
        assert refused.status == 403
    twice = f"form_key=guess&form_key={visitor.key}&verb=grant"
    headers = {"Origin": f"http://127.0.0.1:{bench.port}", "Content-Type": "application/x-www-form-urlencoded"}
    assert visitor.send("POST", f"/approvals/{row.id}", twice, headers).status == 400
    assert state_of(bench.state, row.id) == "requested"


def state_of(state: Path, id_: str) -> str:
    with closing(open_store(state)) as store:
        row = store.approval(id_)
    return "" if row is None else row.state


@pytest.mark.threat("injection")
def test_every_answer_forbids_frames_scripts_of_others_and_guessing_of_types(visitor: Visitor) -> None:
    pages = [visitor.get(path) for path in ("/login", "/decisions", "/nowhere", "/static/workbench.js")]
    pages += [visitor.post("/lint", {"file": "policy/nothing.yaml"}), visitor.post("/lint", Origin="")]
    for page in pages:
        policy = page.headers["content-security-policy"]
        assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= {*policy.split("; ")}
        assert page.headers["x-frame-options"] == "DENY"
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["cache-control"] == "no-store"
        assert "unsafe" not in policy


def test_it_listens_on_one_address_of_this_machine(bench: Workbench) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", bench.port), timeout=5)


def test_a_path_cannot_add_a_header(visitor: Visitor) -> None:
    page = visitor.post("/approvals/x%0d%0aSet-Cookie:%20a=b", {"verb": "grant"})
    assert "set-cookie" not in page.headers
    assert page.status == 404
