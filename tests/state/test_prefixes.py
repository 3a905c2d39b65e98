"""Approved prefixes: kept as approved, ended for good, told newest first."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from engine.state.rows import IdTakenError
from engine.state.store import Store
from tests.state.samples import NOW, approved, opened, together


# covers: B10
def test_a_prefix_is_kept_as_it_was_approved(store: Store) -> None:
    row = store.approve_prefix(approved(words=("git", "log", "a b", "é")))
    assert asdict(row) == {**asdict(approved(words=("git", "log", "a b", "é"))), "id": row.id, "revoked_at": None}
    assert store.prefixes("pipeline", "/work", 9) == (row,)
    assert store.prefix(row.id) == row
    for unknown in ("", "f" * 32, "\ud800"):
        assert store.prefix(unknown) is None
    assert store.approve_prefix(approved()).id != store.approve_prefix(approved()).id


def test_an_id_that_the_caller_gives_is_used_once(store: Store) -> None:
    row = store.approve_prefix(approved(id="a" * 32))
    assert (row.id, store.prefix("a" * 32)) == ("a" * 32, row)
    with pytest.raises(IdTakenError, match="an approved prefix with this id already exists"):
        store.approve_prefix(approved(principal="other", id="a" * 32))
    assert store.prefixes(None, None, 9) == (row,)


def test_a_prefix_is_of_one_principal_and_folder(store: Store) -> None:
    rows = {
        (principal, cwd): store.approve_prefix(approved(principal=principal, cwd=cwd))
        for principal in ("pipeline", "Pipeline", "other")
        for cwd in ("/work", "/work/", "/")
    }
    for (principal, cwd), row in rows.items():
        assert store.prefixes(principal, cwd, 9) == (row,)
    assert store.prefixes("pipelin_", "/work", 9) == ()
    assert store.prefixes("other", None, 9) == tuple(rows["other", cwd] for cwd in ("/", "/work/", "/work"))
    assert store.prefixes(None, "/", 9) == tuple(rows[name, "/"] for name in ("other", "Pipeline", "pipeline"))
    assert store.prefixes(None, None, 99) == tuple(reversed(rows.values()))
    assert store.prefixes(None, None, 1) == (rows["other", "/"],)
    assert store.prefixes("pipeline", "/work", 0) == ()


def test_a_revoked_prefix_is_kept_with_its_revocation_time(tmp_path: Path, store: Store) -> None:
    row, other = store.approve_prefix(approved()), store.approve_prefix(approved())
    with opened(tmp_path / "state") as another:  # as the command line beside a running server
        revoked = another.revoke_prefix(row.id, NOW + 5)
    assert revoked == replace(row, revoked_at=NOW + 5)
    assert store.revoke_prefix(row.id, NOW + 9) == revoked
    assert store.prefixes("pipeline", "/work", 9) == (other, revoked)
    for unknown in ("", "f" * 32, "\ud800"):
        assert store.revoke_prefix(unknown, NOW) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"words": ()},
        {"words": ("",)},
        {"words": "git"},
        {"words": ["git"]},
        {"words": ("git", 1)},
        {"words": ("git",) * 17},
        {"words": ("g" * 1025,)},
        {"principal": ""},
        {"principal": None},
        {"cwd": "/w" * 1024},
        {"tool": "\ud800"},
        {"approver": ""},
        {"created_at": True},
        {"expires_at": NOW},
        {"expires_at": 2**60},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_an_invalid_prefix_is_refused(store: Store, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"text|words|2\^53|expires"):
        store.approve_prefix(approved(**changes))
    assert store.prefixes(None, None, 9) == ()
    for words in (("git",), ("git",) * 16):  # the control
        assert store.approve_prefix(approved(words=words)).words == words


def test_an_invalid_query_is_refused(store: Store) -> None:
    for principal, cwd, limit in (("", None, 9), (None, "x" * 2000, 9), (None, None, -1)):
        with pytest.raises(ValueError, match=r"text|2\^53"):
            store.prefixes(principal, cwd, limit)
    with pytest.raises(ValueError, match=r"2\^53"):
        store.revoke_prefix("f", -1)


def test_threads_that_approve_and_revoke_at_once_lose_nothing(store: Store) -> None:
    def work(number: int) -> None:
        for _ in range(5):
            row = store.approve_prefix(approved(principal=str(number)))
            store.revoke_prefix(row.id, NOW + 1)

    together(8, work)
    rows = store.prefixes(None, None, 99)
    assert len({row.id for row in rows}) == 40
    assert {row.revoked_at for row in rows} == {NOW + 1}
