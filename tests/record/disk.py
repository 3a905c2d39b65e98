"""A disk in memory behind the real interface of the record's storage, for crashes and failures.

It keeps what programs see apart from what would be there after a crash. `crash_states` gives every disk
that a crash now may leave (facts: POSIX promises nothing that was not synced):

- each name created, renamed or removed since its folder was synced is there or not;
- of the writes to a file since its last sync, the first few are there, the next one perhaps in part.

`fail` makes one operation fail; a failed sync forgets what it should have written, as Linux does.
"""

from __future__ import annotations

import errno
import io
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import BinaryIO

from engine.record.storage import ChangedError, Storage

_SUBSETS = 6  # names that may be there or not: all combinations up to here, then the first few only


@dataclass
class Inode:
    """Content as programs see it, as it is durable, and the writes in between."""

    seen: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    dirty: list[tuple[int, bytes | None]] = field(default_factory=list)  # (offset, data), or (size, None) for a cut


def applied(content: bytearray, changes: list[tuple[int, bytes | None]]) -> bytearray:
    result = bytearray(content)
    for offset, data in changes:
        if data is None:
            del result[offset:]
        else:
            result.extend(bytes(max(0, offset - len(result))))
            result[offset : offset + len(data)] = data
    return result


Tree = dict[str, bytes | None]
"""Files by path; None is a folder."""

Change = tuple[str | None, str | None, Inode | None]
"""A name that goes, a name that comes, what it names; a folder is named by None."""


def tree_of(state: Path) -> Tree:
    """The files of a state folder, but for the lock."""
    paths = sorted(path for path in state.rglob("*") if path.name != "lock")
    return {str(path.relative_to(state)): path.read_bytes() if path.is_file() else None for path in paths}


def content(tree: Tree, path: str) -> bytes:
    """What this file has."""
    data = tree[path]
    assert data is not None
    return data


def flipped(data: bytes, count: int, seed: int) -> Iterator[tuple[int, bytes]]:
    """Positions all over the data, every newline among them, with one bit of the byte there changed."""
    chance = random.Random(seed)  # noqa: S311 (where to change a byte is no secret)
    newlines = [index for index, byte in enumerate(data) if byte == 10]
    for index in sorted({*newlines, *chance.sample(range(len(data)), min(count, len(data)))}):
        changed = bytearray(data)
        changed[index] ^= 1 << chance.randrange(8)
        yield index, bytes(changed)


class SimulatedDisk(Storage):
    def __init__(self, tree: Tree | None = None) -> None:
        self.place = "state"
        self.view: dict[str, Inode | None] = {"": None}
        self.durable: dict[str, Inode | None] = {"": None}
        self.pending: dict[str, list[Change]] = {}
        self.step: Callable[[SimulatedDisk], None] = lambda _: None
        self.steps = 0
        self.watched: dict[str, tuple[Inode | None, bytes]] = {}
        self.fail: tuple[int, float] | None = None  # which step, and how much of it happens before it fails
        for path, content in (tree or {}).items():
            inode = None if content is None else Inode(bytearray(content), bytearray(content))
            self.view[path] = self.durable[path] = inode

    # what Storage asks for

    def lock(self, path: str, seconds: float) -> None:
        """One process, no locks."""

    def holds(self, path: str) -> bool:  # noqa: ARG002 (as held as it gets)
        return True

    def locked(self, path: str) -> bool:  # noqa: ARG002 (one process, no locks)
        return False

    def size(self, path: str) -> int | None:
        return None if path not in self.view else len(self._file(path).seen)

    def open(self, path: str) -> BinaryIO:
        return io.BytesIO(bytes(self._file(path).seen))

    def names(self, folder: str) -> list[str]:
        return sorted(path.rpartition("/")[2] for path in self.view if path and _folder(path) == folder)

    def make_folder(self, path: str) -> None:
        if path not in self.view:
            self._step()
            self._link((None, path, None))

    def create(self, path: str) -> None:
        if path in self.view:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._step()
        self._link((None, path, Inode()))

    def append(self, path: str, data: bytes) -> None:
        inode = self._file(path)
        self._step(lambda share: self._write(inode, len(inode.seen), data[: int(len(data) * share)]))
        self._write(inode, len(inode.seen), data)

    def rewrite(self, path: str, offset: int, data: bytes) -> None:
        self._step()
        self._write(self._file(path), offset, data)

    def truncate(self, path: str, size: int) -> None:
        self._step()
        inode = self._file(path)
        inode.dirty.append((size, None))
        del inode.seen[size:]

    def sync(self, path: str) -> None:
        inode = self._file(path)
        self._step(lambda _: inode.dirty.clear())
        inode.durable = applied(inode.durable, inode.dirty)
        inode.dirty.clear()

    def rename(self, old: str, new: str) -> None:
        self._step()
        self._link((old, new, self._file(old)))

    def remove(self, path: str) -> None:
        if path in self.view:
            self._step()
            self._link((path, None, None))

    def sync_folder(self, path: str) -> None:
        self._step()
        for change in self.pending.pop(path, []):
            _rename(self.durable, change)

    def watch(self, path: str) -> None:
        inode = self.view.get(path)
        self.watched[path] = inode, bytes(inode.seen) if inode is not None else b""

    def unchanged(self, path: str, size: int | None = None) -> None:
        inode, content = self.watched[path]
        now = self.view.get(path)
        if now is not inode or (
            now is not None and (len(now.seen) != size if size is not None else now.seen != content)
        ):
            raise ChangedError(path)

    def release(self, path: str) -> None:
        """Files are not held open."""

    def release_all(self) -> None:
        """Files are not held open."""

    def close(self) -> None:
        """Closing promises nothing."""

    # what tests ask for

    def tree(self) -> Tree:
        return {path: None if inode is None else bytes(inode.seen) for path, inode in self.view.items() if path}

    def crash_states(self, stride: int) -> Iterator[Tree]:
        """Every disk a crash now may leave; unfinished writes are torn at every `stride`-th byte."""
        changes = [change for folder in sorted(self.pending) for change in self.pending[folder]]
        for chosen in _choices(changes):
            names = dict(self.durable)
            for change in chosen:
                _rename(names, change)
            there = [path for path in sorted(names) if path and _reachable(path, names)]
            files = [(path, inode) for path in there if (inode := names[path]) is not None]
            dirty = [(path, inode) for path, inode in files if inode.dirty]
            settled: Tree = {path: None for path in there if names[path] is None}
            settled |= {path: bytes(inode.durable) for path, inode in files if not inode.dirty}
            for contents in product(*(list(_torn(inode, stride)) for _, inode in dirty)):
                yield settled | {path: content for (path, _), content in zip(dirty, contents, strict=True)}

    def _file(self, path: str) -> Inode:
        inode = self.view.get(path)
        if path in self.view and inode is None:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return inode

    def _step(self, half_done: Callable[[float], None] = lambda _: None) -> None:
        self.step(self)
        self.steps += 1
        if self.fail is not None and self.fail[0] == self.steps:
            half_done(self.fail[1])
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _write(self, inode: Inode, offset: int, data: bytes) -> None:
        inode.dirty.append((offset, data))
        inode.seen = applied(inode.seen, [(offset, data)])

    def _link(self, change: Change) -> None:
        self.pending.setdefault(_folder(change[1] or change[0] or ""), []).append(change)
        _rename(self.view, change)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _rename(names: dict[str, Inode | None], change: Change) -> None:
    old, new, inode = change
    if old is not None:
        names.pop(old, None)
    if new is not None:
        names[new] = inode


def _reachable(path: str, names: dict[str, Inode | None]) -> bool:
    folder = _folder(path)
    return not folder or (folder in names and _reachable(folder, names))


def _choices(changes: list[Change]) -> Iterator[list[Change]]:
    if len(changes) <= _SUBSETS:
        for mask in range(1 << len(changes)):
            yield [change for index, change in enumerate(changes) if mask >> index & 1]
    else:
        for count in range(len(changes) + 1):
            yield changes[:count]


def _torn(inode: Inode, stride: int) -> Iterator[bytes]:
    for count, (offset, data) in enumerate(inode.dirty):
        before = inode.dirty[:count]
        yield bytes(applied(inode.durable, before))
        for length in range(1, len(data or b""), stride):
            yield bytes(applied(inode.durable, [*before, (offset, (data or b"")[:length])]))
    yield bytes(applied(inode.durable, inode.dirty))
