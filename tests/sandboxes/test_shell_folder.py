"""A folder that commands in the sandbox work on: what goes in, what comes back, and what never does."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from admission_adapters.tools.gate import ToolGate
from admission_adapters.tools.project_shell import ProjectShell
from admission_adapters.tools.registry import ToolRegistry
from engine.engine import Engine
from engine.errors import GatherError
from engine.settings import Settings
from engine.shell import ShellRun
from engine.shell_folder import MOST_FILES, files_in, put_back
from tests.adapters.gates import AGENT, OPTIONS
from tests.command import Command, decisions
from tests.expect import refused
from tests.facilities import needs

KEY = "AKIA" + "IOSFODNN7" + "QUOKKAX"


@pytest.fixture(scope="module")
def engine(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a hidden file and links that lead elsewhere."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("canary", encoding="utf-8")
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("canary", encoding="utf-8")
    (project / ".env").write_text("canary", encoding="utf-8")
    (project / "src" / "a b.txt").write_text("one\ntwo\n", encoding="utf-8")
    (project / "link.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (project / "linked").symlink_to(tmp_path / "outside")
    return project


def ran(engine: Engine, text: str, folder: Path) -> ShellRun:
    return engine.run_shell(text, folder=folder, context=AGENT)


@needs("bubblewrap")
def test_files_go_in_and_those_that_a_command_leaves_come_back(engine: Engine, folder: Path) -> None:
    before = len(decisions(engine.settings.state))
    text = "mkdir -p artifacts/src; tr a-z A-Z < 'inputs/src/a b.txt' > 'artifacts/src/a b.txt'; echo x > artifacts/new"
    done = ran(engine, text, folder)
    assert done.ended is not None, done.answer
    assert (done.ended.exit_code, sorted(done.files), done.not_kept) == (0, ["new", "src/a b.txt"], {}), done
    assert (folder / "src" / "a b.txt").read_text(encoding="utf-8") == "ONE\nTWO\n"
    assert (folder / "new").read_text(encoding="utf-8") == "x\n"
    recorded = decisions(engine.settings.state)[before:]
    assert [(one["point"], one["outcome"]) for one in recorded] == [("sandbox", "allow"), ("code_output", "allow")]
    assert [one["id"] for one in recorded[0]["input"]["files"]] == ["src/a b.txt"]


@needs("bubblewrap")
def test_hidden_files_and_links_are_excluded_and_inputs_are_read_only(engine: Engine, folder: Path) -> None:
    done = ran(engine, "find inputs -type f -o -type l; stat -c %a inputs/*/*; echo x >> 'inputs/src/a b.txt'", folder)
    assert done.ended is not None, done.answer
    assert done.ended.stdout == b"inputs/src/a b.txt\n400\n"
    assert b"Permission denied" in done.ended.stderr
    assert (folder / "src" / "a b.txt").read_text(encoding="utf-8") == "one\ntwo\n"


@needs("bubblewrap")
def test_secret_linked_and_hidden_artifacts_are_not_copied_back(engine: Engine, folder: Path) -> None:
    text = (
        f"cd artifacts; echo {KEY} > key; mkdir .git linked; echo x > .git/config; echo x > linked/secret.txt;"
        "ln -s /etc/passwd link; echo y > .env; echo z > good"
    )
    done = ran(engine, text, folder)
    assert sorted(done.files) == ["good"], done
    reasons = {".env": "not_written", ".git/config": "not_written", "linked/secret.txt": "not_written"}
    assert {**done.not_kept, "link": ""} == {**reasons, "key": "artifact_secret", "link": ""}
    assert not (folder / "key").exists()
    kept = (folder / ".env", folder / ".git" / "config", folder.parent / "outside" / "secret.txt")
    assert {path.read_text(encoding="utf-8") for path in kept} == {"canary"}


@needs("bubblewrap")
def test_a_command_that_fails_changes_nothing(engine: Engine, folder: Path) -> None:
    done = ran(engine, "echo x > artifacts/new; exit 3", folder)
    assert (done.files, set(done.not_kept)) == ({}, {"new"})
    assert not (folder / "new").exists()


@needs("bubblewrap")
def test_more_files_than_permitted_are_refused_and_nothing_runs(engine: Engine, folder: Path) -> None:
    for number in range(17):
        (folder / f"{number}.txt").touch()
    done = ran(engine, "true", folder)
    assert done.ended is None
    assert [finding.code for finding in done.answer.decision.findings] == ["input_files_exceeded"]


RULE = "[{id: builds, tools: [project_shell], paths: any, commands: [[tr], {words: [sort], can: [redirect]}]}]"


@needs("bubblewrap")
def test_an_agent_works_on_its_project(module_settings: Settings, folder: Path) -> None:
    """Through the gate: the call, the run, its files and its result are decided on, and the folder has the outcome."""
    settings = replace(module_settings, state=folder.parent / "state")
    with Engine(settings, values=(f"tools.rulesets.workspace.allow={RULE}",)) as engine:
        registry = ToolRegistry()
        ProjectShell(engine, AGENT, folder=folder).register(registry)
        gate = ToolGate(engine, registry, AGENT, **OPTIONS)
        before = len(decisions(engine.settings.state))
        call = {
            "name": "project_shell",
            "arguments": {"command": "sort -r 'inputs/src/a b.txt' > artifacts/sorted.txt"},
        }
        result = gate.call(call)
        assert result.status == "ok", result
        found = json.loads(result.content)
        assert (found["exit_code"], found["written"], found["not_written"]) == (0, ["sorted.txt"], {})
        assert (folder / "sorted.txt").read_text(encoding="utf-8") == "two\none\n"
        points = [one["point"] for one in decisions(engine.settings.state)[before:]]
        assert points == ["tool_call", "sandbox", "code_output", "tool_result"]
        other = gate.call({"name": "project_shell", "arguments": {"command": "rm -r inputs"}})
        assert other.status == "awaiting_approval"


@pytest.mark.full
@needs("bubblewrap")
def test_the_command_line_works_on_a_folder(command: Command, folder: Path) -> None:
    text = "cat 'inputs/src/a b.txt'; echo x > artifacts/new; ln -s /etc/passwd artifacts/link"
    done = command("sandbox", "run", "--profile", "shell", "--shell", text, "--folder", folder)
    assert (done.code, done.stdout) == (0, "one\ntwo\n"), done.stderr
    assert "wrote new (2 bytes)" in done.stderr
    assert "not kept: link (" in done.stderr
    assert (folder / "new").read_text(encoding="utf-8") == "x\n"
    assert command("sandbox", "run", "--profile", "standard", "--folder", folder, "--", "cat").code == 2


@needs("bubblewrap")
def test_files_deep_in_a_project_go_in_and_come_back(engine: Engine, folder: Path) -> None:
    path = f"src/main/java/com/acme/app/service/impl/internal/deeper/{'Long' * 50}.java"
    (folder / path).parent.mkdir(parents=True)
    (folder / path).write_text("class A", encoding="utf-8")
    text = f"mkdir -p artifacts/{Path(path).parent}; tr A B < inputs/{path} > artifacts/{path}"
    assert list(ran(engine, text, folder).files) == [path]
    assert (folder / path).read_text(encoding="utf-8") == "class B"


@pytest.mark.parametrize("path", ["/".join("a" * 33), "a\\b", "a\nb", "/".join(["a" * 250] * 5)])
def test_an_unsupported_path_is_reported_and_not_copied(path: str, tmp_path: Path) -> None:
    assert put_back(tmp_path, {path: b"x"}) == (path,)
    assert not list(tmp_path.iterdir())
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).touch()
    with pytest.raises(GatherError, match="the path `a"):
        files_in(tmp_path)


def test_a_folder_that_is_too_large_or_missing_is_not_read(tmp_path: Path) -> None:
    with refused(GatherError, "engine.input_unreadable"):
        files_in(tmp_path / "none")
    for number in range(MOST_FILES + 1):
        (tmp_path / f"{number}").touch()
    with refused(GatherError, "engine.input_unreadable"):
        files_in(tmp_path)


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/x", "a//x", ".x", "linked/x", ""])
def test_no_path_escapes_the_folder(path: str, folder: Path) -> None:
    assert put_back(folder, {path: b"x"}) == (path,)
    assert not list(folder.parent.rglob("x"))


def test_a_file_that_cannot_come_back_leaves_nothing_behind(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    assert put_back(folder, {"src": b"x"}) == ("src",)
    assert sorted(folder.rglob("*")) == before


def test_a_file_that_comes_back_has_the_mode_of_the_one_before_and_a_new_one_is_not_executable(folder: Path) -> None:
    for name, mode in (("script.sh", 0o750), ("private.txt", 0o600)):
        (folder / name).touch()
        (folder / name).chmod(mode)
    assert put_back(folder, dict.fromkeys(("script.sh", "private.txt", "new", "link.txt"), b"x")) == ()
    modes = {name: stat.S_IMODE((folder / name).lstat().st_mode) for name in ("script.sh", "private.txt")}
    assert modes == {"script.sh": 0o750, "private.txt": 0o600}
    assert not any((folder / name).lstat().st_mode & 0o111 for name in ("new", "link.txt"))
