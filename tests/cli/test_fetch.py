"""`engine fetch … && engine check DIR`, as a data engineer runs it, against a real TLS server on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command import Command, Run, lines
from tests.first_hour.pages import blocks
from tests.sources.https import BODY, HOST, Authority, Server, admitting, complete, resolving, response, serving


@dataclass(slots=True)
class Setup:
    """A command with a policy that admits the server, on a machine where its name leads to loopback."""

    command: Command
    server: Server
    policy: Path
    authority: Authority

    def __call__(self, *arguments: str | Path) -> Run:
        return self.command(*arguments, "--policy", self.policy, env=resolving(self.policy))

    def fetch(self, into: Path, *arguments: str) -> Run:
        asked = (self.server.url(), "--license", "CC-BY-4.0", "--into", into, "--ca-file", self.authority.path)
        return self("fetch", *asked, *arguments)


@pytest.fixture
def setup(command: Command, tmp_path: Path) -> Iterator[Setup]:
    authority = Authority(tmp_path)
    with serving(authority.context()) as server:
        yield Setup(command, server, admitting(tmp_path / "own", server), authority)


def test_fetch_and_check(setup: Setup, tmp_path: Path) -> None:
    into = tmp_path / "contacts"
    done = setup.fetch(into, "--host", HOST)
    assert done.code == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{into}: 1 record fetched",
        f"next: complete the lines of {into}/bundle.yaml that begin with `#`, then run `engine check {into}`",
    ]
    assert (into / "content" / "contacts.json").read_bytes() == BODY
    checked = setup("check", into, "--format", "json")
    assert checked.code == 1
    (report,) = checked.json["reports"]
    open_still = {finding["subject"] for finding in report["decision"]["findings"]}
    assert {"errors/purpose", "errors/records.0.retention", "records/contacts"} <= open_still
    assert [(one["kind"], one.get("point")) for one in lines(setup.command.state)][:4] == [
        ("decision", "network"),
        ("result", None),
        ("decision", "network_response"),
        ("result", None),
    ]
    verified = setup.command("record", "verify")
    assert verified.code == 0


def test_a_refused_fetch_says_why_and_writes_nothing(setup: Setup, tmp_path: Path) -> None:
    setup.server.answers(response(b"", status="302 Found", more=("Location: https://evil.example/",)))
    into = tmp_path / "contacts"
    done = setup.fetch(into, "--host", HOST)
    assert done.code == 1
    assert "redirect_blocked" in done.stdout
    assert done.stdout.endswith("nothing was written\n")
    assert not into.exists()
    without = setup.fetch(into, "--format", "json")
    assert without.code == 1
    (decision,) = json.loads(without.stdout)["decisions"]
    assert [finding["code"] for finding in decision["findings"]][:1] == ["host_not_allowlisted"]
    assert "network_disabled" in without.stdout


def test_a_folder_that_exists_is_an_error_of_usage(setup: Setup, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    done = setup.fetch(tmp_path / "full", "--host", HOST)
    assert done.code == 2
    assert "is not an empty folder" in done.stderr
    done = setup.fetch(tmp_path / "new", "--host", HOST, "--ca-file", str(tmp_path / "full" / "mine"))
    assert done.code == 4
    assert "certificate authorities" in done.stderr
    assert not (tmp_path / "new").exists()


REJECTED: dict[str, tuple[str, tuple[str, ...], bytes | None]] = {
    "a good answer": ("", ("URL",), None),
    "an unsafe scheme": ("unsafe_scheme", (f"http://{HOST}/contacts.json",), None),
    "a host that is not allowlisted": ("host_not_allowlisted", ("https://other.example.org/contacts.json",), None),
    "a redirect": ("redirect_blocked", ("URL",), response(b"", status="302 Found", more=("Location: /b.json",))),
    "an exhausted request budget": ("request_budget_exhausted", ("URL", "--max-requests", "0"), None),
    "an oversized payload": ("payload_too_large", ("URL",), response(b"", length=17_000_000)),
    "an unsupported content type": ("unsupported_content_type", ("URL",), response(type_="text/html")),
    "a status that is not 200": ("http_status_not_200", ("URL",), response(status="404 Not Found")),
}


# covers: A97.1-7
@pytest.mark.full(after=2)
@pytest.mark.parametrize("why", REJECTED)
def test_no_environment_is_built_after_a_rejected_fetch(why: str, setup: Setup, tmp_path: Path) -> None:
    code, (url, *more), answer = REJECTED[why]
    if answer is not None:
        setup.server.answers(answer)
    into, built = tmp_path / "contacts", tmp_path / "built"
    stated: tuple[str | Path, ...] = ("--license", "CC-BY-4.0", "--host", HOST, "--into", into)
    asked = (*stated, "--ca-file", setup.authority.path, *more)
    done = setup("fetch", url.replace("URL", setup.server.url()), *asked, "--format", "json")
    if not code:  # the control: what was fetched does become an environment
        (completion,) = blocks("docs/from-a-url.md", "yaml")
        complete(into, completion)
    outcome = setup("build", into, "--into", built)
    points = [one["point"] for one in lines(setup.command.state) if one["kind"] == "decision"]
    if not code:
        assert (done.code, outcome.code, points[2:]) == (0, 0, ["source", "environment"]), outcome.stdout
        assert (built / "contacts_sqlite" / "base.sqlite").is_file()
        return
    last = done.json["decisions"][-1]
    assert (done.code, done.json["folder"]) == (1, None)
    assert code in {finding["code"] for finding in last["findings"]}
    assert (outcome.code, "environment" in points) == (2, False), outcome.stdout
    assert not into.exists()
    assert not built.exists()
