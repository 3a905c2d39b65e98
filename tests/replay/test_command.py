"""`engine record replay`: texts, exit codes, the page, and what it refuses."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from engine.binaries import find_binary
from engine.cli.record.replayed import replay_page
from engine.points.registry import POINTS
from engine.policy_bundle.build import build
from engine.policy_bundle.sources import PolicySources
from engine.record.layout import DECISIONS
from tests.command import Command, decisions
from tests.conftest import ROOT
from tests.policy_bundle.releases import Keys, released

REFUSED = ("--values", "licenses.licenses.CC-BY-4.0.decision=refuse")
NASTY = "<script>alert(1)</script><img src=http://evil.example/x onerror=alert(1)>\"'&\x1b[31m\ud800</style>"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Command:
    """A user who has checked two source bundles."""
    command = Command.of(tmp_path_factory.mktemp("user"), cache)
    command.check("fixtures/source_bundles/offline_fixture", "fixtures/source_bundles/non_commercial_for_training")
    return command


def test_a_replay_under_a_refused_license_lists_the_new_denies(recorded: Command) -> None:
    before = (recorded.state / DECISIONS).read_bytes()
    done = recorded("record", "replay", *REFUSED)
    assert done.code == 6, done.stderr
    for words in (
        "2 recorded decisions, ",
        "source  1          1",
        "newly denied\n  source license_incompatible: deny now (1 decision)",
        "rule: rego/admission/requirements/source/license.rego:",
        'value: licenses.licenses.CC-BY-4.0 = {"category": "attribution", "decision": "refuse", ',
        "(policy/licenses.yaml:",
        "subjects: records/contacts-1 (1)",
    ):
        assert words in done.stdout, done.stdout
    assert (recorded.state / DECISIONS).read_bytes() == before


def test_nothing_changes_under_the_policy_of_the_record(recorded: Command) -> None:
    done = recorded("record", "replay", "--point", "source", "--format", "json")
    assert (done.code, done.json["changed"], done.json["changes"]) == (0, False, [])
    assert done.json["counts"]["unchanged"] == 2
    recorded("record", "replay", "--principal", "nobody").refused("no recorded decision matches")


def test_a_replay_that_compares_nothing_fails(command: Command) -> None:
    command("decide", "license", stdin='{"purpose": 7}')
    done = command("record", "replay")
    assert done.code == 2
    assert "license: the engine refused it, not the policy: engine.request_invalid (1 decision)" in done.stdout


def test_the_page_is_whole_and_loads_nothing(recorded: Command) -> None:
    done = recorded("record", "replay", *REFUSED, "--format", "html")
    assert done.code == 6
    assert done.stdout.startswith("<!DOCTYPE html>\n<html")
    read = Page(done.stdout)
    assert read.texts >= {"records/contacts-1", "Newly denied"}
    assert any(text.startswith("licenses.licenses.CC-BY-4.0 = ") for text in read.texts)


def test_a_broken_record_stops_the_replay_unless_overridden(recorded: Command, tmp_path: Path) -> None:
    state = Path(shutil.copytree(recorded.state, tmp_path / "state", ignore=shutil.ignore_patterns("run")))
    data = (state / DECISIONS).read_bytes()
    (state / DECISIONS).write_bytes(data.replace(b"contacts-1", b"contacts-9", 1))
    asked = ("record", "replay", "--state", state, *REFUSED)
    recorded(*asked).refused("decisions.000001.jsonl:1: chain_break", "nothing was replayed", code=4)
    told = recorded(*asked, "--broken")
    assert told.code == 6
    assert "chain_break" in told.stderr
    with (state / DECISIONS).open("ab") as file:
        file.write(b"no record\n")
    assert "is not a valid record" in recorded(*asked, "--broken").stderr


def test_a_broken_candidate_gets_the_words_of_lint(recorded: Command, policy: Path) -> None:
    file = policy / "licenses.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("decision: admit", "decision: perhaps", 1))
    lint = recorded("policy", "lint", "--policy", policy)
    done = recorded("record", "replay", "--policy", policy)
    done.refused("1 problem", code=5)
    assert lint.stdout.splitlines()[0] in done.stderr


def test_a_release_of_the_variables_is_the_candidate(recorded: Command, cache: Path, tmp_path: Path) -> None:
    keys, other = Keys.make(tmp_path / "keys"), Keys.make(tmp_path / "other")
    sources = PolicySources(ROOT / "rego", ROOT / "policy", ROOT / "bundles" / "default", REFUSED[1:])
    release = released(build(sources, POINTS, find_binary(), cache), tmp_path / "release-1", keys)
    env = {"ENGINE_RELEASE": str(release), "ENGINE_RELEASE_KEY": str(keys.public)}
    done = recorded("record", "replay", "--format", "json", env=env)
    assert (done.code, done.json["counts"]["newly_denied"]) == (6, 1)
    assert recorded("record", "replay", "--policy", ROOT / "policy", env=env).code == 0
    foreign = recorded("record", "replay", env={**env, "ENGINE_RELEASE_KEY": str(other.public)})
    foreign.refused("the signature is not valid", code=5)


def test_every_text_of_the_page_is_escaped() -> None:
    group = {
        "change": "newly_denied",
        "before": None,
        "after": "deny",
        "decisions": 3,
        "more_subjects": 2,
        **dict.fromkeys(("point", "code", "required", "fix", "rule"), NASTY),
        "values": [{"path": NASTY, "value": {NASTY: NASTY}, "where": NASTY}],
        "subjects": [{"subject": NASTY, "times": 1}],
        "examples": [NASTY],
    }
    document: dict[str, Any] = {
        "policy": dict.fromkeys(("name", "rules", "values"), NASTY),
        "record": {"decisions": 3, "first": NASTY, "last": NASTY, "unreadable_lines": [NASTY]},
        "changed": True,
        "counts": {"newly_denied": 3},
        "points": [{"point": NASTY, "newly_denied": 3}],
        "changes": [group, group | {"change": "other_limits"}],
        "not_decided": [{"point": NASTY, "reason": NASTY, "decisions": 1}],
        "not_counted": [{"point": NASTY, "budget": NASTY, "decisions": 1}],
    }
    text = replay_page(document, f"Replay by policy {NASTY}")
    text.encode("utf-8")
    shown = "<script>alert(1)</script><img src=http://evil.example/x onerror=alert(1)>\"'&\\x1b[31m\\ud800</style>"
    assert shown in Page(text).texts
    assert text.count("&lt;script&gt;") > 20
    assert "\x1b" not in text


class Page(HTMLParser):
    """A page as a browser reads it; it fails on anything that could run or load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"script", "img", "iframe", "link", "a", "form", "object", "base", "svg"}, tag
        for name, _ in attrs:
            assert not name.startswith("on"), name
            assert name not in {"src", "href", "style", "action"}, name

    def handle_data(self, data: str) -> None:
        self.texts.add(data)


def test_the_repository_names_the_exit_code() -> None:
    assert "| 6 | " in (ROOT / "README.md").read_text(encoding="utf-8")


def test_replays_are_not_recorded(recorded: Command) -> None:
    assert len(decisions(recorded.state)) == 2
