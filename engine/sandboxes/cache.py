"""Results of probes in the state folder, each signed with a key of this installation and bound to this machine.

state/
├── keys/sandbox.key       32 random bytes, made at first use
└── sandbox/<backend>.json what the probe of a backend saw, on what, when

What was edited, belongs to somebody else, was signed with another key or does not say what its name says is no
result, and the backend is tried again.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from adapters.sandbox.probe import Row
from engine.canonical import canonical
from engine.model import Digest, Model

_KEY_BYTES = 32
_LARGEST = 1 << 20  # bytes of a result; one has some 20 KiB
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_DOMAIN = b"admission-engine sandbox 1\n"


class Result(Model):
    """What the probe of `backend` saw at `probed_at` (seconds since 1970 UTC) on the machine `subject`."""

    format: Literal[1] = 1
    backend: str
    subject: Digest
    probed_at: int
    rows: tuple[Row, ...]

    @property
    def whole(self) -> bool:
        """Whether every boundary is held by somebody."""
        return bool(self.rows) and all(row.enforced for row in self.rows)


class _Signed(Model):
    result: Result
    mac: str


_SIGNED = TypeAdapter(_Signed)


def read(state: Path, backend: str) -> Result | None:
    """The result as this installation wrote it; None where there is none, or none to believe."""
    key = _private(state / "keys" / "sandbox.key", _KEY_BYTES)
    text = _private(_place(state, backend), _LARGEST)
    if key is None or text is None or len(key) != _KEY_BYTES:
        return None
    try:
        signed = _SIGNED.validate_json(text)
    except (ValidationError, ValueError):
        return None
    same = hmac.compare_digest(_mac(key, signed.result), signed.mac)
    return signed.result if same and signed.result.backend == backend else None


def write(state: Path, result: Result) -> bool:
    """Keep a result; False where that is not possible, which costs a probe at the next start and nothing else."""
    try:
        key = _key(state / "keys" / "sandbox.key")
        signed = {"result": result.model_dump(mode="json"), "mac": _mac(key, result)}
        place = _place(state, result.backend)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = _aside(place, canonical(signed))
        try:
            aside.replace(place)
        finally:
            aside.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _place(state: Path, backend: str) -> Path:
    return state / "sandbox" / f"{backend}.json"


def _mac(key: bytes, result: Result) -> str:
    fields: dict[str, Any] = result.model_dump(mode="json")
    return hmac.new(key, _DOMAIN + canonical(fields), sha256).hexdigest()


def _key(path: Path) -> bytes:
    """The key, made at first use: the first one stays, whoever else was making one. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if _private(path, _KEY_BYTES) is None:
        aside = _aside(path, os.urandom(_KEY_BYTES))
        try:
            with suppress(FileExistsError):
                path.hardlink_to(aside)
        finally:
            aside.unlink(missing_ok=True)
    key = _private(path, _KEY_BYTES)
    if key is None or len(key) != _KEY_BYTES:
        raise PermissionError
    return key


def _aside(path: Path, data: bytes) -> Path:
    """A whole, synced file (0600) beside the one it is going to be."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(aside, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return aside


def _private(path: Path, most: int) -> bytes | None:
    """The bytes of a regular file that is ours alone; None for anything else."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _OTHERS
            data = file.read(most + 1) if ours else b""
    except OSError:
        return None
    return data if ours and len(data) <= most else None
