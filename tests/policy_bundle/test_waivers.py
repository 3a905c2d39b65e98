"""What people see of waivers: in reports, in lint, in `engine policy waivers` and in a diff."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from engine.engine import Engine
from engine.model import Outcome
from engine.settings import Settings
from engine.values.waivers import Waiver
from tests.command import Command
from tests.conftest import BUNDLES, ROOT

BUNDLE = BUNDLES / "retention_basis_not_admitted"
DIGEST = "sha256:f1f47d96ec5de2a7e1b2fbda6f4181ed10fae9fcd4012efad019f5e91d728a47"
ROW: dict[str, Any] = {
    "subject": "records/contacts-1",
    "principal": "any",
    "facts": {"bundle.digest": DIGEST},
    "owner": "data@example.org",
    "approver": "compliance@example.org",
    "reason": "terms are being renewed",
    "starts": "2026-11-01",
    "until": "2026-12-31",
}


def waiving(policy: Path, **changes: Any) -> Path:
    """The values with one waiver, `terms`."""
    file = policy / "waivers.yaml"
    text = file.read_text(encoding="utf-8").removesuffix("waivers: {}\n")
    rows = {"source": {"retention_unknown": {"terms": {**ROW, **changes}}}}
    file.write_text(f"{text}waivers: {json.dumps(rows)}\n", encoding="utf-8")
    return policy


def test_reports_name_the_waiver_and_its_place(command: Command, policy: Path) -> None:
    waiving(policy)
    run = command.check(BUNDLE, "--policy", policy)
    assert (run.code, run.stdout[:5]) == (0, "ALLOW")
    assert "warn retention_unknown\n" in run.stdout
    assert "(waived by terms)" in run.stdout
    assert "policy: waivers.waivers.source.retention_unknown.terms = {" in run.stdout
    assert "the waiver `terms` of `retention_unknown` at point `source` is in force until 2026-12-31" in run.stderr
    assert "by data@example.org, approved by compliance@example.org: terms are being renewed" in run.stderr
    sarif = command.check(BUNDLE, "--policy", policy, "--format", "sarif").json
    (result,) = sarif["runs"][0]["results"]
    assert result["suppressions"] == [{"kind": "external", "status": "accepted", "justification": "waived by terms"}]
    (finding,) = command.check(BUNDLE, "--policy", policy, "--format", "json").json["reports"][0]["findings"]
    assert (finding["level"], finding["waiver"]) == ("warn", "terms")
    assert "waived by terms" in command("record", "show").stdout


def test_the_waiver_of_the_page_works_on_its_days(command: Command, policy: Path) -> None:
    page = (ROOT / "docs/waivers.md").read_text(encoding="utf-8")
    example = page.partition("```yaml\n")[2].partition("```")[0].partition("\nwaivers:")[2]
    file = policy / "waivers.yaml"
    text = file.read_text(encoding="utf-8").removesuffix("waivers: {}\n")
    file.write_text(f"{text}waivers:{example}", encoding="utf-8")
    for now, code in (("2026-11-23", 1), ("2026-11-24", 0), ("2026-12-31", 0), ("2027-01-01", 1)):
        assert command("check", BUNDLE, "--policy", policy, "--now", f"{now}T12:00:00Z").code == code, now


def test_a_waiver_without_effect_is_reported(command: Command, policy: Path) -> None:
    waiving(policy, until="2026-11-20")
    run = command.check(BUNDLE, "--policy", policy)
    assert run.code == 1
    assert (
        "the waiver `terms` of `retention_unknown` at point `source` does nothing: it ended on 2026-11-20" in run.stderr
    )
    lint = command("policy", "lint", "--policy", policy)
    assert lint.code == 5
    assert "waivers.yaml:" in lint.stdout
    assert "does nothing: it ended on 2026-11-20\n  remove it, or have a new one approved" in lint.stdout


def test_rows_without_waivers_below_an_unknown_point_or_code_are_reported(command: Command, policy: Path) -> None:
    file = policy / "waivers.yaml"
    text = file.read_text(encoding="utf-8").removesuffix("waivers: {}\n")
    first = text.count("\n") + 1
    rows = (
        "  sauce: {}\n  source:\n    retention_unknown: {}\n    retention_unkown: {}\n  release: {}\n  tool: {a: {}}\n"
    )
    file.write_text(f"{text}waivers:\n{rows}", encoding="utf-8")
    lint = command("policy", "lint", "--policy", policy)
    assert lint.code == 5
    told = [line.partition("waivers.yaml:")[2] for line in lint.stdout.splitlines() if "waivers.yaml:" in line]
    assert told == [
        f"{first + 1} (waivers.sauce): there is no decision point `sauce`",
        f"{first + 4} (waivers.source.retention_unkown): no requirement of `source` has the code `retention_unkown`",
        f"{first + 6} (waivers.tool.a): there is no decision point `tool`",
    ]
    assert lint.stdout.count("use one of `adapter`, ") == 2
    assert "\n  did you mean `source`? use one of " in lint.stdout
    assert "\n  did you mean `retention_unknown`? correct the code, or remove the row\n" in lint.stdout


def test_waivers_are_listed_with_the_decisions_they_let_through(
    command: Command, policy: Path, settings: Settings
) -> None:
    waiving(policy)
    with_policy = ("--policy", policy, "--now", "2026-11-21T00:00:00Z")
    assert command.check(BUNDLE, "--policy", policy).code == 0
    own = replace(settings, policy=policy, state=command.state)
    with Engine(own, now=lambda: datetime(2026, 11, 21, tzinfo=UTC), points=frozenset({"source"})) as engine:
        decided = engine.decide("source", {"path": str(BUNDLE), "digest": None}).decision
    assert decided.outcome is Outcome.ALLOW
    (row,) = command("policy", "waivers", *with_policy, "--format", "json").json["waivers"]
    assert (row["id"], row["does_nothing"], row["until"]) == ("terms", None, "2026-12-31")
    assert (row["let_through"], row["dry_runs"], row["denied_otherwise"]) == (1, 1, 0)
    assert row["last_decisions"] == [decided.decision_id]
    text = command("policy", "waivers", *with_policy).stdout
    assert "from 2026-11-01 until 2026-12-31 (UTC): terms are being renewed" in text
    assert "let through 1 decision; 1 dry run" in text
    waiving_nothing = command("policy", "waivers", "--format", "json").json["waivers"]
    assert [one["does_nothing"] for one in waiving_nothing] == ["it is no longer in the policy"]
    changed = command("policy", "diff", policy).stdout
    assert changed.startswith("waivers\n  waivers.waivers.source: added, {")


def test_a_requirement_that_may_not_be_waived_is_refused(command: Command, policy: Path) -> None:
    file = policy / "waivers.yaml"
    exact = {"facts": ["bundle.digest"], "any": []}
    codes = ("content_hash_mismatch", "stopped", "engine_fault", "limits_missing")
    rows = {
        "source": {**dict.fromkeys(codes, exact), "retention_missing": {"facts": ["bundle.digset"], "any": []}},
        "tool_call": {"secret_in_arguments": exact},
        "sauce": {"retention_unknown": exact},
        "soup": {},
    }
    head = file.read_text(encoding="utf-8").partition("\nwaivable:")[0]
    file.write_text(f"{head}\nwaivable: {json.dumps(rows)}\nwaivers: {{}}\n", encoding="utf-8")
    lint = command("policy", "lint", "--policy", policy)
    assert lint.code == 5
    for said in (
        "`content_hash_mismatch` cannot be waived: ",
        "states `waivable: false`",
        "states `fixed: true`",
        "`limits_missing` always denies",
        "no requirement of `source` has the code `engine_fault`",
        "there is no decision point `sauce`",
        "there is no decision point `soup`",
        "`facts` names `bundle.digset`, which is not in the input of `source`",
    ):
        assert said in lint.stdout


@pytest.mark.parametrize("name", [*ROW])
def test_a_waiver_without_a_field_is_refused_like_any_value(name: str) -> None:
    with pytest.raises(ValidationError, match=name):
        Waiver.model_validate({key: value for key, value in ROW.items() if key != name})
