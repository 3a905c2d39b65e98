"""What an engine loads next where a proposal was abandoned, or the active release is lacking. Tests play the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.agreement import follower
from engine.agreement.follower import Follower, Follows
from engine.errors import EngineError
from engine.opa.reply import unavailable
from engine.state.rows import ActivationRow, ReplicaRow
from engine.state.store import Store
from tests.expect import there
from tests.processes import until
from tests.state.samples import NOW, activate, opened, release


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "_RETRY_SECONDS", 0.05)


@dataclass(slots=True)
class Played:
    """An engine: what it serves, which releases it lacks, and what it tried to load."""

    store: Store
    serves: str | None = None
    lacks: set[str] = field(default_factory=set)
    late: int = 0  # so many tries, OPA does not start in time
    tried: list[str] = field(default_factory=list)

    def serve(self, row: ActivationRow, await_switch: Callable[[], None]) -> None:
        self.tried.append(row.digest)
        if row.digest in self.lacks:
            raise EngineError(f"release {row.sequence} is not here", remedy="put it there")
        if self.late >= len(self.tried):
            raise unavailable("OPA was not ready in time")
        await_switch()
        self.serves = row.digest

    @property
    def told(self) -> ReplicaRow | None:
        return next(iter(self.store.replicas()), None)


@contextmanager
def following(played: Played) -> Iterator[None]:
    own = Follower(
        "node:1", Follows(lambda: played.store, lambda: played.serves, played.serve, lambda *_: None, lambda: NOW)
    )
    own.start()
    try:
        yield
    finally:
        own.close()
        own.join()


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    """An engine that comes back with release 1, while release 2 is active and release 3 was proposed."""
    with opened(tmp_path / "state") as store:
        activate(store, release(1))
        activate(store, release(2))
        store.propose(release(3), lambda _: None)
        yield Played(store, release(1).digest)


def test_an_abandoned_proposal_does_not_affect_the_active_release(played: Played) -> None:
    with following(played):
        until(lambda: played.serves == release(2).digest)
        proposed = played.store.agreement().next
        assert proposed is not None
        until(lambda: (told := played.told) is not None and told.ready and told.wanted == proposed.id)
    assert played.tried == [release(2).digest, release(3).digest]


def test_an_unloadable_active_release_does_not_block_the_proposed_one(played: Played) -> None:
    """A release that is to mend this is not kept from being activated."""
    played.lacks = {release(2).digest}
    with following(played):
        until(lambda: (told := played.told) is not None and told.ready)
        proposed = played.store.agreement().next
        assert proposed is not None
        told = played.told
        assert told is not None
        assert (told.wanted, told.fault) == (proposed.id, None)
        played.store.move(proposed, "switching", NOW)
        until(lambda: played.serves == release(3).digest)


def test_without_a_loadable_release_the_fault_is_reported_and_the_active_one_retried(played: Played) -> None:
    played.lacks = {release(2).digest, release(3).digest}
    with following(played):
        until(lambda: (told := played.told) is not None and told.fault is not None and "release 3" in told.fault)
        proposed = played.store.agreement().next
        told = played.told
        assert proposed is not None
        assert told is not None
        assert told.wanted == proposed.id
        tries = len(played.tried)
        until(lambda: played.tried[tries:].count(release(2).digest) > 2)
        assert played.tried.count(release(3).digest) == 1
        played.lacks.clear()
        until(lambda: played.serves == release(2).digest)


@pytest.mark.parametrize(("late", "loaded"), [(4, True), (9, False)])
def test_an_opa_that_does_not_start_in_time_is_tried_again(played: Played, late: int, loaded: bool) -> None:  # noqa: FBT001
    """A few times, and nobody gives the proposal up meanwhile."""
    played.serves, played.late = release(2).digest, late
    with following(played):
        proposed = there(played.store.agreement().next)
        until(lambda: (told := played.told) is not None and told.wanted == proposed.id and (told.ready or told.fault))
        told = there(played.told)
        assert (told.ready, told.fault is None, len(played.tried)) == (loaded, loaded, 5)
