"""What `engine record verify` and `engine record show` tell people and programs."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Self, get_args

import pytest
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner, Result

from engine.cli.record.commands import Modes, Outcomes, app
from engine.cli.record.verification import _MEANINGS
from engine.errors import GatherError, RecordError
from engine.model import Mode, Outcome
from engine.record.layout import CHECKPOINT, DECISIONS, EVENTS, INSTALLATION, BreakKind
from engine.record.model import DecisionRecord, ReplayRecord
from engine.record.verify import verify
from tests.record.samples import VERSIONS, decision, event, open_log, result, taken, write

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


def test_verify_reports_an_intact_record(state: Path, snapshot: SnapshotAssertion) -> None:
    told = run("verify", "--state", state)
    assert told.exit_code == 0
    assert told.stdout == snapshot


def test_verify_reports_the_place_of_a_break(state: Path, snapshot: SnapshotAssertion) -> None:
    data = (state / DECISIONS).read_bytes()
    (state / DECISIONS).write_bytes(data.replace(b"contacts-2", b"contacts-9", 1))
    told = run("verify", "--state", state)
    assert told.exit_code == 4
    assert told.stdout == snapshot


def test_verify_reports_a_torn_tail_as_such(state: Path, snapshot: SnapshotAssertion) -> None:
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


def test_verify_reports_a_missing_checkpoint(state: Path, snapshot: SnapshotAssertion) -> None:
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


def test_show_prints_the_last_decisions(state: Path, snapshot: SnapshotAssertion) -> None:
    told = run("show", "--state", state)
    assert told.exit_code == 0
    assert told.stdout == snapshot
    assert SECRET not in told.stdout


def test_show_prints_every_field_of_one_decision(state: Path, snapshot: SnapshotAssertion) -> None:
    assert run("show", "--state", state, "--decision-id", f"{1:032x}").stdout == snapshot
    assert run("show", "--state", state, "--decision-id", f"{2:032x}").stdout == snapshot


def test_a_decision_without_an_input_shows_none(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(decision(1).model_copy(update={"input": None, "input_digest": None}))
    told = run("show", "--state", tmp_path, "--decision-id", f"{1:032x}").stdout
    assert "license_unknown" in told
    assert "input" not in told


def test_codes_of_the_engine_itself_are_not_said_to_be_in_the_policy(tmp_path: Path) -> None:
    (finding,) = decision(1).findings
    with open_log(tmp_path) as log:
        log.append(decision(1))
        unread = finding.model_copy(update={"code": "engine.request_invalid"})
        log.append(decision(2).model_copy(update={"findings": (unread,)}))
    told = [run("show", "--state", tmp_path, "--decision-id", f"{number:032x}").stdout for number in (1, 2)]
    assert ["engine policy show" in one for one in told] == [True, False]


def test_show_for_programs(state: Path) -> None:
    told = json.loads(run("show", "--state", state, "--format", "json", "--limit", "1").stdout)
    assert told["matching"] == 4
    assert [entry["seq"] for entry in told["entries"]] == [4]
    assert set(told["entries"][0]) == {"chain", "seq", "prev", *json.loads(decision(3).model_dump_json())}


@pytest.fixture
def told_state(tmp_path: Path) -> Path:
    """Decisions by different callers at different times, one of them replayed, one with a hostile name."""
    state = tmp_path / "told"
    fields: list[dict[str, Any]] = [
        {"principal": "pipeline-1", "request_id": "r-1", "trace": "1" * 32},
        {"principal": "pipeline-2", "request_id": "r-2", "trace": "2" * 32, "approval": "approval-7"},
        {"principal": "=HYPERLINK(1)", "run": "@SUM(A1)", "request_id": "-2+3", "approval": "\t=1"},
    ]
    with open_log(state) as log:
        for number, more in enumerate(fields, start=1):
            made = taken(number, outcome=Outcome.ALLOW if number == 1 else Outcome.DENY)
            time = f"2026-11-2{number}T00:00:00.000000Z"
            log.append(
                DecisionRecord.of(
                    made, time=time, document={"point": "source"}, versions=VERSIONS, durations={"gather": 5}, **more
                )
            )
        log.append(ReplayRecord(time="2026-11-24T00:00:00.000000Z", decision_id=f"{1:032x}", trace="4" * 32))
    return state


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        (("--principal", "pipeline-1"), [1]),
        (("--run", "@SUM(A1)"), [3]),
        (("--request-id", "r-2"), [2]),
        (("--trace", "2" * 32), [2]),
        (("--trace", "4" * 32), [4]),
        (("--code", "license_unknown"), [2, 3]),
        (("--code", "license_unknown", "--principal", "pipeline-2"), [2]),
        (("--code", "license"), []),
        (("--since", "2026-11-22T00:00:00Z"), [2, 3, 4]),
        (("--since", "2026-11-22T01:00:00+01:00"), [2, 3, 4]),
        (("--since", "2026-11-22"), [2, 3, 4]),
        (("--since", "2026-11-22T00:00:00.000001Z"), [3, 4]),
        (("--since", "1s"), []),
        (("--since", "520w"), [1, 2, 3, 4]),
        (("--decision-id", f"{1:032x}"), [1, 4]),
    ],
)
def test_show_filters_by_principal_time_and_code(
    told_state: Path, filters: tuple[str, ...], numbers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls(2026, 12, 1, tzinfo=tz)

    monkeypatch.setattr("engine.cli.record.commands.datetime", Clock)
    told = run("show", "--state", told_state, "--format", "json", *filters)
    assert [entry["seq"] for entry in json.loads(told.stdout)["entries"]] == numbers


@pytest.mark.parametrize(
    "since", ["yesterday", "7", "7y", "2026-11-31", "2026-11-22T00:00:00", "2026-13-01T00:00:00Z", ""]
)
def test_a_time_that_cannot_be_read_is_refused(told_state: Path, since: str) -> None:
    for name in ("show", "export"):
        told = run(name, "--state", told_state, "--since", since)
        assert told.exit_code == 2
        assert "--since" in told.stderr


def test_show_prints_principals_and_replayed_decisions(told_state: Path, snapshot: SnapshotAssertion) -> None:
    assert run("show", "--state", told_state).stdout == snapshot
    assert run("show", "--state", told_state, "--decision-id", f"{1:032x}").stdout == snapshot
    assert run("show", "--state", told_state, "--decision-id", f"{2:032x}").stdout == snapshot


def test_export_gives_cloudevents(told_state: Path) -> None:
    told = run("export", "--state", told_state)
    assert told.exit_code == 0
    events = [json.loads(line) for line in told.stdout.splitlines()]
    installation = json.loads((told_state / "installation.json").read_bytes())["id"]
    assert [event["id"] for event in events] == [f"{installation}-{seq}" for seq in (1, 2, 3, 4)]
    assert [event["type"] for event in events] == ["admission.decision"] * 3 + ["admission.replay"]
    assert {event["source"] for event in events} == {f"urn:admission-engine:{installation}"}
    assert {(event["specversion"], event["datacontenttype"]) for event in events} == {("1.0", "application/json")}
    lines = [json.loads(line) for line in (told_state / DECISIONS).read_bytes().splitlines()]
    assert [event["data"] for event in events] == lines
    assert [event["time"] for event in events] == [line["time"] for line in lines]
    assert [event["subject"] for event in events] == [line["decision_id"] for line in lines]
    late = run("export", "--state", told_state, "--since", "2026-11-23T00:00:00Z").stdout.splitlines()
    assert [json.loads(line)["data"]["seq"] for line in late] == [3, 4]


def test_export_gives_csv_that_no_spreadsheet_runs(told_state: Path, tmp_path: Path) -> None:
    output = tmp_path / "decisions.csv"
    assert run("export", "--state", told_state, "--format", "csv", "--output", output).exit_code == 0
    with output.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["seq"] for row in rows] == ["1", "2", "3"]
    assert [row["codes"] for row in rows] == ["", "license_unknown", "license_unknown"]
    assert (rows[2]["principal"], rows[2]["run"], rows[2]["request_id"]) == ("'=HYPERLINK(1)", "'@SUM(A1)", "'-2+3")
    assert rows[2]["approval"] == "?=1"  # was a tab
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for row in rows for cell in row.values())
    plain = json.loads((told_state / DECISIONS).read_bytes().splitlines()[2])
    assert plain["principal"] == "=HYPERLINK(1)"  # the control: the record has it as it was


@pytest.mark.parametrize(
    ("cell", "shown"),
    [("\x1b]0;title\x07", "?]0;title?"), ("\n=1+1", "?=1+1"), ("a\r\nb", "a??b"), ("\uff1d1", "'\uff1d1")],
)
def test_no_cell_of_csv_is_run_by_a_spreadsheet_or_a_terminal(tmp_path: Path, cell: str, shown: str) -> None:
    with open_log(tmp_path) as log:
        log.append(decision(1).model_copy(update={"run": cell}))
    (row,) = csv.DictReader(run("export", "--state", tmp_path, "--format", "csv").stdout.splitlines())
    assert row["run"] == shown


def test_an_export_that_ends_midway_leaves_no_file(told_state: Path, tmp_path: Path) -> None:
    state, output = Path(shutil.copytree(told_state, tmp_path / "state")), tmp_path / "events.jsonl"
    (state / DECISIONS).with_name("decisions.000002.jsonl").mkdir()
    assert isinstance(run("export", "--state", state, "--output", output).exception, RecordError)
    assert not output.exists()


def test_export_writes_acts_and_reasons_to_csv(tmp_path: Path) -> None:
    state = tmp_path / "state"
    act = {"act": "stop", "id": "0123456789abcdef", "reason": "=a drill", "scope": None}
    with open_log(state) as log:
        made = taken(1)
        for point, document in (("administration", act), ("source", act), ("administration", None)):
            one = DecisionRecord.of(
                made.model_copy(update={"point": point}),
                time="2026-11-21T00:00:00.000000Z",
                document=document,
                versions=VERSIONS,
                durations={},
            )
            log.append(one)
    first, *others = csv.DictReader(run("export", "--state", state, "--format", "csv").stdout.splitlines())
    assert (first["act"], first["act_id"], first["reason"]) == ("stop", "0123456789abcdef", "'=a drill")
    assert [(one["act"], one["act_id"], one["reason"]) for one in others] == [("", "", "")] * 2


def test_export_goes_on_without_a_policy_and_without_the_id_of_the_installation(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    with open_log(state) as log:
        log.append(decision(1))
        log.append(decision(2).model_copy(update={"policy": None}))
    first, second = csv.DictReader(run("export", "--state", state, "--format", "csv").stdout.splitlines())
    assert (first["rules"], first["values"]) == ("sha256:" + "a" * 64, "sha256:" + "b" * 64)
    assert (second["rules"], second["values"]) == ("", "")
    for change in ("broken", "gone"):
        if change == "broken":
            (state / INSTALLATION).write_bytes(b"{}")
        else:
            (state / INSTALLATION).unlink()
        events = [json.loads(line) for line in run("export", "--state", state).stdout.splitlines()]
        assert [event["source"] for event in events] == ["urn:admission-engine:unknown"] * 2
        assert [event["id"] for event in events] == ["unknown-1", "unknown-2"]


def test_export_overwrites_no_file_and_skips_invalid_lines(told_state: Path, tmp_path: Path) -> None:
    output = tmp_path / "there"
    output.write_text("mine")
    told = run("export", "--state", told_state, "--output", output)
    assert isinstance(told.exception, GatherError)
    assert output.read_text() == "mine"
    with (told_state / DECISIONS).open("ab") as file:
        file.write(b"{}\n")
    broken = run("export", "--state", told_state)
    assert (len(broken.stdout.splitlines()), broken.stderr) == (
        4,
        f"{DECISIONS}:5 is not a valid record; run `engine record verify`\n",
    )


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
    none = "no decision with this id in this record; `engine record show` lists the last ones\n"
    assert (told.exit_code, told.stdout) == (2, none)
    assert run("show", "--state", state, "--point", "license").exit_code == 0


def test_show_skips_invalid_lines(state: Path) -> None:
    lines = (state / DECISIONS).read_bytes().splitlines(keepends=True)
    (state / DECISIONS).write_bytes(b"".join([lines[0], b"[" * 100_000 + b"\n", *lines[1:]]))
    told = run("show", "--state", state)
    assert told.stdout.count("source") == 3
    assert told.stderr == f"{DECISIONS}:2 is not a valid record; run `engine record verify`\n"


def test_text_from_the_record_cannot_steer_a_terminal(state: Path) -> None:
    with open_log(state) as log:
        log.append(decision(5).model_copy(update={"point": "\x1b[2Jx\nALLOW", "run": "\x1b]0;title\x07"}))
    for arguments in ((), ("--decision-id", f"{5:032x}")):
        told = run("show", "--state", state, *arguments).stdout
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", told)
        assert "\nALLOW" not in told.replace("\nALLOW  source", "")


COMMANDS = [("verify",), ("show",), ("export",), ("retain", "--keep-days", "36500")]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_an_empty_state_is_accepted_and_a_missing_one_is_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    told = run(*command, "--state", tmp_path / "nowhere")
    assert isinstance(told.exception, GatherError)
    assert told.exception.exit == 2
    assert "there is no state folder" in told.exception.message
    assert told.stdout == ""
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "empty").mkdir()
    assert run(*command, "--state", tmp_path / "empty").exit_code == 0
    assert list((tmp_path / "empty").iterdir()) == []


def test_an_oversized_retention_period_is_refused(told_state: Path) -> None:
    for days in ("36501", "800000", "9" * 30):
        told = run("retain", "--state", told_state, "--keep-days", days)
        assert (told.exit_code, told.stdout) == (2, "")
        assert "--keep-days" in told.stderr
    assert run("retain", "--state", told_state, "--keep-days", "36500").exit_code == 0
    assert verify(told_state).removed == 0


def test_show_refuses_an_unknown_point(state: Path) -> None:
    told = run("show", "--state", state, "--point", "licens")
    assert told.exit_code == 2
    assert "did you mean `license`?" in told.stderr
    assert run("show", "--state", state, "--point", "license").stderr == ""


def test_an_unreadable_record_file_is_a_record_error(tmp_path: Path) -> None:
    write(tmp_path / "state", 1)
    (tmp_path / "state" / DECISIONS).unlink()
    (tmp_path / "state" / DECISIONS).mkdir()
    for name in ("verify", "show"):
        told = run(name, "--state", tmp_path / "state")
        assert isinstance(told.exception, RecordError)
        assert told.exception.exit == 4
        assert "cannot be read" in told.exception.message


def test_the_command_covers_every_break_kind_outcome_and_mode() -> None:
    assert {kind.value for kind in BreakKind} == set(_MEANINGS)
    assert {*get_args(Outcomes)} == {word.value for word in Outcome}
    assert {*get_args(Modes)} == {word.value for word in Mode}
