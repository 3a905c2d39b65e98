"""Approvals: requested, then granted or refused. One decision may use a granted approval, or release it unused.

Resolved rows are evidence and stay for ever; unresolved ones are removed some time
after they expired.
"""

from __future__ import annotations

import json
from dataclasses import astuple
from typing import Literal

from engine.state.backend import Connection
from engine.state.checks import demand_storable, encodable, text, whole
from engine.state.part import Part, columns, find, insert, made, storable
from engine.state.rows import ApprovalClosedError, ApprovalRow, ApprovalState, ApprovalUnknownError, Binding

_ALL = f"SELECT {columns(ApprovalRow)} FROM approvals"  # noqa: S608
_ONE = f"{_ALL} WHERE id = ?"
_BOUND = (
    'input_digest = ? AND point = ? AND rules = ? AND "values" = ?'
    " AND (requester = ? OR coalesce(requester, CAST(? AS TEXT)) IS NULL)"
)
_OPEN = (
    f"{_ALL} WHERE {_BOUND} AND codes = ? AND state IN ('requested', 'granted') AND expires_at > ?"
    " ORDER BY number DESC LIMIT 1"
)
_RESOLVE = (
    "UPDATE approvals SET state = ?, approver = ?, reason = ?, resolved_at = ?"  # noqa: S608
    f" WHERE id = ? AND state = 'requested' AND expires_at > ? RETURNING {columns(ApprovalRow)}"
)
_CLAIM = (
    "UPDATE approvals SET state = 'used', decision_id = ?, used_at = ?"  # noqa: S608
    f" WHERE id = ? AND state = 'granted' AND {_BOUND} RETURNING id"
)
_UNANSWERED = "state = 'requested' AND expires_at < ?"
_LONGEST_REASON = 4_000  # characters; a person's sentence or two


class Approvals(Part):
    """The part of the store for approvals."""

    def request_approval(self, new: ApprovalRow) -> ApprovalRow:
        """The unexpired row with the same binding that is requested or granted, else the new one."""
        _check(new)
        binding = Binding(new.point, new.input_digest, new.rules, new.values, new.requester)
        seconds = self._limits.unanswered_seconds

        def operation(connection: Connection) -> ApprovalRow:
            self._tidy(connection, "approvals", "number", _UNANSWERED, new.created_at, seconds)
            connection.lock("approvals", *map(str, astuple(binding)))
            found = connection.execute(_OPEN, (*_bound(binding), json.dumps(new.codes), new.created_at)).fetchone()
            if found is not None:
                return made(ApprovalRow, *found)
            insert(connection, "approvals", new)
            return new

        return self._database.write(operation)

    def approval(self, id: str) -> ApprovalRow | None:
        """The approval with this id, in any state and of any age."""
        return self._row(ApprovalRow, _ONE, storable(id))

    def approvals(self, state: ApprovalState | None, limit: int) -> tuple[ApprovalRow, ...]:
        """The newest approvals, of one state or of all; at most `limit`."""
        whole("limit", limit)
        if state is None:
            return self._rows(ApprovalRow, f"{_ALL} ORDER BY number DESC LIMIT ?", limit)
        return self._rows(ApprovalRow, f"{_ALL} WHERE state = ? ORDER BY number DESC LIMIT ?", state, limit)

    def resolve(
        self, id: str, state: Literal["granted", "refused"], approver: str, reason: str | None, now: int
    ) -> ApprovalRow:
        """Resolve a requested, unexpired approval. Raises ApprovalUnknownError or ApprovalClosedError."""
        if state not in {"granted", "refused"}:
            raise ValueError("an approval can only be granted or refused")
        text("approver", approver)
        if reason is not None and len(encodable("reason", reason)) > _LONGEST_REASON:
            raise ValueError(f"a reason has at most {_LONGEST_REASON} characters")
        whole("now", now)

        def operation(connection: Connection) -> ApprovalRow:
            done = connection.execute(_RESOLVE, (state, approver, reason, now, storable(id), now)).fetchone()
            if done is not None:
                return made(ApprovalRow, *done)
            found = find(connection, ApprovalRow, _ONE, id)
            if found is None:
                raise ApprovalUnknownError(id)
            raise _closed(found)

        return self._database.write(operation)

    def claim(self, id: str, decision_id: str, binding: Binding, now: int) -> tuple[ApprovalRow | None, bool]:
        """Use a granted approval with exactly this binding; only one caller succeeds.

        Returns the approval as it was before, None if it is unknown, and whether this claim has used it.
        A request with another binding changes nothing. The expiry is not checked: whether the row counts
        is for the policy to decide.
        """
        text("decision_id", decision_id)
        whole("now", now)

        def operation(connection: Connection) -> tuple[ApprovalRow | None, bool]:
            before = find(connection, ApprovalRow, f"{_ONE} /* FOR UPDATE */", id)
            if before is None:
                return None, False
            changed = connection.execute(_CLAIM, (decision_id, now, id, *_bound(binding))).fetchone()
            return before, changed is not None

        return self._database.write(operation)

    def unclaim(self, id: str, decision_id: str) -> None:
        """Return an approval that this decision used to the state `granted`; no effect for all others."""
        self._withdraw(
            "UPDATE approvals SET state = 'granted', decision_id = NULL, used_at = NULL"
            " WHERE id = ? AND state = 'used' AND decision_id = ?",
            id,
            decision_id,
        )


def _check(new: ApprovalRow) -> None:
    demand_storable(new)
    if new.created_at >= new.expires_at:
        raise ValueError("an approval expires after it is requested")
    if new.state != "requested":
        raise ValueError("a new approval must be in state requested")


def _bound(binding: Binding) -> tuple[str | None, ...]:
    """The values of `_BOUND`, in its order."""
    return (binding.input_digest, binding.point, binding.rules, binding.values, *[binding.requester] * 2)


def _closed(found: ApprovalRow) -> ApprovalClosedError:
    if found.state != "requested":
        return ApprovalClosedError(
            f"the approval `{found.id}` is already {found.state}",
            remedy="see `engine approvals show`; the requester can request another approval",
        )
    return ApprovalClosedError(
        f"the approval `{found.id}` has expired",
        remedy="have the requester request it again, and resolve it in time",
    )
