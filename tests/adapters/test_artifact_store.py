"""The artifact store: by digest, for its user alone, whole or not at all, kept for its time and no less."""

from __future__ import annotations

import errno
import os
import stat
import time
from functools import partial
from pathlib import Path

import pytest

from admission_adapters.files import artifact_store
from admission_adapters.files.artifact_store import ArtifactStore
from engine.documents.canonical import digest
from engine.errors import WorkError
from tests.threads import at_once

NOW = 1_700_000_000
DAY = 86_400


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "state" / "artifacts"


@pytest.fixture
def store(root: Path) -> ArtifactStore:
    return ArtifactStore(root)


# covers: C62
def test_a_stored_artifact_is_found_by_its_digest(root: Path, store: ArtifactStore) -> None:
    assert store.get(digest(b"code")) is None
    assert not root.exists()
    assert store.put(b"code", NOW, 90) == digest(b"code")
    assert store.get(digest(b"code")) == store.get(digest(b"code").removeprefix("sha256:")) == b"code"
    assert ArtifactStore(root).get(digest(b"code")) == b"code"
    assert store.put(b"", NOW, 1) == digest(b"")
    for unknown in ("", "sha256:", "../" * 20, "a" * 64, digest(b"code").upper(), "sha256:" + "\u0660" * 64):
        assert store.get(unknown) is None


def test_only_the_user_of_the_engine_can_read_it(root: Path, store: ArtifactStore) -> None:
    store.put(b"code", NOW, 90)
    (file,) = [path for path in root.rglob("*") if path.is_file()]
    assert stat.S_IMODE(file.stat().st_mode) == 0o400
    assert {stat.S_IMODE(path.stat().st_mode) for path in (root, file.parent)} == {0o700}
    assert file.name == digest(b"code").removeprefix("sha256:")


# covers: A88.1 C62.1
def test_an_artifact_is_kept_exactly_for_its_longest_retention(store: ArtifactStore) -> None:
    log, code = store.put(b"log", NOW, 90), store.put(b"code", NOW, 1)
    store.put(b"code", NOW - 10 * DAY, 2)  # never for less than was promised
    assert store.sweep(NOW + DAY - 1) == 0
    assert store.sweep(NOW + DAY) == 1
    assert (store.get(code), store.get(log)) == (None, b"log")
    store.put(b"log", NOW + 10 * DAY, 90)  # the same log again: kept for longer
    assert store.sweep(NOW + 90 * DAY) == 0
    assert store.get(log) == b"log"
    assert store.sweep(NOW + 100 * DAY) == 1
    assert store.get(log) is None


def test_storing_an_artifact_removes_expired_ones(store: ArtifactStore) -> None:
    old = store.put(b"old", NOW, 1)
    store.put(b"new", NOW + 2 * DAY, 1)
    assert store.get(old) is None


def test_a_clock_that_is_set_ahead_removes_nothing(store: ArtifactStore) -> None:
    now = int(time.time())
    kept = store.put(b"kept", now, 1)
    store.put(b"new", now + 90 * DAY, 1)
    assert store.get(kept) == b"kept"


def test_expired_artifacts_are_swept_at_most_once_an_hour(store: ArtifactStore) -> None:
    store.put(b"first", NOW, 1)
    old = store.put(b"old", NOW - 10 * DAY, 1)
    store.put(b"soon", NOW + 3_599, 1)
    assert store.get(old) == b"old"
    store.put(b"later", NOW + 3_600, 1)
    assert store.get(old) is None


def test_a_modified_artifact_is_not_returned(root: Path, store: ArtifactStore) -> None:
    kept = store.put(b"code", NOW, 90)
    (file,) = [path for path in root.rglob("*") if path.is_file()]
    file.chmod(0o600)
    file.write_bytes(b"other")
    with pytest.raises(WorkError, match="changed after it was stored"):
        store.get(kept)


def test_a_link_in_the_way_is_not_followed(root: Path, store: ArtifactStore, tmp_path: Path) -> None:
    name = digest(b"code").removeprefix("sha256:")
    outside = tmp_path / "outside"
    outside.write_bytes(b"canary")
    (root / name[:2]).mkdir(parents=True)
    link = root / name[:2] / name
    link.symlink_to(outside)
    os.utime(link, (NOW + DAY, NOW + DAY), follow_symlinks=False)
    for use in (lambda: store.put(b"code", NOW, 90), lambda: store.get(digest(b"code"))):
        with pytest.raises(WorkError):
            use()
    assert outside.read_bytes() == b"canary"
    assert outside.stat().st_mtime > NOW + 90 * DAY
    elsewhere = ArtifactStore(tmp_path / "linked")
    (tmp_path / "linked").symlink_to(tmp_path)
    with pytest.raises(WorkError, match="cannot be used"):
        elsewhere.put(b"code", NOW, 90)


def test_an_oversized_artifact_or_zero_retention_is_refused(
    root: Path, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WorkError, match="retention"):
        store.put(b"code", NOW, 0)
    monkeypatch.setattr(artifact_store, "OBJECT_BYTES", 10)
    with pytest.raises(WorkError, match="larger than 10 bytes"):
        store.put(b"x" * 11, NOW, 90)
    assert not [path for path in root.rglob("*") if path.is_file()]
    store.put(b"x" * 10, NOW, 90)


def test_a_folder_that_cannot_be_written_is_a_fault(root: Path, store: ArtifactStore) -> None:
    root.parent.mkdir(parents=True)
    root.write_text("in the way")
    with pytest.raises(WorkError) as caught:
        store.put(b"code", NOW, 90)
    assert (caught.value.code, "room" in caught.value.remedy) == ("engine.artifacts_unavailable", False)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_reported_with_a_remedy(
    number: int, root: Path, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    store.put(b"before", NOW, 90)
    with monkeypatch.context() as patched:
        patched.setattr(os, "link", full)
        with pytest.raises(WorkError) as caught:
            store.put(b"code", NOW, 90)
    assert caught.value.code == "engine.artifacts_unavailable"
    assert caught.value.remedy.endswith("and make room")
    assert len([path for path in root.rglob("*") if path.is_file()]) == 1


def test_an_orphaned_draft_is_removed_after_an_hour(root: Path, store: ArtifactStore) -> None:
    kept = store.put(b"code", NOW, 90)
    shelf = root / kept.removeprefix("sha256:")[:2]
    draft = shelf / ".draft-0011223344556677"
    draft.write_bytes(b"half")
    os.utime(draft, (NOW, NOW))
    store.sweep(NOW + 3_599)
    assert draft.exists()
    store.sweep(NOW + 3_600)
    assert not draft.exists()
    assert store.get(kept) == b"code"


def test_a_sweep_leaves_what_the_store_did_not_write(root: Path, store: ArtifactStore) -> None:
    shelf = root / store.put(b"code", NOW, 1).removeprefix("sha256:")[:2]
    for foreign in (root / "notes", shelf / "notes"):
        foreign.write_bytes(b"")
        os.utime(foreign, (NOW, NOW))
    assert store.sweep(NOW + 10 * DAY) == 1
    assert {path.name for path in root.rglob("*")} == {shelf.name, "notes"}
    assert (shelf / "notes").exists()


def test_concurrent_writes_store_one_object_with_the_longest_retention(root: Path, store: ArtifactStore) -> None:
    at_once(partial(store.put, b"code", NOW, number + 1) for number in range(8))
    (file,) = [path for path in root.rglob("*") if path.is_file()]
    assert int(file.stat().st_mtime) == NOW + 8 * DAY
