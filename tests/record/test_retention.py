"""Removal of old segments beside others who remove or verify."""

from __future__ import annotations

import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.errors import RecordError
from engine.record.layout import segment_file
from engine.record.log import RecordLog
from engine.record.model import RetentionRecord
from engine.record.retention import retain
from engine.record.storage import Storage
from engine.record.verify import verify
from engine.times import timestamp
from tests.record.samples import decision, order

NOW = datetime(2026, 11, 23, tzinfo=UTC)
PATIENCE = 20.0  # seconds until something that never comes is called a failure


@pytest.fixture
def log(tmp_path: Path) -> RecordLog:
    opened = RecordLog.open(Storage(tmp_path), lock_seconds=1, segment_bytes=1)
    for number, days in enumerate((900, 800, 700, 600, 500, 400, 1), start=1):
        opened.append(decision(number).model_copy(update={"time": timestamp(NOW - timedelta(days=days))}))
    return opened


def test_concurrent_retention_runs_are_serialized(
    log: RecordLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen, other_done = threading.Event(), threading.Event()
    append = log.append

    def slow(body: Any, events: Any = ()) -> int:
        if isinstance(body, RetentionRecord) and body.keep_days == 750:
            chosen.set()
            other_done.wait(0.5)  # without a lock the other one is done long before
        return append(body, events)

    monkeypatch.setattr(log, "append", slow)
    first = threading.Thread(target=lambda: retain(log, order(750, NOW, "d" * 32, "ana", None)))
    first.start()
    assert chosen.wait(PATIENCE)
    retain(log, order(450, NOW, "e" * 32, "bob", None))
    other_done.set()
    first.join(PATIENCE)
    log.close()
    assert verify(tmp_path).ok
    assert len(list((tmp_path / "records").glob("decisions.*"))) < 5


def test_retention_during_verification_is_not_reported_as_missing_segments(
    log: RecordLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifying = sys.modules["engine.record.verify"]
    read = verifying.read_anchor

    def then_removed(storage: Any, identity: Any) -> Any:
        found = read(storage, identity)
        monkeypatch.setattr(verifying, "read_anchor", read)
        assert retain(log, order(450, NOW, "e" * 32, "bob", None)) is not None
        return found

    monkeypatch.setattr(verifying, "read_anchor", then_removed)
    found = verify(tmp_path)
    assert (found.ok, found.breaks) == (True, ())
    assert found.removed > 0
    log.close()


def test_a_segment_removed_by_retention_before_its_read_is_not_a_break(
    log: RecordLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifying = sys.modules["engine.record.verify"]
    find = verifying.find_segments

    def then_removed(*given: Any) -> Any:
        found = find(*given)
        monkeypatch.setattr(verifying, "find_segments", find)
        assert retain(log, order(450, NOW, "e" * 32, "bob", None)) is not None
        return found

    monkeypatch.setattr(verifying, "find_segments", then_removed)
    found = verify(tmp_path)
    assert (found.breaks, found.removed > 0) == ((), True)
    log.close()


def test_a_segment_removed_otherwise_before_its_read_is_a_break(
    log: RecordLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.close()
    verifying = sys.modules["engine.record.verify"]
    find = verifying.find_segments

    def then_gone(*given: Any) -> Any:
        found = find(*given)
        (tmp_path / segment_file(3)).unlink(missing_ok=True)
        return found

    monkeypatch.setattr(verifying, "find_segments", then_gone)
    with pytest.raises(RecordError, match="cannot be read: no such file"):
        verify(tmp_path)
