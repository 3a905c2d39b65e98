"""The last verified head of each chain of the record, to detect that a chain was removed or an older copy restored."""

from __future__ import annotations

from engine.record.chain import Position
from engine.state.checks import sha256_text, text, whole
from engine.state.part import Part


class RecordHeads(Part):
    """The part of the store for the heads of the record's chains, one for each installation of a chain."""

    def record_heads(self) -> dict[int, dict[str, Position]]:
        """The remembered heads by the number of their chain, then by installation."""
        query = "SELECT chain, installation, segment, lines, size, seq, hash FROM record_heads"
        found: dict[int, dict[str, Position]] = {}
        for chain, installation, *head in self._found(query):
            found.setdefault(chain, {})[installation] = Position(*head)
        return found

    def remember_head(self, chain: int, installation: str, head: Position) -> None:
        """Remember the head of a chain; no effect if it is not later than the remembered one."""
        self._change(
            "INSERT INTO record_heads (chain, installation, segment, lines, size, seq, hash)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET segment = excluded.segment, lines = excluded.lines, size = excluded.size,"
            " seq = excluded.seq, hash = excluded.hash WHERE excluded.seq > record_heads.seq",
            whole("chain", chain),
            text("installation", installation),
            *(whole(name, getattr(head, name)) for name in ("segment", "lines", "size", "seq")),
            sha256_text("hash", head.hash),
        )
