"""The store on SQLite: one file, for one machine. The only implementation today; PostgreSQL would be another."""

# ruff: noqa: D102 - what the methods do stands in the interface

from __future__ import annotations

import sqlite3
from pathlib import Path

from engine.errors import StateError
from engine.state.approvals import Approvals
from engine.state.artifact_checks import ArtifactChecks
from engine.state.attempts import Attempts
from engine.state.budgets import Budgets
from engine.state.children import Children
from engine.state.database import Database
from engine.state.idempotency import Idempotency
from engine.state.prefixes import Prefixes
from engine.state.record_heads import RecordHeads
from engine.state.store import StateLimits
from engine.state.tokens import Tokens


class SqliteStore(Budgets, Approvals, Idempotency, Tokens, Prefixes, Children, Attempts, ArtifactChecks, RecordHeads):
    """All parts of the store on one database."""

    def __init__(self, folder: Path, limits: StateLimits, *, after_fault: bool = False) -> None:
        super().__init__(Database(folder, limits, after_fault=after_fault), limits)

    @property
    def failed(self) -> bool:
        return self._database.failed

    def writable(self) -> bool:
        try:
            self._database.write(_probe)
        except StateError:
            return False
        return True

    def close(self) -> None:
        self._database.close()


def _probe(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE probe SET count = count + 1")
