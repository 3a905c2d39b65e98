"""Options of `engine serve` from the command line, variables and a file: which one counts, and what a file may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.cli import loaded
from tests.command import Command
from tests.conftest import ROOT

SERVE = loaded("serve")
OPTIONS = [one for one in SERVE.params if one.param_type_name == "option" and one.envvar]


def parsed(arguments: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = SERVE.make_context("serve", arguments).params
    return found


def test_every_option_has_a_variable_and_is_described() -> None:
    own = {"--color", "--quiet"}
    assert {option.opts[0] for option in SERVE.params} - own == {option.opts[0] for option in OPTIONS}
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    assert [option.opts[0] for option in OPTIONS if f"{option.name}: " not in page] == ["--config"]


def test_an_option_outranks_a_variable_a_variable_a_file_and_a_file_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text("port: 1\ndeadline: 2\nwatch: true\nserver_name: [a, b]\n", encoding="utf-8")
    monkeypatch.setenv("ENGINE_CONFIG", str(file))
    assert [parsed([])[name] for name in ("port", "deadline", "watch", "server_name")] == [1, 2.0, True, ["a", "b"]]
    assert parsed([])["warm_sandboxes"] == 0
    monkeypatch.setenv("ENGINE_PORT", "3")
    assert (parsed([])["port"], parsed(["--port", "4"])["port"]) == (3, 4)


def test_the_new_host_variable_outranks_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTA_AGENT_RUNNER_HOST", "127.0.0.2")
    assert parsed([])["host"] == "127.0.0.2"
    monkeypatch.setenv("ENGINE_HOST", "127.0.0.3")
    assert parsed([])["host"] == "127.0.0.3"


def test_an_invalid_boolean_variable_is_refused(command: Command) -> None:
    command("serve", env={"ENGINE_WATCH": "maybe"}).refused("`maybe` is not true or false")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port: 0\nwatc: true\n", "serve.yaml:2 (watc): `watc` is not a known field"),
        ("port: many\n", "serve.yaml:1 (port)"),
        ("host: a\nport: 99999\n", "serve.yaml:2 (port)"),
        ("log_level: debug\n", "serve.yaml:1 (log_level): `log_level` must be 'info' or 'warning'"),
        ("- port\n", "serve.yaml"),
        ("", "write an option into it, such as `port: 8642`, or leave out the file"),
        ("root: nowhere\n", "'nowhere' does not exist"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(text: str, said: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / "serve.yaml").write_text(text, encoding="utf-8")
    command("serve", "--config", tmp_path / "serve.yaml").refused(said)
