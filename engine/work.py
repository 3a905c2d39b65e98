"""Permit and hand to result: approved work runs only through an adapter that takes the permit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.errors import EngineError, WorkError
from engine.model import Permit, Result

Hand = Callable[[Permit, Any], Result]
"""An adapter: takes the permit and what gather left open; calls `permit.demand` before anything else."""


def work(permit: Permit, hand: Hand, opened: Any) -> Result:
    """Run the hand. Raises WorkError, whatever the hand raised."""
    try:
        return hand(permit, opened)
    except EngineError:
        raise
    except Exception as error:
        raise WorkError(
            f"the approved work failed with {type(error).__name__}", remedy="see the adapter's own log, then ask again"
        ) from error
