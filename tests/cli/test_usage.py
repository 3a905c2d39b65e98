"""A wrong call of any command: the exit code of usage, one plain sentence, no type of Python, nothing recorded."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from engine.cli import _COMMANDS, loaded
from tests.command import Command
from tests.conftest import ROOT

PYTHON = re.compile(r"Value error|Input should|unable to parse|<list|<str>|<int|\bNone\b|Error\(|engine fault|\{'|\['")
"""Words of Python or of its libraries that must not reach a person."""

WRONG = {
    "command": ("chekc .", "Did you mean 'check'"),
    "command-below": ("approvals grnt x", "Did you mean 'grant'"),
    "option": ("check --formt json .", "did you mean --format?"),
    "option-unlike-any": ("approvals grant x --principal y", "No such option: --principal\n"),
    "argument-too-many": ("decide license again", "unexpected argument `again`"),
    "folder-for-no-option": (
        "policy lint rego",
        "unexpected argument `rego`; name the option that it is for: --policy, --rego, --recipe",
    ),
    "no-id-of-a-stop": ("stop lift abc", "`abc` is not an id: `list` prints ids"),
    "no-id-of-an-agent": ("agent end abc", "`abc` is not an id: `list` prints ids"),
    "choice": (
        "approvals list --only use",
        "did you mean `used`? `use` is not one of requested, granted, refused, used",
    ),
    "whole-number": ("approvals list --limit abc", "`abc` is not a whole number"),
    "number": ("code run x.json --repair-seconds abc", "`abc` is not a number"),
    "too-small": ("approvals list --limit 0", "`0` must be at least 1"),
    "too-large": ("serve --port 99999", "`99999` must be at most 65535"),
    "point": ("decide licence", "did you mean `license`?"),
    "point-of-a-filter": ("record show --point licence", "did you mean `license`?"),
    "point-of-a-token": ("tokens issue --principal a --days 1 --point licence", "did you mean `license`?"),
    "nothing-granted": ("tokens issue --principal a --days 1", "state what the token may do"),
    "folder-missing": ("policy lint --policy nowhere", "folder 'nowhere' does not exist"),
    "file-for-a-folder": ("policy lint --rego README.md", "'README.md' is a file"),
    "folder-for-a-file": ("policy sign docs --key docs", "'docs' is a directory"),
    "no-recipe": ("policy lint --recipe bundles", "`bundles` has no recipe.yaml"),
    "no-policy": ("policy lint --policy docs", "`docs` has no recipe.yaml or levels.yaml"),
    "no-policy-but-yaml": (
        "check fixtures --policy fixtures/source_bundles/offline_fixture",
        "`fixtures/source_bundles/offline_fixture` has no recipe.yaml or levels.yaml",
    ),
    "no-rules": ("policy lint --rego docs", "`docs` has no admission"),
    "empty-state": ("approvals list --state ''", "the name is empty"),
    "empty-policy": ("policy lint --policy ''", "the name is empty"),
    "empty-path": ("check fixtures ''", "the name is empty"),
    "file-for-the-state": ("approvals list --state README.md", "'README.md' is a file"),
    "cases-missing": ("policy test --cases nowhere", "'nowhere' does not exist"),
    "lock-missing": ("sandbox env build n --lock nowhere", "'nowhere' does not exist"),
    "output": ("check . --output report.json", "write it as FORMAT=FILE"),
    "output-of-no-format": ("check . --output saif=report.json", "did you mean `sarif`"),
    "format": ("check . --format yaml", "sarif"),
    "misspelt-format": ("check . --format jsn", "`jsn` is not one of text, json"),
    "time": ("check . --now yesterday", "2026-11-21T00:00:00Z"),
    "digest": ("check . --digest sha256:123", "digest"),
    "no-path": ("check", "PATH"),
    "unknown-option": ("check . --no-such-option", "--no-such-option"),
    "root-missing": ("serve --port 0 --root nowhere", "does not exist"),
    "file-for-the-root": ("serve --port 0 --root README.md", "is a file"),
    "empty-server-name": ("serve --port 0 --server-name a --server-name ''", "1 to 256 printable characters"),
    "explained-json": ("decide license --explain", "it needs --format text"),
    "place-of-a-secret": (
        "runner seal mcp_servers/a --public-key README.md",
        "holds no secret of a run",
    ),
    "input-of-an-action": ("code run x.json --payload y.json", "the document already states them"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_usage_error_shows_no_python_types(name: str, command: Command) -> None:
    line, said = WRONG[name]
    run = command(*shlex.split(line))
    run.refused(said)
    assert not PYTHON.search(run.stderr), run.stderr
    assert not command.state.exists()


@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", _COMMANDS)
def test_help_has_no_types_of_python_and_cuts_no_sentence(name: str, command: Command) -> None:
    run = command(name, "--help")
    assert run.code == 0
    assert not PYTHON.search(run.stdout)
    assert "..." not in run.stdout.partition("Options:")[2]


def leaves(command: Any) -> Iterator[Any]:
    below = getattr(command, "commands", None)
    yield from [command] if below is None else (leaf for one in below.values() for leaf in leaves(one))


def test_an_option_means_the_same_in_every_command() -> None:
    """One name, one word for its value, one variable; and one meaning has one name. Other meanings are listed here."""
    own = {
        "--approval",
        "--audience",
        "--output",
        "--format",
        "--days",
        "--host",
        "--into",
        "--port",
        "--sandbox",
        "--since",
    }
    found: dict[str, set[tuple[object, object]]] = {}
    named: dict[str, set[tuple[str, ...]]] = {}
    for leaf in (leaf for name in _COMMANDS for leaf in leaves(loaded(name))):
        for option in (one for one in leaf.params if one.param_type_name == "option"):
            named.setdefault(option.help, set()).add(tuple(option.opts))
            for spelling in option.opts:
                found.setdefault(spelling, set()).add((option.metavar, str(option.envvar)))
    assert {name for name, kinds in found.items() if len(kinds) > 1} <= own
    assert not [names for names in named.values() if len(names) > 1]


def test_colors_follow_the_option_and_a_pipe_has_none(command: Command) -> None:
    plain, colored = (
        command.check("fixtures/source_bundles/offline_fixture", *more) for more in ((), ("--color", "always"))
    )
    assert "\x1b[" not in plain.stdout
    assert "\x1b[32m" in colored.stdout
    assert re.sub(r"\x1b\[\d*m", "", colored.stdout) == plain.stdout


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("engine ch", {"check"}),
        ("engine decide li", {"license"}),
        ("engine policy show runner_b", {"runner_bind"}),
        ("engine check --format s", {"sarif"}),
        ("engine check --output sar", {"sarif="}),
        ("engine sandbox install ", {"gvisor"}),
        ("engine chekc x", set()),
    ],
)
def test_a_shell_gets_commands_points_and_formats(words: str, offered: set[str], command: Command) -> None:
    asked = {"_ENGINE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    run = command(env=asked)
    assert (run.code, set(run.stdout.split())) == (0, offered)


def test_the_script_of_a_shell_is_printed(command: Command) -> None:
    run = command("completion", "bash")
    assert (run.code, "complete -o default" in run.stdout) == (0, True)
    assert os.linesep in run.stdout


def faulty(command: Command, loaded: str) -> subprocess.CompletedProcess[str]:
    """A command in whose code something of Python's fails."""
    program = f"import threading; from engine import cli; cli.loaded = {loaded}; cli.main()"
    return subprocess.run(
        [sys.executable, "-c", program, "doctor"],
        env=command.environment(),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


def test_an_engine_fault_is_reported_with_its_place_and_without_its_type(command: Command) -> None:
    run = faulty(command, "{}.__getitem__")
    assert (run.returncode, run.stdout) == (4, "")
    place = r"report the command, `engine --version` and this place: [a-z_]+\.py:[0-9]+"
    said = "engine: a fault inside the engine stopped the command; nothing was allowed"
    assert re.fullmatch(f"{re.escape(said)}\n  {place}\n", run.stderr), run.stderr


@pytest.mark.parametrize(
    ("loaded", "said"),
    [
        ("lambda _: bytes(1 << 62)", "no memory is left"),
        ("lambda _: threading.stack_size(1 << 46) or threading.Thread().start()", "no thread can be started"),
    ],
)
def test_exhausted_memory_or_threads_are_not_reported_as_an_engine_fault(
    loaded: str, said: str, command: Command
) -> None:
    run = faulty(command, loaded)
    assert run.returncode == 4
    assert run.stderr.startswith(f"engine: {said}; nothing was allowed\n  raise the limit")
