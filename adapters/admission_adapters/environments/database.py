"""The databases of environments: their tables by what they hold, filled in memory and handed out as bytes.

No file is touched here. SQLite keeps every text as it is: a formula, a quote or a `;` in it means nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing

from engine.errors import WorkError

PAGE = 4096
"""Bytes of a page; the size of a database is limited in pages."""

STATE = "CREATE TABLE environment_state (line INTEGER NOT NULL)"
"""One row: the line of the trajectory that made the current state."""

_CONTACTS = (
    "CREATE TABLE contacts (id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, email TEXT NOT NULL, "
    "city TEXT NOT NULL, phone TEXT NOT NULL, note TEXT NOT NULL, tags TEXT NOT NULL) WITHOUT ROWID"
)

TABLES = {
    "contacts": (_CONTACTS, STATE),
    "documents": ("CREATE VIRTUAL TABLE documents USING fts5(id UNINDEXED, title, text)", STATE),
}
"""The tables of an environment, by what it holds; the first has its rows, under the same name."""

COLUMNS = {"contacts": 7, "documents": 3}


def filled(holds: str, rows: Iterable[Sequence[str]], most: int) -> tuple[bytes, int]:
    """A database with these rows as bytes, at most `most`, and the number of rows. Raises WorkError."""
    try:
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
            limited(database, most)
            for table in TABLES[holds]:
                database.execute(table)
            database.execute("BEGIN")
            marks = ", ".join("?" * COLUMNS[holds])
            database.executemany(f"INSERT INTO {holds} VALUES ({marks})", rows)  # noqa: S608  (a key of TABLES)
            database.execute("INSERT INTO environment_state VALUES (0)")
            database.execute("COMMIT")
            return database.serialize(), count(database, holds)
    except sqlite3.Error as error:
        raise WorkError(
            f"the database of the environment cannot be made: {type(error).__name__}",
            remedy="use less material, or ask for a larger limit in policy/environments.yaml",
            code="engine.environment_not_built",
        ) from error


def limited(database: sqlite3.Connection, most: int) -> None:
    """Let a database become no larger than `most` bytes."""
    database.execute(f"PRAGMA page_size = {PAGE}")
    database.execute(f"PRAGMA max_page_count = {max(most // PAGE, 1)}")


def count(database: sqlite3.Connection, holds: str) -> int:
    """The number of rows of an environment."""
    (number,) = database.execute(f"SELECT count(*) FROM {holds}").fetchone()  # noqa: S608
    return int(number)
