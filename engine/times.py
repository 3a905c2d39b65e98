"""Times as callers, people and the record write them: RFC 3339, the engine's own always in UTC with `Z`."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

_MINUTE = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
RFC3339 = f"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})[Tt ]({_MINUTE}:[0-5][0-9](?:\\.[0-9]{{1,32}})?)([Zz]|[+-]{_MINUTE})"
_RFC3339 = re.compile(RFC3339)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=4096)
def moment(text: str) -> datetime:
    """A time of RFC 3339 with any offset, in UTC; what is below a microsecond is cut off. Raises ValueError."""
    if (match := _RFC3339.fullmatch(text)) is None:
        raise ValueError("not a time of RFC 3339")
    day, time, offset = match.groups()
    try:
        return datetime.fromisoformat(f"{day}T{time}{offset.upper()}").astimezone(UTC)
    except OverflowError as error:
        raise ValueError("not in the years 1 to 9999 of UTC") from error


def seconds(text: str) -> int:
    """Whole seconds from 1970 to a time of RFC 3339. Raises ValueError, also for a time before 1970."""
    if (count := (moment(text) - _EPOCH) // timedelta(seconds=1)) < 0:
        raise ValueError("before 1970")
    return count


def timestamp(at: datetime) -> str:
    """A time with microseconds, the only form of times in the record. `at` must be aware of its time zone."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def time_text(at: int | datetime) -> str:
    """A time to the second, the form of times in answers; an integer is in seconds since 1970 UTC."""
    try:
        known = at.astimezone(UTC) if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return "after the year 9999"
    return known.isoformat(timespec="seconds")[:-6] + "Z"


def row_document(row: Any) -> dict[str, Any]:
    """A row of the state as JSON, with its times as text."""
    return with_times(asdict(row))


def with_times(document: dict[str, Any]) -> dict[str, Any]:
    """A document with its times, the integers whose names end in `_at`, as text."""
    return {
        name: time_text(value) if name.endswith("_at") and isinstance(value, int) else value
        for name, value in document.items()
    }
