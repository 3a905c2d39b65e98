"""Where the record ended when it was last vouched for, so that an older copy of it is noticed."""

# ruff: noqa: D102 - what the methods do stands in the interface

from __future__ import annotations

import sqlite3

from engine.state.part import Part, sha256_text, text, whole
from engine.state.store import RecordHead


class RecordHeads(Part):
    """The part of the store that remembers the ends of records, one for each installation."""

    def record_heads(self) -> tuple[RecordHead, ...]:
        query = "SELECT installation, segment, lines, size, seq, hash FROM record_heads ORDER BY installation"
        return self._database.read(lambda connection: tuple(RecordHead(*row) for row in connection.execute(query)))

    def remember_head(self, head: RecordHead) -> None:
        counts = [whole(name, getattr(head, name)) for name in ("segment", "lines", "size", "seq")]
        values = (text("installation", head.installation), *counts, sha256_text("hash", head.hash))

        def operation(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO record_heads (installation, segment, lines, size, seq, hash) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET segment = excluded.segment, lines = excluded.lines, size = excluded.size,"
                " seq = excluded.seq, hash = excluded.hash WHERE excluded.seq > record_heads.seq",
                values,
            )

        self._database.write(operation)
