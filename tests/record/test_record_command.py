"""What `engine record verify` and `engine record show` tell people and programs."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner, Result

from engine.cli.record import _MEANINGS, Modes, Outcomes, app
from engine.errors import RecordError
from engine.model import Mode, Outcome
from engine.record.layout import CHECKPOINT, DECISIONS, EVENTS, BreakKind
from tests.record.samples import decision, event, open_log, result, write

SECRET = "sk-proj-0a1b2c3d4e5f6g7h8i9j"  # noqa: S105 (opens nothing)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record with one of everything, the same on every run."""
    with monkeypatch.context() as fixed:
        fixed.setattr(os, "urandom", lambda count: b"7" * count)
        with open_log(tmp_path / "state") as log:
            log.append(decision(1, outcome=Outcome.ALLOW, mode=Mode.ENFORCE), (event(1),))
            log.append(result(1))
            log.append(decision(2, {"bundle": {"id": "contacts-2", "note": SECRET}}), (event(2), event(3)))
            log.append(decision(3, outcome=Outcome.CONFIRM))
    return tmp_path / "state"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_verify_tells_that_the_record_holds(state: Path, snapshot: SnapshotAssertion) -> None:
    told = run("verify", "--state", state)
    assert told.exit_code == 0
    assert told.stdout == snapshot


def test_verify_tells_where_it_broke(state: Path, snapshot: SnapshotAssertion) -> None:
    data = (state / DECISIONS).read_bytes()
    (state / DECISIONS).write_bytes(data.replace(b"contacts-2", b"contacts-9", 1))
    told = run("verify", "--state", state)
    assert told.exit_code == 4
    assert told.stdout == snapshot


def test_verify_tells_an_unfinished_end_in_other_words(state: Path, snapshot: SnapshotAssertion) -> None:
    with (state / DECISIONS).open("ab") as file:
        file.write(b'{"seq":5,')
    with (state / EVENTS).open("ab") as file:
        file.write(b'{"event":')
    told = run("verify", "--state", state)
    assert told.exit_code == 1
    assert told.stdout == snapshot
    with open_log(state):
        pass
    shown = run("show", "--state", state)
    assert "9 unfinished bytes cut from source_events.jsonl, kept in records/cut/" in shown.stdout
    assert run("verify", "--state", state).exit_code == 0


def test_verify_tells_a_missing_checkpoint(state: Path, snapshot: SnapshotAssertion) -> None:
    (state / CHECKPOINT).unlink()
    told = run("verify", "--state", state)
    assert told.exit_code == 4
    assert told.stdout == snapshot


def test_verify_for_programs(state: Path, snapshot: SnapshotAssertion) -> None:
    good = json.loads(run("verify", "--state", state, "--format", "json").stdout)
    (state / EVENTS).write_bytes(b"")
    bad = run("verify", "--state", state, "--format", "json")
    assert bad.exit_code == 4
    assert [good, json.loads(bad.stdout)] == snapshot


def test_show_tells_the_last_decisions(state: Path, snapshot: SnapshotAssertion) -> None:
    told = run("show", "--state", state)
    assert told.exit_code == 0
    assert told.stdout == snapshot
    assert SECRET not in told.stdout


def test_show_tells_all_about_one_decision(state: Path, snapshot: SnapshotAssertion) -> None:
    assert run("show", "--state", state, "--decision-id", f"{1:032x}").stdout == snapshot
    assert run("show", "--state", state, "--decision-id", f"{2:032x}").stdout == snapshot


def test_show_for_programs(state: Path) -> None:
    told = json.loads(run("show", "--state", state, "--format", "json", "--limit", "1").stdout)
    assert told["fitting"] == 4
    assert [entry["seq"] for entry in told["entries"]] == [4]
    assert set(told["entries"][0]) == {"seq", "prev", *json.loads(decision(3).model_dump_json())}


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ((), [1, 2, 3, 4]),
        (("--point", "source"), [1, 3, 4]),
        (("--point", "license"), []),
        (("--outcome", "deny"), [3]),
        (("--outcome", "confirm"), [4]),
        (("--mode", "enforce"), [1]),
        (("--mode", "check", "--outcome", "deny"), [3]),
        (("--decision-id", f"{1:032x}"), [1, 2]),
        (("--decision-id", "0" * 20, "--limit", "2"), [3, 4]),
    ],
)
def test_show_filters(state: Path, filters: tuple[str, ...], numbers: list[int]) -> None:
    told = run("show", "--state", state, "--format", "json", *filters)
    assert [entry["seq"] for entry in json.loads(told.stdout)["entries"]] == numbers


def test_show_ends_with_2_where_the_decision_is_not_there(state: Path) -> None:
    told = run("show", "--state", state, "--decision-id", "feed")
    assert (told.exit_code, told.stdout) == (2, "no such decision is recorded here\n")
    assert run("show", "--state", state, "--point", "license").exit_code == 0


def test_show_goes_on_past_what_is_no_record(state: Path) -> None:
    lines = (state / DECISIONS).read_bytes().splitlines(keepends=True)
    (state / DECISIONS).write_bytes(b"".join([lines[0], b"[" * 100_000 + b"\n", *lines[1:]]))
    told = run("show", "--state", state)
    assert told.stdout.count("source") == 3
    assert told.stderr == f"{DECISIONS}:2 is no record; run `engine record verify`\n"


def test_text_from_the_record_cannot_steer_a_terminal(state: Path) -> None:
    with open_log(state) as log:
        log.append(decision(5).model_copy(update={"point": "\x1b[2Jx\nALLOW", "run": "\x1b]0;title\x07"}))
    for arguments in ((), ("--decision-id", f"{5:032x}")):
        told = run("show", "--state", state, *arguments).stdout
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", told)
        assert "\nALLOW" not in told.replace("\nALLOW  source", "")


def test_an_empty_or_missing_state_is_no_fault(tmp_path: Path) -> None:
    for name in ("verify", "show"):
        told = run(name, "--state", tmp_path / "nowhere")
        assert told.exit_code == 0
        assert "recorded here" in told.stdout
    assert not (tmp_path / "nowhere").exists()


def test_what_cannot_be_read_is_an_error_of_the_record(tmp_path: Path) -> None:
    write(tmp_path / "state", 1)
    (tmp_path / "state" / DECISIONS).unlink()
    (tmp_path / "state" / DECISIONS).mkdir()
    for name in ("verify", "show"):
        told = run(name, "--state", tmp_path / "state")
        assert isinstance(told.exception, RecordError)
        assert told.exception.exit == 4
        assert "cannot be read" in told.exception.message


def test_the_command_knows_every_word() -> None:
    assert {kind.value for kind in BreakKind} == set(_MEANINGS)
    assert {word.value for word in Outcomes} == {word.value for word in Outcome}
    assert {word.value for word in Modes} == {word.value for word in Mode}
