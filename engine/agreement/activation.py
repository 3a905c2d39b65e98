"""Activating a release for all engines of a state: proposed, loaded by each, switched to, and then the only one.

The activating process may be killed at any moment. Engines drop a proposal after a while, or when another one replaces
it; a switch that has begun they end themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from engine.agreement.live import LOOK_SECONDS, LiveReplicas
from engine.binaries import Binary
from engine.errors import EngineError, Location, PolicyError, Problem
from engine.policy_bundle.last_release import LastRelease
from engine.policy_bundle.release import verify_release
from engine.policy_bundle.release_folder import STATEMENT
from engine.state.part import clock
from engine.state.rows import ActivationRow, ReplicaRow
from engine.state.store import Store

READY_SECONDS = 120.0
"""For every engine to load a release; three engines on two cores with load 28 took 37."""

_LATE = f"this engine has not loaded the release within {READY_SECONDS:.0f} seconds"
_STATUS = "see `engine policy status`, and activate it again"


def activate_release(
    folder: Path,
    key: Path,
    binary: Binary,
    store: Store,
    actor: str,
    reason: str | None,
    now: Callable[[], int] = lambda: int(time.time()),
) -> tuple[ActivationRow, tuple[ReplicaRow, ...]]:
    """Have all engines of a state serve this release, for `actor`; returns its activation, and the engines that live.

    One that does not serve it decides nothing until it does. Raises PolicyError for a release that is not approved and
    signed with `key`, that is older than the active one, or that an engine cannot load: then all go on with the active
    one. Raises StateError when the outcome is unknown.
    """
    contents = verify_release(folder, key, binary)
    statement, approval = contents.statement, contents.approval
    new = ActivationRow(
        *(statement.name, statement.sequence, statement.digest, statement.author),
        *("" if approval is None else approval.approver, actor, reason, now()),
    )
    live = LiveReplicas()
    while (agreed := store.propose(new, lambda active: _demand_after(active, new, folder))).next is not None:
        if agreed.next.id == new.id:
            _switch(new, store, live, now)
        _end(agreed.next, store, live, now)  # ours, or one whose caller has ended
        if agreed.next.id == new.id:
            break
    active = store.agreement().active
    if active is None or active.digest != new.digest:
        raise _replaced(new)
    return active, live.look(store)


def _demand_after(active: ActivationRow, new: ActivationRow, folder: Path) -> None:
    """Raise PolicyError unless a release may follow the active one."""
    problem = _last(active).refuses(_last(new))
    if problem is not None:
        raise PolicyError((Problem(Location(str(folder / STATEMENT)), *problem),))


def _last(row: ActivationRow) -> LastRelease:
    return LastRelease(name=row.name, sequence=row.sequence, digest=row.digest)


def _switch(new: ActivationRow, store: Store, live: LiveReplicas, now: Callable[[], int]) -> None:
    """Switch to a proposed release once every live engine has loaded it; else withdraw it. Raises EngineError."""
    try:
        _await_loaded(new, store, live)
        switching = store.move(new, "switching", now())
    except BaseException:  # Ctrl-C too
        with suppress(EngineError):  # without effect once it is switching: then the engines end it
            store.move(new, "withdrawn", now())
        raise
    if switching is None:
        raise _replaced(new)


def _await_loaded(new: ActivationRow, store: Store, live: LiveReplicas) -> None:
    due = clock() + READY_SECONDS
    while waiting := [one for one in live.look(store) if one.wanted != new.id or not one.ready]:
        failed = [one for one in waiting if one.wanted == new.id and one.fault is not None]
        if failed:
            raise PolicyError(tuple(_problem(one, one.fault) for one in failed))
        if clock() >= due:
            raise PolicyError(tuple(_problem(one, None if one.wanted else one.fault) for one in waiting))
        if (proposed := store.agreement().next) is None or proposed.id != new.id:
            raise _replaced(new)
        time.sleep(LOOK_SECONDS)


def _problem(one: ReplicaRow, fault: str | None) -> Problem:
    message, _, remedy = (fault or _LATE).partition("\n")
    return Problem(Location(one.name), message, remedy or _STATUS)


def _end(row: ActivationRow, store: Store, live: LiveReplicas, now: Callable[[], int]) -> None:
    """Wait until a switch has ended."""
    while (current := store.agreement().next) is not None and current.id == row.id:
        if current.state != "switching":
            raise _replaced(row)
        live.end_switch(store, current, now())
        time.sleep(LOOK_SECONDS)
    store.await_in_force()


def _replaced(new: ActivationRow) -> EngineError:
    return EngineError(
        f"release {new.sequence} of `{new.name}` was not activated: another activation took its place",
        remedy=_STATUS,
        code="policy_stale",
    )
