"""Stores in the state what the record needs outside of itself (engine/record/heads.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.record.chain import Position
from engine.record.retention import Retained, RetentionOrder
from engine.state import exists

if TYPE_CHECKING:
    from engine.state.store import Store


class StateHeads:
    """The heads of the chains of a state folder, and orders for their engines. Every method may raise StateError."""

    def __init__(self, folder: Path, store: Callable[[], Store]) -> None:
        """`store` opens the state, which is not created only to read from it."""
        self._folder = folder
        self._store = store

    def known(self) -> Mapping[int, Mapping[str, Position]]:
        """The last ends by the number of their chain, then by installation."""
        return self._store().record_heads() if exists(self._folder) else {}

    def remember(self, chain: int, installation: str, end: Position) -> None:
        """Remember the end of a chain; an earlier end than the known one is ignored."""
        self._store().remember_head(chain, installation, end)

    def leave_order(self, chain: int, order: RetentionOrder) -> None:
        """Leave an order for the engine that uses the chain."""
        self._store().leave_order(chain, order)

    def orders(self, chain: int) -> Sequence[RetentionOrder]:
        """The orders for a chain that are not carried out yet."""
        return self._store().orders(chain) if exists(self._folder) else ()

    def carried_out(self, chain: int, decision_id: str, removed: Retained | None) -> None:
        """Say what an order removed; no effect if none was left."""
        self._store().carried_out(chain, decision_id, removed)

    def outcomes(self, decision_id: str) -> Mapping[int, Retained | None]:
        """What the orders of a decision removed, by chain, as far as they are carried out."""
        return self._store().outcomes(decision_id)
