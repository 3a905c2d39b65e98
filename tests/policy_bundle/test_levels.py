"""A refusal is lowered by a named owner until a day, is shown while it is, and denies again by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.binaries import find_binary
from engine.cases.run import Runner
from engine.engine import Engine
from engine.errors import PolicyError
from engine.points.registry import POINTS
from engine.policy_bundle.build import build
from engine.policy_bundle.catalogue import Catalogue
from engine.policy_bundle.sources import PolicySources
from engine.settings import Settings
from tests.command import Command
from tests.conftest import BUNDLES, lowered
from tests.expect import there

ROW: dict[str, Any] = {"level": "warn", "owner": "data@example.org", "reason": "new terms", "until": "2026-12-31"}
LAST = 1_798_761_599
"""The last second of that day."""

BUNDLE = BUNDLES / "retention_basis_not_admitted"
FIXED = {
    "adapter": {
        *("adapter_disabled", "capability_not_admitted", "execution_not_admitted", "source_policy_mismatch"),
        "tool_not_curated",
    },
    "adapter_envelope": {"adapter_contract_rejected", "adapter_disabled"},
    "administration": {
        *("act_incomplete", "act_out_of_scope", "act_stopped", "actor_unnamed", "approval_overdue"),
        *("approval_resolved", "approver_is_requester", "prefix_approver_is_runner", "prefix_too_long"),
        "prefix_tool_unknown",
        *("principal_ambiguous", "token_id_invalid", "token_point_unknown", "token_too_long", "token_without_point"),
    },
    "artifact": {"artifact_not_isolated"},
    "code_execution": {
        *("boundaries_incomplete", "boundary_not_enforced", "packages_changed", "profile_below_floor"),
        *("probe_foreign", "probe_missing", "probe_stale"),
    },
    "environment": {"content_changed", "material_unfit", "source_changed", "source_not_admitted"},
    "environment_act": {"environment_not_held", "state_not_held"},
    "episode": {"unauthorized_state_transition"},
    "export": {"sample_id_not_unique", "sample_source_unknown", "sample_without_provenance", "secret_in_sample"},
    "llm": {
        *("base_url_not_canonical", "base_url_not_https", "key_target_refused", "model_variable_missing"),
        *("provider_not_configured", "provider_not_remote"),
    },
    "mcp": {"definition_changed"},
    "memory": {"memory_of_another_owner", "memory_owner_unnamed", "secret_in_memory"},
    "provisioning": {
        *("MaxAgentsExceededError", "provisioning_not_json", "provisioning_schema_invalid", "unknown_key"),
    },
    "record": {"payload_detail_not_admitted", "policy_not_in_force", "retention_below_floor"},
    "record_read": {"record_read_out_of_scope"},
    "release": {"security_test_failed", "security_test_missing", "suite_failed"},
    "runner_bind": {"bind_without_token"},
    "runner_request": {
        *("FILESYSTEM_UNSUPPORTED_MESSAGE", "LOCAL_NETWORK_UNSUPPORTED_MESSAGE", "egress_not_proven"),
    },
    "sandbox": {
        *("boundaries_incomplete", "boundary_not_enforced", "declared_boundary_not_enforced", "profile_below_floor"),
        *("probe_foreign", "probe_missing", "probe_stale"),
    },
    "skill_file": {"symlink_escape"},
    "source": {
        *("boundary_not_enforced", "filesystem_not_isolated", "bundle_changed", "content_missing"),
        *("content_hash_mismatch", "content_hash_missing", "redaction_off", "source_audit_off"),
    },
    "subagent": {"not_own_subagent", "not_parent", "tool_policy_principal"},
    "tool_call": {"agent_inactive", "agent_tool_not_approved", "definition_changed", "tool_policy_principal"},
    "tool_contract": {"definition_changed"},
}
"""Requirements about hashes, boundaries, records, secrets and callers; everywhere those about callers and stops too."""


def laid_over(row: Any) -> dict[str, Any]:
    return {"levels": {"source": {"+retention_unknown": row}}}


def levels(engine: Engine, input_: dict[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    answer = engine.opa.ask("decision", input_).result
    return answer["outcome"], [(one["code"], one["level"]) for one in answer["findings"]]


def taken(runner: Runner) -> dict[str, Any]:
    return there(runner.engine({}).check("source", {"path": str(BUNDLE), "digest": None}).document)


@pytest.mark.parametrize("level", ["warn", "confirm"])
def test_a_level_is_lowered_until_the_end_of_its_last_day(level: str, runner: Runner) -> None:
    engine, document = runner.engine({"levels": laid_over({**ROW, "level": level})}), taken(runner)
    outcome = {"warn": "allow", "confirm": "confirm"}[level]
    assert levels(engine, {**document, "now": LAST}) == (outcome, [("retention_unknown", level)])
    assert levels(engine, {**document, "now": LAST + 1}) == ("deny", [("retention_unknown", "deny")])
    batch = engine.opa.ask("decisions", {"items": [{**document, "now": now} for now in (LAST + 1, LAST)]}).result
    assert [one["outcome"] for one in batch] == ["deny", outcome]


@pytest.mark.parametrize("now", [None, "", "2026-11-21", True, [], {}, "absent"])
def test_without_a_clock_nothing_is_lowered(now: Any, runner: Runner) -> None:
    document = {**taken(runner), "now": now}
    if now == "absent":
        del document["now"]
    outcome, found = levels(runner.engine({"levels": laid_over(ROW)}), document)
    assert (outcome, ("retention_unknown", "deny") in found) == ("deny", True)


def test_fixed_requirements_cannot_be_lowered(runner: Runner) -> None:
    policy = there(runner.engine({}).policy)
    catalogue: Catalogue = policy.catalogue
    everywhere = {code for code in catalogue.codes("license") if code.startswith(("approval_", "caller_", "stopped"))}
    assert len(everywhere) == 10
    fixed = {
        point: {one.code for one in entries.requirements.values() if one.fixed} - everywhere
        for point, entries in catalogue.points.items()
    }
    assert {point: codes for point, codes in fixed.items() if codes} == FIXED
    assert all(catalogue.points[point].requirements[code].fixed for point in catalogue.points for code in everywhere)


def test_check_reports_a_lowered_level_and_the_decision_keeps_the_finding(tmp_path: Path, cache: Path) -> None:
    command = Command.of(tmp_path, cache)
    row = f"levels.levels.source.retention_unknown={json.dumps(ROW)}"
    other = f"levels.levels.license.license_unknown={json.dumps(ROW)}"
    run = command.check(BUNDLE, "--values", row, "--values", other, "--format", "json")
    assert "`retention_unknown` at point `source` is lowered to warn until 2026-12-31" in run.stderr
    assert "by data@example.org: new terms" in run.stderr
    assert "license_unknown" not in run.stderr
    (report,) = run.json["reports"]
    assert (report["exit"], [one["level"] for one in report["decision"]["findings"]]) == (0, ["warn"])
    assert "lowered" not in command.check(BUNDLE).stderr


def test_an_expired_level_is_reported(command: Command, policy: Path) -> None:
    levels = policy / "levels.yaml"
    text = levels.read_text(encoding="utf-8").replace(
        "  source: {", f"  source: {{retention_unknown: {lowered('warn')}, "
    )
    levels.write_text(text.replace("2100-01-01", "2026-11-20"), encoding="utf-8")
    told = "`retention_unknown` at point `source` denies again: its level warn ended on 2026-11-20"
    run = command.check(BUNDLE, "--policy", policy)
    assert (run.code, "is lowered" in run.stderr, told in run.stderr) == (1, False, True)
    lint = command("policy", "lint", "--policy", policy)
    assert lint.code == 5
    assert f"{told}\n  remove the row, or have its owner state a later day" in lint.stdout


def test_show_prints_the_level_and_its_last_day(settings: Settings) -> None:
    with Engine(settings, values=(f"levels.levels.source.retention_unknown={json.dumps(ROW)}",)) as engine:
        assert there(engine.policy).level("source", "retention_unknown") == "warn"


@pytest.mark.parametrize("name", ["authzen", "envoy"])
def test_a_mapping_to_a_point_that_is_not_there_is_refused_with_its_place(
    tmp_path: Path, cache: Path, name: str
) -> None:
    row = {
        "authzen": {"resource": "todo", "actions": ["read"]},
        "envoy": {"hosts": ["a"], "methods": ["GET"], "path": "/"},
    }[name]
    value = f"operations.{name}={json.dumps([{**row, 'point': 'sauce', 'request': {}}])}"
    run = Command.of(tmp_path, cache).check(BUNDLE, "--values", value)
    assert run.code == 5
    assert "there is no decision point `sauce`" in run.stdout
    assert "`source`" in run.stdout


def test_values_that_name_points_and_quotas_that_are_not_there_are_refused_with_a_suggestion(
    settings: Settings, policy: Path
) -> None:
    budgets = (policy / "budgets.yaml").read_text(encoding="utf-8")
    written = budgets.replace("  license: {", "  licens: {").replace("  subagent:\n", "  subagents:\n")
    written = written.replace("    host: {", "    hosts: {")
    (policy / "budgets.yaml").write_text(written, encoding="utf-8")
    sources = PolicySources(settings.rego, policy, settings.recipe, ('callers.certificates={"CN=a": ["surce"]}',))
    with pytest.raises(PolicyError) as caught:
        build(sources, POINTS, find_binary(), settings.cache)
    lines = {text.partition("{")[0].strip(): number for number, text in enumerate(written.splitlines(), 1)}
    found = {one.message: (one.where.line, (one.remedy or "").partition("?")[0]) for one in caught.value.problems}
    assert found == {
        "there is no decision point `licens`": (lines["licens:"], "did you mean `license`"),
        "there is no decision point `subagents`": (lines["subagents:"], "did you mean `subagent`"),
        "no requirement of `llm` reads the quota `hosts`": (lines["hosts:"], "did you mean `host`"),
        "there is no decision point `surce`": (None, "did you mean `source`"),
    }
