"""What every decision must know: the stops in force, and which releases may decide. Any process may change them.

Each process reads both together and uses the result for `recent_seconds`. A call that changes one of them returns after
that time, when no process uses an older result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args

from engine.errors import StateError
from engine.model import DIGEST
from engine.state.backend import Backend, Connection, Operation
from engine.state.part import Part, Recent, columns
from engine.state.rows import ActivationRow, ActivationState, Agreement, StateLimits, StopRow

T = TypeVar("T")

STOPS = f"SELECT {columns(StopRow)} FROM stops"  # noqa: S608
ACTIVATIONS = f"SELECT {columns(ActivationRow)} FROM activations"  # noqa: S608
_CURRENT = (
    f"{ACTIVATIONS} WHERE number >="  # noqa: S608
    " coalesce((SELECT max(number) FROM activations WHERE state = 'active'), 0)"
    " ORDER BY number"
)


@dataclass(frozen=True, slots=True)
class InForce:
    """The stops that were not lifted, the oldest first, and what the engines have agreed on."""

    stops: tuple[StopRow, ...] = ()
    agreed: Agreement = field(default_factory=Agreement)

    def may_decide(self, digest: str | None, *, follows: bool) -> bool:
        """Whether an engine may decide under the release with this digest; None: under no release.

        One that `follows` agreements has no policy of its own.
        """
        return digest in self.agreed.served or not (follows or self.agreed.binding)


class Current(Part):
    """The part of the store that reads and changes what is in force."""

    def __init__(self, database: Backend, limits: StateLimits) -> None:
        super().__init__(database, limits)
        self._in_force = Recent(database, limits, _read)

    def in_force(self) -> InForce:
        """What was in force at most `recent_seconds` ago. Raises StateError."""
        return self._in_force.get()

    def at_hand(self) -> bool:
        """Whether it was read so recently that it can be had without asking the database."""
        return self._in_force.at_hand()

    def await_in_force(self) -> None:
        """Wait until no process decides by what was in force before this call."""
        self._in_force.changed()

    def _changed(self, operation: Operation[T]) -> T:
        """Change it. When this returns, no process decides by what was in force before."""
        result = self._database.write(operation)
        self.await_in_force()
        return result


def agreement(connection: Connection) -> Agreement:
    """What the engines have agreed on. Raises StateError for a row that no engine wrote."""
    by_state = {row.state: row for row in (activation(*found) for found in connection.execute(_CURRENT))}
    return Agreement(by_state.get("active"), by_state.get("switching") or by_state.get("proposed"))


def activation(*found: Any) -> ActivationRow:
    """An activation from its columns. Raises StateError."""
    row = ActivationRow(*found)
    if DIGEST.fullmatch(row.digest) is None or row.state not in get_args(ActivationState):
        raise StateError(
            "the state cannot be used: the release that its engines agreed on is damaged",
            remedy="restore the state from a backup, or have its owner correct the table `activations`",
        )
    return row


def _read(connection: Connection) -> InForce:
    stops = connection.execute(f"{STOPS} WHERE lifted_at IS NULL ORDER BY number")
    return InForce(tuple(StopRow(*row) for row in stops), agreement(connection))
