"""An archive that is uploaded: streamed to a private file, within its own limit, removed afterwards."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.api.app import Api

_SUFFIXES = {
    b"application/gzip": ".tar.gz",
    b"application/x-gzip": ".tar.gz",
    b"application/x-tar+gzip": ".tar.gz",
    b"application/zip": ".zip",
}
ARCHIVES = tuple(_SUFFIXES)
"""Media types of the archives that point `source` takes."""

_BUFFER = 1 << 20
"""Bytes kept in memory before they go to the file."""


class Upload:
    """One file being received. `feed` keeps, `write` stores from a thread, `close` removes."""

    def __init__(self, api: Api, account: str, descriptor: int, path: Path) -> None:
        self._api = api
        self._account = account
        self._descriptor = descriptor
        self._chunks: list[bytes] = []
        self._kept = 0
        self._open = True
        self._writing: asyncio.Lock = asyncio.Lock()
        self.path = path

    @classmethod
    def start(cls, api: Api, media_type: bytes, account: str) -> Upload:
        """A new private file. Raises EngineError when there are too many, or it cannot be made."""
        if not api.archives.take(account):
            raise EngineError(
                "too many archives are being received", remedy="try again later", code="engine.upload_unavailable"
            )
        try:
            api.uploads.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(_SUFFIXES[media_type], "upload-", api.uploads)
        except OSError as error:
            api.archives.give(account)
            raise _unavailable(error) from error
        return cls(api, account, descriptor, Path(name))

    def feed(self, data: bytes) -> bool:
        """Keep a part; true when it is time to `write`."""
        self._chunks.append(data)
        self._kept += len(data)
        return self._kept >= _BUFFER

    async def write(self) -> None:
        """Store what is kept. Raises EngineError when the disk is full or fails."""
        async with self._writing:
            chunks, self._chunks, self._kept = self._chunks, [], 0
            if not chunks or not self._open:
                return
            try:
                await asyncio.to_thread(_store, self._descriptor, chunks)
            except OSError as error:
                raise _unavailable(error) from error

    def close(self) -> None:
        """Remove the file; twice is once."""
        if not self._open:
            return
        self._open = False
        self._api.archives.give(self._account)
        self._chunks = []
        self.path.unlink(missing_ok=True)
        if self._writing.locked():  # a thread still writes into it
            self._loop_close()
        else:
            os.close(self._descriptor)

    def _loop_close(self) -> None:
        async def later() -> None:
            async with self._writing:
                os.close(self._descriptor)

        task = asyncio.get_running_loop().create_task(later())
        _CLOSING.add(task)
        task.add_done_callback(_CLOSING.discard)


_CLOSING: set[asyncio.Task[None]] = set()


def remove_left_over(folder: Path) -> None:
    """Remove what an engine that was killed has left."""
    for path in folder.glob("upload-*"):
        path.unlink(missing_ok=True)


def _store(descriptor: int, chunks: list[bytes]) -> None:
    for chunk in chunks:
        view = memoryview(chunk)
        while view:
            view = view[os.write(descriptor, view) :]


def _unavailable(error: OSError) -> EngineError:
    return EngineError(
        f"an uploaded archive cannot be stored: {(error.strerror or 'failed').lower()}",
        remedy="make room in the state folder, or give the path of a bundle below the root",
        code="engine.upload_unavailable",
    )
