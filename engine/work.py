"""Permit and hand to result: approved work runs only through an adapter that takes the permit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.errors import EngineError, WorkError
from engine.model import Permit, Result


@dataclass(frozen=True, slots=True)
class Job:
    """What the work is about: the digest of the input that was decided on, and what gather left open."""

    input_digest: str
    opened: Any


Hand = Callable[[Permit, Job], Result]
"""An adapter: demands, before anything else, that the permit is for exactly this job."""


def work(permit: Permit, hand: Hand, job: Job) -> Result:
    """Run the hand. Raises WorkError, whatever the hand raised."""
    try:
        return hand(permit, job)
    except EngineError:
        raise
    except Exception as error:
        raise WorkError(
            f"the approved work failed with {type(error).__name__}", remedy="see the adapter's own log, then ask again"
        ) from error
