"""`engine policy diff`: values, requirements, levels and rules that differ, in words."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.command import Command
from tests.conftest import ROOT, lowered


@pytest.fixture
def own(command: Command, tmp_path: Path) -> Path:
    """A policy folder of one's own, as `engine policy init` leaves it."""
    folder = tmp_path / "own"
    assert command("policy", "init", folder).code == 0
    return folder


def test_the_same_policy_has_no_difference(command: Command) -> None:
    done = command("policy", "diff", ROOT / "policy", ROOT / "policy")
    assert (done.code, done.stdout) == (0, "the policies are the same\n")


def test_values_and_levels(command: Command, policy: Path) -> None:
    licenses, levels = policy / "licenses.yaml", policy / "levels.yaml"
    text = licenses.read_text(encoding="utf-8")
    licenses.write_text(text.replace("  MIT:", "  LicenseRef-ours:", 1), encoding="utf-8")
    text = levels.read_text(encoding="utf-8")
    levels.write_text(text + f"\n  media: {{media_type_not_admitted: {lowered('warn')}}}\n", encoding="utf-8")
    done = command("policy", "diff", policy)
    assert done.code == 0, done.stderr
    assert "values\n  licenses.licenses.LicenseRef-ours: added, {" in done.stdout
    assert "licenses.licenses.MIT: removed, was {" in done.stdout
    assert "levels\n  levels.levels.media: added" in done.stdout
    assert '"owner": "owner@example.org"' in done.stdout
    assert "requirements" not in done.stdout


def test_a_release_is_compared_like_its_sources(command: Command, policy: Path, tmp_path: Path) -> None:
    release = tmp_path / "release-1"
    assert command("policy", "build", "--policy", policy, "--output", release, "--sequence", "1").code == 0
    licenses = policy / "licenses.yaml"
    text = licenses.read_text(encoding="utf-8")
    licenses.write_text(
        text.replace(
            "  MIT: {category: permissive, decision: admit}", "  MIT: {category: permissive, decision: refuse}"
        ),
        encoding="utf-8",
    )
    done = command("policy", "diff", release, policy)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith('values\n  licenses.licenses.MIT.decision: "admit" → "refuse" (')
    assert len(done.stdout.splitlines()) == 2
    (release / "release.json").write_bytes(b"{}")
    damaged = command("policy", "diff", release, policy)
    assert (damaged.code, "release.json" in damaged.stderr) == (5, True)


@pytest.mark.full
def test_requirements_and_rules(command: Command, own: Path, tmp_path: Path) -> None:
    started = command("policy", "diff", own)
    assert "requirements\n  added: source origin_team_unknown, " in started.stdout
    assert "added: bundles/own/rules/source/origin.rego" in started.stdout
    other = Path(shutil.copytree(own, tmp_path / "changed" / "own"))
    rule = other / "rules" / "source" / "origin.rego"
    text = rule.read_text(encoding="utf-8")
    title = next(line for line in text.splitlines() if line.startswith("# title: "))
    rule.write_text(text.replace(title, "# title: Every record has a known team"), encoding="utf-8")
    done = command("policy", "diff", own, other, "--format", "json").json
    (reworded,) = done["requirements"]
    assert (reworded["kind"], reworded["code"]) == ("reworded", "origin_team_unknown")
    assert reworded["words"] == [["title", title.removeprefix("# title: "), "Every record has a known team"]]
    assert (done["values"], done["levels"], done["rules"]) == ([], [], [])
    gone = command("policy", "diff", own, ROOT / "policy", "--format", "json").json
    assert [one["kind"] for one in gone["requirements"]] == ["removed"]


def test_a_broken_policy_is_named(command: Command, policy: Path) -> None:
    (policy / "licenses.yaml").unlink()
    command("policy", "diff", policy).refused("the file is missing", code=5)
