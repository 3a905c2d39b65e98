"""Which engines of a state live, and when a switch that they follow has ended.

Clocks of machines need not agree: an engine lives as long as its count of beats is seen to grow.
"""

from __future__ import annotations

from engine.state.part import clock
from engine.state.rows import ActivationRow, ReplicaRow
from engine.state.store import Store

BEAT_SECONDS = 1.0
"""Between two beats of an engine."""

GONE_SECONDS = 10.0
"""Seconds without a beat after which an engine is gone: no activation waits for it, and it decides nothing."""

SWITCH_SECONDS = 10.0
"""For engines to begin with a release that they have loaded, and to end what they decide under the one before."""

LOOK_SECONDS = 0.1
"""Between two looks at the state, of engines and of the one who activates."""


class LiveReplicas:
    """The engines of a state, as one process has seen them."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, float]] = {}
        self._switching: tuple[str, float] | None = None

    def look(self, store: Store) -> tuple[ReplicaRow, ...]:
        """Every engine that is not known to be gone; the others are removed. Raises StateError."""
        now, live = clock(), []
        for row in store.replicas():
            beats, since = self._seen.get(row.id, (None, now))
            if beats != row.beats:
                self._seen[row.id] = row.beats, now
            elif now - since >= GONE_SECONDS:
                store.remove_replica(row.id, row.beats)
                continue
            live.append(row)
        return tuple(live)

    def end_switch(self, store: Store, row: ActivationRow, now: int) -> None:
        """Make a switching release the active one, if every live engine serves it or it has taken too long.

        An engine that does not serve it decides nothing from then on. Raises StateError.
        """
        if self._switching is None or self._switching[0] != row.id:
            self._switching = row.id, clock()
        late = clock() - self._switching[1] >= SWITCH_SECONDS
        if late or all(one.serving == row.digest for one in self.look(store)):
            store.move(row, "active", now)
