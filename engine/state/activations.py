"""Activations: the release that the engines of this state have agreed on, and how far each engine is.

    proposed ──every live engine has loaded it──> switching ──every live engine serves it──> active ──> left
        └── an engine cannot load it, or another one is proposed ──> withdrawn

Rows of activations are evidence and stay for ever; those of engines that are gone are removed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, replace

from engine.state.backend import Connection
from engine.state.checks import demand_storable, encodable, text, whole
from engine.state.in_force import ACTIVATIONS, Current, activation, agreement
from engine.state.part import columns, insert, storable
from engine.state.rows import ActivationRow, ActivationState, Agreement, ReplicaRow

_MOVE = (
    "UPDATE activations SET state = ?, switched_at = ?, ended_at = ?"  # noqa: S608
    f" WHERE id = ? AND state = ? RETURNING {columns(ActivationRow)}"
)
_BEAT = (
    f"INSERT INTO replicas ({columns(ReplicaRow)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
    " ON CONFLICT (id) DO UPDATE SET beats = excluded.beats, seen_at = excluded.seen_at,"
    " serving = excluded.serving, wanted = excluded.wanted, ready = excluded.ready, fault = excluded.fault"
)
_LEAVE = (
    "UPDATE activations SET left_at = ?, left_by = ?, left_reason = ?"  # noqa: S608
    f" WHERE id = ? RETURNING {columns(ActivationRow)}"
)
_LONGEST_FAULT = 4_000  # characters of a message and its remedy


class Activations(Current):
    """The part of the store for activations."""

    def agreement(self) -> Agreement:
        """What the engines have agreed on. Raises StateError, also for a row that no engine wrote."""
        return self._database.read(agreement)

    def activations(self, limit: int) -> tuple[ActivationRow, ...]:
        """The newest activations, in any state."""
        found = self._found(f"{ACTIVATIONS} ORDER BY number DESC LIMIT ?", whole("limit", limit))
        return tuple(activation(*one) for one in found)

    def propose(self, new: ActivationRow, demand: Callable[[ActivationRow], None]) -> Agreement:
        """Propose a release in the place of one that is still proposed; returns what is agreed on then.

        Nothing is proposed while a switch is in progress: `next` of the result is that one; and nothing if the release
        is active, but then the other one is withdrawn. `demand` gets the release
        that is served now and raises where `new` must not follow it.
        """
        demand_storable(new)

        def operation(connection: Connection) -> Agreement:
            connection.lock("activations")
            now = agreement(connection)
            if now.next is not None and now.next.state == "switching":
                return now
            if now.active is not None:
                demand(now.active)
            if now.next is not None:
                _moved(connection, now.next, "withdrawn", new.proposed_at)
            if now.active is not None and now.active.digest == new.digest and now.active.left_at is None:
                return Agreement(now.active)
            insert(connection, "activations", new)
            return Agreement(now.active, new)

        return self._database.write(operation)

    def move(self, row: ActivationRow, state: ActivationState, now: int) -> ActivationRow | None:
        """Move an activation on from the state in this row; returns its new row, None if it has another state by now.

        When this returns for `active`, no process decides under an earlier release.
        """
        whole("now", now)

        def operation(connection: Connection) -> ActivationRow | None:
            connection.lock("activations")
            return _moved(connection, row, state, now)

        return self._changed(operation)

    def leave(self, id: str, actor: str, reason: str | None, now: int) -> ActivationRow | None:
        """Leave the agreement on the release of this activation, and withdraw a proposal; returns its row.

        None if it is not the active one, was left before, or another one is being switched to.
        """
        text("actor", actor)
        encodable("reason", reason or "")
        whole("now", now)

        def operation(connection: Connection) -> ActivationRow | None:
            connection.lock("activations")
            agreed = agreement(connection)
            if not agreed.binding or agreed.active is None or agreed.active.id != id:
                return None
            if agreed.next is not None:
                if agreed.next.state == "switching":
                    return None
                _moved(connection, agreed.next, "withdrawn", now)
            return activation(*connection.execute(_LEAVE, (now, actor, reason, id)).fetchone())

        return self._changed(operation)

    def beat(self, replica: ReplicaRow) -> None:
        """Store how far an engine is."""
        demand_storable(replica)
        fault = None if replica.fault is None else storable(replica.fault[:_LONGEST_FAULT])
        stored = replace(replica, fault=fault)
        self._change(_BEAT, *(int(one) if isinstance(one, bool) else one for one in astuple(stored)))

    def replicas(self) -> tuple[ReplicaRow, ...]:
        """Every engine that was not removed, by name; some may be gone."""
        return self._rows(ReplicaRow, f"SELECT {columns(ReplicaRow)} FROM replicas ORDER BY name, id")  # noqa: S608

    def remove_replica(self, id: str, beats: int | None = None) -> None:
        """Remove an engine that has ended, or one that is gone: unless it has beaten again since."""
        self._change("DELETE FROM replicas WHERE id = ? AND beats = coalesce(?, beats)", storable(id), beats)


def _moved(connection: Connection, row: ActivationRow, state: ActivationState, now: int) -> ActivationRow | None:
    switched = now if state == "switching" else row.switched_at
    ended = None if state == "switching" else now
    found = connection.execute(_MOVE, (state, switched, ended, row.id, row.state)).fetchone()
    return None if found is None else activation(*found)
