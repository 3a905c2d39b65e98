"""Idempotency keys: one request runs, its repetitions get its answer, a crash never runs it again."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from engine.errors import StateError
from engine.state.rows import Begun, StateLimits
from engine.state.store import LocalStore, Store
from tests.expect import refused
from tests.state.samples import LONG_AGO, NOW, opened, together

SCOPE, KEY, BODY = "runner_request pipeline", "key-1", "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64
ANSWER = '{"outcome": "allow", "note": "Grüße 🙂"}'
DAY = 86_400


# covers: C69
def test_a_repetition_gets_the_first_answer(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as store:
        assert store.begin(SCOPE, KEY, BODY, NOW) == Begun("new")
        assert store.begin(SCOPE, KEY, BODY, NOW) == Begun("pending")
        assert store.begin(SCOPE, KEY, OTHER, NOW) == Begun("conflict")
        store.finish(SCOPE, KEY, ANSWER, "r1", "v1")
        assert store.begin(SCOPE, KEY, BODY, NOW + DAY - 1) == Begun("done", ANSWER, "r1", "v1")
        assert store.begin(SCOPE, KEY, OTHER, NOW + DAY - 1) == Begun("conflict")
    with opened(tmp_path / "state") as store:
        assert store.begin(SCOPE, KEY, BODY, NOW) == Begun("done", ANSWER, "r1", "v1")


def test_keys_are_distinguished_by_scope(store: Store) -> None:
    assert store.begin(SCOPE, KEY, BODY, NOW).kind == "new"
    assert store.begin("runner_request another", KEY, BODY, NOW).kind == "new"
    assert store.begin(SCOPE, "key-2", BODY, NOW).kind == "new"


# covers: C69
def test_a_request_that_a_crash_cut_off_is_not_run_again(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as store:
        store.begin(SCOPE, KEY, BODY, NOW)
    with opened(tmp_path / "state") as store:  # as after a restart: the owner is gone
        assert store.begin(SCOPE, KEY, BODY, NOW + DAY - 1).kind == "pending"
        store.abandon(SCOPE, KEY)
        with pytest.raises(StateError, match="was not started under this"):
            store.finish(SCOPE, KEY, ANSWER, "r1", "v1")
        assert store.begin(SCOPE, KEY, BODY, NOW + DAY - 1).kind == "pending"
        assert store.begin(SCOPE, KEY, OTHER, NOW + DAY).kind == "new"


def test_an_expired_key_is_that_of_the_next_request(store: Store) -> None:
    store.begin(SCOPE, KEY, BODY, NOW)
    store.finish(SCOPE, KEY, ANSWER, "r1", "v1")
    assert store.begin(SCOPE, KEY, OTHER, NOW + DAY) == Begun("new")
    assert store.begin(SCOPE, KEY, OTHER, NOW + DAY) == Begun("pending")
    assert store.begin(SCOPE, KEY, BODY, NOW + DAY) == Begun("conflict")


def test_an_abandoned_key_is_free(store: Store) -> None:
    store.begin(SCOPE, KEY, BODY, NOW)
    store.abandon(SCOPE, KEY)
    store.abandon(SCOPE, KEY)
    assert store.begin(SCOPE, KEY, OTHER, NOW).kind == "new"
    store.finish(SCOPE, KEY, ANSWER, "r1", "v1")
    store.abandon(SCOPE, KEY)
    assert store.begin(SCOPE, KEY, OTHER, NOW).kind == "done"


def test_only_a_pending_key_can_be_finished(store: Store) -> None:
    with refused(StateError, "engine.state_unavailable"):
        store.finish(SCOPE, KEY, ANSWER, "r1", "v1")
    store.begin(SCOPE, KEY, BODY, NOW)
    store.finish(SCOPE, KEY, ANSWER, "r1", "v1")
    with pytest.raises(StateError):
        store.finish(SCOPE, KEY, "another", "r2", "v2")
    assert store.begin(SCOPE, KEY, BODY, NOW).answer == ANSWER


def test_expired_keys_are_removed_in_small_steps(tmp_path: Path) -> None:
    with opened(tmp_path / "state", StateLimits(idempotency_seconds=100, sweep=4)) as store:
        for number in range(10):
            store.begin(SCOPE, str(number), BODY, LONG_AGO)
            store.finish(SCOPE, str(number), ANSWER, "r1", "v1")
        for number in range(10):
            assert store.begin(SCOPE, str(number), BODY, LONG_AGO + 99).kind == "done"
        for number in range(4):
            assert store.begin(SCOPE, f"later {number}", BODY, LONG_AGO + 100).kind == "new"
        count = store._database.read(
            lambda connection: connection.execute("SELECT count(*) FROM idempotency").fetchone()
        )
        assert count == (4,)


def test_of_concurrent_requests_with_one_key_one_is_new(store: Store) -> None:
    kinds = together(32, lambda _: store.begin(SCOPE, KEY, BODY, NOW).kind)
    assert sorted(kinds) == ["new", *["pending"] * 31]


@pytest.mark.parametrize("bad", ["", "x" * 2000, "\udcff", None])
def test_an_invalid_key_is_refused(store: Store, bad: str) -> None:
    for arguments in ((bad, KEY, BODY), (SCOPE, bad, BODY), (SCOPE, KEY, bad)):
        with pytest.raises(ValueError, match="text"):
            store.begin(*arguments, NOW)
    store.begin(SCOPE, KEY, BODY, NOW)
    with pytest.raises(ValueError, match="surrogate"):
        store.finish(SCOPE, KEY, "\ud800", "r1", "v1")
    assert store.begin(SCOPE, KEY, BODY, NOW).kind == "pending"


def test_an_oversized_answer_fails_and_leaves_its_key_pending(store: LocalStore) -> None:
    store.begin(SCOPE, KEY, BODY, NOW)
    store._database._writer.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100_000)
    with pytest.raises(StateError):
        store.finish(SCOPE, KEY, "x" * 200_000, "r1", "v1")
    assert store.begin(SCOPE, KEY, BODY, NOW).kind == "pending"
    store.finish(SCOPE, KEY, ANSWER, "r1", "v1")
    assert store.begin(SCOPE, KEY, BODY, NOW).kind == "done"
