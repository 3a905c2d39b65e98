"""The policy as people read it: requirements with words and tests, licenses, tools and hosts, gaps, waivers."""

from __future__ import annotations

import re
import tempfile
import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.api.messages import Response
from engine.coverage import Gap, Kind, ToolValues, record_gaps, usage, value_gaps
from engine.coverage.waivers import WaiversUsed, waiver_rows, waivers_used
from engine.engine import Engine
from engine.model import Decision, Mode, Revisions
from engine.policy_bundle.sources import snapshot
from engine.record.reader import Filter
from engine.settings import Settings
from engine.workbench.pages import UnknownError
from engine.workbench.visit import Visit

_TEST = re.compile(rb"^test_[A-Za-z0-9_]+", re.MULTILINE)
_CONTENT = "0" * 64
"""The digest of the content that the matrix asks about; it is accepted, so that only the table decides."""

_ACCEPTED = {"sha256": _CONTENT, "decision": "accepted", "decided_at": "2000-01-01T00:00:00Z"}


def points(visit: Visit) -> Response:
    """The decision points, and what else the policy has."""
    policy = visit.desk.policy()
    return visit.page("policy.html", policy=policy, points=sorted(policy.display_catalogue.points.items()))


def point(visit: Visit) -> Response:
    """The requirements of a point, with their words, rows of the acceptance catalogue, and tests."""
    policy = visit.desk.policy()
    entries = policy.display_catalogue.points.get(visit.name)
    if entries is None:
        raise UnknownError("there is no such decision point", remedy="choose one from the list of the policy")
    tests = snapshot(policy.sources).tests
    files = {one.file for one in entries.requirements.values()}
    named = {
        file: sorted({match.decode() for match in _TEST.findall(tests.get(file.replace(".rego", "_test.rego"), b""))})
        for file in files
    }
    return visit.page("policy_point.html", policy=policy, point=visit.name, entries=entries, tests=named)


def licenses(visit: Visit) -> Response:
    """License by purpose: what the policy answers for content under this license, used inside or given to others."""
    policy = visit.desk.policy()
    table = policy.data["licenses"]["licenses"]
    export = visit.query.get("export") or None
    if export not in (None, *table):
        raise UnknownError("the table has no such license", remedy="choose one of the list")
    purposes = tuple(policy.data["sources"]["purposes"])
    verdicts = _matrix(visit.desk.settings, policy.revisions, tuple(table), purposes, export)
    places = policy.places
    rows = [(name, row, places.get(("licenses", "licenses", name)), verdicts[name]) for name, row in table.items()]
    categories = policy.data["licenses"]["categories"]
    return visit.page("licenses.html", rows=rows, purposes=purposes, export=export, table=table, categories=categories)


@lru_cache(maxsize=8)
def _matrix(
    settings: Settings, _revisions: Revisions, names: tuple[str, ...], purposes: tuple[str, ...], export: str | None
) -> dict[str, dict[str, Decision]]:
    """The decision on each license and purpose; kept as long as the policy has these revisions."""
    pairs = [(name, purpose) for name in names for purpose in purposes]
    common = {"export_license": export, "sha256": _CONTENT, "decisions": [_ACCEPTED]}
    decisions = _dry_runs(settings, "license", [{**common, "license": one, "purpose": use} for one, use in pairs])
    found: dict[str, dict[str, Decision]] = {name: {} for name in names}
    for (name, purpose), decision in zip(pairs, decisions, strict=True):
        found[name][purpose] = decision
    return found


def _dry_runs(settings: Settings, point: str, requests: list[dict[str, Any]]) -> list[Decision]:
    """What the policy decides on these requests: dry runs, whose record is thrown away. Raises EngineError."""
    with (
        tempfile.TemporaryDirectory(prefix="admission-workbench-") as folder,
        Engine(replace(settings, state=Path(folder), database=None), points=frozenset({point})) as engine,
    ):
        answers = engine.decide_many(point, requests, mode=Mode.CHECK)
    for answer in answers:
        if answer.fault is not None:
            raise answer.fault
    return [answer.decision for answer in answers]


def tools(visit: Visit) -> Response:
    """Tool by profile: what an agent sees under a tool policy; the rules of calls, and the hosts that values name."""
    policy = visit.desk.policy()
    read = ToolValues(policy)
    chosen = visit.query.get("policy") or min(read.values["policies"])
    if chosen not in read.values["policies"]:
        raise UnknownError("there is no such tool policy", remedy="choose one of the list")
    profiles = tuple(read.values["profiles"])
    return visit.page(
        "tools.html",
        policy=policy,
        values=read.values,
        chosen=chosen,
        profiles=profiles,
        tools=read.tools,
        visible=_visible(visit.desk.settings, policy.revisions, chosen, profiles, read.tools),
        rules=[(rule, read.where(*rule.path)) for name in read.rulesets for rule in read.rulesets[name]],
        hosts=policy.row(("networks", "hosts")),
    )


@lru_cache(maxsize=8)
def _visible(
    settings: Settings, _revisions: Revisions, chosen: str, profiles: tuple[str, ...], tools: tuple[str, ...]
) -> dict[str, frozenset[str]]:
    """The tools that each profile shows under a tool policy; kept as long as the policy has these revisions."""
    requests = [{"policy": chosen, "profile": profile, "tools": list(tools)} for profile in profiles]
    decisions = _dry_runs(settings, "tool_visibility", requests)
    return {
        profile: frozenset(getattr(decision.limits, "visible", ()))
        for profile, decision in zip(profiles, decisions, strict=True)
    }


def coverage(visit: Visit) -> Response:
    """Gaps of the values, and what no recorded decision used."""
    policy, state = visit.desk.policy(), visit.desk.settings.state
    read = ToolValues(policy)
    used = usage(state, Filter(), lambda _: None) if state.is_dir() else None
    gaps = [*value_gaps(read), *(() if used is None or not used.decisions else record_gaps(read, used))]
    kinds: dict[Kind, list[Gap]] = {kind: [gap for gap in gaps if gap.kind is kind] for kind in Kind}
    return visit.page("coverage.html", kinds={kind: found for kind, found in kinds.items() if found}, used=used)


def waivers(visit: Visit) -> Response:
    """The waivers of the policy, as `engine policy waivers` lists them, and what may be waived."""
    policy, state = visit.desk.policy(), visit.desk.settings.state
    used = waivers_used(state, None, lambda _: None) if state.is_dir() else WaiversUsed()
    rows = waiver_rows(policy, used, int(time.time()))
    return visit.page(
        "waivers.html",
        rows=rows,
        places=[policy.places.get(("waivers", "waivers", row["point"], row["code"], row["id"])) for row in rows],
        unreadable=used.unreadable,
        waivable=policy.data["waivers"]["waivable"],
        days_max=policy.data["waivers"]["days_max"],
    )
