"""A release is activated for engines that a test plays: ready, in fault, silent or gone; and beside another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.agreement import activation, live
from engine.agreement.activation import activate_release
from engine.binaries import find_binary
from engine.errors import EngineError, PolicyError
from engine.policy_bundle.release_folder import Statement
from engine.state import open_store
from engine.state.rows import ActivationRow, ReplicaRow
from engine.state.store import Store
from tests.policy_bundle.releases import Keys
from tests.state.samples import NOW, activate, release

Activate = Callable[..., tuple[ActivationRow, tuple[ReplicaRow, ...]]]


@pytest.fixture
def digest(made: Path) -> str:
    return Statement.model_validate_json((made / "release.json").read_bytes()).digest


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path / "state")
    yield store
    store.close()


@pytest.fixture
def activating(store: Store, made: Path, keys: Keys) -> Activate:
    """Activates the release; `meanwhile` is called each time that the clock is read, with how often it was."""

    def act(meanwhile: Callable[[int], None] = lambda _: None) -> tuple[ActivationRow, tuple[ReplicaRow, ...]]:
        read = 0

        def now() -> int:
            nonlocal read
            read += 1
            meanwhile(read)
            return NOW

        return activate_release(made, keys.public, find_binary(), store, "user:lee", "as decided", now)

    return act


def states(store: Store) -> list[str]:
    return [row.state for row in store.activations(9)]


def engine(**changes: Any) -> ReplicaRow:
    return replace(ReplicaRow("1", "node:1", 1, NOW, None), **changes)


def test_without_engines_a_release_is_active_at_once_and_activation_is_idempotent(
    store: Store, activating: Activate, digest: str
) -> None:
    row, engines = activating()
    assert (row.state, row.digest, row.actor, row.approver, engines) == (
        *("active", digest, "user:lee", "approver@example.org"),
        (),
    )
    assert activating() == (row, ())
    assert states(store) == ["active"]


def test_a_concurrent_proposal_replaces_an_activation(store: Store, activating: Activate) -> None:
    def rival(read: int) -> None:
        if read == 2:  # before the switch
            store.propose(release(9, name="default"), lambda _: None)

    with pytest.raises(EngineError, match="release 2 of `default` was not activated: another") as caught:
        activating(rival)
    assert caught.value.code == "policy_stale"
    assert states(store) == ["proposed", "withdrawn"]


def test_a_switch_of_a_caller_that_has_ended_is_ended_first(store: Store, activating: Activate, digest: str) -> None:
    first = release(1, name="default")
    store.propose(first, lambda _: None)
    store.move(first, "switching", NOW)
    assert activating()[0].digest == digest
    assert states(store) == ["active", "active"]


def test_a_release_older_than_the_active_one_is_refused(store: Store, activating: Activate) -> None:
    activate(store, release(3, name="default"))
    with pytest.raises(PolicyError, match="this is a rollback: release 2 is older than 3"):
        activating()
    assert states(store) == ["active"]


def test_an_engine_that_cannot_load_the_release_is_named_and_blocks_it(
    store: Store, activating: Activate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activation, "READY_SECONDS", 0.2)
    store.beat(engine(wanted="an earlier one", fault="old\nold"))
    with pytest.raises(PolicyError, match="has not loaded the release within") as caught:
        activating()
    assert [str(one.where) for one in caught.value.problems] == ["node:1"]
    store.beat(engine(fault="OPA was not ready in time\nrun `engine doctor`"))  # it tries again
    with pytest.raises(PolicyError, match="OPA was not ready in time"):
        activating()

    def fails(_: object) -> tuple[ReplicaRow, ...]:
        proposed = store.agreement().next
        return (engine(wanted=None if proposed is None else proposed.id, fault="it is not here\nput it there"),)

    monkeypatch.setattr(live.LiveReplicas, "look", lambda _, store: fails(store))
    with pytest.raises(PolicyError, match="it is not here") as caught:
        activating()
    assert [one.remedy for one in caught.value.problems] == ["put it there"]
    assert states(store) == ["withdrawn"] * 3


def test_a_dead_engine_is_removed_after_its_timeout(
    store: Store, activating: Activate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "GONE_SECONDS", 0.3)
    store.beat(engine())
    assert activating()[1] == ()
    assert store.replicas() == ()


def test_the_wait_for_an_engine_that_does_not_switch_is_bounded(
    store: Store, activating: Activate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SWITCH_SECONDS", 0.3)

    def ready(_: object) -> tuple[ReplicaRow, ...]:
        proposed = store.agreement().next
        return (engine(wanted=None if proposed is None else proposed.id, ready=True),)

    monkeypatch.setattr(live.LiveReplicas, "look", lambda _, store: ready(store))
    row, engines = activating()
    assert (row.state, [one.serving for one in engines]) == ("active", [None])
    assert store.in_force().agreed.served == (row.digest,)


def test_after_the_agreement_was_left_an_older_release_is_refused_and_the_same_one_binds_again(
    store: Store, activating: Activate, digest: str
) -> None:
    later = activate(store, release(3, name="default"))
    store.leave(later.id, "user:lee", None, NOW)
    with pytest.raises(PolicyError, match="this is a rollback: release 2 is older than 3"):
        activating()
    same = activate(store, release(2, name="default", digest=digest))
    store.leave(same.id, "user:lee", None, NOW)
    assert not store.agreement().binding
    row, _ = activating()
    assert (row.digest, row.left_at, store.agreement().binding) == (digest, None, True)


@pytest.mark.parametrize("seen_at", [0, 2**40])
def test_liveness_of_engines_does_not_depend_on_their_clocks(
    store: Store, monkeypatch: pytest.MonkeyPatch, seen_at: int
) -> None:
    """An engine whose clock is off by years lives as long as it beats."""
    monkeypatch.setattr(live, "GONE_SECONDS", 0.0)
    lives = live.LiveReplicas()
    for beats in range(1, 4):
        store.beat(engine(beats=beats, seen_at=seen_at))
        assert len(lives.look(store)) == 1
    assert lives.look(store) == ()
