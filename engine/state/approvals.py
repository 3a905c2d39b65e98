"""Approvals: requested, then granted or refused; granted, then used by one decision, which may give it back.

Rows that somebody decided on are evidence and stay for ever; those that nobody decided on go some time
after they expired.
"""

# ruff: noqa: A002, D102 - the names and words of the interface

from __future__ import annotations

import json
import sqlite3
from typing import Any, Literal

from engine.files import shown
from engine.state.part import Part, encodable, names, text, whole
from engine.state.store import (
    ApprovalClosedError,
    ApprovalRow,
    ApprovalState,
    ApprovalUnknownError,
    Binding,
    Claim,
    NewApproval,
)

_COLUMNS = (
    'id, point, input_digest, rules, "values", requester, codes, state, created_at, expires_at,'
    " approver, reason, resolved_at, decision_id, used_at, requester_via"
)
_BOUND = 'input_digest = ? AND point = ? AND rules = ? AND "values" = ? AND requester IS ?'
_OPEN = (
    f"SELECT {_COLUMNS} FROM approvals WHERE {_BOUND}"  # noqa: S608
    " AND codes = ? AND state IN ('requested', 'granted') AND expires_at > ? ORDER BY number DESC LIMIT 1"
)
_CLAIM = (
    "UPDATE approvals SET state = 'used', decision_id = ?, used_at = ?"  # noqa: S608
    f" WHERE id = ? AND state = 'granted' AND {_BOUND}"
)
_ONE = f"SELECT {_COLUMNS} FROM approvals WHERE id = ?"  # noqa: S608
_NEWEST = f"SELECT {_COLUMNS} FROM approvals ORDER BY number DESC LIMIT ?"  # noqa: S608
_NEWEST_IN = f"SELECT {_COLUMNS} FROM approvals WHERE state = ? ORDER BY number DESC LIMIT ?"  # noqa: S608
_LONGEST_REASON = 4_000  # characters; a person's sentence or two


class Approvals(Part):
    """The part of the store that remembers what people decided."""

    def request_approval(self, new: NewApproval) -> ApprovalRow:
        _check(new)

        def operation(connection: sqlite3.Connection) -> ApprovalRow:
            _sweep(connection, new.created_at - self._limits.unanswered_seconds, self._limits.sweep)
            found = connection.execute(_OPEN, (*_bound(new), json.dumps(new.codes), new.created_at)).fetchone()
            return _insert(connection, new) if found is None else _row(found)

        return self._database.write(operation)

    def approval(self, id: str) -> ApprovalRow | None:
        return self._database.read(lambda connection: _find(connection, id))

    def approvals(self, state: ApprovalState | None, limit: int) -> tuple[ApprovalRow, ...]:
        whole("limit", limit)
        query, values = (_NEWEST, (limit,)) if state is None else (_NEWEST_IN, (state, limit))
        return self._database.read(lambda connection: tuple(map(_row, connection.execute(query, values))))

    def resolve(
        self, id: str, state: Literal["granted", "refused"], approver: str, reason: str | None, now: int
    ) -> ApprovalRow:
        if state not in {"granted", "refused"}:
            raise ValueError("an approval is resolved as granted or refused")
        text("approver", approver)
        if reason is not None and len(encodable("reason", reason)) > _LONGEST_REASON:
            raise ValueError(f"a reason has at most {_LONGEST_REASON} characters")
        whole("now", now)

        def operation(connection: sqlite3.Connection) -> ApprovalRow:
            found = _find(connection, id)
            if found is None:
                raise ApprovalUnknownError(
                    f"there is no approval `{shown(id, 40)}`", remedy="see `engine approvals list` for the ids"
                )
            _check_open(found, now)
            connection.execute(
                "UPDATE approvals SET state = ?, approver = ?, reason = ?, resolved_at = ? WHERE id = ?",
                (state, approver, reason, now, id),
            )
            return _known(connection, id)

        return self._database.write(operation)

    def withdraw_approval(self, id: str) -> None:
        self._database.write(
            lambda connection: connection.execute("DELETE FROM approvals WHERE id = ? AND state = 'requested'", (id,))
        )

    def claim(self, id: str, decision_id: str, binding: Binding, now: int) -> Claim:
        text("decision_id", decision_id)
        whole("now", now)

        def operation(connection: sqlite3.Connection) -> Claim:
            before = _find(connection, id)
            if before is None:
                return Claim(None, taken=False)
            changed = connection.execute(_CLAIM, (decision_id, now, id, *_bound(binding))).rowcount
            return Claim(before, taken=changed == 1)

        return self._database.write(operation)

    def unclaim(self, id: str, decision_id: str) -> None:
        def operation(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE approvals SET state = 'granted', decision_id = NULL, used_at = NULL"
                " WHERE id = ? AND state = 'used' AND decision_id = ?",
                (id, decision_id),
            )

        self._database.write(operation)


def _check(new: NewApproval) -> None:
    for name in ("point", "input_digest", "rules", "values"):
        text(name, getattr(new, name))
    for name in ("requester", "requester_via"):
        if getattr(new, name) is not None:
            text(name, getattr(new, name))
    for code in new.codes:
        text("code", code)
    if whole("created_at", new.created_at) >= whole("expires_at", new.expires_at):
        raise ValueError("an approval expires after it is requested")


def _bound(binding: Binding) -> tuple[str | None, ...]:
    """The values of `_BOUND`, in its order."""
    return (binding.input_digest, binding.point, binding.rules, binding.values, binding.requester)


def _check_open(found: ApprovalRow, now: int) -> None:
    if found.state != "requested":
        raise ApprovalClosedError(
            f"the approval `{found.id}` was {found.state} before",
            remedy="see `engine approvals show`; whoever needs another one asks again",
        )
    if now >= found.expires_at:
        raise ApprovalClosedError(
            f"the approval `{found.id}` has expired", remedy="let whoever needs it ask again, and decide in time"
        )


def _insert(connection: sqlite3.Connection, new: NewApproval) -> ApprovalRow:
    connection.execute(
        'INSERT INTO approvals (id, point, input_digest, rules, "values", requester, codes, state, created_at,'
        " expires_at, requester_via) VALUES (?, ?, ?, ?, ?, ?, ?, 'requested', ?, ?, ?)",
        (
            *(new.id, new.point, new.input_digest, new.rules, new.values, new.requester),
            *(json.dumps(new.codes), new.created_at, new.expires_at, new.requester_via),
        ),
    )
    return _known(connection, new.id)


def _sweep(connection: sqlite3.Connection, before: int, limit: int) -> None:
    connection.execute(
        "DELETE FROM approvals WHERE number IN"
        " (SELECT number FROM approvals WHERE state = 'requested' AND expires_at < ? LIMIT ?)",
        (before, limit),
    )


def _find(connection: sqlite3.Connection, id_: str) -> ApprovalRow | None:
    if not id_.isascii():
        return None  # no id of ours, and perhaps without a UTF-8 form
    found = connection.execute(_ONE, (id_,)).fetchone()
    return None if found is None else _row(found)


def _known(connection: sqlite3.Connection, id_: str) -> ApprovalRow:
    return _row(connection.execute(_ONE, (id_,)).fetchone())


def _row(values: tuple[Any, ...]) -> ApprovalRow:
    fields = [*values]
    fields[6] = names(fields[6])  # codes
    return ApprovalRow(*fields)
