"""The store: all parts of the engine's state, in one SQLite file or in a PostgreSQL database of several engines.

Times are whole seconds since 1970 UTC by the engine's clock, passed by the caller. Every method may be
called by many threads, and several processes may open the same state. Returned results are durable.

Every method may raise StateError, and then the outcome is unknown: a reservation may count and a
claim may exist although the caller got an error. Arguments that no correct caller passes (a negative amount, a text
longer than `LONGEST_TEXT`) are ValueErrors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import StateError
from engine.state.activations import Activations
from engine.state.agents import Agents
from engine.state.approvals import Approvals
from engine.state.attempts import ArtifactChecks, Attempts
from engine.state.budgets import Budgets
from engine.state.children import Children
from engine.state.code_runs import CodeRuns
from engine.state.idempotency import Idempotency
from engine.state.memories import Memories
from engine.state.prefixes import Prefixes
from engine.state.record_heads import RecordHeads
from engine.state.retention_orders import RetentionOrders
from engine.state.source_records import SourceRecords
from engine.state.stops import Stops
from engine.state.tokens import Tokens
from engine.state.touches import Touches

if TYPE_CHECKING:
    from engine.state.database import Database


class Store(
    Budgets,
    Approvals,
    Idempotency,
    Tokens,
    Prefixes,
    Children,
    Attempts,
    ArtifactChecks,
    Stops,
    Agents,
    Memories,
    SourceRecords,
    Touches,
    CodeRuns,
    Activations,
):
    """The state of one engine, or of several. Opened by `engine.state.open_state`."""

    @property
    def failed(self) -> bool:
        """Whether every later call raises StateError; only a new store may work again."""
        return self._database.failed

    def writable(self) -> bool:
        """Whether a write succeeds now; never raises."""
        try:
            self._change("UPDATE probe SET count = count + 1")
        except StateError:
            return False
        return True

    def close(self) -> None:
        """Close the store; no effect in a forked process. Every later call raises StateError."""
        self._database.close()


class LocalStore(Store, RecordHeads, RetentionOrders):
    """The state in a file of the state folder, with what it knows of the record, which is in that folder too."""

    _database: Database
