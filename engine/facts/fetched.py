"""Facts about fetched content: the types that its bytes have, and whether it has one reading.

Only what the policy asks for is kept. JSON is read in pieces, so that its values take little memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.documents.json_pieces import check_json
from engine.documents.strict_json import AmbiguousJsonError, NotJsonError
from engine.facts.media import TEXT, Sniffer

JSON = "application/json"

_CHUNK = 64 << 10


@dataclass(frozen=True, slots=True)
class FetchedContent:
    """`types` as at point `media`, and `application/json` for JSON; `problem` where readers differ on its value."""

    types: tuple[str, ...]
    problem: str | None = None


def fetched_content(data: bytearray) -> FetchedContent:
    """Look at the whole content. Never raises."""
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
    try:
        check_json(data)
    except NotJsonError:
        return FetchedContent(types)
    except AmbiguousJsonError as error:
        return FetchedContent((JSON, *types), error.problem)
    return FetchedContent((JSON, *types))
