"""`engine policy …` on the repository's own policy, and on copies of it that are broken."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from engine.cli.policy.commands import app
from engine.errors import Exit
from engine.points.registry import POINTS
from engine.settings import Settings
from tests.policy_bundle.trees import LOWERED


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A copy of rego/ with a rule that has no METADATA."""
    rego = tmp_path / "rego"
    shutil.copytree(Settings().rego, rego)
    with (rego / "admission/requirements/source/network.rego").open("a", encoding="utf-8") as file:
        file.write("\nundocumented if input.now == 1\n")
    return rego


def test_build_prints_the_revisions() -> None:
    result = run("build")
    assert result.exit_code == 0, result.output
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["policy", "rules", "values"]
    assert all(line.split()[1].startswith("sha256:") for line in result.stdout.splitlines()[1:])


@pytest.mark.full
@pytest.mark.parametrize("command", ["build", "show"])
def test_problems_go_to_standard_error(command: str, broken: Path) -> None:
    result = run(command, "--rego", str(broken))
    assert result.exit_code == Exit.POLICY_INVALID
    assert result.stdout == ""
    assert "undocumented" in result.stderr
    assert "Traceback" not in result.output


def test_lint_prints_file_line_and_remedy(broken: Path) -> None:
    result = run("lint", "--rego", str(broken))
    assert result.exit_code == Exit.POLICY_INVALID
    first, second = result.stdout.splitlines()[:2]
    file = broken / "admission/requirements/source/network.rego"
    line = len(file.read_text(encoding="utf-8").splitlines())
    assert first.startswith(f"{file}:{line}: ")
    assert "METADATA" in first
    assert second.startswith("  write `# METADATA`")


def test_lint_of_a_wrong_override() -> None:
    result = run("lint", "--values", "licenses.licenses.MIT.decision=perhaps")
    assert result.exit_code == Exit.UNREADABLE
    assert "licenses.licenses.MIT.decision" in result.stderr


def test_lint_without_problems() -> None:
    result = run("lint")
    assert result.exit_code == 0
    assert result.stdout.endswith(": no problems\n")


def test_show_prints_every_proof() -> None:
    """Of requirements, of helpers and limits of the point, and of shared helpers."""
    told = " ".join(run("show", "code_execution").stdout.split())
    assert "proof one backend that was shown" not in told
    assert "helpers and limits with a proof" in told
    assert "limits every part is required; without one of them there are no limits" in told
    assert "_stated only the budget of this name counts" in told
    assert "shared helpers with a proof" in told
    assert "lib/boundary.rego:" in told
    told = " ".join(run("show", "source").stdout.split())
    assert "proof one backend that was shown to enforce the stated boundary is enough" in told
    document = json.loads(run("show", "source", "--format", "json").stdout)
    assert document["points"]["source"]["requirements"][0].keys() >= {"proof", "code"}
    assert {"point", "rule", "proof", "file", "line"} == document["proofs"][0].keys()


def test_show_as_text() -> None:
    result = run("show", "license")
    assert result.exit_code == 0
    assert "license_incompatible  (deny)" in result.stdout
    assert "license_review_required  (confirm)" in result.stdout
    assert "required    " in result.stdout
    assert "fix         " in result.stdout
    assert "requirements/license/license.rego:" in result.stdout
    assert "source:" not in result.stdout


def test_show_as_json_follows_overrides() -> None:
    result = run("show", "--format", "json", "--values", f"levels.levels.license.license_unknown={LOWERED}")
    shown = json.loads(result.stdout)
    assert set(shown["points"]) == set(POINTS)
    levels = {one["code"]: one["level"] for one in shown["points"]["license"]["requirements"]}
    assert levels["license_unknown"] == "warn"
    one = shown["points"]["source"]["requirements"][0]
    assert {"code", "title", "remedy", "labels", "file", "line", "each", "reads"} <= set(one)


def test_show_as_rego() -> None:
    result = run("show", "license", "--format", "rego")
    assert "package admission.compiled.license" in result.stdout
    assert "admission/requirements/license/license.rego, after line" in result.stdout


def test_show_an_unknown_point() -> None:
    result = run("show", "sauce")
    assert result.exit_code == Exit.UNREADABLE
    assert "did you mean `source`" in " ".join(result.stderr.replace("│", " ").split())  # its box breaks lines


def test_help_is_there() -> None:
    assert all(name in run("--help").stdout for name in ("build", "show", "lint", "test", "sign", "verify", "activate"))
