from __future__ import annotations

from pathlib import Path

import pytest

from engine.coverage import Gap, Kind, ToolValues, record_gaps, usage
from engine.record.layout import DECISIONS
from engine.record.reader import Filter
from tests.coverage.conftest import Make, subjects


@pytest.fixture
def gaps(values: ToolValues, recorded: Path) -> list[Gap]:
    return list(record_gaps(values, usage(recorded, Filter(), lambda _: None)))


def test_one_pass_counts_what_was_used(recorded: Path) -> None:
    told: list[int] = []
    found = usage(recorded, Filter(), told.append)
    assert (found.decisions, told) == (4, [1, 2, 3, 4])
    assert (found.first, found.last) == ("2026-11-21T00:00:00.000000Z", "2026-11-22T00:00:00.000000Z")
    assert found.rules == {"workspace/own_folder", "workspace/docs"}
    assert found.codes == {"tool_call": {"denied_by_default", "denied_by_rule"}}
    assert {origin: (one.tools, one.calls) for origin, one in found.origins.items()} == {
        "https://docs.example.com": ({"http_get", "mail_send"}, 3),
        "https://other.example.net": ({"http_get"}, 1),
    }


def test_the_filter_limits_the_counted_decisions(recorded: Path) -> None:
    found = usage(recorded, Filter(since="2026-11-22T00:00:00.000000Z"), lambda _: None)
    assert (found.decisions, found.rules) == (2, set())


def test_invalid_lines_are_reported_and_skipped(recorded: Path) -> None:
    file = recorded / DECISIONS
    file.write_bytes(b"no record\n" + file.read_bytes())
    found = usage(recorded, Filter(), lambda _: None)
    assert (found.decisions, [place.line for place in found.unreadable]) == (4, [1])


def test_hosts_without_a_rule_for_the_calling_tool_are_listed(gaps: list[Gap]) -> None:
    assert subjects(gaps, Kind.HOST_WITHOUT_RULE) == ["https://docs.example.com", "https://other.example.net"]
    docs, other = (gap.why for gap in gaps if gap.kind is Kind.HOST_WITHOUT_RULE)
    assert "`mail_send`" in docs
    assert "`http_get`" not in docs
    assert "1 recorded call asked for it" in other


def test_a_rule_for_any_host_covers_all(make: Make, recorded: Path, folder: Path) -> None:
    text = (folder / "tools.yaml").read_text(encoding="utf-8")
    open_ = make(text.replace('tools: [http_get], hosts: ["https://docs.example.com"]', 'tools: ["*"], hosts: any'))
    found = list(record_gaps(open_, usage(recorded, Filter(), lambda _: None)))
    assert subjects(found, Kind.HOST_WITHOUT_RULE) == []


def test_unused_policies_profiles_and_rules_are_listed(gaps: list[Gap]) -> None:
    assert subjects(gaps, Kind.POLICY_NEVER_ASKED) == ["careful"]
    assert subjects(gaps, Kind.PROFILE_NEVER_ASKED) == ["nothing", "remote"]
    never = subjects(gaps, Kind.RULE_NEVER_USED)
    assert "workspace/own_folder" not in never
    assert {"workspace/own_folder_and_more", "workspace/ask_before_fetch", "guard/ask_after_all"} <= set(never)
    assert not [name for name in never if name.startswith("workspace/no_")]  # some deny rule has refused
    assert "lost/mail" not in never  # told as a ruleset that no policy uses


def test_requirements_and_points_never_used(gaps: list[Gap], values: ToolValues) -> None:
    points = subjects(gaps, Kind.POINT_NEVER_ASKED)
    assert points == sorted(values.policy.catalogue.points.keys() - {"tool_call"})
    found = {name.removeprefix("tool_call/") for name in subjects(gaps, Kind.REQUIREMENT_NEVER_FOUND)}
    known = set(values.policy.catalogue.points["tool_call"].requirements)
    assert found == known - {"denied_by_default", "denied_by_rule"}
