from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from engine.coverage import Gap, Kind, ToolValues, value_gaps
from engine.documents.files import load
from engine.settings import ReadLimits
from tests.coverage.conftest import TOOLS, Make, subjects


def edited(edit: Any) -> str:
    """tools.yaml as JSON, after an edit of its values."""
    document = load(TOOLS.read_bytes(), TOOLS.name, ReadLimits()).value
    edit(document)
    return json.dumps(document)


@pytest.fixture
def gaps(values: ToolValues) -> list[Gap]:
    return list(value_gaps(values))


def test_a_tool_without_a_rule_in_a_policy_is_listed(gaps: list[Gap]) -> None:
    """A rule for every tool that only keeps some calls away says nothing about this one; nor does an unused ruleset."""
    assert subjects(gaps, Kind.TOOL_WITHOUT_RULE) == ["mail_send"]
    (gap,) = [one for one in gaps if one.subject == "mail_send"]
    assert "workspace/no_system_files" in gap.why
    assert gap.where is not None
    assert (Path(gap.where.file).name, gap.where.line) == ("tools.yaml", 6)


@pytest.mark.full
@pytest.mark.parametrize(
    "rule",
    [{"tools": ["mail_send"]}, {"tools": ["mail_*"]}, {"tools": ["*"]}, {"tools": ["group:everything", "mail_send"]}],
    ids=str,
)
@pytest.mark.parametrize("section", ["deny", "confirm", "allow"])
def test_a_tool_covered_by_any_kind_of_rule_is_not_listed(make: Make, rule: dict[str, Any], section: str) -> None:
    text = edited(lambda it: it["rulesets"]["workspace"][section].append({"id": "one_more", **rule}))
    assert subjects(list(value_gaps(make(text))), Kind.TOOL_WITHOUT_RULE) == []


def test_unused_rulesets_rules_profiles_and_groups_are_listed(gaps: list[Gap]) -> None:
    assert subjects(gaps, Kind.RULESET_UNUSED) == ["lost"]
    assert subjects(gaps, Kind.RULE_WITHOUT_TOOL) == ["workspace/ask_remote"]
    assert subjects(gaps, Kind.PROFILE_WITHOUT_TOOL) == ["nothing", "remote"]
    assert subjects(gaps, Kind.GROUP_UNUSED) == ["everything"]


def test_rules_that_nothing_can_reach(gaps: list[Gap]) -> None:
    hidden = {gap.subject: gap.why for gap in gaps if gap.kind is Kind.RULE_SHADOWED}
    assert sorted(hidden) == [
        "guard/ask_after_all",
        "workspace/no_sys",
        "workspace/no_writing_here",
        "workspace/own_folder_again",
    ]
    assert "deny rule guard/no_fetching" in hidden["guard/ask_after_all"]
    assert "deny rule workspace/no_system_files" in hidden["workspace/no_sys"]
    assert "allow rule workspace/own_folder" in hidden["workspace/own_folder_again"]


def test_a_rule_that_one_policy_can_reach_is_reached(make: Make, values: ToolValues) -> None:
    """`docs` is behind `no_fetching` under one policy only."""
    assert "workspace/docs" not in subjects(list(value_gaps(values)), Kind.RULE_SHADOWED)
    text = edited(lambda it: it["policies"].pop("assistant"))
    hidden = subjects(list(value_gaps(make(text))), Kind.RULE_SHADOWED)
    assert {"workspace/docs", "workspace/ask_before_fetch"} <= set(hidden)


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("section", "before", "after", "reached"),
    [
        ("deny", {"tools": ["http_get"]}, {"tools": ["http_get"]}, False),
        ("deny", {"tools": ["http_get"]}, {"tools": ["http_get", "mail_send"]}, True),
        ("deny", {"tools": ["*"]}, {"tools": ["http_get", "mail_send"], "hosts": any}, False),
        (
            "deny",
            {"tools": ["http_get"], "hosts": "any"},
            {"tools": ["http_get"], "hosts": ["https://a.example"]},
            False,
        ),
        ("deny", {"tools": ["http_get"], "hosts": "any"}, {"tools": ["http_get"]}, True),
        ("deny", {"tools": ["http_get"], "hosts": "any"}, {"tools": ["http_get"], "paths": ["/srv/"]}, True),
        (
            "confirm",
            {"tools": ["files_read"], "paths": ["/a/", "/b/"]},
            {"tools": ["files_read"], "paths": ["/b/"]},
            False,
        ),
        (
            "confirm",
            {"tools": ["files_read"], "paths": ["/b/"]},
            {"tools": ["files_read"], "paths": ["/a/", "/b/"]},
            True,
        ),
        ("allow", {"tools": ["mail_send"]}, {"tools": ["mail_send"]}, False),
        ("allow", {"tools": ["mail_send"]}, {"tools": ["mail_send"], "hosts": "any"}, True),
        ("allow", {"tools": ["mail_send"], "hosts": "any"}, {"tools": ["mail_send"]}, True),
        (
            "allow",
            {"tools": ["mail_send"], "hosts": "any", "paths": "any", "commands": "any"},
            {"tools": ["mail_send"], "hosts": ["https://a.example"]},
            False,
        ),
    ],
)
def test_a_rule_counts_as_shadowed_only_when_certainly_unreachable(
    make: Make, section: str, before: dict[str, Any], after: dict[str, Any], *, reached: bool
) -> None:
    both = [
        {"id": name, **{key: "any" if one is any else one for key, one in rule.items()}}
        for name, rule in (("before", before), ("after", after))
    ]

    def edit(document: dict[str, Any]) -> None:
        document["rulesets"] = {"only": {"deny": [], "confirm": [], "allow": [], section: both}}
        document["policies"] = {"only": {"base": "deny_all", "rulesets": ["only"], "principals": "any"}}

    hidden = subjects(list(value_gaps(make(edited(edit)))), Kind.RULE_SHADOWED)
    assert hidden == ([] if reached else ["only/after"])


@pytest.mark.full
def test_many_rules_cost_no_more_than_their_number(make: Make) -> None:
    """Ten times the rules must not cost a hundred times the time."""
    seconds = []
    for count in (500, 5_000):

        def edit(document: dict[str, Any], count: int = count) -> None:
            rule = {"tools": ["http_get"]}
            hosts = [{"id": f"r{number}", "hosts": [f"https://h{number}.example"], **rule} for number in range(count)]
            document["rulesets"]["workspace"]["deny"] = hosts

        values = make(edited(edit))
        _ = values.policy.data, values.policy.places
        rounds = []
        for _ in range(3):
            started = time.process_time()
            assert subjects(list(value_gaps(values)), Kind.RULESET_UNUSED) == ["lost"]
            rounds.append(time.process_time() - started)
        seconds.append(min(rounds))
    assert seconds[1] < 40 * seconds[0]
