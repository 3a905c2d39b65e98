"""A release is proposed, switched to and active, and engines say how far they are. Two stores are two processes."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import StateError
from engine.state import activations, in_force
from engine.state.rows import ActivationRow, Agreement, ReplicaRow
from engine.state.store import Store
from tests.expect import there
from tests.state.samples import NOW, activate, opened, release, together


class RefusedByTestError(Exception):
    """Raised where a release must not follow."""


def test_each_step_of_an_activation_sets_the_served_releases(store: Store) -> None:
    assert (store.agreement(), store.in_force().agreed.served) == (Agreement(), ())
    asked: list[ActivationRow] = []
    first = release(9)
    assert store.propose(first, asked.append) == Agreement(None, first)
    assert asked == []  # there is none that it must follow
    store.move(first, "withdrawn", NOW)
    one = activate(store, release(1))
    assert one == replace(release(1), id=one.id, state="active", switched_at=NOW + 1, ended_at=NOW + 2)
    two = release(2)
    seen: list[ActivationRow] = []
    assert store.propose(two, seen.append) == Agreement(one, two) == store.agreement()
    assert seen == [one]
    assert store.agreement().served == (one.digest,)
    switching = there(store.move(two, "switching", NOW + 3))
    assert store.in_force().agreed.served == (one.digest, two.digest)
    assert store.propose(release(3), seen.append) == Agreement(one, switching)  # not before the switch has ended
    active = store.move(switching, "active", NOW + 4)
    assert (store.agreement(), store.in_force().agreed.served) == (Agreement(active), (two.digest,))
    assert store.move(two, "withdrawn", NOW) is None  # it is no longer what that row says
    assert store.activations(2) == (active, one)


@pytest.mark.parametrize("change", ["propose", "leave"])
def test_an_agreement_does_not_change_between_its_read_and_its_update(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another engine ends a switch between the two steps of a change, or rather waits until the change is made."""
    with opened(tmp_path / "state") as store, opened(tmp_path / "state") as other:
        one, two, three = activate(store, release(1)), release(2), release(3)
        store.propose(three, lambda _: None)
        moved: list[ActivationRow | None] = []

        def end_switch() -> None:
            moved.append(other.move(three, "switching", NOW + 3))
            if moved[0] is not None:
                moved.append(other.move(moved[0], "active", NOW + 4))

        engine = threading.Thread(target=end_switch)
        read = in_force.agreement

        def between(connection: Any) -> Agreement:
            found = read(connection)
            monkeypatch.setattr(activations, "agreement", read)
            engine.start()
            engine.join(0.3)  # far more than it needs
            return found

        monkeypatch.setattr(activations, "agreement", between)
        if change == "propose":
            assert store.propose(two, lambda _: None) == Agreement(one, two)
            expected = Agreement(one, two)
        else:
            left = there(store.leave(one.id, "user:lee", None, NOW + 5))
            expected = Agreement(left)
        engine.join()
        assert moved == [None]
        assert store.agreement() == expected


def test_a_new_proposal_replaces_the_pending_one_unless_it_is_refused(store: Store) -> None:
    one, two, three = activate(store, release(1)), release(2), release(3)
    store.propose(two, lambda _: None)

    def refuse(_: ActivationRow) -> None:
        raise RefusedByTestError

    with pytest.raises(RefusedByTestError):
        store.propose(three, refuse)
    assert store.agreement() == Agreement(one, two)
    assert store.propose(three, lambda _: None) == Agreement(one, three)
    assert store.move(two, "switching", NOW) is None
    assert [row.state for row in store.activations(9)] == ["proposed", "withdrawn", "active"]
    again = release(1)
    assert store.propose(again, lambda _: None) == Agreement(one)  # it is active: nothing else is wanted any more
    assert store.agreement() == Agreement(one)


def test_of_concurrent_proposals_or_switches_one_succeeds(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        rows = [release(number) for number in range(1, 9)]
        together(8, lambda number: store.propose(rows[number], lambda _: None))
        states = [row.state for row in store.activations(9)]
        assert sorted(states) == ["proposed", *["withdrawn"] * 7]
        proposed = there(store.agreement().next)
        moved = together(8, lambda _: store.move(proposed, "switching", NOW))
        assert [row is None for row in moved].count(False) == 1


def test_no_process_decides_under_an_earlier_release_once_another_is_active(tmp_path: Path) -> None:
    with opened(tmp_path) as deciding, opened(tmp_path) as activating:
        before: tuple[str, ...] = ()
        for number in range(1, 4):
            assert deciding.in_force().agreed.served == before
            before = (activate(activating, release(number)).digest,)
            assert deciding.in_force().agreed.served == before


def test_engines_beat_and_are_removed_unless_they_beat_again(store: Store) -> None:
    row = ReplicaRow("1", "node:1", 1, NOW, "sha256:…")
    store.beat(row)
    later = replace(row, beats=2, wanted="x", ready=True, fault="no\0thing\ndo this")
    store.beat(later)
    assert store.replicas() == (replace(later, fault="no?thing\ndo this"),)
    store.remove_replica("1", 1)
    assert len(store.replicas()) == 1
    store.remove_replica("1", 2)
    assert store.replicas() == ()


@pytest.mark.parametrize("changes", [{"sequence": 0.5}, {"actor": ""}, {"name": "x" * 2_000}, {"proposed_at": -1}])
def test_an_invalid_release_is_refused(store: Store, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"text|integer"):
        store.propose(release(1, **changes), lambda _: None)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *[("digest", value) for value in ("sha256:", "sha256:" + "A" * 64, "", "sha256:" + "a" * 64 + "\n")],
        *[("state", value) for value in ("paused", "ACTIVE", "")],
    ],
)
def test_a_damaged_activation_is_refused(store: Store, column: str, value: str) -> None:
    activate(store, release(1))

    def spoil(connection: Any) -> None:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f"UPDATE activations SET {column} = ?", (value,))  # noqa: S608

    store._database.write(spoil)
    store.await_in_force()
    for read in (store.in_force, store.agreement):
        with pytest.raises(StateError, match="is damaged"):
            read()


def test_an_agreement_is_left_once_by_the_id_of_its_activation(store: Store) -> None:
    """Engines that follow agreements keep that release, others may decide by a policy of their own."""
    leave = ("user:lee", "each team has its own", NOW + 3)
    assert store.leave(release(1).id, *leave) is None
    one = activate(store, release(1))
    assert not store.in_force().may_decide(None, follows=False)
    assert store.leave(release(1).id, *leave) is None
    store.propose(release(2), lambda _: None)
    left = store.leave(one.id, *leave)
    assert left == replace(one, left_at=NOW + 3, left_by="user:lee", left_reason="each team has its own")
    assert store.leave(one.id, *leave) is None
    assert store.agreement() == Agreement(left)
    assert [row.state for row in store.activations(9)] == ["withdrawn", "active"]
    now = store.in_force()
    assert [now.may_decide(one.digest, follows=follows) for follows in (True, False)] == [True, True]
    assert [now.may_decide(None, follows=follows) for follows in (True, False)] == [False, True]
    assert [now.may_decide(release(2).digest, follows=follows) for follows in (True, False)] == [False, True]


def test_after_it_was_left_the_same_release_or_a_later_one_is_agreed_on_again(store: Store) -> None:
    one = activate(store, release(1))
    store.leave(one.id, "user:lee", None, NOW)
    seen: list[int] = []
    again = release(1)
    proposed = store.propose(again, lambda before: seen.append(before.sequence))
    assert (proposed.next, seen) == (again, [1])  # what was left may still not be followed by an earlier release
    assert store.in_force().may_decide(None, follows=False)
    store.move(again, "switching", NOW)
    assert not store.in_force().may_decide(None, follows=False)
    assert store.leave(one.id, "user:lee", None, NOW) is None  # a switch that has begun is finished first


def test_the_first_agreement_cannot_be_left_during_its_switch(store: Store) -> None:
    first = release(1)
    store.propose(first, lambda _: None)
    assert store.leave(first.id, "user:lee", None, NOW) is None
    switching = store.move(first, "switching", NOW)
    assert not store.in_force().may_decide(None, follows=False)
    assert store.leave(first.id, "user:lee", None, NOW) is None
    assert store.agreement() == Agreement(None, switching)


def test_without_an_agreement_only_following_engines_are_bound(store: Store) -> None:
    """As after a restore of a state from before the first activation."""
    assert store.in_force().may_decide(None, follows=False)
    assert not store.in_force().may_decide(release(1).digest, follows=True)


def test_a_departure_binds_no_process_once_it_is_answered(tmp_path: Path) -> None:
    with opened(tmp_path) as deciding, opened(tmp_path) as leaving:
        one = activate(leaving, release(1))
        assert not deciding.in_force().may_decide(None, follows=False)
        leaving.leave(one.id, "user:lee", None, NOW)
        assert deciding.in_force().may_decide(None, follows=False)
