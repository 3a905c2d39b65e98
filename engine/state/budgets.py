"""Budgets: reserve before deciding, settle or release after; a crash in between leaves things counted.

Totals stand in `budgets`, one row a counter and window; `holds` remembers what may still be given back.
"""

# ruff: noqa: D102 - what the methods do stands in the interface

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from engine.errors import StateError
from engine.state.part import Part, text, whole
from engine.state.store import LARGEST, Counter, StateLimits


class Budgets(Part):
    """The part of the store that counts."""

    def used(self, counter: Counter, now: int) -> int:
        _check((counter,), now)
        start = _start(counter, now)

        def operation(connection: sqlite3.Connection) -> int:
            return _used(connection, counter, start)

        return self._database.read(operation)

    def reserve(self, hold: str, counters: Sequence[Counter], now: int) -> tuple[int, ...]:
        counters = tuple(counters)
        text("hold", hold)
        _check(counters, now)
        if not counters:
            return ()

        def operation(connection: sqlite3.Connection) -> tuple[int, ...]:
            known = _known(connection, hold)
            if known:
                return _first_answer(known, counters)
            _sweep(connection, now, self._limits)
            return tuple(
                _reserve(connection, hold, position, counter, now) for position, counter in enumerate(counters)
            )

        return self._database.write(operation)

    def settle(self, hold: str, amounts: Mapping[str, int]) -> None:
        amounts = {text("counter", name): whole("amount", amount) for name, amount in amounts.items()}

        def operation(connection: sqlite3.Connection) -> None:
            rows = connection.execute(
                "SELECT holds.budget, budgets.name, holds.amount FROM holds JOIN budgets ON budgets.id = holds.budget"
                " WHERE hold = ? AND settled = 0",
                (hold,),
            ).fetchall()
            if rows and amounts.keys() - {name for _, name, _ in rows}:
                raise ValueError("a hold is settled by the names of its counters")
            for budget, name, amount in rows:
                _add(connection, budget, amounts.get(name, amount) - amount)
            connection.execute("UPDATE holds SET settled = 1 WHERE hold = ?", (hold,))

        self._database.write(operation)

    def release(self, hold: str) -> None:
        def operation(connection: sqlite3.Connection) -> None:
            rows = connection.execute("SELECT budget, amount FROM holds WHERE hold = ? AND settled = 0", (hold,))
            for budget, amount in rows.fetchall():
                _add(connection, budget, -amount)
            connection.execute("DELETE FROM holds WHERE hold = ? AND settled = 0", (hold,))

        self._database.write(operation)


def _check(counters: tuple[Counter, ...], now: int) -> None:
    whole("now", now)
    for counter in counters:
        text("name", counter.name)
        text("key", counter.key, empty=True)
        whole("window", counter.window)
        whole("amount", counter.amount)
    if len({(counter.name, counter.key, counter.window) for counter in counters}) != len(counters):
        raise ValueError("a counter is reserved once in a hold")


def _start(counter: Counter, now: int) -> int:
    return now - now % counter.window if counter.window else 0


def _used(connection: sqlite3.Connection, counter: Counter, start: int) -> int:
    row = connection.execute(
        "SELECT used FROM budgets WHERE name = ? AND key = ? AND window = ? AND start = ?",
        (counter.name, counter.key, counter.window, start),
    ).fetchone()
    return 0 if row is None else int(row[0])


def _known(connection: sqlite3.Connection, hold: str) -> list[tuple[Counter, int]]:
    rows = connection.execute(
        "SELECT name, key, window, amount, before FROM holds JOIN budgets ON budgets.id = holds.budget"
        " WHERE hold = ? ORDER BY position",
        (hold,),
    )
    return [(Counter(name, key, window, amount), before) for name, key, window, amount, before in rows]


def _first_answer(known: list[tuple[Counter, int]], counters: tuple[Counter, ...]) -> tuple[int, ...]:
    if tuple(counter for counter, _ in known) != counters:
        raise ValueError("a hold is for the counters it was made for")
    return tuple(before for _, before in known)


def _reserve(connection: sqlite3.Connection, hold: str, position: int, counter: Counter, now: int) -> int:
    start = _start(counter, now)
    before = _used(connection, counter, start)
    if before + counter.amount > LARGEST:
        raise StateError("a budget cannot count any further", remedy="ask for smaller amounts, or for another window")
    budget = connection.execute(
        "INSERT INTO budgets (name, key, window, start, used) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET used = used + excluded.used RETURNING id",
        (counter.name, counter.key, counter.window, start, counter.amount),
    ).fetchone()[0]
    connection.execute(
        "INSERT INTO holds (hold, position, budget, amount, before, reserved_at) VALUES (?, ?, ?, ?, ?, ?)",
        (hold, position, budget, counter.amount, before, now),
    )
    return before


def _add(connection: sqlite3.Connection, budget: int, difference: int) -> None:
    # Saturated, because what was really used has to be counted somehow.
    connection.execute("UPDATE budgets SET used = min(used + ?, ?) WHERE id = ?", (difference, LARGEST, budget))


def _sweep(connection: sqlite3.Connection, now: int, limits: StateLimits) -> None:
    """Forget a few holds that are too old to be settled, and totals of windows that none of them counts in.

    A total outlives its window as long as a hold does, so that a clock set back by less counts on in it.
    """
    for settled, seconds in ((0, limits.open_hold_seconds), (1, limits.settled_hold_seconds)):
        connection.execute(
            "DELETE FROM holds WHERE (hold, position) IN"
            " (SELECT hold, position FROM holds WHERE settled = ? AND reserved_at < ? LIMIT ?)",
            (settled, now - seconds, limits.sweep),
        )
    connection.execute(
        "DELETE FROM budgets WHERE id IN (SELECT id FROM (SELECT id FROM budgets WHERE window > 0"
        " AND start + window < ? ORDER BY start + window LIMIT ?)"
        " WHERE NOT EXISTS (SELECT 1 FROM holds WHERE budget = id))",
        (now - limits.open_hold_seconds, limits.sweep),
    )
