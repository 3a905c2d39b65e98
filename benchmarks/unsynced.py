"""`python -m benchmarks.unsynced …`: the engine's command line with a record that never waits for the disk.

What durable records cost is measured against it. It is no mode of the engine: what it acknowledges
can be lost.
"""

from __future__ import annotations

from engine.record import standing
from engine.record.storage import Storage


class UnsyncedStorage(Storage):
    """Writes everything and makes nothing durable."""

    def sync(self, path: str) -> None:
        """Nothing."""

    def sync_folder(self, path: str) -> None:
        """Nothing."""


def main() -> None:
    """Run the command line."""
    from engine.cli import main as command_line

    if vars(standing)["Storage"] is not Storage:
        raise SystemExit("the engine's record is on another storage than this one replaces")
    vars(standing)["Storage"] = UnsyncedStorage
    command_line()


if __name__ == "__main__":
    main()
