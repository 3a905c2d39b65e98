"""Transcripts in a folder, one file an episode with one line of JSON an entry; and which episodes are running.

The record has digests of the texts. A file that does not fit them makes its episode corrupted.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from admission_adapters.digests import digest
from admission_adapters.grants import granted
from engine.errors import PermitMissingError, WorkError
from engine.model import Permit, Result

_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCKS = "running"
"""The file whose bytes are locked, one for each running episode; a lock ends with its process."""


@runtime_checkable
class TranscriptGrant(Protocol):
    """What the limits of point `transcript` state."""

    episode: str
    entries: Sequence[Any]


class TranscriptFolder:
    """The transcripts of one state folder. Threads may share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = threading.Lock()
        self._running: set[str] = set()
        self._locks: int | None = None

    @contextmanager
    def claimed(self, episode: str) -> Iterator[None]:
        """Run an episode here and nowhere else. Raises WorkError if another thread or process runs it."""
        with self._guard:
            if episode in self._running or not self._lock(episode, fcntl.F_WRLCK):
                raise WorkError(
                    "the episode is already running",
                    remedy="wait for its end, or use another id",
                    code="engine.episode_running",
                )
            self._running.add(episode)
        try:
            yield
        finally:
            with self._guard:
                self._running.discard(episode)
                self._lock(episode, fcntl.F_UNLCK)

    def append(self, permit: Permit, input_digest: str, texts: Sequence[str]) -> Result:
        """Append the entries that were decided on. Raises WorkError unless these are their texts."""
        grant = granted(permit, "transcript", input_digest, TranscriptGrant)
        if [one.digest for one in grant.entries] != [digest(text.encode("utf-8")) for text in texts]:
            raise PermitMissingError(
                "the permit names other entries", remedy="request a decision on exactly these entries"
            )
        lines = b"".join(
            json.dumps({**entry.model_dump(mode="json"), "text": text}).encode() + b"\n"
            for entry, text in zip(grant.entries, texts, strict=True)
        )
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._file(grant.episode), _APPEND, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(lines)
        return Result("appended", {"entries": len(texts)})

    def read(self, episode: str) -> list[dict[str, Any]]:
        """The entries of an episode, as far as they can be read."""
        try:
            lines = self._file(episode).read_text(encoding="utf-8").splitlines()
            return [json.loads(line) for line in lines]
        except (OSError, ValueError, RecursionError):
            return []

    def close(self) -> None:
        """Release every lock."""
        with self._guard:
            if self._locks is not None:
                os.close(self._locks)
            self._locks = None

    def _file(self, episode: str) -> Path:
        return self._path / f"{episode}.jsonl"

    def _lock(self, episode: str, kind: int) -> bool:
        """Lock or unlock the byte of this episode; whether that was possible."""
        if self._locks is None:
            self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._locks = os.open(self._path / _LOCKS, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        byte = int.from_bytes(sha256(episode.encode()).digest()[:7])
        try:
            fcntl.fcntl(self._locks, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, byte, 1, 0))
        except (BlockingIOError, PermissionError):
            return False
        return True
