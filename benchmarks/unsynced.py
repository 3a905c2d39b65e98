"""`python -m benchmarks.unsynced …`: the engine's command line with a record that never waits for the disk.

What durable records cost is measured against it. It is no mode of the engine: what it acknowledges
can be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import engine.engine
from engine.record.layout import SEGMENT_BYTES
from engine.record.log import RecordLog
from engine.record.model import utc_now
from engine.record.storage import DiskStorage


class UnsyncedStorage(DiskStorage):
    """Writes everything and makes nothing durable."""

    def sync(self, path: str) -> None:
        """Nothing."""

    def sync_folder(self, path: str) -> None:
        """Nothing."""


class UnsyncedLog(RecordLog):
    """A record that is acknowledged before it is on disk."""

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        lock_seconds: float,
        clock: Callable[[], datetime] = utc_now,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> RecordLog:
        """`RecordLog.open` on storage that never waits."""
        storage = UnsyncedStorage(folder.parent)
        place = str(folder.parent)
        return cls.on(storage, lock_seconds=lock_seconds, clock=clock, place=place, segment_bytes=segment_bytes)


def main() -> None:
    """Run the command line."""
    from engine.cli import main as command_line

    vars(engine.engine)["RecordLog"] = UnsyncedLog
    command_line()


if __name__ == "__main__":
    main()
