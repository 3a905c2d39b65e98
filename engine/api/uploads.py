"""An archive that is uploaded: streamed to a private file, within its own limit, removed afterwards."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from engine.api.load import Shares
from engine.errors import EngineError, reason_of
from engine.record.storage import make_folder

_SUFFIXES = {
    b"application/gzip": ".tar.gz",
    b"application/x-gzip": ".tar.gz",
    b"application/x-tar+gzip": ".tar.gz",
    b"application/zip": ".zip",
}
ARCHIVES = tuple(_SUFFIXES)
"""Media types of the archives that point `source` accepts."""

_BUFFER = 1 << 20
"""Bytes buffered in memory before they are written to the file."""


class Upload:
    """One file being received. `feed` buffers, `write` stores from a thread, `close` removes."""

    def __init__(self, places: Shares, account: str, descriptor: int, path: Path) -> None:
        self._places = places
        self._account = account
        self._descriptor = descriptor
        self._chunks: list[bytes] = []
        self._kept = 0
        self._closed = asyncio.Event()
        self._writing: asyncio.Lock = asyncio.Lock()
        self.path = path

    @classmethod
    def start(cls, places: Shares, folder: Path, media_type: bytes, account: str) -> Upload:
        """A new private file. Raises EngineError when there are too many, or it cannot be made."""
        if not places.take(account):
            raise EngineError(
                "too many archives are being received", remedy="try again later", code="engine.upload_unavailable"
            )
        try:
            make_folder(folder)
            descriptor, name = tempfile.mkstemp(_SUFFIXES[media_type], "upload-", folder)
        except OSError as error:
            places.give(account)
            raise _unavailable(error) from error
        return cls(places, account, descriptor, Path(name))

    def feed(self, data: bytes) -> bool:
        """Keep a part; true when it is time to `write`."""
        self._chunks.append(data)
        self._kept += len(data)
        return self._kept >= _BUFFER

    async def write(self) -> None:
        """Store the buffered bytes. Raises EngineError when the disk is full or fails."""
        async with self._writing:
            chunks, self._chunks, self._kept = self._chunks, [], 0
            if not chunks or self._closed.is_set():
                return
            try:
                await asyncio.to_thread(write_all, self._descriptor, chunks)
            except OSError as error:
                raise _unavailable(error) from error
            finally:
                if self._closed.is_set():  # meanwhile
                    os.close(self._descriptor)

    def close(self) -> None:
        """Remove the file; twice is once."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._places.give(self._account)
        self._chunks = []
        self.path.unlink(missing_ok=True)
        if not self._writing.locked():  # or a thread still writes into it
            os.close(self._descriptor)


def remove_left_over(folder: Path) -> None:
    """Remove what an engine that was killed has left."""
    for path in folder.glob("upload-*"):
        path.unlink(missing_ok=True)


def write_all(descriptor: int, chunks: Iterable[bytes]) -> None:
    """Write all of this; a descriptor may take less at once. May raise OSError."""
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.writelines(chunks)


def _unavailable(error: OSError) -> EngineError:
    return EngineError(
        f"an uploaded archive cannot be stored: {reason_of(error)}",
        remedy="free disk space in the state folder, or name a bundle below the root folder",
        code="engine.upload_unavailable",
    )
