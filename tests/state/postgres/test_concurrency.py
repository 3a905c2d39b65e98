"""Operations that run side by side, in one engine or in several: each sees what counts, and none waits in a circle."""

from __future__ import annotations

import random
import uuid
from collections import Counter as Counted
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import pytest

from engine.errors import StateError
from engine.state.rows import AgentRow, AttemptRow, Begun, Counter
from engine.state.store import Store
from tests.postgres import shared
from tests.state.samples import NOW, asked, together

ENGINES, THREADS = 3, 24


@pytest.fixture
def stores(address: str) -> Any:
    """Several open states of one database, as in several engines."""
    with ExitStack() as stack:
        yield [stack.enter_context(shared(address)) for _ in range(ENGINES)]


def test_counters_reserved_in_any_order_never_deadlock(stores: list[Store]) -> None:
    counters = [Counter(f"c{number}", "k", 0) for number in range(4)]

    def work(thread: int) -> int:
        chance, store, kept = random.Random(thread), stores[thread % ENGINES], 0  # noqa: S311
        for number in range(12):
            hold = f"{thread} {number}"
            store.reserve(hold, chance.sample(counters, 4), NOW)
            if chance.random() < 0.5:
                store.release(hold)
            else:
                store.settle(hold, {})
                kept += 1
        return kept

    kept = sum(together(THREADS, work))
    assert [stores[0].used(one, NOW) for one in counters] == [kept] * 4


def test_the_same_reservation_at_several_engines_counts_once(stores: list[Store]) -> None:
    counters = (Counter("c", "", 0), Counter("d", "", 60))
    found = together(THREADS, lambda number: stores[number % ENGINES].reserve(f"hold {number % 4}", counters, NOW))
    assert sorted(set(found)) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert [stores[0].used(one, NOW) for one in counters] == [4, 4]


def test_of_concurrent_claims_of_an_approval_one_succeeds(stores: list[Store]) -> None:
    for _ in range(5):
        row = stores[0].request_approval(asked())
        stores[0].resolve(row.id, "granted", "user:lee", None, NOW)
        found = together(THREADS, lambda number: stores[number % ENGINES].claim(row.id, str(number), asked(), NOW))  # noqa: B023
        assert sorted((there.state, used) for there, used in found if there) == [
            ("granted", True),
            *[("used", False)] * (THREADS - 1),
        ]


def test_concurrent_requests_for_the_same_approval_share_one(stores: list[Store]) -> None:
    for number in range(5):
        new = asked(requester=str(number))
        found = together(THREADS, lambda at: stores[at % ENGINES].request_approval(_again(new)).id)  # noqa: B023
        assert len(set(found)) == 1


def _again(new: Any) -> Any:
    return asked(requester=new.requester)


def test_the_last_of_concurrent_touches_sees_the_others(stores: list[Store]) -> None:
    for run in range(10):
        kinds = ("untrusted", "private", "outward")
        seen = together(3, lambda at: len(stores[at].touch(f"run {run}", [kinds[at]], f"{run} {at}", 10)))  # noqa: B023
        assert sorted(seen) == [0, 1, 2]


def test_each_of_concurrent_attempts_sees_those_before_it(stores: list[Store]) -> None:
    def tried(task: str, number: int) -> int:
        id_ = str(uuid.uuid4())
        stores[number % ENGINES].begin_attempt(AttemptRow(id_, "p", task, f"{number:064x}", NOW))
        return len(stores[number % ENGINES].attempts("p", task, id_, 99))

    for round_ in range(15):
        assert sorted(together(THREADS, partial(tried, f"task {round_}"))) == [*range(THREADS)]


def test_no_more_agents_than_allowed_are_added(stores: list[Store]) -> None:
    def add(number: int) -> bool:
        return stores[number % ENGINES].add_agent(AgentRow(str(number), "n", "r", "{}", None, NOW), 5)

    assert sum(together(THREADS, add)) == 5


def test_an_expired_key_is_taken_once_by_concurrent_callers(stores: list[Store]) -> None:
    stores[0].begin("scope", "key", "body", NOW)
    later = NOW + 86_400
    kinds = together(THREADS, lambda number: stores[number % ENGINES].begin("scope", "key", "body", later).kind)
    assert sorted(kinds) == ["new", *["pending"] * (THREADS - 1)]


def test_each_of_concurrently_begun_keys_is_taken_once(stores: list[Store]) -> None:
    """Some are new, some known with an answer, some known for another body: each caller is told about its own."""
    stores[0].begin("scope", "done", "body", NOW)
    stores[0].finish("scope", "done", "answer", "r", "v")
    stores[0].begin("scope", "expired", "body", NOW - 86_400)
    keys = ("done", "expired", "one", "two")

    def begin(number: int) -> tuple[str, str]:
        key, body = keys[number % 4], "body" if number < THREADS - 4 else "another"
        found = stores[number % ENGINES].begin("scope", key, body, NOW)
        return key, "answered" if found == Begun("done", "answer", "r", "v") else found.kind

    found = together(THREADS, begin)
    each = THREADS // 4
    assert sorted(kind for key, kind in found if key == "done") == [*["answered"] * (each - 1), "conflict"]
    for key in keys[1:]:
        kinds = Counted(kind for one, kind in found if one == key)
        assert kinds["new"] == 1
        assert kinds["pending"] + kinds["conflict"] == each - 1
    for store, key in ((store, key) for store in stores for key in keys[1:]):
        with suppress(StateError):  # another one began it
            store.finish("scope", key, "late", "r", "v")
    assert {stores[0].begin("scope", key, "body", NOW).kind for key in keys} <= {"done", "conflict"}


def test_an_overflowing_total_is_refused_only_for_its_caller(stores: list[Store]) -> None:
    def reserve(number: int) -> bool:
        try:
            stores[number % ENGINES].reserve(str(number), (Counter("n", "", 0, 2**53 - 1 if number == 7 else 1),), NOW)
        except StateError as error:
            return "its bounds" not in error.message
        return True

    stores[0].reserve("first", (Counter("n", "", 0),), NOW)
    assert sorted(together(THREADS, reserve)) == [False, *[True] * (THREADS - 1)]
    assert stores[0].used(Counter("n", "", 0), NOW) == THREADS
