"""Budgets: reserved before the decision, settled or released after it; a crash in between counts as used.

Totals are in `budgets`, one row per counter and window; `holds` has the reservations that may still be released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.documents.strict_json import MAX_SAFE_INTEGER
from engine.errors import StateError
from engine.state.backend import Connection
from engine.state.part import Part, text, whole
from engine.state.rows import Counter, StateLimits

_HELD = (
    "SELECT holds.budget, budgets.name, holds.amount, budgets.used"
    " FROM holds JOIN budgets ON budgets.id = holds.budget WHERE hold = ? AND settled = 0"
    ' ORDER BY name, key, "window", start /* FOR UPDATE */'
)
"""What a hold has reserved. Several budgets are always locked in this order, which rules deadlocks out."""

_RESERVE_AT_ONCE = """
WITH asked AS (
    SELECT * FROM unnest(?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[])
    WITH ORDINALITY AS counters (name, key, width, start, amount, number)
    WHERE NOT EXISTS (SELECT 1 FROM holds WHERE hold = ?)
), counted AS (
    INSERT INTO budgets (name, key, "window", start, used)
    SELECT name, key, width, start, amount FROM asked ORDER BY name COLLATE "C", key COLLATE "C", width, start
    ON CONFLICT (name, key, "window", start) DO UPDATE SET used = budgets.used + excluded.used
    RETURNING id, name, key, "window" AS width, start, used
), held AS (
    INSERT INTO holds (hold, position, budget, amount, before, reserved_at)
    SELECT ?, number - 1, id, amount, used - amount, ? FROM asked JOIN counted USING (name, key, width, start)
    RETURNING position, before
)
SELECT before FROM held ORDER BY position
"""
"""`before` is exact although others count at the same time: RETURNING gives the row that this statement has locked."""


class Budgets(Part):
    """The part of the store for budgets."""

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

        def sweep(connection: Connection) -> None:
            _sweep(connection, now, self._limits)

        def operation(connection: Connection) -> tuple[int, ...]:
            if connection.postgres:
                self._database.tidy(connection, "budgets", sweep)
                return _reserve_at_once(connection, hold, counters, now) or _known(connection, hold, counters)
            if known := _known(connection, hold, counters):
                return known
            self._database.tidy(connection, "budgets", sweep)
            return tuple(
                _reserve(connection, hold, position, counter, now) for position, counter in enumerate(counters)
            )

        return self._database.write(operation)

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
                connection.execute("DELETE FROM holds WHERE hold = ? AND settled = 0", (hold,))

        self._give_back(operation)


def _check(counters: tuple[Counter, ...], now: int) -> None:
    whole("now", now)
    for counter in counters:
        text("name", counter.name)
        text("key", counter.key, empty=True)
        whole("window", counter.window)
        whole("amount", counter.amount)
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
    _check_total(before, counter)
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


def _reserve_at_once(connection: Connection, hold: str, counters: tuple[Counter, ...], now: int) -> tuple[int, ...]:
    """The same for all counters in one statement of PostgreSQL; nothing is counted and returned for a known hold."""
    columns = [list(column) for column in zip(*((one.name, one.key, one.window) for one in counters), strict=True)]
    starts, amounts = [_start(one, now) for one in counters], [one.amount for one in counters]
    found = connection.execute(_RESERVE_AT_ONCE, (*columns, starts, amounts, hold, hold, now)).fetchall()
    for (before,), counter in zip(found, counters, strict=False):
        _check_total(before, counter)
    return tuple(before for (before,) in found)


def _check_total(before: int, counter: Counter) -> None:
    if before + counter.amount > MAX_SAFE_INTEGER:
        raise StateError(
            "the counter of a budget has reached its maximum", remedy="request smaller amounts, or another window"
        )


def _set(connection: Connection, budget: int, used: int) -> None:
    # Saturated, because what was really used has to be counted somehow.
    connection.execute("UPDATE budgets SET used = ? WHERE id = ?", (min(used, MAX_SAFE_INTEGER), budget))


def _sweep(connection: Connection, now: int, limits: StateLimits) -> None:
    """Remove a few holds that are too old to be settled, and totals of windows without holds.

    A total outlives its window as long as a hold does, so that it is still found if the clock is set back a little.
    """
    for settled, seconds in ((0, limits.open_hold_seconds), (1, limits.settled_hold_seconds)):
        connection.execute(
            "DELETE FROM holds WHERE (hold, position) IN (SELECT hold, position FROM holds"
            " WHERE settled = ? AND reserved_at < ? LIMIT ? /* FOR UPDATE SKIP LOCKED */)",
            (settled, now - seconds, limits.sweep),
        )
    connection.execute(
        'DELETE FROM budgets WHERE id IN (SELECT id FROM (SELECT id FROM budgets WHERE "window" > 0'
        ' AND start + "window" < ? ORDER BY start + "window" LIMIT ? /* FOR UPDATE SKIP LOCKED */) AS old'
        " WHERE NOT EXISTS (SELECT 1 FROM holds WHERE budget = id))",
        (now - limits.open_hold_seconds, limits.sweep),
    )
