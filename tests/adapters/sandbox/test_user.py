"""Who a sandbox is, and what an engine that is gone has left: by facts only.

Nothing here starts a sandbox, for that ends what others have left: `mutation/` changes how that is chosen.
"""

from __future__ import annotations

import os

import pytest

from admission_adapters.sandbox.run import user
from admission_adapters.sandbox.run.user import User, is_first
from engine.errors import WorkError

EVERY = {"uid_map": [range(1 << 32)], "gid_map": [range(1 << 32)]}
OWN = "60800\t60800\t60800\t60800"


@pytest.mark.parametrize(
    ("uids", "numbers", "first"),
    [
        (OWN, "4711 1", True),
        (OWN, "4711 12 1", True),
        (OWN, "1", False),
        (OWN, "4711", False),
        (OWN, "4711 2", False),
        (OWN, "1 4711", False),
        ("0 0 0 0", "4711 1", False),
        ("60801 60801 60801 60801", "4711 1", False),
        ("60800 60800 0 60800", "4711 1", False),
    ],
)
def test_only_the_first_process_of_a_namespace_of_the_user_is_a_sandbox(uids: str, numbers: str, first: object) -> None:
    assert is_first({"Uid": f"\t{uids}", "NSpid": f"\t{numbers}", "PPid": "\t1"}, 60_800) is first


def _chosen(monkeypatch: pytest.MonkeyPatch, euid: int, maps: dict[str, list[range]]) -> User:
    monkeypatch.setattr(os, "geteuid", lambda: euid)
    monkeypatch.setattr(user, "_mapped", maps.__getitem__)
    return user.sandbox_user.__wrapped__()


def test_only_root_gets_a_different_sandbox_user(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _chosen(monkeypatch, 1234, EVERY) == User(1234, os.getegid(), own=True)
    found = _chosen(monkeypatch, 0, EVERY)
    assert (found.uid, found.own) == (found.gid, False)
    assert found.uid in range(60_800, 61_184)


@pytest.mark.parametrize(
    ("uids", "gids", "uid"),
    [
        ([range(60_900, 60_901)], [range(1 << 32)], 60_900),
        ([range(1 << 32)], [range(60_900, 60_901)], 60_900),
        ([range(1), range(61_183, 61_184)], [range(1), range(60_000, 62_000)], 61_183),
    ],
)
def test_the_sandbox_user_has_a_mapped_uid_and_gid(
    monkeypatch: pytest.MonkeyPatch, uids: list[range], gids: list[range], uid: int
) -> None:
    assert _chosen(monkeypatch, 0, {"uid_map": uids, "gid_map": gids}) == User(uid, uid, own=False)


def test_root_without_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for uids, gids in (([range(1)], EVERY["gid_map"]), (EVERY["uid_map"], [range(1)])):
        with pytest.raises(WorkError, match="no unprivileged user"):
            _chosen(monkeypatch, 0, {"uid_map": uids, "gid_map": gids})


def test_the_user_of_a_sandbox_has_no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user, "_CANDIDATES", (0, 60_801))
    assert _chosen(monkeypatch, 0, EVERY).uid == 60_801
