"""Where texts are cut before secrets are looked for: half a secret is not recognized."""

from __future__ import annotations

LAST_LINE = 1_024
"""Characters of the last line of a cut text that are left out at most."""


def without_last_line(text: str) -> str:
    """A cut text without its last line, or without the end of a long one: it may be half a secret."""
    start = max(0, len(text) - LAST_LINE)
    end = text.rfind("\n", start) + 1
    return text[: end or start]


def printed(stream: bytes, total: int) -> str:
    """What a program printed, as text; `total` are the bytes before it was cut."""
    text = stream.decode("utf-8", "replace")
    return text if total <= len(stream) else without_last_line(text)
