"""One encoder and one digest: canonical JSON bytes and their SHA-256."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import orjson

Fragment = orjson.Fragment
"""JSON text within a value."""

_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


@dataclass(frozen=True, slots=True)
class RawJson:
    """Checked JSON text: valid UTF-8, without duplicate keys or NaN, within the limits of its reader."""

    data: bytes


def canonical(value: Any) -> bytes:
    """JSON with sorted keys, no spaces, UTF-8, no NaN. Raises ValueError or TypeError for other values."""
    try:
        data = orjson.dumps(value, option=_OPTIONS)
    except TypeError:  # integers beyond 64 bits, and what has no form at all
        return _exact(value)
    return _exact(value) if b"null" in data else data  # orjson writes null for NaN


def in_order(value: Any) -> bytes:
    """JSON with the keys in their order, and each Fragment as it is. Raises TypeError for what has no form."""
    return orjson.dumps(value)


def parse(data: bytes) -> Any:
    """The value of trusted JSON text, such as OPA's. Raises ValueError.

    Duplicate keys are not detected: requests have their own strict readers.
    """
    return orjson.loads(data)


def compact(value: Any) -> bytes:
    """JSON of a value that was read from JSON, without white space, its keys in their order."""
    try:
        return orjson.dumps(value)
    except TypeError:  # integers beyond 64 bits
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def digest(data: bytes) -> str:
    """`sha256:` and the SHA-256 of exactly these bytes in hex."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _exact(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")
