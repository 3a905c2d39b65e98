"""A version is released by the reports, the changes and the code of a real repository."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import GatherError
from engine.facts.release.docstrings import docstrings_in
from engine.facts.release.git import change_of
from engine.facts.release.junit import Reports
from engine.flow import Answer
from engine.reports.explain import report as report_of
from engine.settings import Settings
from tests.conftest import ROOT

PROJECT = ROOT / "fixtures" / "projects" / "greeter"


@pytest.fixture(scope="module")
def engine(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings) as running:
        yield running


def git(folder: Path, *arguments: str) -> None:
    own = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True)  # noqa: S607


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a released version and a change since; its reports are made now, and ignored by git."""
    folder = tmp_path / "greeter"
    for name in ("greeter/__init__.py", "README.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((PROJECT / name).read_bytes())
    (folder / ".gitignore").write_text("/reports/\n", encoding="utf-8")
    git(folder, "init", "--quiet")
    commit(folder, "first")
    git(folder, "tag", "v0.1.0")
    (folder / "README.md").write_text("# Greeter\n\nNow with more greetings.\n", encoding="utf-8")
    (folder / "greeter/more.py").write_text('"""More greetings."""\n', encoding="utf-8")
    commit(folder, "second")
    report(folder, datetime.now(UTC))
    return folder


def commit(folder: Path, words: str) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", words)


def report(folder: Path, made: datetime) -> None:
    (folder / "reports").mkdir(exist_ok=True)
    for name in ("tests", "checks", "security"):
        text = (PROJECT / "reports" / f"{name}.xml").read_text(encoding="utf-8")
        text = text.replace("2026-11-20T10:00:00+00:00", made.isoformat())
        (folder / "reports" / f"{name}.xml").write_text(text, encoding="utf-8")


def decide(engine: Engine, folder: Path, since: str | None = "v0.1.0") -> tuple[str, set[str], Answer]:
    reports = [f"reports/{name}.xml" for name in ("tests", "checks", "security")]
    asked: dict[str, Any] = {
        "version": "0.2.0",
        "stage": "production",
        "features": [],
        "path": str(folder),
        "since": since,
    }
    answer = engine.decide("release", asked | {"reports": reports})
    return answer.decision.outcome, {one.code for one in answer.decision.findings}, answer


# covers: D55.1-5
def test_a_repository_with_everything_green_is_released_as_its_commit(engine: Engine, project: Path) -> None:
    outcome, codes, answer = decide(engine, project)
    assert (outcome, codes) == ("allow", set())
    limits = answer.decision.limits
    assert limits is not None
    assert limits.model_dump()["commit"] == change_of(project, None).commit
    assert change_of(project, "v0.1.0").paths == ("README.md", "greeter/more.py")


# covers: E28
def test_what_the_reports_have_is_shown_beside_what_is_missing(engine: Engine, project: Path) -> None:
    asked = {"version": "0.2.0", "stage": "production", "features": [], "path": str(project), "since": "v0.1.0"}
    answer = engine.decide("release", asked | {"reports": ["reports/checks.xml"]})
    found = {one.finding.code: one.found for one in report_of(str(project), answer, engine.policy).explained}
    assert found["suite_missing"] == "suites documentation, format, generated, lint, policy, types"


# covers: D55.4
def test_code_without_documentation_since_the_last_release_is_refused(engine: Engine, project: Path) -> None:
    git(project, "tag", "v0.1.1")
    (project / "greeter/more.py").write_text('"""Other greetings."""\n', encoding="utf-8")
    commit(project, "third")
    report(project, datetime.now(UTC))
    assert decide(engine, project, "v0.1.1")[:2] == ("deny", {"documentation_unchanged"})
    assert decide(engine, project, "v0.1.0")[:2] == ("allow", set())  # the control


def test_reports_of_another_commit_and_uncommitted_files_are_refused(engine: Engine, project: Path) -> None:
    report(project, datetime.fromtimestamp(time.time() - 3600, UTC))
    (project / "left.txt").write_text("", encoding="utf-8")
    assert decide(engine, project)[:2] == ("deny", {"change_uncommitted", "report_older_than_commit"})


# covers: D55.5
def test_docstrings_are_counted_by_folder(project: Path) -> None:
    (project / "greeter/broken.py").write_text("def (", encoding="utf-8")
    (project / "tools").mkdir()
    (project / "tools/a.py").write_text("class A:\n    def b(self):\n        'It bees.'\n", encoding="utf-8")
    (project / "tools/blank.py").write_text("''\ndef f():\n    ' \\n'\n", encoding="utf-8")
    (project / "tools/link.py").symlink_to(project / "greeter/more.py")
    (project / ".venv").mkdir()
    (project / ".venv/x.py").write_text("def f(): ...\n", encoding="utf-8")
    found = {name: (one.documented, one.total) for name, one in docstrings_in(project).items()}
    assert found == {"greeter": (3, 5), "tools": (1, 5)}


@pytest.mark.parametrize("since", ["v9", "--output=x", "HEAD:README.md"])
def test_an_invalid_revision_is_refused(engine: Engine, project: Path, since: str) -> None:
    assert decide(engine, project, since)[:2] == ("deny", {"engine.input_unreadable"})


def test_a_folder_without_a_repository_is_refused(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    report(tmp_path, datetime.now(UTC))
    assert decide(engine, tmp_path)[:2] == ("deny", {"engine.input_unreadable"})


# covers: E27
def test_the_report_of_pytest_has_the_security_tests(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n"
        "def test_one(record_property):\n    record_property('security', 'SEC-01 ACE')\n\n"
        "def test_two(record_property):\n    record_property('security', 'SEC-05 DoS')\n    pytest.skip('it')\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml=it.xml", "--rootdir=."]
    subprocess.run([*command, "-o", "junit_suite_name=security"], cwd=tmp_path, check=True, capture_output=True)
    reports = Reports()
    reports.read(tmp_path / "it.xml", 1 << 20)
    assert reports.security == {("SEC-01", "ACE"): True, ("SEC-05", "DoS"): False}
    suite = reports.suites["security"]
    assert (suite.tests, suite.failed, suite.skipped) == (2, 0, 1)
    assert suite.made_at is not None
    assert abs(suite.made_at - time.time()) < 3600


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not XML"),
        ("<testsuites/>", "no suite"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><testsuite name="&b;"/>', "document type"),
        ("<testsuite>", "not XML"),
        (f"<testsuite name='{'x' * 2000}'/>", "larger than 1000 bytes"),
        ("".join(("<testsuites>", *(f"<testsuite name='{n}'/>" for n in range(1001)), "</testsuites>")), "1000"),
    ],
)
def test_an_invalid_report_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "it.xml").write_text(text, encoding="utf-8")
    with pytest.raises(GatherError, match=problem):
        Reports().read(tmp_path / "it.xml", 1000 if "x" * 9 in text else 1 << 20)


def test_a_report_that_is_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "it.xml")
    with pytest.raises(GatherError, match="not a regular file"):
        Reports().read(tmp_path / "it.xml", 1000)


def signed(folder: Path) -> None:
    """Give the newest commit a signature, which is none."""
    found = subprocess.run(["git", "cat-file", "commit", "HEAD"], cwd=folder, check=True, capture_output=True)  # noqa: S607
    text = found.stdout.replace(b"\n\n", b"\ngpgsig -----BEGIN PGP SIGNATURE-----\n -----END PGP SIGNATURE-----\n\n", 1)
    write = ["git", "hash-object", "-t", "commit", "-w", "--stdin"]
    made = subprocess.run(write, cwd=folder, check=True, capture_output=True, input=text)
    git(folder, "reset", "--soft", made.stdout.decode().strip())


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("key", ["filter.own.clean", "filter.own.process", "core.fsmonitor", "gpg.program"])
def test_no_program_runs_that_a_repository_names(key: str, *, inside: bool, project: Path, tmp_path: Path) -> None:
    """Neither for its own files nor for those of a repository in it."""
    ran, named = tmp_path / "ran", project
    if inside:
        named = project / "inner"
        (named / "greeter").mkdir(parents=True)
        (named / "greeter/more.py").touch()
        git(named, "init", "--quiet")
    (named / ".gitattributes").write_text("* filter=own\n", encoding="utf-8")
    commit(named, "attributes")
    if inside:
        commit(project, "a repository in it")
    signed(project)
    assert change_of(project, None).clean
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n", encoding="utf-8")
    program.chmod(0o755)
    git(named, "config", key, str(program))
    git(named, "config", "log.showSignature", "true")
    os.utime(named / "greeter/more.py", (0, 0))  # git has to look at the content again
    assert change_of(project, None).clean
    (named / "greeter/more.py").write_text("changed", encoding="utf-8")
    assert not change_of(project, None).clean
    assert not ran.exists()


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
def test_a_file_hidden_from_git_status_is_not_clean(mark: str, project: Path) -> None:
    git(project, "update-index", mark, "greeter/more.py")
    (project / "greeter/more.py").write_text("changed", encoding="utf-8")
    assert not change_of(project, None).clean
    git(project, "update-index", mark.replace("--", "--no-"), "greeter/more.py")
    (project / "greeter/more.py").write_text('"""More greetings."""\n', encoding="utf-8")
    assert change_of(project, None).clean
