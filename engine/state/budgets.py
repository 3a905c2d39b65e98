"""Budgets: reserved before the decision, settled or released after it; a crash in between counts as used.

Totals are in `budgets`, one row per counter and window; `holds` has the reservations that may still be released.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from engine.documents.strict_json import MAX_SAFE_INTEGER
from engine.errors import StateError
from engine.state.backend import Backend, Connection
from engine.state.checks import demand_storable, text, whole
from engine.state.part import Part, remove_some
from engine.state.rows import Counter, StateLimits

_Reservation = tuple[str, tuple[Counter, ...], int]
_ReserveTogether = Callable[[_Reservation], tuple[int, ...]]

_HELD = (
    "SELECT holds.budget, budgets.name, holds.amount, budgets.used"
    " FROM holds JOIN budgets ON budgets.id = holds.budget WHERE hold = ? AND settled = 0"
    ' ORDER BY name, key, "window", start /* FOR UPDATE */'
)
"""What a hold has reserved. Several budgets are always locked in this order, which rules deadlocks out."""

_RESERVE_MANY = """
WITH asked AS (
    SELECT * FROM unnest(
        ?::text[], ?::bigint[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[]
    ) WITH ORDINALITY AS counters (hold, position, name, key, width, start, amount, reserved_at, number)
    WHERE NOT EXISTS (SELECT 1 FROM holds WHERE holds.hold = counters.hold)
), counted AS (
    INSERT INTO budgets (name, key, "window", start, used)
    SELECT name, key, width, start, sum(amount) FROM asked
    GROUP BY name, key, width, start ORDER BY name COLLATE "C", key COLLATE "C", width, start
    ON CONFLICT (name, key, "window", start) DO UPDATE SET used = budgets.used + excluded.used
    RETURNING id, name, key, "window" AS width, start, used
), held AS (
    INSERT INTO holds (hold, position, budget, amount, before, reserved_at)
    SELECT hold, position, id, amount, used - sum(amount) OVER (PARTITION BY id ORDER BY number DESC), reserved_at
    FROM asked JOIN counted USING (name, key, width, start)
    RETURNING hold, before, position
)
SELECT hold, before FROM held ORDER BY hold, position
"""
"""PostgreSQL only. `before` is exact although others count: RETURNING gives the rows that this statement has locked."""


class Budgets(Part):
    """The part of the store for budgets."""

    def __init__(self, database: Backend, limits: StateLimits) -> None:
        super().__init__(database, limits)
        self._reserve_together: _ReserveTogether | None = database.combined(self._reserve_many)

    def used(self, counter: Counter, now: int) -> int:
        """How much of a budget is used or reserved in the window of `now`."""
        _check((counter,), now)
        return self._database.read(lambda connection: _used(connection, counter, _start(counter, now)))

    def reserve(self, hold: str, counters: Sequence[Counter], now: int) -> tuple[int, ...]:
        """Reserve the amounts of all counters at once; returns, for each, what was used or reserved before.

        The policy decides whether that is within the budget; an unused reservation is returned with
        `release`. A known hold returns its first result and reserves nothing; for how long it is known is stated
        in StateLimits. Raises StateError if a total would exceed 2^53. A hold that is never settled or released
        stays counted until its window ends.
        """
        counters = tuple(counters)
        text("hold", hold)
        _check(counters, now)
        if not counters:
            return ()
        if (together := self._reserve_together) is not None:
            return self._reserve_once(together, (hold, counters, now))

        def operation(connection: Connection) -> tuple[int, ...]:
            if known := _known(connection, hold, counters):
                return known
            self._sweep(connection, now)
            return tuple(
                _reserve(connection, hold, position, counter, now) for position, counter in enumerate(counters)
            )

        return self._database.write(operation)

    def _reserve_once(self, together: _ReserveTogether, reservation: _Reservation) -> tuple[int, ...]:
        hold, counters, _ = reservation
        found: tuple[int, ...] = ()
        while not found:  # a known hold may be released before it is read
            found = together(reservation) or self._database.read(lambda connection: _known(connection, hold, counters))
        return found

    def _reserve_many(self, connection: Connection, reservations: Sequence[_Reservation]) -> list[tuple[int, ...]]:
        """What was used or reserved before each of these reservations; nothing for a hold that is known."""
        self._sweep(connection, reservations[-1][2])
        rows = [
            (hold, position, one.name, one.key, one.window, _start(one, now), one.amount, now)
            for hold, counters, now in reservations
            for position, one in enumerate(counters)
        ]
        before: dict[str, tuple[int, ...]] = {}
        for hold, used in connection.execute(_RESERVE_MANY, [list(column) for column in zip(*rows, strict=True)]):
            before[hold] = (*before.get(hold, ()), used)
        return [before.get(hold, ()) for hold, _, _ in reservations]

    def _sweep(self, connection: Connection, now: int) -> None:
        self._database.tidy(connection, "budgets", now, lambda sweeping, at: _sweep(sweeping, at, self._limits))

    def settle(self, hold: str, amounts: Mapping[str, int]) -> None:
        """Replace the reserved by the used amounts, by name of counter; others are unchanged.

        Counts in the window of the reservation. No effect for a hold that is unknown or settled.
        """
        amounts = {text("counter", name): whole("amount", amount) for name, amount in amounts.items()}

        def operation(connection: Connection) -> None:
            rows = connection.execute(_HELD, (hold,)).fetchall()
            if rows and amounts.keys() - {name for _, name, *_ in rows}:
                raise ValueError("a reservation must be settled by the names of its counters")
            for budget, name, amount, used in rows:
                _set(connection, budget, used + amounts.get(name, amount) - amount)
            if rows:
                connection.execute("UPDATE holds SET settled = 1 WHERE hold = ?", (hold,))

        self._database.write(operation)

    def release(self, hold: str) -> None:
        """Release everything that a hold reserved. No effect for a hold that is unknown or settled."""

        def operation(connection: Connection) -> None:
            rows = connection.execute(_HELD, (hold,)).fetchall()
            for budget, _, amount, used in rows:
                _set(connection, budget, used - amount)
            if rows:
                connection.execute("DELETE FROM holds WHERE hold = ?", (hold,))

        self._database.give_back(operation)


def _check(counters: tuple[Counter, ...], now: int) -> None:
    whole("now", now)
    for counter in counters:
        demand_storable(counter)
    if len({(counter.name, counter.key, counter.window) for counter in counters}) != len(counters):
        raise ValueError("a reservation counts each counter once")


def _start(counter: Counter, now: int) -> int:
    return now - now % counter.window if counter.window else 0


def _used(connection: Connection, counter: Counter, start: int) -> int:
    row = connection.execute(
        'SELECT used FROM budgets WHERE name = ? AND key = ? AND "window" = ? AND start = ?',
        (counter.name, counter.key, counter.window, start),
    ).fetchone()
    return 0 if row is None else int(row[0])


def _known(connection: Connection, hold: str, counters: tuple[Counter, ...]) -> tuple[int, ...]:
    """The first answer to a hold; empty if it is unknown. Raises ValueError if it was made for other counters."""
    rows = connection.execute(
        'SELECT name, key, "window", amount, before FROM holds JOIN budgets ON budgets.id = holds.budget'
        " WHERE hold = ? ORDER BY position",
        (hold,),
    ).fetchall()
    if rows and tuple(Counter(*row[:4]) for row in rows) != counters:
        raise ValueError("a reservation can only be settled for its own counters")
    return tuple(row[4] for row in rows)


def _reserve(connection: Connection, hold: str, position: int, counter: Counter, now: int) -> int:
    start = _start(counter, now)
    before = _used(connection, counter, start)
    if before + counter.amount > MAX_SAFE_INTEGER:
        raise StateError(
            "the counter of a budget has reached its maximum", remedy="request smaller amounts, or another window"
        )
    budget = connection.execute(
        'INSERT INTO budgets (name, key, "window", start, used) VALUES (?, ?, ?, ?, ?)'
        " ON CONFLICT DO UPDATE SET used = used + excluded.used RETURNING id",
        (counter.name, counter.key, counter.window, start, counter.amount),
    ).fetchone()[0]
    connection.execute(
        "INSERT INTO holds (hold, position, budget, amount, before, reserved_at) VALUES (?, ?, ?, ?, ?, ?)",
        (hold, position, budget, counter.amount, before, now),
    )
    return before


def _set(connection: Connection, budget: int, used: int) -> None:
    # Saturated, because what was really used has to be counted somehow.
    connection.execute("UPDATE budgets SET used = ? WHERE id = ?", (min(used, MAX_SAFE_INTEGER), budget))


def _sweep(connection: Connection, now: int, limits: StateLimits) -> None:
    """Remove a few holds that are too old to be settled, and totals of windows without holds.

    A total outlives its window as long as a hold does, so that it is still found if the clock is set back a little.
    """
    for settled, seconds in ((0, limits.open_hold_seconds), (1, limits.settled_hold_seconds)):
        old = settled, now - seconds, limits.sweep
        remove_some(connection, "holds", "hold, position", "settled = ? AND reserved_at < ?", old)
    connection.execute(
        'DELETE FROM budgets WHERE id IN (SELECT id FROM (SELECT id FROM budgets WHERE "window" > 0'
        ' AND start + "window" < ? ORDER BY start + "window" LIMIT ? /* FOR UPDATE SKIP LOCKED */) AS old'
        " WHERE NOT EXISTS (SELECT 1 FROM holds WHERE budget = id))",
        (now - limits.open_hold_seconds, limits.sweep),
    )
