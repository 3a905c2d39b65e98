"""One encoder and one digest: canonical JSON bytes and their SHA-256."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import orjson

_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


@dataclass(frozen=True, slots=True)
class RawJson:
    """JSON text whose reader has refused bad UTF-8, doubled keys, NaN, and more than its limits allow."""

    data: bytes


def canonical(value: Any) -> bytes:
    """JSON with sorted keys, no spaces, UTF-8, no NaN. Raises ValueError or TypeError on what has no such form."""
    try:
        data = orjson.dumps(value, option=_OPTIONS)
    except TypeError:  # integers beyond 64 bits, and what has no form at all
        return _exact(value)
    return _exact(value) if b"null" in data else data  # orjson writes null for NaN


def parse(data: bytes) -> Any:
    """The value of JSON text that nobody could have made to deceive, such as OPA's. Raises ValueError.

    Doubled keys are not noticed: what callers send is read by readers of its own.
    """
    return orjson.loads(data)


def digest(data: bytes) -> str:
    """`sha256:` and the SHA-256 of exactly these bytes in hex."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _exact(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")
