"""The GitHub Action and the pre-commit hooks of this repository, by what they run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.cli.test_changes import edit, repository
from tests.conftest import BUNDLES, ROOT
from tests.first_hour.pages import Reader

PAGE = "https://example.org/docs/requirements.md"

__all__ = ["repository"]


def read(name: str) -> Any:
    return YAML(typ="safe").load((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.full
def test_the_action_shows_refusals_at_their_lines_and_writes_sarif(tmp_path: Path, cache: Path) -> None:
    (*_, step) = read("action.yml")["runs"]["steps"]
    script = (ROOT / "scripts" / "check-in-ci").read_text(encoding="utf-8")
    assert set(step["env"]) == {*re.findall(r"ENGINE_[A-Z]+", script), "ENGINE_DOCS", "ENGINE_STATE_DIR"}
    assert {value.split("inputs.")[1].split(" ")[0] for value in step["env"].values() if "inputs." in value} == set(
        read("action.yml")["inputs"]
    )
    sarif, bundle = tmp_path / "report.sarif", BUNDLES / "license_missing"
    given = f"GITHUB_ACTION_PATH={ROOT} ENGINE_PATHS={bundle} ENGINE_POLICY={ROOT / 'policy'} ENGINE_SARIF={sarif}"
    given += f" ENGINE_DOCS={PAGE} ENGINE_CHANGED="
    done = Reader(tmp_path, cache, tmp_path).run(f"export {given}; {step['run']}")
    assert done.returncode == 1
    assert done.stdout.startswith("::error file=")
    (run,) = json.loads(sarif.read_text(encoding="utf-8"))["runs"]
    assert run["results"]
    anchors = re.findall(r'<a id="([^"]+)">', (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8"))
    assert {rule["helpUri"] for rule in run["tool"]["driver"]["rules"]} <= {f"{PAGE}#{anchor}" for anchor in anchors}


@pytest.mark.full
def test_the_action_lets_pass_what_is_allowed(tmp_path: Path, cache: Path) -> None:
    done = Reader(tmp_path, cache, tmp_path).run(
        f"ENGINE_PATHS={BUNDLES / 'offline_fixture'} {ROOT}/scripts/check-in-ci"
    )
    assert done.returncode == 0, done


def test_the_action_checks_the_paths_of_every_line(tmp_path: Path, cache: Path) -> None:
    paths = f"{BUNDLES / 'offline_fixture'}\n{BUNDLES / 'hash_mismatch'}\n"
    done = Reader(tmp_path, cache, tmp_path).run(f"ENGINE_PATHS='{paths}' {ROOT}/scripts/check-in-ci")
    assert (done.returncode, "hash_mismatch" in done.stdout) == (1, True), done


@pytest.mark.full
def test_the_action_checks_what_changed(repository: Path, tmp_path: Path, cache: Path) -> None:
    reader = Reader(tmp_path, cache, repository)
    command = f"ENGINE_CHANGED=HEAD ENGINE_PATHS=data {ROOT}/scripts/check-in-ci"
    assert reader.run(command).returncode == 0
    edit(repository, "hash_mismatch/content/contacts.json")
    assert re.findall(r"file=([^,]+),", reader.run(command).stdout) == ["data/hash_mismatch/bundle.yaml"]


HOOKS = {hook["id"]: hook for hook in read(".pre-commit-hooks.yaml")}


@pytest.mark.full
@pytest.mark.parametrize(
    ("hook", "good", "bad"),
    [
        ("engine-check", BUNDLES / "offline_fixture" / "bundle.yaml", BUNDLES / "hash_mismatch" / "bundle.yaml"),
        ("engine-policy-lint", "", "--policy nowhere"),
    ],
)
def test_each_hook_passes_and_fails(hook: str, good: object, bad: object, tmp_path: Path, cache: Path) -> None:
    reader = Reader(tmp_path, cache)
    codes = [reader.run(f"{HOOKS[hook]['entry']} {argument}").returncode for argument in (good, bad)]
    assert (codes[0], codes[1] != 0) == (0, True)


@pytest.mark.full
def test_the_hook_for_changes_decides_what_was_edited(repository: Path, tmp_path: Path, cache: Path) -> None:
    reader = Reader(tmp_path, cache, repository)
    entry = HOOKS["engine-check-changed"]["entry"]
    assert reader.run(entry).returncode == 0
    edit(repository, "hash_mismatch/content/contacts.json")
    assert reader.run(entry).returncode == 1


def test_hooks_name_commands_and_files_that_exist() -> None:
    bundle_yaml = re.compile(HOOKS["engine-check"]["files"])
    names = ("a/bundle.yaml", "bundle.yaml", "my-bundle.yaml")
    assert [name for name in names if bundle_yaml.search(name)] == ["a/bundle.yaml", "bundle.yaml"]
    assert set(HOOKS) == {"engine-check", "engine-check-changed", "engine-policy-lint"}
