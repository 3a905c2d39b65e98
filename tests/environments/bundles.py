"""Source bundles of tests: everything is stated and admitted, whatever the content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.flow import Context
from engine.model import Caller, Via
from engine.settings import Settings
from tests.command import lines

MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
AGENT = Context(caller=Caller(via=Via.PROCESS, principal="agent"), run="run-1")
OPTIONS: dict[str, Any] = {"policy": "environment", "profile": "environment"}
CONTACTS = "contacts_sqlite"
DOCUMENTS = "documents_fts"

_LICENSED = {
    "kind": "fixture",
    "url": None,
    "license": "CC-BY-4.0",
    "retrieved_at": "2026-11-02T09:30:00Z",
    "retention": {"until": "2035-11-02", "basis": "contract"},
    "export": "allowed",
}
_DECIDED = {"decision": "accepted", "decided_by": "legal@example.org", "decided_at": "2026-11-03T10:00:00Z"}


def contacts(number: int) -> bytes:
    """So many contacts as JSON."""
    return json.dumps([{"id": at, "name": f"Contact {at}", "city": "Bern"} for at in range(number)]).encode()


def bundle(folder: Path, *contents: bytes, environment: str = CONTACTS, media_type: str = "application/json") -> Path:
    """A source bundle with these contents, each a record `r-0`, `r-1`, …; returns its folder."""
    (folder / "content").mkdir(parents=True)
    records, decisions = [], []
    for at, content in enumerate(contents):
        (folder / "content" / f"{at}.dat").write_bytes(content)
        own: dict[str, Any] = {"sha256": hashlib.sha256(content).hexdigest()}
        named = {"id": f"r-{at}", "path": f"content/{at}.dat", "origin_alias": f"origin-{at}", "media_type": media_type}
        records.append(named | own | _LICENSED)
        decisions.append({"record": f"r-{at}"} | own | _DECIDED)
    document = {
        "format": 1,
        "id": "tried-2026-11",
        "purpose": "environment",
        "environment": environment,
        "export_license": None,
        "network": {"enabled": False, "allowed_hosts": [], "budget": {"max_requests": 0}, "audit_required": True},
        "sandbox": {
            "generated_code": "disabled",
            "filesystem": "artifact_subdir",
            "redaction": True,
            "network": "none",
        },
        "records": records,
        "license_decisions": decisions,
    }
    (folder / "bundle.yaml").write_text(json.dumps(document, indent=1), encoding="utf-8")
    return folder


def events(settings: Settings) -> list[Mapping[str, Any]]:
    """The lines of source_events.jsonl."""
    found = sorted((settings.state / "records").glob("source_events*.jsonl"))
    return [json.loads(line) for path in found for line in path.read_bytes().splitlines()]


def proven(state: Path, folder: Path) -> None:
    """The record holds, and leads from the request for the content to a destructive side effect and its restore."""
    record = lines(state)  # of a record that holds
    results = {one["decision_id"]: one["facts"] for one in record if one["kind"] == "result"}
    allowed = [
        one for one in record if one["kind"] == "decision" and (one["mode"], one["outcome"]) == ("enforce", "allow")
    ]
    points: dict[str, list[Any]] = {}
    for one in allowed:
        points.setdefault(one["point"], []).append(one)
    (network,), (response,) = points["network"], points["network_response"]
    (source,), (environment,) = points["source"], points["environment"]
    assert response["input"]["request"] == network["decision_id"]
    content = response["limits"]["sha256"]
    assert [one["sha256"] for one in source["limits"]["records"]] == [content]
    assert [one["sha256"] for one in environment["limits"]["records"]] == [content]
    assert environment["input"]["admitted"]["digest"] == source["limits"]["bundle_digest"]
    built = results[environment["decision_id"]]["sha256"]
    assert {one["input"]["held"]["built"] for one in (*points["tool_call"], *points["environment_act"])} == {built}
    effects = [one for call in points["tool_call"] for one in results[call["decision_id"]]["side_effects"]]
    (restore,) = points["environment_act"]
    done = results[restore["decision_id"]]
    trajectory = [json.loads(line) for line in (folder / "trajectory.jsonl").read_bytes().splitlines()]
    (changed,) = [line for line in trajectory if line["event"] == "changed"]
    assert [(one["class"], one["id"]) for one in effects] == [("destructive", changed["effect"])]
    assert (done["event"], trajectory[done["line"] - 1]["event"]) == ("restored", "restored")
    assert restore["input"]["checkpoint"] == trajectory[changed["line"] - 2]["name"]
    order = [one["seq"] for one in (network, response, source, environment, *points["tool_call"][:2], restore)]
    assert order == sorted(order)
