"""The state's memory of the record, as the record asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.record.chain import Position

if TYPE_CHECKING:
    from engine.state.store import Store


class StateHeads:
    """Where the records of a state folder ended, as its state remembers. Every method may raise StateError."""

    def __init__(self, folder: Path, store: Callable[[], Store]) -> None:
        """`store` opens the state, which is not made anew only to find that it remembers nothing."""
        self._folder = folder
        self._store = store

    def known(self) -> Mapping[str, Position]:
        """The last end of each record, by installation."""
        from engine.state import exists

        if not exists(self._folder):
            return {}
        heads = self._store().record_heads()
        return {one.installation: Position(one.segment, one.lines, one.size, one.seq, one.hash) for one in heads}

    def remember(self, installation: str, end: Position) -> None:
        """Keep the end of a record; an earlier one than is known changes nothing."""
        from engine.state.store import RecordHead

        self._store().remember_head(RecordHead(installation, end.segment, end.lines, end.size, end.seq, end.hash))
