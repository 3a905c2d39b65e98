"""Lines of what others write: the same however they cut it, and at no cost but that of its bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from admission_adapters.lines import Lines
from admission_adapters.runner.events import EventLines
from admission_adapters.runner.harness import Harness
from admission_adapters.runner.mcp_server import ServerLines

WHOLE = b"one\n\ntwo\r\nthree"


@pytest.mark.parametrize("size", range(1, len(WHOLE) + 2))
def test_lines_are_split_alike_in_pieces_of_any_size(size: int) -> None:
    lines, found = Lines(), list[bytes]()
    for at in range(0, len(WHOLE), size):
        found += lines.feed(WHOLE[at : at + size])
    assert (found, bytes(lines.open)) == ([b"one", b"", b"two\r"], b"three")
    assert lines.feed(b"") == []
    assert lines.feed(b"\nmore\n") == [b"three", b"more"]


NOBODY: Any = None
LISTENERS: dict[str, Callable[[], Callable[[bytes], Any]]] = {
    "harness": lambda: Harness({}, NOBODY).hear,
    "MCP server": lambda: ServerLines(lambda _: None).hear,
    "runner": lambda: EventLines(lambda _: None, ()).feed,
}
PIECE = {"runner": 512}
"""Bytes of a piece: the lines of a runner may be the longest."""


@pytest.mark.parametrize("who", LISTENERS)
def test_a_long_line_in_small_pieces_is_read_in_linear_time(who: str) -> None:
    hear, began = LISTENERS[who](), time.process_time()
    for _ in range(16_000):
        hear(b"x" * PIECE.get(who, 16))
    assert time.process_time() - began < 1  # it was seconds, of the thread that enforces the limits
