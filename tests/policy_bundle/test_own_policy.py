"""A policy folder of one's own on the command line: started, checked in every format, and the facts of a request."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

from engine.cli.formats import ReportFormat
from engine.cli.formats.problems import Checked, render
from engine.cli.policy import app, checking
from engine.documents.files import load
from engine.errors import Exit, GatherError, Location, Problem
from engine.settings import ReadLimits
from tests.api.serving import serving
from tests.command import Command, lines, ordinary
from tests.conftest import BUNDLES, ROOT
from tests.workbench.pages import workbench


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "my-policy"
    assert run("init", str(folder)).exit_code == 0
    return folder


@pytest.mark.full
def test_a_new_folder_passes_its_own_tests_and_cases(own: Path) -> None:
    result = run("test", "--policy", str(own))
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == ["5 tests passed; 100 % of lines covered in 2 files", "2 cases passed"]
    (own / "rules" / "lib" / "names_test.rego").unlink()
    result = run("test", "--policy", str(own))
    assert f"no tests beside {own}/rules/lib/names.rego\n" in result.stdout


def test_a_finding_of_the_example_names_the_line_of_the_alias(own: Path, command: Command) -> None:
    bundle = own / "cases" / "source_bundles" / "recipes"
    document = bundle / "bundle.yaml"
    text = document.read_text(encoding="utf-8").replace("origin_alias: acme-", "origin_alias: ")
    document.write_text(text, encoding="utf-8")
    (report,) = command.reports(bundle, "--policy", own)
    (found,) = report["findings"]
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "origin_alias" in one)
    assert (found["code"], found["where"]["line"]) == ("origin_team_unknown", line)


def test_the_schemas_for_editors_accept_the_files_and_refuse_unknown_keys(own: Path) -> None:
    checked = 0
    for path in own.rglob("*.yaml"):
        if match := re.match(r"# yaml-language-server: \$schema=(\S+)", path.read_text(encoding="utf-8")):
            schema = Draft202012Validator(json.loads((path.parent / match[1]).read_text(encoding="utf-8")))
            document = load(path.read_bytes(), path.name, ReadLimits()).value
            assert not list(schema.iter_errors(document)), path
            assert list(schema.iter_errors({**document, "unknown": 1})), path
            checked += 1
    assert checked == 4
    licenses = json.loads((own / "schemas/values/licenses.schema.json").read_text(encoding="utf-8"))
    assert not list(Draft202012Validator(licenses).iter_errors({"licenses": {"MIT": None}}))


@pytest.mark.full
def test_init_writes_only_schemas_into_a_policy_folder_and_nothing_into_any_other(own: Path, tmp_path: Path) -> None:
    (own / "recipe.yaml").write_text("description: ours\nowner: us\n", encoding="utf-8")
    (own / "schemas" / "case.schema.json").unlink()
    assert run("init", str(own)).exit_code == 0
    assert (own / "recipe.yaml").read_text(encoding="utf-8") == "description: ours\nowner: us\n"
    assert (own / "schemas" / "case.schema.json").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine", encoding="utf-8")
    for name, message in (("other", "neither empty"), ("My Policy", "is not a valid name")):
        refused = run("init", str(tmp_path / name)).exception
        assert isinstance(refused, GatherError)
        assert message in refused.message
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["notes.txt"]
    assert not (tmp_path / "My Policy").exists()


def test_init_on_a_full_disk_reports_it_and_leaves_no_recipe(command: Command, tmp_path: Path) -> None:
    limited = ("env", "-u", "COVERAGE_PROCESS_CONFIG", "PYTHONDONTWRITEBYTECODE=1", "prlimit", "--fsize=100")
    done = command("policy", "init", tmp_path / "mine", prefix=limited)
    assert (done.code, "mine`: file too large" in done.stderr) == (2, True)
    assert not (tmp_path / "mine" / "recipe.yaml").exists()


def test_a_case_has_the_time_of_a_test(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "_ANSWER_SECONDS", 1e-9)
    result = run("test", "--policy", str(own))
    assert result.exit_code == Exit.POLICY_INVALID
    assert "[policy_unavailable]: OPA did not answer in time" in result.stdout


@pytest.mark.full
def test_failed_tests_and_cases_are_reported_together(own: Path) -> None:
    (own / "values" / "parameters.yaml").write_text("teams: [research]\n", encoding="utf-8")
    (own / "cases" / "source" / "typo.yaml").write_text("pint: source\n", encoding="utf-8")
    result = run("test", "--policy", str(own), "--format", "json")
    assert result.exit_code == Exit.POLICY_INVALID
    found = [(one["check"], Path(one["file"]).name) for one in json.loads(result.stdout)["problems"]]
    assert found == [
        ("policy_test", "origin_test.rego"),
        ("policy_case", "recipes.yaml"),
        ("policy_case", "typo.yaml"),
    ]


def test_values_are_listed_with_their_files_and_shown_as_merged(own: Path) -> None:
    lines = run("values", "--policy", str(own)).stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("licenses "))
    assert [Path(line.strip()).parent.name for line in lines[at + 1 : at + 3]] == ["policy", "values"]
    assert lines[at].endswith("Which licenses we admit, for which use, and for which export")
    shown = json.loads(run("values", "licenses", "--policy", str(own)).stdout)
    assert shown["licenses"]["CC-BY-1.0"]["decision"] == "review"
    assert isinstance(run("values", "licences").exception, GatherError)


def test_findings_and_problems_name_the_file_in_which_the_value_is_edited(
    command: Command, own: Path, policy: Path
) -> None:
    bundle = BUNDLES / "retention_basis_not_admitted"
    said = "fix: State the true basis if {} lists it, or"
    for arguments, file in (
        ((), "policy/sources.yaml"),
        (("--policy", own), f"{own}/values/sources.yaml"),
        (("--policy", policy), f"{policy}/sources.yaml"),
    ):
        shown = " ".join(command.check(bundle, *arguments).stdout.split())
        assert said.format(file) in shown
    found = command.check(bundle, "--policy", own, "--format", "json").json["reports"][0]
    assert f"{own}/values/sources.yaml" in found["findings"][0]["remedy"]
    assert " policy/sources.yaml" in found["decision"]["findings"][0]["remedy"]  # as it was recorded
    (own / "values" / "levels.yaml").write_text("levels: {source: {retention_unknown: warn}}\n", encoding="utf-8")
    assert "write it as `retention_unknown: {level: warn, owner: " in command("policy", "lint", "--policy", own).stdout


@pytest.mark.full
def test_a_server_activates_a_changed_value_and_refuses_an_invalid_one(own: Path, tmp_path: Path, cache: Path) -> None:
    request = json.loads((ROOT / "docs" / "examples" / "license.json").read_text(encoding="utf-8"))
    values = own / "values" / "licenses.yaml"
    with serving(tmp_path, cache, "--policy", own) as server:
        outcomes = []
        for text in (None, "licenses: {CC0-1.0: {decision: refuse}}\n", "licenses: {CC0-1.0: {decision: maybe}}\n"):
            if text is not None:
                values.write_text(text, encoding="utf-8")
            activated = run("activate", "--state", str(server.state)).exit_code
            reply = server.ask("POST", "/v1/decide/license", request)
            outcomes.append((activated, json.loads(reply.body)["outcome"]))
    assert outcomes == [(0, "allow"), (0, "deny"), (Exit.POLICY_INVALID, "deny")]


@pytest.mark.full
def test_answers_of_a_server_and_pages_name_that_file_without_the_path_of_the_folder(
    command: Command, own: Path, tmp_path: Path, cache: Path
) -> None:
    request = json.loads((ROOT / "docs" / "examples" / "license.json").read_text(encoding="utf-8"))
    with serving(tmp_path, cache, "--policy", own) as server:
        answer = server.ask("POST", "/v1/decide/license", {**request, "license": "Nobody-1.0"}).body.decode()
        batch = server.ask("POST", "/v1/decide/license/batch", {"inputs": {"1": {**request, "license": "Nobody-1.0"}}})
        who = {"subject": {"type": "user", "id": "ana"}, "resource": {"type": "none", "id": "1"}}
        unmapped = server.ask("POST", "/access/v1/evaluation", {**who, "action": {"name": "none"}}).body.decode()
    for body, file in ((answer, "licenses"), (batch.body.decode(), "licenses"), (unmapped, "operations")):
        assert f" my-policy/values/{file}.yaml" in body, body
        assert str(tmp_path) not in body
    (line,) = [one for one in lines(server.state) if one.get("decision_id") == json.loads(answer)["decision_id"]]
    with workbench(tmp_path, cache, "--policy", own) as pages:
        shown = pages.visitor().get(f"/decisions/{line['decision_id']}").html.text
        assert "my-policy/values/licenses.yaml" in shown
        title = "The stated side effects match those in my-policy/values/tools.yaml"
        assert title in pages.visitor().get("/policy/tool_contract").html.text
    assert title in command("policy", "show", "tool_contract", "--policy", own).stdout


@pytest.mark.full
def test_lint_formats_rules_with_the_fix_option(own: Path) -> None:
    rule = own / "rules" / "lib" / "names.rego"
    formatted = rule.read_text(encoding="utf-8")
    rule.write_text(formatted.replace(" := ", ":="), encoding="utf-8")
    result = run("lint", "--policy", str(own))
    assert (result.exit_code, "engine policy lint --fix" in result.stdout) == (Exit.POLICY_INVALID, True)
    assert run("lint", "--policy", str(own), "--fix").exit_code == 0
    assert rule.read_text(encoding="utf-8") == formatted


def test_lint_asks_whether_a_new_row_is_a_misspelled_one(own: Path) -> None:
    assert run("lint", "--policy", str(own)).stderr == "", "the row that `init` writes is none"
    values = own / "values" / "licenses.yaml"
    values.write_text("categories:\n  permisive: {train: refuse}\n", encoding="utf-8")
    result = run("lint", "--policy", str(own))
    assert (result.exit_code, result.stdout.splitlines()[1:]) == (
        Exit.POLICY_INVALID,
        ["  did you mean `permissive`? correct the spelling or write all fields", "1 problem"],
    )
    whole = "{train: refuse, eval: admit, tool: admit, environment: admit, export: admit, title: Ours}"
    text = f"categories:\n  permisive: {whole}\n"
    values.write_text(text, encoding="utf-8")
    result = run("lint", "--policy", str(own))
    where = f"{values}:2 (categories.permisive)"
    told = f"engine: {where}: no other value names this row; did you mean `permissive`? correct it, or leave it\n"
    assert (result.exit_code, result.stderr) == (Exit.ALLOW, told)
    used = "licenses:\n  LicenseRef-1: {category: permisive, decision: admit}\naliases:\n  cc-by-4.0-: CC-BY-4.0\n"
    for other in (text + used, text.replace("permisive", "permissive_2")):
        values.write_text(other, encoding="utf-8")
        result = run("lint", "--policy", str(own))
        assert (result.exit_code, result.stderr) == (Exit.ALLOW, ""), result


@pytest.mark.full
def test_lint_says_which_rules_it_may_not_format(own: Path, command: Command) -> None:
    rule = own / "rules" / "lib" / "names.rego"
    unformatted = rule.read_text(encoding="utf-8").replace(" := ", ":=")
    rule.write_text(unformatted, encoding="utf-8")
    rule.chmod(0o444)
    rule.parent.chmod(0o555)
    done = command("policy", "lint", "--policy", own, "--fix", prefix=ordinary())
    rule.parent.chmod(0o755)
    done.refused(f"cannot write `{rule}`: permission denied")
    assert rule.read_text(encoding="utf-8") == unformatted


PROBLEM = Problem(Location(str(ROOT / "my policy" / "x.rego"), 7), "`f[_]` is wrong, {here}", "correct it")
CHECKED = [
    Checked("policy_lint", "Rules can be built", "", (PROBLEM,)),
    Checked("policy_case", "Cases", "3 passed", ()),
]


def test_problems_in_the_formats_of_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (result,) = json.loads(render(ReportFormat.SARIF, CHECKED))["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]) == ("my%20policy/x.rego", {"startLine": 7})
    assert result["message"]["text"] == "`f\\[_\\]` is wrong, {{here}}. fix: correct it"
    junit = ET.fromstring(render(ReportFormat.JUNIT, CHECKED).encode())  # noqa: S314  (written here)
    assert (junit.get("tests"), junit.get("failures")) == ("2", "1")
    assert [(one.get("classname"), len(one)) for one in junit.iter("testcase")] == [
        ("policy_lint", 1),
        ("policy_case", 0),
    ]
    first, second = render(ReportFormat.GITHUB, CHECKED).splitlines()
    assert first.startswith("::error file=my policy/x.rego,line=7,title=Rules can be built::`f[_]` is wrong")
    assert second == "::notice title=Cases::3 passed"


def test_the_facts_of_a_request_and_the_values_that_its_rules_read(tmp_path: Path) -> None:
    request = ROOT / "docs" / "examples" / "license.json"
    result = run("input", "license", "-i", str(request), "--state", str(tmp_path))
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["input"]["point"], found["input"]["license"]["stated"]) == ("license", True)
    assert {"licenses.licenses", "budgets.budgets"} <= set(found["values_read"])
    assert "networks.hosts" not in found["values_read"]


def test_a_request_that_does_not_fit_has_no_facts(tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text("{}", encoding="utf-8")
    refused = run("input", "license", "-i", str(request), "--state", str(tmp_path / "state"))
    assert isinstance(refused.exception, GatherError)
    assert "`purpose` is missing" in refused.exception.message


def test_source_init_follows_the_values_of_the_own_policy(own: Path, command: Command, tmp_path: Path) -> None:
    (own / "values" / "sources.yaml").write_text("extra_files: [NOTES.md]\n", encoding="utf-8")
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("a.csv", "NOTES.md"):
        (folder / name).write_text("1", encoding="utf-8")
    assert command("source", "init", folder, "--policy", own).code == 0
    text = (folder / "bundle.yaml").read_text(encoding="utf-8")
    assert ("a.csv" in text, "NOTES.md" in text) == (True, False)


def test_rules_added_to_one_point_do_not_affect_another(own: Path, command: Command) -> None:
    done = command("tools", "call", "--policy", own, stdin='{"name": "no_such_tool", "arguments": {}}')
    assert (done.code, "tool_unknown" in done.stdout) == (1, True), done.stdout
