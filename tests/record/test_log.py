"""The writer: what it makes, what it refuses, and what opening costs."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from syrupy.assertion import SnapshotAssertion

from engine.errors import RecordError
from engine.model import Mode, Outcome
from engine.record import log as log_module
from engine.record import writer as writer_module
from engine.record.layout import CHECKPOINT, DECISIONS, EVENTS, KEY
from engine.record.model import DecisionRecord, RecordedFinding, ResultRecord, encode_body
from engine.record.storage import Storage
from engine.record.verify import verify
from engine.times import timestamp
from tests.expect import there
from tests.record.samples import TIME, clock, decision, event, open_log, result, taken, write
from tests.threads import at_once


def lines(state: Path) -> list[bytes]:
    return (state / DECISIONS).read_bytes().splitlines()


def test_first_use_makes_private_files(tmp_path: Path) -> None:
    state = tmp_path / "deep" / "state"
    open_log(state).close()
    modes = {str(path.relative_to(state)): oct(path.stat().st_mode & 0o777) for path in sorted(state.rglob("*"))}
    assert modes == {
        "checkpoints": "0o700",
        "checkpoints/decisions.json": "0o600",
        "installation.json": "0o600",
        "keys": "0o700",
        "keys/record.key": "0o600",
        "records": "0o700",
        "records/decisions.000001.jsonl": "0o600",
        "records/lock": "0o600",
        "records/source_events.jsonl": "0o600",
    }
    assert state.stat().st_mode & 0o777 == 0o700
    assert len((state / KEY).read_bytes()) == 32


def test_each_line_holds_the_digest_of_the_bytes_before(tmp_path: Path) -> None:
    write(tmp_path / "state", 12)
    written = lines(tmp_path / "state")
    assert [json.loads(line)["seq"] for line in written] == list(range(1, 15))
    for before, line in pairwise(written):
        assert json.loads(line)["prev"] == hashlib.sha256(before).hexdigest()
        assert line.startswith(b'{"seq":')


def test_two_installations_start_from_different_digests(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, 1)
    first, second = (json.loads(lines(tmp_path / name)[0])["prev"] for name in ("one", "two"))
    assert first != second


def test_a_decision_record_has_every_field(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    with open_log(tmp_path / "state") as log:
        log.append(decision(1, mode=Mode.ENFORCE, outcome=Outcome.ALLOW), (event(1),))
        log.append(decision(2))
        log.append(result(1))
    records = [json.loads(line) for line in lines(tmp_path / "state")]
    for record in records:
        record.pop("prev")  # starts from a random id
    assert records == snapshot


def test_words_of_findings_are_not_recorded(tmp_path: Path) -> None:
    with open_log(tmp_path / "state") as log:
        log.append(decision(1))
    assert taken(1).findings[0].requirement.encode() not in lines(tmp_path / "state")[0]


def test_a_directly_constructed_body_is_redacted_too() -> None:
    secret = "AKIAIOSFODNN7EXAMPLF"  # noqa: S105 (of the form of AWS's keys)
    made = ResultRecord(time=TIME, decision_id="1", status=secret, facts={"a": [secret]}, duration=1)
    assert secret not in made.model_dump_json()
    assert made.redactions == ("facts.a.0", "status")
    fields: dict[str, Any] = dict(decision(1))
    del fields["redactions"]
    finding = RecordedFinding(code="c", level=taken(1).findings[0].level, subject=f"records/{secret}")
    again = DecisionRecord(**fields | {"findings": (finding,), "run": secret, "input": {secret: 1}})
    assert secret not in again.model_dump_json()
    assert {"findings.0.subject", "run"} < set(again.redactions)


def test_the_redacted_copy_is_the_one_that_is_written() -> None:
    made = decision(1)
    asked, stated = there(made.input), json.loads(encode_body(made))["input"]
    asked["later"] = "AKIAIOSFODNN7EXAMPLF"
    assert json.loads(encode_body(made))["input"] == stated
    other = made.model_copy(update={"input": {"now": 2}, "findings": (), "limits": {"purpose": "eval"}})
    written = json.loads(encode_body(other))
    assert (written["input"], written["findings"], written["limits"]) == ({"now": 2}, [], {"purpose": "eval"})


def test_the_record_goes_on_over_many_processes_and_reads_only_the_tail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    write(state, 300)
    read: list[int] = []

    class Counting(Storage):
        def open(self, path: str) -> BinaryIO:
            file = super().open(path)
            original = file.read

            def counted(size: int = -1) -> bytes:
                data = original(size)
                read.append(len(data))
                return data

            monkeypatch.setattr(file, "read", counted, raising=False)
            return file

    storage = Counting(state)
    try:
        log = open_log(storage)
    except AttributeError:
        pytest.fail("the counting file does not work")
    log.append(decision(301))
    log.close()
    assert verify(state).ok
    assert sum(read) < 200_000 < (state / DECISIONS).stat().st_size


def test_a_killed_writer_costs_the_next_one_the_tail_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "CHECKPOINT_RECORDS", 64)
    state = tmp_path / "state"
    log = open_log(state)
    for number in range(writer_module.CHECKPOINT_RECORDS + 20):
        log.append(decision(number))
    vouched = json.loads((state / CHECKPOINT).read_bytes())["seq"]
    log.storage.close()  # no last checkpoint
    assert vouched == writer_module.CHECKPOINT_RECORDS
    with open_log(state) as again:
        assert again.seq == writer_module.CHECKPOINT_RECORDS + 20
        assert again.opened.recovered == ()
    assert verify(state).ok


def test_large_lines_bring_the_checkpoint_earlier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "CHECKPOINT_BYTES", 1 << 20)
    state = tmp_path / "state"
    log = open_log(state)
    vouched = []
    for number in range(5):
        words = [f"word {number} {index}" for index in range(20_000)]
        log.append(decision(number, {"words": words}))
        vouched.append(json.loads((state / CHECKPOINT).read_bytes())["seq"])
    assert vouched == [0, 0, 0, 0, 4]
    log.close()
    assert verify(state).ok


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {"a": {1, 2}}], ids=str)
def test_a_body_without_json_form_is_refused_and_the_log_goes_on(tmp_path: Path, value: Any) -> None:
    with open_log(tmp_path / "state") as log:
        with pytest.raises(RecordError, match="cannot be written as JSON"):
            log.append(decision(1, {"value": value}))
        assert log.append(decision(2)) == 1
    assert verify(tmp_path / "state").records == 1


def test_a_line_that_is_too_long_is_refused_and_the_log_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "LINE_BYTES", 2000)
    with open_log(tmp_path / "state") as log:
        with pytest.raises(RecordError, match="longer than 2000 bytes"):
            log.append(decision(1, {"words": ["word"] * 1000}))
        assert log.append(decision(2)) == 1


def test_an_interrupted_write_closes_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "state")

    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(log.storage, "sync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        log.append(decision(1))
    monkeypatch.undo()
    with pytest.raises(RecordError, match="closed after a failure"):
        log.append(decision(2))
    log.close()
    with open_log(tmp_path / "state") as again:
        assert again.append(decision(3)) == 2
    assert verify(tmp_path / "state").ok


def test_threads_share_one_log(tmp_path: Path) -> None:
    with open_log(tmp_path / "state") as log:

        def ten(start: int) -> None:
            for step in range(10):
                log.append(decision(start + step))

        at_once(partial(ten, start) for start in range(0, 80, 10))
    assert verify(tmp_path / "state").records == 80


@pytest.mark.parametrize("path", ["records", DECISIONS, EVENTS, CHECKPOINT, "keys", "records/lock"])
def test_a_file_of_the_wrong_type_is_refused_at_opening(tmp_path: Path, path: str) -> None:
    state = tmp_path / "state"
    place = state / path
    place.parent.mkdir(parents=True)
    if path in {"records", "keys"}:
        place.write_text("a file")
    else:
        place.mkdir()
    with pytest.raises(RecordError) as caught:
        open_log(state)
    assert caught.value.code.startswith("engine.record_")
    assert caught.value.exit == 4
    assert caught.value.remedy


def test_a_link_in_the_place_of_the_record_is_not_followed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    write(state, 2)
    (state / DECISIONS).rename(tmp_path / "elsewhere")
    (state / DECISIONS).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RecordError):
        open_log(state)
    with pytest.raises(RecordError):
        verify(state)


def test_a_failed_last_checkpoint_loses_no_acknowledged_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: str, __: bytes) -> None:
        raise OSError(28, "No space left on device")

    log = open_log(tmp_path / "state")
    log.append(decision(1))
    monkeypatch.setattr(log.storage, "append", full)
    log.close()
    monkeypatch.undo()
    with open_log(tmp_path / "state") as again:
        again.append(decision(2))
    found = verify(tmp_path / "state")
    assert (found.ok, found.records) == (True, 2)


def test_a_file_changed_by_another_program_is_reported_at_close(tmp_path: Path) -> None:
    log = open_log(tmp_path / "state", segment_bytes=1)
    log.append(decision(1))
    log.append(decision(2))
    (tmp_path / "state" / DECISIONS).write_bytes(b"")
    with pytest.raises(RecordError, match="changed"):
        log.close()
    again = open_log(tmp_path / "other", segment_bytes=1)
    again.append(decision(1))
    again.append(decision(2))
    (tmp_path / "other" / DECISIONS).write_bytes(b"")
    with pytest.raises(ZeroDivisionError), again:
        raise ZeroDivisionError


def test_nothing_recorded_yet_verifies(tmp_path: Path) -> None:
    found = verify(tmp_path / "state")
    assert (found.ok, found.records, found.head) == (True, 0, None)


def test_times_have_one_form() -> None:
    assert timestamp(clock()) == TIME
    with pytest.raises(ValueError, match="time"):
        ResultRecord(time="2026-11-21T00:00:00Z", decision_id="1", status="done", facts={}, duration=1)


def test_a_line_may_be_as_long_as_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = len(encode_body(decision(1))) + log_module._HEAD_BYTES
    with open_log(tmp_path / "state") as log:
        monkeypatch.setattr(log_module, "LINE_BYTES", longest)
        assert log.append(decision(1)) == 1
        monkeypatch.setattr(log_module, "LINE_BYTES", longest - 1)
        with pytest.raises(RecordError, match="is longer than"):
            log.append(decision(1))
