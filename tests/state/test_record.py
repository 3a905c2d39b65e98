"""What the state keeps for the record: the heads of its chains, and orders to remove what is old."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from engine.record.chain import Position
from engine.record.retention import Retained, RetentionOrder
from engine.state import open_store
from engine.state.store import LocalStore
from tests.state.samples import LONG_AGO, NOW

DAY = 86_400
ORDER = RetentionOrder("d" * 32, 30, NOW, "user:lee", "disk full")
END = Position(1, 2, 300, 2, "a" * 64)


def test_each_chain_has_its_heads_and_the_latest_one_stays(store: LocalStore) -> None:
    store.remember_head(1, "i-1", END)
    store.remember_head(2, "i-2", replace(END, seq=5))
    store.remember_head(2, "i-2", END)
    store.remember_head(1, "i-2", END)
    assert store.record_heads() == {1: {"i-1": END, "i-2": END}, 2: {"i-2": replace(END, seq=5)}}


def test_an_order_is_there_until_it_is_carried_out(tmp_path: Path, store: LocalStore) -> None:
    unnamed = replace(ORDER, decision_id="e" * 32, time=NOW + 1, principal=None, reason=None)
    for order in (unnamed, ORDER, ORDER):
        store.leave_order(2, order)
    store.leave_order(3, ORDER)
    assert (store.orders(1), store.orders(2), store.orders(3)) == ((), (ORDER, unnamed), (ORDER,))
    assert store.outcomes(ORDER.decision_id) == {}
    removed = Retained(1, 2, 9, 3000)
    with closing(open_store(tmp_path / "state")) as another:
        another.carried_out(2, ORDER.decision_id, removed)
        another.carried_out(3, ORDER.decision_id, None)
        another.carried_out(4, ORDER.decision_id, removed)  # none was left
    assert (store.orders(2), store.orders(3)) == ((unnamed,), ())
    assert store.outcomes(ORDER.decision_id) == {2: removed, 3: None}
    store.leave_order(2, ORDER)  # once
    assert store.orders(2) == (unnamed,)


def test_orders_that_were_carried_out_are_kept_for_a_day(store: LocalStore) -> None:
    order = replace(ORDER, time=LONG_AGO)
    store.leave_order(2, order)
    store.leave_order(3, order)
    store.carried_out(2, order.decision_id, None)
    store.leave_order(4, replace(order, decision_id="e" * 32, time=LONG_AGO + DAY))
    assert store.outcomes(order.decision_id) == {2: None}
    store.leave_order(4, replace(order, decision_id="f" * 32, time=LONG_AGO + DAY + 1))
    assert store.outcomes(order.decision_id) == {}
    assert store.orders(3) == (order,)


def test_a_clock_that_is_ahead_removes_no_awaited_order(store: LocalStore) -> None:
    order = replace(ORDER, time=int(time.time()))
    store.leave_order(2, order)
    store.carried_out(2, order.decision_id, None)
    store.leave_order(2, replace(order, decision_id="e" * 32, time=order.time + 2 * DAY))
    assert store.outcomes(order.decision_id) == {2: None}
