"""Reads the record for people: the last lines that fit a filter, without checking the chain."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path

from engine.errors import Location, RecordError
from engine.record.chain import Entry, LineError, Lines, parse
from engine.record.layout import DECISIONS
from engine.record.model import RecoveryRecord, ResultRecord


@dataclass(frozen=True, slots=True)
class Filter:
    """What to show; None shows all. `decision_id` may be its first characters; its result is shown with it."""

    decision_id: str | None = None
    point: str | None = None
    outcome: str | None = None
    mode: str | None = None

    def admits(self, entry: Entry) -> bool:
        """Whether to show this entry."""
        body = entry.body
        if isinstance(body, RecoveryRecord):
            return self == Filter()
        if self.decision_id is not None and not body.decision_id.startswith(self.decision_id):
            return False
        if isinstance(body, ResultRecord):
            return self.point is None and self.outcome is None and self.mode is None
        wanted = ((self.point, body.point), (self.outcome, body.outcome.value), (self.mode, body.mode.value))
        return all(want is None or want == value for want, value in wanted)


@dataclass(frozen=True, slots=True)
class Selection:
    """The last entries that fit, oldest first; how many fit in all; the lines that are no records."""

    entries: tuple[Entry, ...]
    fitting: int
    unreadable: tuple[int, ...]


def select(state: Path, wanted: Filter, limit: int) -> Selection:
    """The last `limit` entries that fit. Raises RecordError where the file cannot be read."""
    last: deque[Entry] = deque(maxlen=limit)
    unreadable: deque[int] = deque(maxlen=100)
    fitting = number = 0
    hint = None if wanted.decision_id is None else wanted.decision_id.encode("utf-8", "replace")
    path = state / DECISIONS
    try:
        with path.open("rb") as file:
            for number, line in enumerate(Lines(file), start=1):
                if hint is not None and hint not in line:
                    continue  # reading JSON costs ten times as much as searching it
                try:
                    entry = parse(line)
                except LineError:
                    unreadable.append(number)
                    continue
                if wanted.admits(entry):
                    fitting += 1
                    last.append(entry)
    except FileNotFoundError:
        return Selection((), 0, ())
    except LineError:
        unreadable.append(number + 1)
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        raise RecordError(
            f"the record cannot be read: {reason}",
            remedy="check the state folder and its permissions",
            where=Location(str(path)),
        ) from error
    return Selection(tuple(last), fitting, tuple(unreadable))
