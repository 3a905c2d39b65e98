"""What each run has touched: kinds of data that it has read, and whether it has sent something out.

A touch is reserved before the decision, kept after an allow and given back after anything else, so that two
processes cannot both take the second of three. A crash in between counts as touched. What is kept has no hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.state.backend import Connection
from engine.state.checks import text, whole
from engine.state.part import Part


class Touches(Part):
    """The part of the store for what runs have touched."""

    def touched(self, run: str) -> tuple[str, ...]:
        """The kinds that a run has touched or reserved, sorted."""
        text("run", run)
        return self._database.read(lambda connection: _others(connection, run, None))

    def touch(self, run: str, kinds: Sequence[str], hold: str, now: int) -> tuple[str, ...]:
        """Reserve kinds for a run; returns those that it had touched, or others had reserved, before."""
        text("run", run)
        text("hold", hold)
        whole("now", now)
        kinds = tuple(text("kind", kind) for kind in kinds)

        def operation(connection: Connection) -> tuple[str, ...]:
            self._tidy(connection, "touches", "run, kind, hold", "touched_at < ?", now, self._limits.run_seconds)
            connection.lock("touches", run)
            before = _others(connection, run, hold)
            connection.execute("UPDATE touches SET touched_at = ? WHERE run = ? AND touched_at < ?", (now, run, now))
            connection.executemany(
                "INSERT INTO touches (run, kind, hold, touched_at) SELECT ?, ?, ?, ? WHERE NOT EXISTS"
                " (SELECT 1 FROM touches WHERE run = ? AND kind = ? AND hold IN ('', ?))",
                [(run, kind, hold, now, run, kind, hold) for kind in kinds],
            )
            return before

        return self._database.write(operation)

    def keep_touches(self, hold: str) -> None:
        """Keep what was reserved under this hold. No effect if nothing was."""

        def operation(connection: Connection) -> None:
            connection.execute(
                "INSERT INTO touches (run, kind, hold, touched_at)"
                " SELECT run, kind, '', touched_at FROM touches WHERE hold = ? ORDER BY kind ON CONFLICT DO NOTHING",
                (text("hold", hold),),
            )
            connection.execute("DELETE FROM touches WHERE hold = ?", (hold,))

        self._database.write(operation)

    def give_back_touches(self, hold: str) -> None:
        """Give back what was reserved under this hold. No effect if nothing was."""
        self._withdraw("DELETE FROM touches WHERE hold = ?", text("hold", hold))

    def end_run(self, run: str) -> None:
        """Forget what a run has touched; a new run of this id begins with nothing."""
        self._change("DELETE FROM touches WHERE run = ?", text("run", run))


def _others(connection: Connection, run: str, hold: str | None) -> tuple[str, ...]:
    own = "" if hold is None else " AND hold <> ?"
    query = f"SELECT DISTINCT kind FROM touches WHERE run = ?{own} ORDER BY kind"  # noqa: S608
    return tuple(row[0] for row in connection.execute(query, (run,) if hold is None else (run, hold)))
