"""Orders to remove old lines of the record, for the engines that use its chains."""

from __future__ import annotations

from dataclasses import astuple

from engine.record.retention import Retained, RetentionOrder
from engine.state.backend import Connection
from engine.state.checks import encodable, text, whole
from engine.state.part import Part

_LEAVE = (
    "INSERT OR IGNORE INTO retention_orders (chain, decision_id, keep_days, time, principal, reason)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
_KEPT_SECONDS = 86_400
"""An order that was carried out: longer than the command that left it waits."""


class RetentionOrders(Part):
    """The part of the store for orders, one for each retention decision and each chain in use."""

    def leave_order(self, chain: int, order: RetentionOrder) -> None:
        """Leave an order for the engine that uses a chain; no effect if it exists."""
        row = (
            whole("chain", chain),
            text("decision_id", order.decision_id),
            whole("keep_days", order.keep_days),
            whole("time", order.time),
            order.principal and encodable("principal", order.principal),
            order.reason and encodable("reason", order.reason),
        )

        def sweep(connection: Connection, now: int) -> None:
            connection.execute("DELETE FROM retention_orders WHERE done = 1 AND time < ?", (now - _KEPT_SECONDS,))

        def operation(connection: Connection) -> None:
            self._database.tidy(connection, "retention_orders", order.time, sweep)
            connection.execute(_LEAVE, row)

        self._database.write(operation)

    def orders(self, chain: int) -> tuple[RetentionOrder, ...]:
        """The orders for a chain that are not carried out yet, in the order of their decisions."""
        query = (
            "SELECT decision_id, keep_days, time, principal, reason FROM retention_orders"
            " WHERE chain = ? AND done = 0 ORDER BY time, decision_id"
        )
        return self._rows(RetentionOrder, query, chain)

    def carried_out(self, chain: int, decision_id: str, removed: Retained | None) -> None:
        """Keep what an order removed; no effect if none was left."""
        numbers = (None,) * 4 if removed is None else astuple(removed)
        self._change(
            "UPDATE retention_orders SET done = 1, first = ?, last = ?, lines = ?, size = ?"
            " WHERE chain = ? AND decision_id = ?",
            *(*numbers, chain, decision_id),
        )

    def outcomes(self, decision_id: str) -> dict[int, Retained | None]:
        """What the orders of a decision removed, by chain, as far as they are carried out."""
        query = "SELECT chain, first, last, lines, size FROM retention_orders WHERE decision_id = ? AND done = 1"
        found = self._found(query, decision_id)
        return {chain: None if first is None else Retained(first, *rest) for chain, first, *rest in found}
