"""The disk behind the record: what a short write, a held lock and a changed file are."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.record.storage import ChangedError, LockHeldError, Storage, read_file
from tests.processes import limited, open_under


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    opened = Storage(tmp_path)
    opened.create("file")
    yield opened
    opened.close()


def test_a_partial_write_is_an_error(storage: Storage, tmp_path: Path) -> None:
    storage.append("file", b"x" * 100)
    storage.rewrite("file", 90, b"y" * 10)
    with limited(resource.RLIMIT_FSIZE, 120), pytest.raises(OSError, match="No space left"):
        storage.append("file", b"z" * 100)
    with limited(resource.RLIMIT_FSIZE, 120), pytest.raises(OSError, match="No space left"):
        storage.rewrite("file", 110, b"z" * 20)
    assert (tmp_path / "file").read_bytes() == b"x" * 90 + b"y" * 10 + b"z" * 20  # the limit was met half-way


def test_a_file_that_is_not_there_has_no_size_and_no_content(storage: Storage) -> None:
    assert (storage.size("nothing"), read_file(storage, "nothing")) == (None, None)
    storage.append("file", b"content")
    assert (storage.size("file"), read_file(storage, "file")) == (7, b"content")


def test_a_lock_is_awaited_until_its_timeout_and_released_by_close(tmp_path: Path) -> None:
    first, second = Storage(tmp_path), Storage(tmp_path)
    second.close()  # which never took it
    assert not first.locked("lock")
    first.lock("lock", 0.0)
    first.lock("lock", 0.0)  # is held already
    assert (first.holds("lock"), second.holds("lock"), second.locked("lock")) == (True, False, True)
    began = time.monotonic()
    with pytest.raises(LockHeldError):
        second.lock("lock", 0.2)
    assert time.monotonic() - began >= 0.2
    (tmp_path / "lock").unlink()
    assert not first.holds("lock")
    first.lock("lock", 0.0)  # the file that has the name now
    assert (first.holds("lock"), open_under(tmp_path)) == (True, [tmp_path / "lock"])
    first.close()
    assert not first.holds("lock")
    second.lock("lock", 0.0)
    second.close()


def replaced(path: Path) -> None:
    path.with_name("other").write_bytes(path.read_bytes())
    path.with_name("other").rename(path)


def touched(path: Path) -> None:
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1))


CHANGES: dict[str, tuple[Callable[[Path], object], list[int | None]]] = {
    "nothing": (lambda _: None, []),
    "removed": (lambda path: path.unlink(), [None, 3]),
    "replaced by the same content": (replaced, [None, 3]),
    "longer": (lambda path: path.write_bytes(b"abcd"), [None, 3]),
    "shorter": (lambda path: path.write_bytes(b"ab"), [None, 3]),
    "written to": (touched, [None]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_watched_file_that_changed_is_noticed(change: str, storage: Storage, tmp_path: Path) -> None:
    storage.append("file", b"abc")
    storage.watch("file")
    storage.unchanged("file")
    storage.unchanged("file", 3)
    with pytest.raises(ChangedError):
        storage.unchanged("file", 4)
    make, noticed = CHANGES[change]
    make(tmp_path / "file")
    for size in (None, 3):
        if size in noticed:
            with pytest.raises(ChangedError):
                storage.unchanged("file", size)
        else:
            storage.unchanged("file", size)


def test_a_file_is_held_open_between_two_writes_and_let_go_when_it_is_released(
    storage: Storage, tmp_path: Path
) -> None:
    storage.release("file")  # which nobody has written to
    storage.append("file", b"a")
    held = open_under(tmp_path)
    storage.append("file", b"b")
    storage.sync("file")
    assert held == open_under(tmp_path) == [tmp_path / "file"]
    storage.release("file")
    assert open_under(tmp_path) == []
    storage.append("file", b"c")
    storage.release_all()
    assert open_under(tmp_path) == []
    assert storage.size("file") == 3
