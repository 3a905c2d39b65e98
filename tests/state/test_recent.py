"""What every request reads: a change waits until no process decides by an older value. Two stores are two processes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import StateError
from engine.state.location import NAME
from engine.state.rows import StopRow
from engine.state.store import Store
from tests.state.samples import NOW, PATIENT, opened

_ROUNDS = 5


def _ids(store: Store) -> list[str]:
    return [stop.id for stop in store.stops_in_force()]


def test_a_stop_is_in_force_in_every_process_once_it_is_answered(tmp_path: Path) -> None:
    with opened(tmp_path) as deciding, opened(tmp_path) as stopping:
        for number in range(_ROUNDS):
            assert _ids(deciding) == []
            stop = stopping.add_stop(StopRow("all", "", "alice@example.org", NOW, id=f"stop-{number}"))
            assert _ids(deciding) == [stop.id]
            stopping.lift_stop(stop.id, NOW)


def test_every_process_sees_the_first_issued_token(tmp_path: Path) -> None:
    with opened(tmp_path) as serving, opened(tmp_path) as issuing:
        assert not serving.any_issued()
        issuing.issue("ci", ["license"], NOW + 60, NOW)
        assert serving.any_issued()


def test_a_cached_read_is_used_until_its_limit(tmp_path: Path) -> None:
    with opened(tmp_path, replace(PATIENT, recent_seconds=1e6)) as deciding, opened(tmp_path) as stopping:
        assert _ids(deciding) == []
        assert deciding.at_hand()
        stop = stopping.add_stop(StopRow("all", "", "alice@example.org", NOW))
        assert (_ids(deciding), _ids(stopping)) == ([], [stop.id])


def test_a_closed_store_answers_nothing_from_its_cache(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        assert _ids(store) == []
        store.close()
        with pytest.raises(StateError):
            store.stops_in_force()


def test_a_state_that_was_moved_away_is_noticed(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as store:
        assert _ids(store) == []
        (tmp_path / "state" / NAME).rename(tmp_path / "elsewhere")

        def until_what_was_read_is_too_old() -> None:
            while True:
                store.stops_in_force()

        with pytest.raises(StateError, match="moved, replaced or emptied"):
            until_what_was_read_is_too_old()
