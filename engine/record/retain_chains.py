"""Performs a retention decision on every chain: here if no engine uses it, else by the engine that does.

For a chain in use, an order is stored in the state, which that engine performs (standing.py).
"""

from __future__ import annotations

import time
from contextlib import closing, suppress
from pathlib import Path

from engine.errors import EngineError
from engine.record.chains import chain_folder, chain_folders
from engine.record.heads import Heads
from engine.record.layout import LOCK
from engine.record.log import RecordLog, unavailable
from engine.record.retention import Retained, RetentionOrder
from engine.record.storage import LockHeldError, Storage

_WAIT_SECONDS = 30.0
"""For engines to carry out an order: they look for one every second, and verify their chain before they remove."""

_POLL_SECONDS = 0.05


def retain_chains(state: Path, own: int, order: RetentionOrder, heads: Heads) -> dict[int, Retained | None]:
    """Perform an order on all chains but our own; returns what was removed from each, None for nothing.

    Chains that are missing in the result are in use by engines that did not perform it in time, but still may.
    Raises EngineError for the first chain that failed, after every other one was tried.
    """
    waiting = [chain for chain in chain_folders(state) if chain != own]
    removed: dict[int, Retained | None] = {}
    failed: list[EngineError] = []
    ordered: set[int] = set()
    deadline = time.monotonic() + _WAIT_SECONDS
    while waiting and time.monotonic() < deadline:
        for chain in tuple(waiting):
            try:
                removed[chain] = _carry_out(state, chain, order, heads)
            except LockHeldError:
                if chain not in ordered:
                    heads.leave_order(chain, order)
                    ordered.add(chain)
            except EngineError as error:
                failed.append(error)
                waiting.remove(chain)
        removed |= heads.outcomes(order.decision_id)
        waiting = [chain for chain in waiting if chain not in removed]
        if waiting:
            time.sleep(_POLL_SECONDS)
    if failed:
        raise failed[0]
    return removed


def _carry_out(state: Path, chain: int, order: RetentionOrder, heads: Heads) -> Retained | None:
    """Perform an order on a chain that no engine uses. Raises LockHeldError, EngineError."""
    with closing(Storage(chain_folder(state, chain))) as storage:
        try:
            storage.lock(LOCK, 0.0)
        except OSError as error:
            raise unavailable(error, storage.place) from error
        with RecordLog.open(storage, lock_seconds=0.0, heads=lambda: heads.record_heads().get(chain, {})) as log:
            removed = order.carry_out(log, state)
        with suppress(EngineError):
            heads.remember_head(chain, log.opened.identity.installation, log.opened.vouched)
        heads.carried_out(chain, order.decision_id, removed)
        return removed
