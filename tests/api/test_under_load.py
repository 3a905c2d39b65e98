"""What happens to a serving engine in the middle of its work: killed, its OPA killed or stopped, its policy changed.

The load is 32 connections that ask without a pause. What was acknowledged is in the record, a fault is a deny
with a reserved code, and a change of policy fails no request.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine.model import is_reserved
from engine.record.verify import verify
from tests.api.serving import ALLOWED, Serving, serving, until
from tests.conftest import ROOT
from tests.processes import opa_of, stop

CONNECTIONS = 32
ROUNDS = int(os.environ.get("ENGINE_KILL_ROUNDS", "4"))
"""How often the engine is killed; 500 are run by hand before a release."""


@dataclass(frozen=True, slots=True)
class VisibleText:
    """One answer: when it was asked for and came, its status, and its decision where there was one."""

    asked: float
    at: float
    status: int
    decision: dict[str, Any] | None


@dataclass(slots=True)
class Load:
    """Answers so far, and the connections that ask for more."""

    seen: list[VisibleText] = field(default_factory=list)
    broken: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)

    def run(self, host: str, port: int) -> None:
        """Ask on one connection until the end, or until it breaks."""
        connection = http.client.HTTPConnection(host, port, timeout=30)
        body = json.dumps(ALLOWED).encode()
        try:
            while not self._ended.is_set():
                asked = time.monotonic()
                connection.request("POST", "/v1/decide/license", body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                found = json.loads(response.read())
                decision = found if response.status == 200 else found.get("decision")
                self.seen.append(VisibleText(asked, time.monotonic(), response.status, decision))
        except (OSError, http.client.HTTPException, ValueError):
            self.broken += 1
        finally:
            connection.close()

    def end(self) -> None:
        """No more requests."""
        self._ended.set()

    def since(self, moment: float) -> list[VisibleText]:
        """Answers that came after a moment."""
        return [one for one in self.seen if one.at > moment]


@contextmanager
def load(api: Serving) -> Iterator[Load]:
    """32 connections in progress; at the end they have finished."""
    running = Load()
    threads = [threading.Thread(target=running.run, args=(api.host, api.port)) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: len(running.seen) > CONNECTIONS)
        yield running
    finally:
        running.end()
        for thread in threads:
            thread.join()


def outcome(one: VisibleText) -> str:
    return "none" if one.decision is None else one.decision["outcome"]


def codes(one: VisibleText) -> set[str]:
    return set() if one.decision is None else {finding["code"] for finding in one.decision["findings"]}


# covers: C70.1
@pytest.mark.full
def test_killed_under_load_nothing_that_was_acknowledged_is_missing(tmp_path: Path, cache: Path) -> None:
    acknowledged: list[str] = []
    for round_ in range(ROUNDS):
        folder = tmp_path / f"{round_}"
        folder.mkdir()
        with serving(folder, cache, "--state", tmp_path / "state") as api, load(api) as running:
            count = len(running.seen) + 40 + 7 * (round_ % 23)
            until(lambda count=count, running=running: len(running.seen) >= count)
            api.process.kill()
            api.process.wait()
        assert {outcome(one) for one in running.seen} == {"allow"}
        acknowledged += [one.decision["decision_id"] for one in running.seen if one.decision is not None]
        found = verify(tmp_path / "state")
        assert found.ok or found.repairable, found.breaks
    with serving(tmp_path, cache, "--state", tmp_path / "state") as api:
        assert api.decide("license", ALLOWED).status == 200
        assert api.stop() == 0
    assert verify(tmp_path / "state").ok
    recorded = Counter(one["decision_id"] for one in api.records() if one["kind"] == "decision")
    assert len(acknowledged) > ROUNDS * CONNECTIONS
    assert not set(acknowledged) - recorded.keys()
    assert set(recorded.values()) == {1}


# covers: H13.2
@pytest.mark.own_opa
def test_opa_killed_and_stopped_under_load_gives_only_reserved_denies_and_recovers(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache, "--deadline", "1") as api, load(api) as running:
        for fault in ("killed", "stopped"):
            pid = opa_of(api.process.pid)
            moment = time.monotonic()
            os.kill(pid, signal.SIGKILL) if fault == "killed" else stop(pid)
            until(lambda moment=moment: any(outcome(one) == "deny" for one in running.since(moment)))
            until(lambda: outcome(running.seen[-1]) == "allow" and api.ask("GET", "/ready").status == 200)
            after = running.since(moment)
            denied = [one for one in after if outcome(one) == "deny"]
            assert {outcome(one) for one in after} <= {"allow", "deny"}
            assert {one.status for one in denied} == {503}
            assert all(is_reserved(code) for one in denied for code in codes(one))
            assert {"policy_unavailable"} <= {code for one in denied for code in codes(one)}
        assert running.broken == 0
        metrics = api.ask("GET", "/metrics").body.decode()
        assert "policy_unavailable" in metrics
        running.end()
        assert api.stop() == 0
    assert verify(api.state).ok
    recorded = Counter(one["outcome"] for one in api.records() if one["kind"] == "decision")
    assert recorded["deny"] >= sum(outcome(one) == "deny" for one in running.seen)


@pytest.mark.full
def test_a_policy_change_under_load_fails_no_request_and_no_answer_is_from_a_wrong_revision(
    tmp_path: Path, cache: Path
) -> None:
    policy = tmp_path / "policy"
    shutil.copytree(ROOT / "policy", policy)
    file = policy / "approvals.yaml"
    original = file.read_text(encoding="utf-8")
    with serving(tmp_path, cache, "--policy", policy) as api, load(api) as running:
        changes: list[tuple[float, float, str]] = []  # asked, acknowledged, revision of the values afterwards
        for seconds in ("3600", "7200"):
            file.write_text(original.replace("86400", seconds), encoding="utf-8")
            asked = time.monotonic()
            answer = api.ask("POST", "/v1/policy/activate", control=True)
            assert answer.status == 200, answer.body
            changes.append((asked, time.monotonic(), answer.json["values"]))
        file.write_text(original.replace("86400", "never"), encoding="utf-8")
        refused = api.ask("POST", "/v1/policy/activate", control=True)
        assert refused.status == 409
        assert "approvals.yaml" in refused.body.decode()
        moment = time.monotonic()
        until(lambda: len(running.since(moment)) > 100)
        running.end()
    assert running.broken == 0
    assert {(one.status, outcome(one)) for one in running.seen} == {(200, "allow")}
    revisions = [running.seen[0].decision["policy"]["values"], *(change[2] for change in changes)]  # type: ignore[index]
    assert len(set(revisions)) == 3
    for one in running.seen:
        assert one.decision is not None
        number = revisions.index(one.decision["policy"]["values"])
        if number:  # not before it was asked for
            assert one.at > changes[number - 1][0]
        if number < len(changes):  # only to those who asked before the acknowledgement
            assert one.asked < changes[number][1]
    last = [one for one in running.seen if one.at > moment]
    assert {one.decision["policy"]["values"] for one in last if one.decision} == {revisions[-1]}
