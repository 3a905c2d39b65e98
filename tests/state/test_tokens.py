"""Tokens: shown once, known by their digest, gone when they expire or are revoked."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.state import tokens as tokens_module
from engine.state.rows import IdTakenError, IssuedToken, TokenRow
from engine.state.store import LocalStore, Store
from tests.expect import there
from tests.lanes import examples
from tests.state.samples import NOW, opened, together

LATER = NOW + 3600


def test_an_issued_token_is_found_until_it_expires(store: Store) -> None:
    issued = store.issue("pipeline", ["source", "license", "source"], LATER, NOW)
    assert re.fullmatch(r"aet_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", issued.text)
    row = TokenRow(issued.id, "pipeline", ("license", "source"), NOW, LATER)
    assert store.token(issued.text, NOW) == row
    assert store.token(issued.text, LATER - 1) == row
    assert store.token(issued.text, LATER) is None
    assert store.tokens() == (row,)


def test_a_revoked_token_is_refused_at_once(tmp_path: Path, store: Store) -> None:
    issued, other = (store.issue(name, ["source"], LATER, NOW) for name in ("one", "two"))
    assert store.token(issued.text, NOW) is not None
    with opened(tmp_path / "state") as another:  # as the command line beside a running server
        row = another.revoke(issued.id, NOW + 1)
    assert row is not None
    assert row.revoked_at == NOW + 1
    assert store.token(issued.text, NOW + 1) is None
    assert store.token(issued.text, NOW) is None
    assert store.token(other.text, NOW) is not None
    assert store.revoke(issued.id, NOW + 9) == row
    assert store.revoke("00000000", NOW) is None
    assert [row.revoked_at for row in store.tokens()] == [None, NOW + 1]


def test_a_token_for_one_server_is_refused_at_another(store: Store) -> None:
    issued = store.issue("pipeline", ["source"], LATER, NOW, audience="runner-1")
    assert there(store.token(issued.text, NOW, "runner-1")).audience == "runner-1"
    for other in (None, "runner-2", "runner-", "runner-11", "RUNNER-1", " runner-1"):
        assert store.token(issued.text, NOW, other) is None
    everywhere = store.issue("pipeline", ["source"], LATER, NOW)
    for server in (None, "runner-1"):
        assert store.token(everywhere.text, NOW, server) is not None


def test_a_token_for_a_single_use_is_accepted_once(tmp_path: Path, store: Store) -> None:
    issued = store.issue("pipeline", ["source"], LATER, NOW, audience="runner-1", single_use=True)
    assert store.token(issued.text, LATER, "runner-1") is None
    assert store.token(issued.text, NOW, "runner-2") is None
    assert store.token(issued.text, NOW, "runner-1") is not None  # what was refused did not use it up
    assert store.token(issued.text, NOW, "runner-1") is None
    assert store.token(issued.text, NOW, "runner-1", again=True) is not None  # for the request that used it
    with opened(tmp_path / "state") as another:
        assert another.token(issued.text, NOW, "runner-1") is None
    assert [(row.single_use, row.used_at) for row in store.tokens()] == [(True, NOW)]
    gone = store.issue("pipeline", ["source"], LATER, NOW, single_use=True)
    store.revoke(gone.id, NOW)
    assert store.token(gone.text, NOW) is None


def test_of_many_uses_at_once_one_is_accepted(tmp_path: Path, store: Store) -> None:
    issued = store.issue("pipeline", ["source"], LATER, NOW, single_use=True)
    with opened(tmp_path / "state") as another:
        stores = (store, another)
        found = together(12, lambda number: stores[number % 2].token(issued.text, NOW))
    assert sum(row is not None for row in found) == 1


def test_an_altered_token_is_refused(store: Store) -> None:
    issued, other = (store.issue(name, ["source"], LATER, NOW) for name in ("one", "two"))
    text = issued.text
    changed = [text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :] for at in range(len(text))]
    mixed = text[:13] + other.text[13:]
    for wrong in (*changed, mixed, text[:-1], f"{text}\n", f" {text}", text.upper(), text * 3, text + "x" * 10**6):
        assert store.token(wrong, NOW) is None
    for wrong in ("", "aet_", "aet_%_", "\ud800" * 60, "é" * 10**6, "aet_\udcff\x00' OR 1=1 --", issued.id):
        assert store.token(wrong, NOW) is None
    assert store.token(text, NOW) is not None


@settings(max_examples=examples(200))
@given(st.text(st.characters(), max_size=200))
def test_arbitrary_text_is_refused_as_a_token(shared: Store, presented: str) -> None:
    assert shared.token(presented, NOW) is None
    assert shared.token(f"aet_{presented}", NOW) is None


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with opened(tmp_path_factory.mktemp("tokens") / "state") as store:
        store.issue("pipeline", ["source"], LATER, NOW)
        yield store


def test_every_text_is_compared_once_in_constant_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same path for a right token, a wrong secret, an unknown id, an expired or revoked one, and no token."""
    good, old, gone = (store.issue(name, ["source"], LATER, NOW) for name in ("good", "old", "gone"))
    store.revoke(gone.id, NOW)
    compared: list[tuple[int, int]] = []

    def compare(one: Any, two: Any) -> bool:
        compared.append((len(one), len(two)))
        return hmac.compare_digest(one, two)

    monkeypatch.setattr(tokens_module, "hmac", type("spied", (), {"compare_digest": staticmethod(compare)}))
    presented = [good.text, good.text[:-1] + "~", "aet_00000000_" + "x" * 43, gone.text, "", "x" * 10**6, old.text]
    found = [store.token(text, NOW) is not None for text in presented]
    assert found == [True, False, False, False, False, False, True]
    assert compared == [(32, 32)] * len(presented)


def test_no_secret_is_kept_or_shown(tmp_path: Path, store: Store) -> None:
    issued = store.issue("pipeline", ["source"], LATER, NOW)
    secret = issued.text[13:]
    assert issued.id in repr(issued)
    assert secret not in repr(issued) + str(issued) + repr(store.token(issued.text, NOW)) + repr(store.tokens())
    files = [path.read_bytes() for path in (tmp_path / "state").iterdir()]
    assert any(issued.id.encode() in data for data in files)  # positive control: the row is there
    assert not any(secret.encode() in data for data in files)
    with pytest.raises(ValueError, match="now") as caught:
        store.token(issued.text, -1)
    assert secret not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"principal": ""},
        {"principal": "\ud800"},
        {"points": []},
        {"points": "source"},
        {"points": [""]},
        {"expires_at": NOW},
        {"expires_at": None},
        {"expires_at": float(LATER)},
        {"now": True},
    ],
    ids=str,
)
def test_a_token_with_invalid_fields_is_not_issued(store: Store, changes: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"principal": "pipeline", "points": ["source"], "expires_at": LATER, "now": NOW} | changes
    with pytest.raises(ValueError, match=r"text|point|expires|2\^53"):
        store.issue(**asked)
    assert store.tokens() == ()


def test_an_id_that_is_taken_is_not_used_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = store.issue("one", ["source"], LATER, NOW)
    fresh = IssuedToken("0badcafe", f"aet_0badcafe_{'s' * 43}")
    offered = iter([replace(first, text=f"aet_{first.id}_{'t' * 43}"), fresh])
    monkeypatch.setattr(tokens_module, "_new", lambda _: next(offered))
    assert store.issue("two", ["source"], LATER, NOW) == fresh
    assert store.token(first.text, NOW) is not None


def test_an_id_that_the_caller_gives_is_used_once(store: Store) -> None:
    id_ = tokens_module.new_token_id()
    issued = store.issue("one", ["source"], LATER, NOW, id=id_)
    assert (issued.id, issued.text[4:12]) == (id_, id_)
    with pytest.raises(IdTakenError, match="a token with this id already exists"):
        store.issue("two", ["source"], LATER, NOW, id=id_)
    assert store.token(issued.text, NOW) == store.tokens()[0] == TokenRow(id_, "one", ("source",), NOW, LATER)


def test_a_row_is_read_once_until_something_changes(store: LocalStore) -> None:
    issued, other = (store.issue(name, ["source"], LATER, NOW) for name in ("one", "two"))
    asked: list[str] = []
    store._database._reader.set_trace_callback(asked.append)
    for text, rows in ((issued.text, 1), (issued.text, 1), (other.text, 2), (issued.text, 2), (other.text, 2)):
        assert store.token(text, NOW) is not None
        assert sum("FROM tokens" in one for one in asked) == rows
    store.revoke(other.id, NOW)
    assert store.token(issued.text, NOW) is not None
    assert sum("FROM tokens" in one for one in asked) == 3
    assert store.token(other.text, NOW) is None


def test_unknown_tokens_are_not_cached(store: Store) -> None:
    issued = store.issue("one", ["source"], LATER, NOW)
    for number in range(50):
        assert store.token(f"aet_{number:08x}_{'x' * 43}", NOW) is None
        assert store.token(issued.text, NOW) is not None
        assert store._cache[1].keys() <= {issued.id}


def test_many_threads_know_their_own_tokens(store: Store) -> None:
    def work(number: int) -> bool:
        issued = store.issue(str(number), ["source"], LATER, NOW)
        rows = [store.token(issued.text, NOW) for _ in range(20)]
        store.revoke(issued.id, NOW)
        return {row and row.principal for row in rows} == {str(number)} and store.token(issued.text, NOW) is None

    assert together(16, work) == [True] * 16
