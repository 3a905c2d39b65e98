"""Budgets and approvals against models of a few lines, over any sequence of calls and reopenings."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter as Tally
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from engine.state import open_store
from engine.state.rows import ApprovalClosedError, ApprovalRow, Counter
from engine.state.store import Store
from tests.lanes import examples
from tests.state.samples import NOW, asked

COUNTERS = st.lists(
    st.builds(
        Counter,
        name=st.sampled_from(["requests", "bytes"]),
        key=st.sampled_from(["", "a", "é' --"]),
        window=st.sampled_from([0, 10, 60]),
        amount=st.integers(0, 50),
    ),
    max_size=3,
    unique_by=lambda counter: (counter.name, counter.key, counter.window),
).map(tuple)
HOLDS = st.sampled_from([f"hold {number}" for number in range(6)])
Place = tuple[str, str, int, int]


@dataclass
class _Hold:
    counters: tuple[Counter, ...]
    places: tuple[Place, ...]
    befores: tuple[int, ...]
    settled: bool = False


class _Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="admission-state-"))
        self.store = self.open()
        self.now = NOW

    def open(self) -> Store:
        return open_store(self.folder / "state")

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.open()

    @rule(seconds=st.integers(0, 40))
    def wait(self, seconds: int) -> None:
        self.now += seconds


class BudgetMachine(_Machine):
    def __init__(self) -> None:
        super().__init__()
        self.totals: Tally[Place] = Tally()
        self.holds: dict[str, _Hold] = {}

    def place(self, counter: Counter) -> Place:
        window = counter.window
        return counter.name, counter.key, window, self.now // window if window else 0

    @rule(name=HOLDS, counters=COUNTERS)
    def reserve(self, name: str, counters: tuple[Counter, ...]) -> None:
        known = self.holds.get(name)
        if known is not None:
            assert self.store.reserve(name, known.counters, self.now) == known.befores
            return
        places = tuple(self.place(counter) for counter in counters)
        befores = tuple(self.totals[place] for place in places)
        assert self.store.reserve(name, counters, self.now) == befores
        for place, counter in zip(places, counters, strict=True):
            self.totals[place] += counter.amount
        if counters:
            self.holds[name] = _Hold(counters, places, befores)

    @rule(name=HOLDS)
    def release(self, name: str) -> None:
        self.store.release(name)
        hold = self.holds.get(name)
        if hold is not None and not hold.settled:
            for place, counter in zip(hold.places, hold.counters, strict=True):
                self.totals[place] -= counter.amount
            del self.holds[name]

    @rule(name=HOLDS, amount=st.integers(0, 90))
    def settle(self, name: str, amount: int) -> None:
        hold = self.holds.get(name)
        names = set() if hold is None else {counter.name for counter in hold.counters}
        chosen = dict.fromkeys(sorted(names)[:1], amount)
        self.store.settle(name, chosen)
        if hold is not None and not hold.settled:
            hold.settled = True
            for place, counter in zip(hold.places, hold.counters, strict=True):
                self.totals[place] += chosen.get(counter.name, counter.amount) - counter.amount

    @invariant()
    def totals_agree(self) -> None:
        for name in ("requests", "bytes"):
            for key in ("", "a", "é' --"):
                for window in (0, 10, 60):
                    counter = Counter(name, key, window)
                    assert self.store.used(counter, self.now) == self.totals[self.place(counter)]


class ApprovalMachine(_Machine):
    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, ApprovalRow] = {}

    @initialize(target=ids)
    def unknown(self) -> str:
        return "f" * 32

    @rule(target=ids, requester=st.sampled_from([None, "a", "b"]), seconds=st.integers(1, 60))
    def request(self, requester: str | None, seconds: int) -> str:
        new = asked(requester=requester, created_at=self.now, expires_at=self.now + seconds)
        fitting = [
            row
            for row in self.rows.values()
            if row.requester == requester and row.state in {"requested", "granted"} and row.expires_at > self.now
        ]
        row = self.store.request_approval(new)
        assert (row in fitting) == bool(fitting)
        self.rows[row.id] = row
        return row.id

    @rule(id_=ids, state=st.sampled_from(["granted", "refused"]), reason=st.sampled_from([None, "why"]))
    def resolve(self, id_: str, state: Literal["granted", "refused"], reason: str | None) -> None:
        known = self.rows.get(id_)
        if known is None:
            return
        if known.state != "requested" or known.expires_at <= self.now:
            try:
                self.store.resolve(id_, state, "user:lee", reason, self.now)
            except ApprovalClosedError:
                return
            raise AssertionError("resolved what was closed")
        wanted = replace(known, state=state, approver="user:lee", reason=reason, resolved_at=self.now)
        assert self.store.resolve(id_, state, "user:lee", reason, self.now) == wanted
        self.rows[id_] = wanted

    @rule(id_=ids, decision=st.sampled_from(["d1", "d2"]), requester=st.sampled_from([None, "a"]))
    def claim(self, id_: str, decision: str, requester: str | None) -> None:
        known = self.rows.get(id_)
        taken = known is not None and known.state == "granted" and known.requester == requester
        assert self.store.claim(id_, decision, asked(requester=requester), self.now) == (known, taken)
        if known is not None and taken:
            self.rows[id_] = replace(known, state="used", decision_id=decision, used_at=self.now)

    @rule(id_=ids, decision=st.sampled_from(["d1", "d2"]))
    def unclaim(self, id_: str, decision: str) -> None:
        self.store.unclaim(id_, decision)
        known = self.rows.get(id_)
        if known is not None and known.state == "used" and known.decision_id == decision:
            self.rows[id_] = replace(known, state="granted", decision_id=None, used_at=None)

    @invariant()
    def rows_agree(self) -> None:
        listed = self.store.approvals(None, 1000)
        assert {row.id: row for row in listed} == self.rows
        for state in ("requested", "granted", "refused", "used"):
            assert self.store.approvals(state, 1000) == tuple(row for row in listed if row.state == state)


_BOUNDED: Any = settings(max_examples=examples(30), stateful_step_count=30)
TestBudgets = BudgetMachine.TestCase
TestBudgets.settings = _BOUNDED
TestApprovals = ApprovalMachine.TestCase
TestApprovals.settings = _BOUNDED
