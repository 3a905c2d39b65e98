"""Budgets: what is counted when, what can be given back, and what stays counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.documents.strict_json import MAX_SAFE_INTEGER
from engine.errors import StateError
from engine.state.checks import LONGEST_TEXT
from engine.state.rows import Counter, StateLimits
from engine.state.store import Store
from tests.expect import refused
from tests.processes import python, said, send_line
from tests.state.samples import LONG_AGO, NOW, opened, together

HOURLY = Counter("source.principal", "pipeline", 3600)
EVER = Counter("source.all", "", 0, 5)


def test_a_reservation_returns_the_earlier_use(store: Store) -> None:
    assert store.used(HOURLY, NOW) == 0
    assert store.reserve("first", (HOURLY, EVER), NOW) == (0, 0)
    assert store.reserve("second", (EVER, HOURLY), NOW + 1) == (5, 1)
    assert (store.used(HOURLY, NOW), store.used(EVER, NOW)) == (2, 10)
    assert store.reserve("none", (), NOW) == ()


def test_counters_are_distinguished_by_name_key_and_window(tmp_path: Path) -> None:
    others = (Counter("source.run", "pipeline", 3600), Counter("source.principal", "x", 3600))
    with opened(tmp_path / "state") as store:
        store.reserve("first", (HOURLY,), NOW)
        for other in (*others, Counter("source.principal", "pipeline", 60)):
            assert store.used(other, NOW) == 0
            assert store.reserve(repr(other), (other,), NOW) == (0,)


def test_the_same_hold_counts_once(store: Store) -> None:
    store.reserve("other", (HOURLY,), NOW)
    first = store.reserve("hold", (HOURLY, EVER), NOW)
    store.reserve("third", (HOURLY,), NOW)
    assert store.reserve("hold", (HOURLY, EVER), NOW + 7200) == first == (1, 0)
    assert store.used(HOURLY, NOW) == 3
    store.settle("hold", {})
    assert store.reserve("hold", (HOURLY, EVER), NOW) == first
    assert store.used(HOURLY, NOW) == 3
    with pytest.raises(ValueError, match="only be settled for its own counters"):
        store.reserve("hold", (HOURLY,), NOW)


def test_a_window_begins_at_a_multiple_of_itself(tmp_path: Path) -> None:
    start = NOW - NOW % 3600
    with opened(tmp_path / "state") as store:
        store.reserve("hold", (HOURLY,), start + 3599)
        assert [store.used(HOURLY, start + at) for at in (-1, 0, 3599, 3600)] == [0, 1, 1, 0]


def test_a_released_reservation_is_available_again(store: Store) -> None:
    store.reserve("hold", (HOURLY, EVER), NOW)
    store.release("hold")
    store.release("hold")
    store.release("unknown")
    assert (store.used(HOURLY, NOW), store.used(EVER, NOW)) == (0, 0)
    assert store.reserve("hold", (HOURLY, EVER), NOW) == (0, 0)


def test_settling_replaces_the_reserved_amount_by_the_used_one(store: Store) -> None:
    store.reserve("hold", (HOURLY, EVER), NOW)
    store.settle("hold", {EVER.name: 2})
    store.settle("hold", {EVER.name: 900})
    store.release("hold")
    store.settle("unknown", {EVER.name: 900})
    assert (store.used(HOURLY, NOW), store.used(EVER, NOW)) == (1, 2)
    store.reserve("more", (EVER,), NOW)
    store.settle("more", {EVER.name: 50})
    assert store.used(EVER, NOW) == 52
    store.reserve("wrong", (EVER,), NOW)
    with pytest.raises(ValueError, match="names of its counters"):
        store.settle("wrong", {EVER.name: 0, "source.al": 0})
    assert store.used(EVER, NOW) == 57


def test_an_unsettled_reservation_stays_counted(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as store:
        store.reserve("crashed", (HOURLY, EVER), NOW)
    with opened(tmp_path / "state") as store:
        assert (store.used(HOURLY, NOW), store.used(EVER, NOW + 10**9)) == (1, 5)


def test_old_windows_are_swept_and_unlimited_ones_kept(tmp_path: Path) -> None:
    limits = StateLimits(open_hold_seconds=100, settled_hold_seconds=10, sweep=3)
    minutely = Counter("minute", "", 60)
    with opened(tmp_path / "state", limits) as store:
        for number in range(20):
            store.reserve(f"open {number}", (minutely, EVER), LONG_AGO + number)
            store.reserve(f"settled {number}", (minutely,), LONG_AGO + number)
            store.settle(f"settled {number}", {})
        for number in range(60):
            store.reserve(f"later {number}", (minutely,), LONG_AGO + 5000)
        assert _rows(store, "holds") == 60
        assert _rows(store, "budgets") == 2
        assert store.used(EVER, LONG_AGO + 5000) == 100
        store.release("open 1")  # too late: it counts on
        assert store.used(EVER, LONG_AGO + 5000) == 100


def test_sweeping_is_done_in_small_steps(tmp_path: Path) -> None:
    with opened(tmp_path / "state", StateLimits(open_hold_seconds=100, sweep=3)) as store:
        for number in range(20):
            store.reserve(f"open {number}", (HOURLY,), LONG_AGO)
        store.reserve("later", (HOURLY,), LONG_AGO + 5000)
        assert _rows(store, "holds") == 20 - 3 + 1


def test_nothing_is_swept_before_its_time(tmp_path: Path) -> None:
    minutely, start = Counter("minute", "", 60), LONG_AGO - LONG_AGO % 60
    with opened(tmp_path / "state", StateLimits(open_hold_seconds=100, settled_hold_seconds=10)) as store:
        store.reserve("open", (EVER,), start)
        store.reserve("settled", (minutely,), start)
        store.settle("settled", {})
        assert store.reserve("settled", (minutely,), start + 10) == (0,)  # still known
        for seconds in (10, 11, 100):
            store.reserve(f"at {seconds}", (HOURLY,), start + seconds)
        store.release("open")
        store.reserve("at 160", (HOURLY,), start + 160)
        assert (store.used(minutely, start), store.used(EVER, start)) == (1, 0)


def _rows(store: Any, table: str) -> int:
    query = f"SELECT count(*) FROM {table}"  # noqa: S608
    count: int = store._database.read(lambda connection: connection.execute(query).fetchone())[0]
    return count


def test_a_total_above_the_largest_safe_integer_is_refused(store: Store) -> None:
    large = Counter("bytes", "", 0, MAX_SAFE_INTEGER)
    assert store.reserve("first", (large,), NOW) == (0,)
    with refused(StateError, "engine.state_unavailable"):
        store.reserve("second", (HOURLY, Counter("bytes", "", 0, 1)), NOW)
    assert store.used(large, NOW) == MAX_SAFE_INTEGER
    assert store.used(HOURLY, NOW) == 0  # all counters of a hold or none
    store.reserve("other", (EVER,), NOW)
    store.reserve("another", (EVER,), NOW)
    store.settle("other", {EVER.name: MAX_SAFE_INTEGER})
    assert store.used(EVER, NOW) == MAX_SAFE_INTEGER


@pytest.mark.parametrize("bad", [-1, True, 1.0, 2**53, 10**400, "1", None])
@pytest.mark.parametrize("where", ["amount", "window", "now", "settled"])
def test_an_invalid_number_is_refused(store: Store, bad: Any, where: str) -> None:
    store.reserve("hold", (HOURLY,), NOW)
    with pytest.raises(ValueError, match="2\\^53"):
        _count(store, bad, where)
    assert store.used(HOURLY, NOW) == 1


def _count(store: Store, bad: Any, where: str) -> None:
    if where == "settled":
        store.settle("hold", {HOURLY.name: bad})
    elif where == "now":
        store.reserve("bad", (HOURLY,), bad)
    else:
        store.reserve("bad", (HOURLY, Counter("n", "k", **({"window": 60} | {where: bad}))), NOW)


@pytest.mark.parametrize("bad", ["", "x" * (LONGEST_TEXT + 1), "\ud800", b"x", None, 7])
def test_an_invalid_name_is_refused(store: Store, bad: Any) -> None:
    for hold, counter in (
        (bad, HOURLY),
        ("hold", Counter(bad, "k", 60)),
        ("hold", Counter("n", bad or "\ud800", 60)),
    ):
        with pytest.raises(ValueError, match="text"):
            store.reserve(hold, (counter,), NOW)
    with pytest.raises(ValueError, match="a reservation counts each counter once"):
        store.reserve("hold", (HOURLY, HOURLY), NOW)


SPENDER = """
import sys
from pathlib import Path
from engine.state.rows import Counter
from tests.state.samples import NOW, opened, together

with opened(Path(sys.argv[1])) as store:
    print("ready", flush=True)
    input()
    counter = Counter("spend", "all", 0)
    def spend(thread):
        return [store.reserve(f"{sys.argv[2]} {thread} {n}", (counter,), NOW)[0] for n in range(int(sys.argv[3]))]
    print(*(before for befores in together(32, spend) for before in befores), flush=True)
"""


@pytest.mark.full
def test_a_thousand_spend_a_hundred(tmp_path: Path) -> None:
    """32 threads in each of two processes: exactly 100 of 1,024 see less than 100 before them."""
    state = tmp_path / "state"
    with python(SPENDER, state, "a", 16) as one, python(SPENDER, state, "b", 16) as two:
        assert [said(one), said(two)] == ["ready", "ready"]
        send_line(one)
        send_line(two)
        outputs = [[int(word) for word in said(running).split()] for running in (one, two)]
    befores = [before for output in outputs for before in output]
    assert [len(output) for output in outputs] == [512, 512]
    assert sum(before < 100 for before in befores) == 100
    assert sorted(befores) == list(range(1024))
    with opened(state) as store:
        assert store.used(Counter("spend", "all", 0), NOW) == 1024


def test_reading_before_counting_would_overspend(tmp_path: Path) -> None:
    """Positive control: the same threads with two steps in the place of one."""
    counter = Counter("spend", "all", 0)
    with opened(tmp_path / "state") as store:
        befores = together(8, lambda _: store.used(counter, NOW))
        together(8, lambda number: store.reserve(str(number), (counter,), NOW))
        assert sum(before < 1 for before in befores) == 8
