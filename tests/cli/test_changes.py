"""`engine check --changed`: of many source bundles in a git repository, those that changed since a revision."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.cli.changes import changed_since
from engine.cli.options import Sources
from engine.errors import GatherError
from tests.command import Command
from tests.conftest import BUNDLES, ROOT

NAMES = ("offline_fixture", "hash_mismatch", "license_text_beside")


def git(folder: Path, *arguments: str) -> None:
    identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org"}
    identity |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in identity.items()}
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **identity}
    program = shutil.which("git") or "git"
    subprocess.run([program, *arguments], cwd=folder, env=environment, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with three committed source bundles, `packed.zip`, and a policy that decides nothing here."""
    folder = tmp_path / "repository"
    for name in NAMES:
        shutil.copytree(BUNDLES / name, folder / "data" / name)
    (folder / "data" / "packed.zip").write_bytes(b"1")
    (folder / "policy").mkdir()
    (folder / "policy" / "sources.yaml").write_text("purposes: []\n", encoding="utf-8")
    (folder / ".gitignore").write_text("*.tmp\n", encoding="utf-8")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


Changed = Callable[..., list[str]]


@pytest.fixture
def changed(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Changed:
    """The names of what changed since a revision, asked in the repository."""

    def names(revision: str = "HEAD", policy: Path | None = None) -> list[str]:
        found = [Path("data", name) for name in sorted([*NAMES, "packed.zip"]) if Path("data", name).exists()]
        return [path.name for path in changed_since(revision, found, [Path("data")], Sources(policy=policy))]

    monkeypatch.chdir(repository)
    return names


def edit(folder: Path, name: str, text: str = "more") -> None:
    path = folder / "data" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("hash_mismatch/content/contacts.json", ["hash_mismatch"]),
        ("offline_fixture/new file.csv", ["offline_fixture"]),
        ("offline_fixture/ignored.tmp", ["offline_fixture"]),
        ("packed.zip", ["packed.zip"]),
        ("offline_fixture.md", []),
        ("../policy/sources.yaml", []),
    ],
)
def test_a_source_bundle_with_a_changed_file_is_chosen(
    name: str, wanted: list[str], repository: Path, changed: Changed
) -> None:
    assert changed() == []
    edit(repository, name)
    assert changed() == wanted
    git(repository, "add", "-f", ".")
    assert changed() == wanted
    git(repository, "commit", "-q", "-m", "second")
    assert (changed(), changed("HEAD~1")) == ([], wanted)


def test_a_removed_file_and_a_changed_policy_count_too(repository: Path, changed: Changed) -> None:
    (repository / "data" / "hash_mismatch" / "content" / "contacts.json").unlink()
    assert changed() == ["hash_mismatch"]
    edit(repository, "../policy/levels.yaml", "levels: {}\n")
    assert changed(policy=repository / "policy") == sorted([*NAMES, "packed.zip"])


def test_git_runs_no_program_of_the_repository(
    repository: Path, changed: Changed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hooks, monitors and external diffs that a repository names stay unused."""
    ran = repository.parent / "ran"
    program = repository.parent / "program"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >>'{ran}'\ncat\n", encoding="utf-8")
    program.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "diff.any.textconv"):
        git(repository, "config", name, str(program))
    (repository / ".gitattributes").write_text("* diff=any\n", encoding="utf-8")
    hook = repository / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    shutil.copy(program, hook)
    edit(repository, "hash_mismatch/content/contacts.json")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert changed() == ["hash_mismatch"]
    assert not ran.exists(), ran.read_text(encoding="utf-8")
    git(repository, "status")
    assert ran.exists(), "the programs do run when git is asked without care"


@pytest.mark.parametrize("revision", ["nowhere", "--help", "-h", "", "HEAD:data", "HEAD^{tree}"])
def test_an_unknown_revision_is_named(revision: str, changed: Changed) -> None:
    with pytest.raises(GatherError, match="git knows no commit"):
        changed(revision)


def test_a_missing_git_or_repository_is_reported(
    changed: Changed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(GatherError, match="is not in the git repository"):
        changed_since("HEAD", [], [tmp_path], Sources())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GatherError, match="not a git repository"):
        changed()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GatherError, match="git is not installed"):
        changed()


@pytest.mark.full
def test_the_command_checks_what_changed_and_allows_an_unchanged_tree(repository: Path, command: Command) -> None:
    nothing = command.check("data", "--changed", "HEAD", "--format", "json", cwd=repository)
    assert (nothing.code, nothing.json["reports"]) == (0, [])
    assert "0 of 4 source bundles changed since HEAD" in nothing.stderr
    edit(repository, "hash_mismatch/content/contacts.json")
    some = command.check("data", "--changed", "HEAD", "--format", "json", cwd=repository)
    assert [report["path"] for report in some.json["reports"]] == ["data/hash_mismatch"]
    refused = command.check(ROOT / "fixtures", "--changed", "HEAD", cwd=repository)
    assert (refused.code, refused.stdout) == (2, "")


def test_a_link_or_a_submodule_that_holds_a_source_bundle_counts(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    link = repository / "data" / "link"
    link.symlink_to("offline_fixture")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "second")
    assert changed_since("HEAD", [Path("data/link")], [Path("data")], Sources()) == [Path("data/link")]
    for folder in (repository / "module" / "sources", repository / "module"):
        folder.mkdir(exist_ok=True, parents=True)
    git(repository / "module", "init", "-q")
    git(repository / "module", "commit", "-q", "--allow-empty", "-m", "third")
    assert changed_since("HEAD", [Path("module/sources")], [Path()], Sources()) == [Path("module/sources")]
