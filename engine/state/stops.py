"""Stops: what a person has stopped, everything or one tool or one principal, until the stop is lifted.

The policy decides which requests a stop applies to. Rows are evidence and stay for ever.
"""

# ruff: noqa: A002 - the names of the interface

from __future__ import annotations

from typing import TypeVar

from engine.state.backend import Backend, Connection, Operation
from engine.state.part import Part, Recent, columns, encodable, find, insert_new, storable, text, whole
from engine.state.rows import IdTakenError, StateLimits, StopRow

T = TypeVar("T")

_ALL = f"SELECT {columns(StopRow)} FROM stops"  # noqa: S608


class Stops(Part):
    """The part of the store for stops."""

    def __init__(self, database: Backend, limits: StateLimits) -> None:
        super().__init__(database, limits)
        self._in_force = Recent(database, limits, _in_force)

    def add_stop(self, new: StopRow) -> StopRow:
        """Store a stop. When this returns, no process decides without it. Raises IdTakenError."""
        text("actor", new.actor)
        text("name", new.name, empty=True)
        encodable("reason", new.reason or "")
        whole("created_at", new.created_at)

        def operation(connection: Connection) -> StopRow:
            if not insert_new(connection, "stops", new):
                raise IdTakenError("a stop with this id already exists", remedy="use a new id")
            return new

        return self._written(operation)

    def stops_in_force(self) -> tuple[StopRow, ...]:
        """Every stop that was not lifted, the oldest first."""
        return self._in_force.get()

    def stops_at_hand(self) -> bool:
        """Whether the stops in force were read so recently that they can be had without asking the database."""
        return self._in_force.at_hand()

    def stops(self, limit: int) -> tuple[StopRow, ...]:
        """The newest stops, including lifted ones."""
        return self._rows(StopRow, f"{_ALL} ORDER BY number DESC LIMIT ?", whole("limit", limit))

    def lift_stop(self, id: str, now: int) -> StopRow | None:
        """Lift a stop and return its row, None if it is unknown. Idempotent."""
        whole("now", now)

        def operation(connection: Connection) -> StopRow | None:
            lift = "UPDATE stops SET lifted_at = ? WHERE id = ? AND lifted_at IS NULL"
            connection.execute(lift, (now, storable(id)))
            return _find(connection, id)

        return self._written(operation)

    def _written(self, operation: Operation[T]) -> T:
        result = self._database.write(operation)
        self._in_force.changed()
        return result


def _in_force(connection: Connection) -> tuple[StopRow, ...]:
    found = connection.execute(f"{_ALL} WHERE lifted_at IS NULL ORDER BY number")
    return tuple(StopRow(*row) for row in found)


def _find(connection: Connection, id_: str) -> StopRow | None:
    return find(connection, StopRow, f"{_ALL} WHERE id = ?", id_)
