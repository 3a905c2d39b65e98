"""Stops: what a person has stopped, everything or one tool or one principal, until the stop is lifted.

The policy decides which requests a stop applies to. Rows are evidence and stay for ever.
"""

from __future__ import annotations

from engine.state.backend import Connection
from engine.state.checks import demand_storable, whole
from engine.state.in_force import STOPS, Current
from engine.state.part import insert_new
from engine.state.rows import IdTakenError, StopRow


class Stops(Current):
    """The part of the store for stops."""

    def add_stop(self, new: StopRow) -> StopRow:
        """Store a stop. When this returns, no process decides without it. Raises IdTakenError."""
        demand_storable(new)

        def operation(connection: Connection) -> StopRow:
            if not insert_new(connection, "stops", new):
                raise IdTakenError("a stop with this id already exists", remedy="use a new id")
            return new

        return self._changed(operation)

    def stops_in_force(self) -> tuple[StopRow, ...]:
        """Every stop that was not lifted, the oldest first."""
        return self.in_force().stops

    def stops(self, limit: int) -> tuple[StopRow, ...]:
        """The newest stops, including lifted ones."""
        return self._rows(StopRow, f"{STOPS} ORDER BY number DESC LIMIT ?", whole("limit", limit))

    def lift_stop(self, id: str, now: int) -> StopRow | None:
        """Lift a stop and return its row, None if it is unknown. Idempotent."""
        lift = "UPDATE stops SET lifted_at = ? WHERE id = ? AND lifted_at IS NULL"
        lifted = self._end(StopRow, f"{STOPS} WHERE id = ?", id, lift, whole("now", now))
        self.await_in_force()
        return lifted
