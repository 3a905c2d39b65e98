"""A release from its author to a server and back again: approved, signed, activated, rolled back, and its history."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from engine.engine import Engine
from engine.errors import Exit, StateError
from engine.policy_bundle.build import PolicyBundle
from engine.settings import Settings
from tests.api.serving import ALLOWED, serving
from tests.command import Command, Run, lines
from tests.policy_bundle.releases import Keys, released

AUTHOR = ("--author", "user:author")


def ready(command: Command, folder: Path, keys: Keys) -> Path:
    """Have a release approved and signed."""
    for step in (("approve", folder, "--reason", "reviewed"), ("sign", folder, "--key", keys.private)):
        done = command("policy", *step)
        assert done.code == 0, done.stderr
    return folder


def put(folder: Path, live: Path) -> None:
    """Replace the release that is served."""
    shutil.rmtree(live, ignore_errors=True)
    shutil.copytree(folder, live)


@pytest.mark.full
def test_a_release_is_activated_and_rolled_back_and_history_shows_both(tmp_path: Path, cache: Path) -> None:
    command, keys = Command.of(tmp_path, cache), Keys.make(tmp_path / "keys")
    one, two, three, live = (tmp_path / name for name in ("one", "two", "three", "live"))
    assert command("policy", "build", "--output", one, "--sequence", "1", *AUTHOR).code == 0
    put(ready(command, one, keys), live)
    with serving(tmp_path, cache, "--release", live, "--release-key", keys.public) as running:

        def activate(folder: Path, reason: str) -> tuple[Run, str]:
            put(folder, live)
            done = command("policy", "activate", "--state", running.state, "--reason", reason)
            return done, running.decide("license", ALLOWED).json["outcome"]

        assert running.decide("license", ALLOWED).json["outcome"] == "allow"
        refusing = ("--values", "licenses.licenses.MIT.decision=refuse", "--notes", "without MIT")
        built = ("--output", two, "--after", one, "--record", running.state, *refusing, *AUTHOR)
        done = command("policy", "build", *built)
        assert done.code == 0, done.stderr
        assert activate(ready(command, two, keys), "as decided")[1] == "deny"
        back = ("--after", two, "--output", three, "--reason", "too strict")
        wrong = command("policy", "rollback", two, "--after", one, "--output", three, "--reason", "x")
        wrong.refused("release 2 of `default` is not earlier than release 1 of `default`")
        assert command("policy", "rollback", one, *back, *AUTHOR).code == 0
        old, outcome = activate(one, "the old folder")
        assert (old.code, outcome) == (Exit.POLICY_INVALID, "deny")
        assert "this is a rollback: release 1 is older than 2" in old.stderr
        assert "`engine policy rollback`" in old.stderr
        assert activate(ready(command, three, keys), "back to one")[1] == "allow"
        assert running.stop() == 0
    told = command("policy", "history", "--state", running.state, "--format", "json").json["activations"]
    assert [(one["outcome"], (one["release"] or {}).get("sequence"), one["reason"]) for one in told] == [
        ("started", 1, None),
        ("activated", 2, "as decided"),
        ("refused", None, "the old folder"),
        ("activated", 3, "back to one"),
    ]
    assert told[1]["release"]["notes"] == "without MIT"
    assert told[3]["release"]["notes"] == "rollback to release 1: too strict"
    assert told[3]["revisions"] == told[0]["revisions"]
    assert {told[3]["release"]["author"], told[3]["release"]["approver"]} == {"user:author", told[0]["principal"]}
    text = command("policy", "history", "--state", running.state).stdout
    assert "  release 3 of default, built by user:author, approved by user:" in text
    assert command("record", "verify", "--state", running.state).code == 0
    approvals = command("record", "show", "--format", "json", "--point", "administration").json["entries"]
    assert [one["input"]["act"] for one in approvals] == ["approve_release"] * 3
    changes = (two / "changes.json").read_text(encoding="utf-8")
    assert '"path":"licenses.licenses.MIT.decision"' in changes
    assert '"newly_denied":1' in changes


def test_an_activation_that_fails_is_recorded_only_as_refused(settings: Settings, tmp_path: Path) -> None:
    keys, live = Keys.make(tmp_path / "keys"), tmp_path / "live"
    with Engine(settings) as engine:
        assert isinstance(engine.policy, PolicyBundle)
        bundle = engine.policy
    released(bundle, live, keys)
    own = replace(settings, release=live, release_key=keys.public)
    with Engine(own) as engine:
        shutil.rmtree(live)
        released(bundle, live, keys, 2)
        in_the_way = own.state / "policy" / ".last_release.json.partial"
        in_the_way.mkdir()
        with pytest.raises(StateError, match="cannot write"):
            engine.activate()
        in_the_way.rmdir()
        engine.activate()
    assert [one["outcome"] for one in lines(own.state) if one["kind"] == "policy"] == ["refused", "activated"]
