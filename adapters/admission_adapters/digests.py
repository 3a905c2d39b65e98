"""Digests as decisions and records write them: `sha256:` and 64 hex digits."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(data: bytes) -> str:
    """The digest of exactly these bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def json_digest(value: Any) -> str:
    """The digest of a JSON value, whatever the order of its keys. Raises ValueError or TypeError for other values."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return digest(text.encode("utf-8", "surrogatepass"))
