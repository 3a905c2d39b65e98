"""Approvals: requested once, decided on once, used once."""

from __future__ import annotations

from collections import Counter as Tally
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

from engine.errors import Exit, StateError
from engine.state.rows import ApprovalClosedError, ApprovalUnknownError, StateLimits
from engine.state.store import Store
from tests.processes import python, said, send_line
from tests.state.samples import DIGEST, LONG_AGO, NOW, asked, opened, together


def test_a_new_request_is_stored_with_every_field(store: Store) -> None:
    new = asked()
    row = store.request_approval(new)
    assert len(row.id) == 32
    assert int(row.id, 16)
    assert asdict(row).items() >= asdict(new).items()
    assert (row.state, row.approver, row.decision_id) == ("requested", None, None)
    assert store.approval(row.id) == row
    assert store.approval("0" * 32) is None
    assert store.approval("\ud800") is None


def test_a_new_request_is_not_granted_yet(store: Store) -> None:
    with pytest.raises(ValueError, match="must be in state requested"):
        store.request_approval(asked(state="granted"))
    assert not store.approvals(None, 10)


@pytest.mark.parametrize("state", ["requested", "granted"])
def test_a_repeated_request_returns_the_open_one(store: Store, state: str) -> None:
    row = store.request_approval(asked())
    if state == "granted":
        row = store.resolve(row.id, "granted", "user:lee", None, NOW)
    assert store.request_approval(asked(created_at=NOW + 60, expires_at=NOW + 9000)) == row
    assert store.request_approval(asked(codes=("other",))) != row
    assert len(store.approvals(None, 10)) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"point": "license"},
        {"input_digest": "sha256:" + "d" * 64},
        {"rules": "sha256:" + "3" * 64},
        {"values": "sha256:" + "3" * 64},
        {"requester": "another"},
        {"requester": None},
        {"created_at": NOW + 3600, "expires_at": NOW + 7200},
    ],
    ids=str,
)
def test_a_request_with_another_binding_is_a_new_request(store: Store, changes: dict[str, Any]) -> None:
    row = store.request_approval(asked())
    other = store.request_approval(asked(**changes))
    assert other.id != row.id
    assert store.request_approval(asked(**changes)) == other  # also without a requester


@pytest.mark.parametrize("state", ["granted", "refused"])
def test_a_request_is_decided_once(store: Store, state: Literal["granted", "refused"]) -> None:
    row = store.request_approval(asked())
    done = store.resolve(row.id, state, "user:lee", "seen the contract", NOW + 5)
    assert done == replace(row, state=state, approver="user:lee", reason="seen the contract", resolved_at=NOW + 5)
    for again in ("granted", "refused"):
        with pytest.raises(ApprovalClosedError, match=f"is already {state}") as caught:
            store.resolve(row.id, again, "user:kim", None, NOW + 6)
    assert (caught.value.code, caught.value.exit) == ("engine.approval_closed", Exit.DENY)
    assert store.approval(row.id) == done


def test_a_reason_is_a_sentence_or_two(store: Store) -> None:
    row = store.request_approval(asked())
    with pytest.raises(ValueError, match="at most 4000 characters"):
        store.resolve(row.id, "granted", "user:lee", "x" * 4_001, NOW)
    assert store.approval(row.id) == row
    assert store.resolve(row.id, "granted", "user:lee", "x" * 4_000, NOW).reason == "x" * 4_000


def test_an_expired_request_is_not_decided(store: Store) -> None:
    row = store.request_approval(asked())
    with pytest.raises(ApprovalClosedError, match="has expired"):
        store.resolve(row.id, "granted", "user:lee", None, row.expires_at)
    assert store.approval(row.id) == row
    assert store.resolve(row.id, "granted", "user:lee", None, row.expires_at - 1).state == "granted"


def test_an_unknown_request_is_not_decided(store: Store) -> None:
    with pytest.raises(ApprovalUnknownError) as caught:
        store.resolve("f" * 32, "granted", "user:lee", None, NOW)
    assert (caught.value.code, caught.value.exit) == ("engine.approval_unknown", Exit.UNREADABLE)
    assert isinstance(caught.value, StateError)
    with pytest.raises(ValueError, match="granted or refused"):
        store.resolve("f" * 32, "used", "user:lee", None, NOW)  # type: ignore[arg-type]


def test_a_granted_approval_is_used_once(store: Store) -> None:
    row = store.request_approval(asked())
    granted = store.resolve(row.id, "granted", "user:lee", None, NOW)
    assert store.claim(row.id, "d1", asked(), NOW + 1) == (granted, True)
    used = replace(granted, state="used", decision_id="d1", used_at=NOW + 1)
    assert store.claim(row.id, "d2", asked(), NOW + 2) == (used, False)
    assert store.claim(row.id, "d1", asked(), NOW + 2) == (used, False)
    store.unclaim(row.id, "d2")
    assert store.approval(row.id) == used
    assert store.request_approval(asked()).id != row.id  # what is used up is not open
    store.unclaim(row.id, "d1")
    store.unclaim("unknown", "d1")
    assert store.approval(row.id) == granted
    assert store.claim(row.id, "d3", asked(), NOW + 3) == (granted, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"point": "license"},
        {"input_digest": "sha256:" + "d" * 64},
        {"rules": "sha256:" + "3" * 64},
        {"values": "sha256:" + "3" * 64},
        {"requester": "Pipeline"},
        {"requester": "pipeline "},
        {"requester": None},
    ],
    ids=str,
)
def test_a_request_with_another_binding_does_not_use_it_up(store: Store, changes: dict[str, Any]) -> None:
    granted = store.resolve(store.request_approval(asked()).id, "granted", "user:lee", None, NOW)
    assert store.claim(granted.id, "d1", asked(**changes), NOW) == (granted, False)
    assert store.approval(granted.id) == granted
    assert store.claim(granted.id, "d2", asked(), NOW)[1]  # the control


def test_an_approval_without_a_requester_is_not_for_a_named_one(store: Store) -> None:
    granted = store.resolve(store.request_approval(asked(requester=None)).id, "granted", "user:lee", None, NOW)
    assert store.claim(granted.id, "d1", asked(), NOW) == (granted, False)
    assert store.request_approval(asked()).id != granted.id
    assert store.claim(granted.id, "d2", asked(requester=None), NOW)[1]  # the control


@pytest.mark.parametrize("state", ["requested", "refused"])
def test_an_approval_that_is_not_granted_cannot_be_used(store: Store, state: str) -> None:
    row = store.request_approval(asked())
    if state == "refused":
        row = store.resolve(row.id, "refused", "user:lee", "no", NOW)
        assert store.request_approval(asked()).id != row.id
    assert store.claim(row.id, "d1", asked(), NOW) == (row, False)
    store.unclaim(row.id, "d1")
    assert store.approval(row.id) == row
    assert store.claim("f" * 32, "d1", asked(), NOW) == (None, False)
    assert store.claim("\ud800", "d1", asked(), NOW) == (None, False)


def test_the_newest_come_first(store: Store) -> None:
    rows = [store.request_approval(asked(requester=str(number))) for number in range(5)]
    refused = store.resolve(rows[3].id, "refused", "user:lee", "no", NOW)
    assert store.approvals(None, 10) == (rows[4], refused, rows[2], rows[1], rows[0])
    assert store.approvals("requested", 2) == (rows[4], rows[2])
    assert store.approvals("refused", 2) == (refused,)
    assert store.approvals("used", 2) == ()


def test_unresolved_requests_are_swept_and_resolved_ones_kept(tmp_path: Path) -> None:
    asked_then = partial(asked, created_at=LONG_AGO, expires_at=LONG_AGO + 3600)
    with opened(tmp_path / "state", StateLimits(unanswered_seconds=100, sweep=2)) as store:
        rows = [store.request_approval(asked_then(requester=str(number))) for number in range(5)]
        store.resolve(rows[0].id, "granted", "user:lee", None, LONG_AGO)
        store.resolve(rows[1].id, "refused", "user:lee", "no", LONG_AGO)
        expired = LONG_AGO + 3600
        store.request_approval(asked(requester="later", created_at=expired + 100, expires_at=expired + 200))
        assert len(store.approvals("requested", 10)) == 4
        for number in range(2):
            new = asked(requester=f"last {number}", created_at=expired + 101, expires_at=expired + 200)
            store.request_approval(new)
        assert {row.requester for row in store.approvals(None, 10)} == {"0", "1", "later", "last 0", "last 1"}


@pytest.mark.parametrize(
    "changes",
    [
        {"point": ""},
        {"input_digest": None},
        {"requester": ""},
        {"requester": "x" * 2000},
        {"codes": ("",)},
        {"created_at": True},
        {"expires_at": NOW},
        {"expires_at": 2**60},
    ],
    ids=str,
)
def test_an_invalid_request_is_refused(store: Store, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"text|2\^53|expires"):
        store.request_approval(asked(**changes))
    assert store.approvals(None, 10) == ()


def test_concurrent_threads_share_one_request(store: Store) -> None:
    assert len({row.id for row in together(32, lambda _: store.request_approval(asked()))}) == 1


def test_of_two_concurrent_approvers_one_decides(store: Store) -> None:
    rows = [store.request_approval(asked(requester=str(number))) for number in range(20)]

    def decide(number: int) -> list[bool]:
        return [_decided(store, row.id, number) for row in rows]

    tally = [sum(pair) for pair in zip(*together(2, decide), strict=True)]
    assert tally == [1] * 20


def _decided(store: Any, id_: str, number: int) -> bool:
    try:
        store.resolve(id_, ("granted", "refused")[number], f"user:{number}", None, NOW)
    except ApprovalClosedError:
        return False
    return True


CLAIMER = """
import sys
from pathlib import Path
from tests.state.samples import NOW, asked, opened

with opened(Path(sys.argv[1])) as store:
    rows = store.approvals("granted", 1000)[::-1]
    print("ready", flush=True)
    input()
    won = [one.id for one in rows if store.claim(one.id, sys.argv[2], asked(requester=one.requester), NOW)[1]]
    print(*won, flush=True)
"""


@pytest.mark.full
def test_of_two_processes_one_uses_an_approval(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with opened(state) as store:
        ids = [store.request_approval(asked(requester=str(number))).id for number in range(200)]
        for id_ in ids:
            store.resolve(id_, "granted", "user:lee", None, NOW)
    with python(CLAIMER, state, "one") as one, python(CLAIMER, state, "two") as two:
        assert [said(one), said(two)] == ["ready", "ready"]
        send_line(one)
        send_line(two)
        won = {"one": said(one).split(), "two": said(two).split()}
    assert Tally([*won["one"], *won["two"]]) == Tally(ids)  # each once
    with opened(state) as store:
        rows = store.approvals("used", 1000)
        assert {row.id: row.decision_id for row in rows} == {id_: name for name in won for id_ in won[name]}


def test_reading_before_using_would_use_an_approval_twice(store: Store) -> None:
    """Positive control: with two steps in the place of one, both see `granted`."""
    id_ = store.request_approval(asked(input_digest=DIGEST)).id
    store.resolve(id_, "granted", "user:lee", None, NOW)
    assert [row.state for row in together(2, lambda _: store.approval(id_))] == ["granted", "granted"]
