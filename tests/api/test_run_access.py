"""The gate in front of a guarded runner, both as processes: its token, its client certificate, whom it trusts."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509.oid import NameOID

from tests.api.serving import Reply, Serving, issue, refused, serving
from tests.api.test_access import Authority
from tests.command import lines, written
from tests.conftest import ROOT

RUN: dict[str, Any] = {"agent": {"harness": "pi_core"}, "messages": [{"role": "user", "content": "hello"}]}
REACHED = "the harness `pi_core` is not installed here"
"""What the runner says of this run under the policy of this project: past its guard."""

OUT_OF_SCOPE = "caller_out_of_scope: required: The caller may ask at this point"

POINT = ("runner_request",)


@dataclass(frozen=True, slots=True)
class Pair:
    """A gate, and the runner behind it."""

    gate: Serving
    runner: Serving

    def run(self) -> Reply:
        return self.gate.ask("POST", "/run", RUN)

    def refusal(self) -> tuple[int, str, str]:
        """Status of a refused run, the code in the record, and what the log of the gate says of it."""
        before = self.gate.log.stat().st_size
        reply = self.run()
        assert (reply.json["ok"], list(reply.json)) == (False, ["ok", "error"])
        results = [line["status"] for line in lines(self.gate.state) if line["kind"] == "result"]
        return reply.status, results[-1], self.gate.log.read_text()[before:]


def policy_for(folder: Path, name: str, pattern: str, by: str) -> Path:
    """The policy of this project, with a change in one file."""
    policy = folder / "policy"
    shutil.copytree(ROOT / "policy", policy)
    file = policy / name
    file.write_text(re.sub(pattern, by, file.read_text(encoding="utf-8")), encoding="utf-8")
    return policy


@contextmanager
def pair(folder: Path, cache: Path, runner: tuple[str | Path, ...], gate: tuple[str | Path, ...]) -> Iterator[Pair]:
    (folder / "runner").mkdir()
    (folder / "gate").mkdir()
    with ExitStack() as stack:
        behind = stack.enter_context(serving(folder / "runner", cache, *runner, command=("runner", "serve")))
        scheme = "https" if "--tls-cert" in runner else "http"
        own = rf'\1: \2"{scheme}://127.0.0.1:{behind.port}"'
        policy = policy_for(folder / "gate", "runners.yaml", r'(default|allowlist|credentials): (\[?)"http[^"]*"', own)
        yield Pair(stack.enter_context(serving(folder / "gate", cache, "--policy", policy, *gate)), behind)


# covers: D31.1-4 D24.1
@pytest.mark.own_opa  # a process of its own, whose arguments are looked at
def test_a_scoped_token_opens_the_runner_and_no_other_does(tmp_path: Path, cache: Path) -> None:
    token = tmp_path / "token"
    token.write_text("mistaken-horse-battery-staple")
    guarded = ("--audience", "runner-1")
    with pair(tmp_path, cache, guarded, ("--runner-token-file", token)) as both:
        state = both.runner.state
        good = issue(state, "gate", POINT, audience="runner-1")
        unauthorized = (502, "engine.runner_unauthorized")
        single = issue(state, "gate", POINT, audience="runner-1", single_use=True)
        for text, wanted in (
            ("mistaken-horse-battery-staple", unauthorized),
            (issue(state, "gate", POINT, audience="runner-2"), unauthorized),
            (issue(state, "gate", ("license",), audience="runner-1"), OUT_OF_SCOPE),
            (good, REACHED),
            (single, REACHED),
            (single, unauthorized),
            ("", (500, "engine.runner_credentials")),
            (good, REACHED),
        ):
            token.write_text(text)
            if isinstance(wanted, str):
                reply = both.run()
                assert (reply.status, reply.json["error"]) == (200, wanted)
                continue
            status, code, told = both.refusal()
            assert (status, code) == wanted
            assert "fix: " in told
            assert "--runner-token-file" in told
        shown = written(both.gate.state) + both.gate.log.read_bytes()
        shown += Path(f"/proc/{both.gate.process.pid}/cmdline").read_bytes()
        assert good.encode() not in shown
        assert str(token).encode() in shown  # the control


# covers: D30.1-2
@pytest.mark.full
def test_a_client_certificate_opens_the_runner_and_no_other_does(tmp_path: Path, cache: Path) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    certificate, key = authority.issue("server", (NameOID.COMMON_NAME, "runner"))
    named = policy_for(tmp_path, "callers.yaml", r"certificates: {}", "certificates: {CN=gate: [runner_request]}")
    guarded = ("--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", authority.path, "--policy", named)
    mine, ca = tmp_path / "mine.pem", tmp_path / "ca.pem"
    given: dict[Path, Path] = {}

    def show(name: str, by: Authority, days: int = 1) -> None:
        pem, own = by.issue(name, (NameOID.COMMON_NAME, "gate"), days=days)
        given.update({mine: pem, mine.with_suffix(".key"): own})
        for to, source in given.items():
            shutil.copyfile(source, to)

    show("good", authority)
    shutil.copyfile(authority.path, ca)
    options = ("--runner-cert", mine, "--runner-key", mine.with_suffix(".key"), "--ca-file", ca)
    with pair(tmp_path, cache, guarded, options) as both:
        assert both.run().json["error"] == REACHED
        for name, by, days in (("expired", authority, -1), ("unknown", other, 1)):
            show(name, by, days)
            status, code, told = both.refusal()
            assert (status, code) == (502, "engine.runner_hung_up")
            assert "--runner-cert" in told
        show("again", authority)
        shutil.copyfile(other.path, ca)
        status, code, told = both.refusal()
        assert (status, code) == (502, "engine.runner_tls")
        assert "fix: name its authority with --ca-file" in told
        shutil.copyfile(authority.path, ca)
        assert both.run().json["error"] == REACHED
        assert b"PRIVATE KEY" not in both.gate.log.read_bytes()


@pytest.mark.full
def test_a_runner_with_a_token_over_mutual_tls(tmp_path: Path, cache: Path) -> None:
    authority, token = Authority(tmp_path), tmp_path / "token"
    certificate, key = authority.issue("server", (NameOID.COMMON_NAME, "runner"))
    mine = authority.issue("gate-1", (NameOID.COMMON_NAME, "gate"))
    guarded = ("--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", authority.path)
    token.write_text("mistaken-horse-battery-staple")
    options = ("--runner-cert", mine[0], "--runner-key", mine[1], "--ca-file", authority.path)
    with pair(tmp_path, cache, guarded, (*options, "--runner-token-file", token)) as both:
        assert both.refusal()[:2] == (502, "engine.runner_unauthorized")
        token.write_text(issue(both.runner.state, "gate", POINT))
        assert both.run().json["error"] == REACHED


def test_files_that_cannot_be_used_are_reported_at_the_start(tmp_path: Path, cache: Path) -> None:
    token, certificate = tmp_path / "token", tmp_path / "mine.pem"
    token.write_text("two words")
    certificate.write_text("none")
    code, told = refused(tmp_path, cache, "--runner-token-file", token)
    assert (code, "the token for the runner cannot be read" in told) == (4, True)
    code, told = refused(tmp_path, cache, "--runner-cert", certificate, "--runner-key", certificate)
    assert (code, "the client certificate or its key cannot be read" in told) == (4, True)
    code, told = refused(tmp_path, cache, "--runner-cert", certificate)
    assert (code, "give --runner-cert and --runner-key together" in told) == (2, True)
