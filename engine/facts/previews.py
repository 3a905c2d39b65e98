"""A short preview of arguments for records: JSON without secrets, cut at a number of bytes (B27)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.canonical import canonical

LONGEST = 256
"""Bytes of a preview: enough to recognize a call, too few to be its arguments."""

_ITEMS = 32
"""Items of an object or list that can show in so few bytes."""

_LEVELS = 8
"""Levels that can show."""

_MARK = "[redacted:"


def preview(arguments: Mapping[str, Any], clean: Callable[[Any], Any]) -> tuple[str, bool]:
    """The beginning of the arguments as JSON, and whether that is not all of it.

    `clean` takes secrets out of a JSON value. It sees every string whole: half a secret looks like none.
    """
    text, cut = "", len(arguments) > _ITEMS
    for name in sorted(arguments)[:_ITEMS]:
        if len(text) > LONGEST:
            cut = True
            break
        head, shortened = _head(arguments[name], _LEVELS)
        cut = cut or shortened
        text += ("," if text else "{") + canonical(clean({name: head})).decode("utf-8")[1:-1]
    text = text or "{"
    data = text.encode("utf-8") + (b"" if cut else b"}")
    if len(data) <= LONGEST:
        return data.decode("utf-8"), cut
    return _whole_marks(data[:LONGEST].decode("utf-8", "ignore")), True


def _head(value: Any, levels: int) -> tuple[Any, bool]:
    """A value without what lies beyond the first items and levels, and whether something does."""
    if not isinstance(value, dict | list):
        return value, False
    if levels == 0:
        return None, True
    first = sorted(value.items())[:_ITEMS] if isinstance(value, dict) else list(enumerate(value[:_ITEMS]))
    heads = [(key, *_head(item, levels - 1)) for key, item in first]
    cut = len(value) > _ITEMS or any(shortened for *_, shortened in heads)
    return ({key: head for key, head, _ in heads} if isinstance(value, dict) else [head for _, head, _ in heads]), cut


def _whole_marks(text: str) -> str:
    """The text without the piece of a redaction mark that it may end in."""
    start = text.rfind("[")
    end = text[start:] if start >= 0 else ""
    return text[:start] if end and "]" not in end and (_MARK.startswith(end) or end.startswith(_MARK)) else text
