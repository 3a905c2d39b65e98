"""One encoder and one digest: canonical JSON bytes and their SHA-256."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(value: Any) -> bytes:
    """JSON with sorted keys, no spaces, UTF-8, no NaN. Raises ValueError on what has no such form."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def digest(data: bytes) -> str:
    """`sha256:` and the SHA-256 of exactly these bytes in hex."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
