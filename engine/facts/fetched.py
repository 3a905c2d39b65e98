"""Facts about fetched content: the types that its bytes have, and whether it has one reading.

Nothing is kept of the values: only what the policy asks for. Reading JSON builds them once, so their number is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.documents.strict_json import (
    MAX_SAFE_INTEGER,
    AmbiguousJsonError,
    NotJsonError,
    has_more_values,
    read_strict,
)
from engine.facts.media import TEXT, Sniffer

JSON = "application/json"

_CHUNK = 256 << 10


@dataclass(frozen=True, slots=True)
class FetchedContent:
    """`types` as at point `media`, and `application/json` for JSON; `problem` where readers differ on its value."""

    types: tuple[str, ...]
    problem: str | None = None


def fetched_content(data: bytearray, most_values: int) -> FetchedContent:
    """Look at the whole content; JSON with more than `most_values` values has a problem. Never raises."""
    view, position = memoryview(data), 0

    def read(size: int) -> bytes:
        nonlocal position
        position += size
        return bytes(view[position - size : position])

    sniffer = Sniffer(read)
    while sniffer.read(_CHUNK):
        pass
    types = sniffer.types()
    if TEXT not in types:
        return FetchedContent(types)
    if has_more_values(data, most_values):
        return FetchedContent((JSON, *types), f"has more than {most_values:,} values")
    try:
        read_strict(str(view, "utf-8"), largest=MAX_SAFE_INTEGER)
    except NotJsonError:
        return FetchedContent(types)
    except AmbiguousJsonError as error:
        return FetchedContent((JSON, *types), error.problem)
    return FetchedContent((JSON, *types))
