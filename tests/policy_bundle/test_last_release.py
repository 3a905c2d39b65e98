"""What was served last is remembered for good, and never replaced by something older."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from engine.errors import PolicyError, StateError
from engine.policy_bundle.last_release import LastRelease, read_last, write_last

FILE = "policy/last_release.json"


def last(sequence: int, name: str = "house", letter: str = "a") -> LastRelease:
    return LastRelease(name=name, sequence=sequence, digest=f"sha256:{letter * 64}")


def test_the_first_and_later_releases_are_stored(tmp_path: Path) -> None:
    assert read_last(tmp_path) is None
    write_last(tmp_path, last(1))
    write_last(tmp_path, last(1))
    assert read_last(tmp_path) == last(1)
    write_last(tmp_path, last(3, letter="b"))
    assert read_last(tmp_path) == last(3, letter="b")
    assert [path.name for path in (tmp_path / "policy").iterdir()] == ["last_release.json"]
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "policy").stat().st_mode & 0o777 == 0o700


def test_a_new_state_folder_is_of_this_user_alone(tmp_path: Path) -> None:
    """Where others of the user's group may write to new folders, which is common on Debian and Ubuntu."""
    before = os.umask(0o002)
    try:
        write_last(tmp_path / "state", last(1))
    finally:
        os.umask(before)
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("new", [last(4), last(5, letter="b"), last(6, name="home")])
def test_a_lower_conflicting_or_foreign_release_is_refused(new: LastRelease, tmp_path: Path) -> None:
    write_last(tmp_path, last(5))
    with pytest.raises(PolicyError):
        write_last(tmp_path, new)
    assert read_last(tmp_path) == last(5)


@pytest.mark.parametrize("data", [b"", b"{}", b"null", b'{"format": 1}', b"\xff", b"[" * 5000])
def test_a_damaged_file_refuses(data: bytes, tmp_path: Path) -> None:
    """Or damaging it would be the way back to an old release."""
    write_last(tmp_path, last(5))
    (tmp_path / FILE).write_bytes(data)
    with pytest.raises(PolicyError, match="served last is unknown"):
        read_last(tmp_path)
    with pytest.raises(PolicyError, match="served last is unknown"):
        write_last(tmp_path, last(6))


def test_a_last_release_that_is_not_a_regular_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir(parents=True)
    with pytest.raises(PolicyError):
        read_last(tmp_path)
    (tmp_path / "policy").rename(tmp_path / "old")
    (tmp_path / "policy").write_bytes(b"")
    with pytest.raises(PolicyError):
        read_last(tmp_path)
    with pytest.raises(StateError):
        write_last(tmp_path, last(6))
    (tmp_path / "policy").unlink()
    (tmp_path / "policy").mkdir()
    (tmp_path / FILE).symlink_to("nowhere")
    with pytest.raises(PolicyError):
        read_last(tmp_path)


def test_an_unfinished_write_is_ignored(tmp_path: Path) -> None:
    write_last(tmp_path, last(5))
    (tmp_path / "policy/.last_release.json.partial").write_bytes(b'{"format"')
    assert read_last(tmp_path) == last(5)
    write_last(tmp_path, last(6))
    assert read_last(tmp_path) == last(6)


def test_a_full_disk_is_reported_and_keeps_the_old_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old one stays when the new one cannot be made durable."""
    write_last(tmp_path, last(5))

    def full(_: int) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StateError, match="no space left"):
            write_last(tmp_path, last(6))
    assert read_last(tmp_path) == last(5)


def test_concurrent_writers_keep_the_highest_release(tmp_path: Path) -> None:
    def write(sequence: int) -> None:
        with suppress(PolicyError):  # a higher one was faster
            write_last(tmp_path, last(sequence))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, [7, 3, 9, 1, 8, 2, 6, 4, 5] * 4))
    assert read_last(tmp_path) == last(9)
