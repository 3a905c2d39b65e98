"""What the state stores about the record: the ends of its chains, and orders to remove old lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from engine.record.chain import Position
from engine.record.retention import Retained, RetentionOrder


class Heads(Protocol):
    """The interface of the state for the record. Every method may raise EngineError."""

    def record_heads(self) -> Mapping[int, Mapping[str, Position]]:
        """The last ends by the number of their chain, then by installation."""

    def remember_head(self, chain: int, installation: str, end: Position) -> None:
        """Keep the end of a chain; an earlier one than is known changes nothing."""

    def leave_order(self, chain: int, order: RetentionOrder) -> None:
        """Leave an order for the engine that uses the chain."""

    def orders(self, chain: int) -> Sequence[RetentionOrder]:
        """The orders for a chain that are not carried out yet."""

    def carried_out(self, chain: int, decision_id: str, removed: Retained | None) -> None:
        """Say what an order removed; no effect if none was left."""

    def outcomes(self, decision_id: str) -> Mapping[int, Retained | None]:
        """What the orders of a decision removed, by chain, as far as they are carried out."""
