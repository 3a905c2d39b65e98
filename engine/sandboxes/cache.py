"""Cached probe results in the state folder, signed with a key of this installation and bound to this machine.

state/
├── keys/sandbox.key       32 random bytes, made at first use
└── sandbox/<backend>.json what the probe of a backend saw, on what, when

A file that was edited, belongs to another user, was signed with another key or has another name inside is no
result, and the backend is tried again.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from admission_adapters.sandbox.probe.rows import Row
from engine.documents.canonical import canonical
from engine.model import Digest, Model

_KEY_BYTES = 32
_LARGEST = 1 << 20  # bytes of a result; one has some 20 KiB
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_DOMAIN = b"admission-engine sandbox 1\n"


KEPT_SECONDS = 86_400
"""A result is taken again after a day at most: what a machine enforces can change without anything that we look at."""

AHEAD_SECONDS = 60
"""Tolerated clock skew in seconds; a result from further in the future does not count."""


class Result(Model):
    """The result of a probe of `backend` at `probed_at` (seconds since 1970 UTC) on the machine `subject`."""

    format: Literal[1] = 1
    backend: str
    subject: Digest
    probed_at: int
    rows: tuple[Row, ...]

    @property
    def whole(self) -> bool:
        """Whether every boundary is enforced."""
        return bool(self.rows) and all(row.enforced for row in self.rows)

    def stands(self, subject: str, now: int, seconds: int = KEPT_SECONDS) -> bool:
        """Whether it is of this subject, and at most so many seconds old."""
        return self.subject == subject and now - seconds <= self.probed_at <= now + AHEAD_SECONDS


class _Signed(Model):
    result: Result
    mac: str


def read(state: Path, backend: str) -> Result | None:
    """The stored result of this installation; None if there is none, or it is not authentic."""
    key = _private(state / "keys" / "sandbox.key", _KEY_BYTES)
    text = _private(_place(state, backend), _LARGEST)
    if key is None or text is None or len(key) != _KEY_BYTES:
        return None
    try:
        signed = _Signed.model_validate_json(text)
    except ValueError:
        return None
    same = hmac.compare_digest(_mac(key, signed.result), signed.mac)
    return signed.result if same and signed.result.backend == backend else None


def write(state: Path, result: Result) -> bool:
    """Store a result; False if that fails, which only costs a probe at the next start."""
    try:
        key = _key(state / "keys" / "sandbox.key")
        signed = _Signed(result=result, mac=_mac(key, result)).model_dump(mode="json")
        place = _place(state, result.backend)
        with _aside(place, canonical(signed)) as aside:
            aside.replace(place)
    except OSError:
        return False
    return True


def _place(state: Path, backend: str) -> Path:
    return state / "sandbox" / f"{backend}.json"


def _mac(key: bytes, result: Result) -> str:
    fields: dict[str, Any] = result.model_dump(mode="json")
    return hmac.new(key, _DOMAIN + canonical(fields), sha256).hexdigest()


def _key(path: Path) -> bytes:
    """The key, created at first use; with several concurrent ones, the first is kept. Raises OSError."""
    if _private(path, _KEY_BYTES) is None:
        with _aside(path, os.urandom(_KEY_BYTES)) as aside, suppress(FileExistsError):
            path.hardlink_to(aside)
    key = _private(path, _KEY_BYTES)
    if key is None or len(key) != _KEY_BYTES:
        raise PermissionError
    return key


@contextmanager
def _aside(path: Path, data: bytes) -> Iterator[Path]:
    """A complete, synced file (0600) beside its final name, removed at the end."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(aside, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    try:
        yield aside
    finally:
        aside.unlink(missing_ok=True)


def _private(path: Path, most: int) -> bytes | None:
    """The bytes of a regular file that only we can access; None for anything else."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            private = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _OTHERS
            data = file.read(most + 1) if private else b""
    except OSError:
        return None
    return data if private and len(data) <= most else None
