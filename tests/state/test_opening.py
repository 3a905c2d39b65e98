"""A state is opened at first use, again after a fault of its disk, and seldom tried where it cannot be opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from engine.errors import StateError
from engine.settings import Settings
from engine.state import has_state, open_store
from engine.state.location import NAME
from engine.state.opening import Opener
from engine.state.store import LocalStore
from tests.processes import until
from tests.state.samples import together


class Folder:
    """Opens the state of a folder, and keeps what it was told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.told: list[bool] = []

    def __call__(self, failed: bool) -> LocalStore:  # noqa: FBT001
        self.told.append(failed)
        return open_store(self.path, after_fault=failed)

    def spoil(self) -> None:
        """Put something else in the place of the state."""
        self.path.mkdir(mode=0o700)
        (self.path / NAME).touch(mode=0o600)
        (self.path / NAME).write_text("no state")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "state")


@pytest.fixture
def opener(folder: Folder) -> Iterator[Opener[LocalStore]]:
    with closing(Opener(folder)) as opener:
        yield opener


def fail(store: LocalStore) -> None:
    """Meet a fault of the disk."""

    def operation(_: object) -> None:
        fault = sqlite3.OperationalError("disk I/O error")
        fault.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise fault

    with pytest.raises(StateError, match="disk failed"):
        store._database.write(operation)
    assert store.failed


def test_concurrent_callers_share_one_opened_state(folder: Folder, opener: Opener[LocalStore]) -> None:
    with pytest.raises(StateError, match="is not open yet"):
        opener.now()
    stores = together(8, lambda _: opener.get())
    assert {id(store) for store in stores} == {id(opener.now())}
    assert folder.told == [False]
    opener.close()
    with pytest.raises(StateError, match="it is closed"):
        stores[0].tokens()


def test_closing_an_unopened_state_reports_nothing(folder: Folder) -> None:
    Opener(folder).close()
    assert folder.told == []


def test_after_a_fault_of_the_disk_it_is_closed_and_opened_again(folder: Folder, opener: Opener[LocalStore]) -> None:
    first = opener.get()
    fail(first)
    assert opener.now() is first
    second = opener.get()
    assert (second is first, second.failed, folder.told) == (False, False, [False, True])
    with pytest.raises(StateError, match="it is closed"):
        first.tokens()
    assert opener.get() is opener.now() is second
    assert second.tokens() == ()


def test_a_state_that_cannot_be_opened_is_tried_again_after_a_while(
    folder: Folder, opener: Opener[LocalStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.state.opening._AGAIN_SECONDS", 10_000.0)
    folder.spoil()
    for ask in (opener.get, opener.get, opener.now):
        with pytest.raises(StateError, match="not a state file"):
            ask()
    assert folder.told == [False]  # the others got the same fault
    monkeypatch.setattr("engine.state.opening._AGAIN_SECONDS", 0.0)
    other = Opener(folder)
    with pytest.raises(StateError, match="not a state file"):
        other.get()
    (folder.path / NAME).unlink()
    with closing(other):
        assert other.get().tokens() == ()
        assert other.now() is other.get()


def test_a_state_exists_if_its_file_or_its_address_does(tmp_path: Path) -> None:
    shared = Settings(state=tmp_path / "none", database="postgresql://127.0.0.1:1/name")
    assert has_state(shared)
    own = Settings(state=tmp_path / "state", database=None)
    assert not has_state(own)
    open_store(own.state).close()
    assert has_state(own)
    assert not has_state(Settings(state=own.state / NAME, database=None))  # no folder


def test_token_lookups_in_a_file_never_wait(opener: Opener[LocalStore]) -> None:
    store = opener.get()
    assert store.tokens_at_hand(None)
    assert store.tokens_at_hand("aet_")
    assert not store.at_hand()
    store.in_force()
    until(lambda: not store.at_hand())
