"""A source bundle as one read-only tree, be it a folder, a `.tar.gz` or a `.zip`.

Nothing is unpacked into the file system, no link is followed, and no size that a header states is
believed. Which form a file has is read from its first bytes, not from its name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from engine.errors import GatherError, Location
from engine.facts.members import Budget, Format, hashed, refusal, shown
from engine.facts.source_bundle import DOCUMENT
from engine.facts.tar_members import TarMembers
from engine.facts.zip_members import ZipMembers
from engine.files import open_beneath
from engine.settings import ReadLimits

__all__ = ["Tree", "open_bundle", "shown"]

_LONGEST_PATH = 4_096
"""Characters of a path in a message: the longest path of Linux."""

_GZIP, _ZIP, _EMPTY_ZIP = b"\x1f\x8b", b"PK\3\4", b"PK\5\6"
_NEITHER = "name a folder with a `bundle.yaml`, or a `.tar.gz` or `.zip` of one"


class Tree(Protocol):
    """The files of one source bundle, by their paths below its `bundle.yaml`.

    `name` is the path it was opened by, fit for messages.
    """

    name: str

    def place(self, relative: str) -> str:
        """Where a file is, as one text for a person."""
        ...

    def read_document(self, relative: str, limit: int) -> bytes:
        """All bytes of a file of at most `limit` bytes. Raises GatherError, also when it is not there."""
        ...

    def hash(self, relative: str) -> tuple[str, int] | None:
        """SHA-256 in hex and number of bytes of a file; None when it is not there. Raises GatherError."""
        ...

    @contextmanager
    def open(self, relative: str) -> Iterator[BinaryIO]:
        """A file as a stream, in any order and several at once. Raises GatherError, also when it is not there."""
        ...


@contextmanager
def open_bundle(path: Path, limits: ReadLimits) -> Iterator[Tree]:
    """Open the source bundle at `path` for reading; an archive is read once to its end.

    Raises GatherError when there is nothing, nothing readable, or nothing that is a source bundle.
    """
    name = shown(str(path), _LONGEST_PATH)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise refusal(name, "is not there", "check the path") from error
    except PermissionError as error:
        raise refusal(name, "may not be read", "check its permissions and those of the folders above it") from error
    except (OSError, ValueError) as error:
        raise refusal(name, "cannot be opened", "check the path") from error
    try:
        if os.path.isdir(descriptor):
            yield _Folder(descriptor, name, limits)
            return
        members = _format(descriptor, name)(descriptor, name, limits)
        try:
            yield _Archive(name, members)
        finally:
            members.close()
    finally:
        os.close(descriptor)


def _format(descriptor: int, name: str) -> type[TarMembers] | type[ZipMembers]:
    if not os.path.isfile(descriptor):
        raise refusal(name, "is neither a folder nor a file", _NEITHER)
    start = os.pread(descriptor, 4, 0)
    if start.startswith(_GZIP):
        return TarMembers
    if start in {_ZIP, _EMPTY_ZIP}:
        return ZipMembers
    if not start:
        raise refusal(name, "is an empty file", _NEITHER)
    if Path(name).name == DOCUMENT:
        raise refusal(name, f"is a `{DOCUMENT}` by itself", "name the folder that holds it")
    raise refusal(name, "is neither a folder nor a `.tar.gz` or `.zip` archive", _NEITHER)


class _Folder:
    """A source bundle that is a folder, held by its descriptor."""

    def __init__(self, descriptor: int, name: str, limits: ReadLimits) -> None:
        self.name = name
        self._descriptor = descriptor
        self._limits = limits
        self._budget = Budget(name, limits)
        self._hashes: dict[str, tuple[str, int] | None] = {}

    def place(self, relative: str) -> str:
        return os.path.join(self.name, shown(relative, _LONGEST_PATH))

    def read_document(self, relative: str, limit: int) -> bytes:
        with self.open(relative) as stream:
            data = stream.read(limit + 1)
        if len(data) > limit:
            raise refusal(self.place(relative), f"is larger than {limit} bytes", "split it")
        return data

    def hash(self, relative: str) -> tuple[str, int] | None:
        if relative not in self._hashes:
            self._budget.member()
            self._hashes[relative] = self._hash(relative)
        return self._hashes[relative]

    def _hash(self, relative: str) -> tuple[str, int] | None:
        try:
            stream = self._opened(relative)
        except FileNotFoundError:
            return None
        with stream:
            try:
                return hashed(stream, relative, self.name, self._limits, self._budget)
            except OSError as error:
                raise refusal(self.place(relative), "cannot be read to its end", "check the disk") from error

    @contextmanager
    def open(self, relative: str) -> Iterator[BinaryIO]:
        try:
            stream = self._opened(relative)
        except FileNotFoundError as error:
            if not os.listdir(self._descriptor):
                raise refusal(self.name, "is an empty folder", _NEITHER) from error
            raise _absent(self.name, relative) from error
        with stream:
            yield stream

    def _opened(self, relative: str) -> BinaryIO:
        """The stream by itself, so that an error of whoever reads it is not taken for one of opening it."""
        try:
            with open_beneath(self._descriptor, relative) as file:
                return open(os.dup(file.fileno()), "rb")
        except GatherError as error:
            raise GatherError(error.message, remedy=error.remedy, where=Location(self.place(relative))) from error


class _Archive:
    """A source bundle that is an archive, its paths seen from the folder of its `bundle.yaml`."""

    def __init__(self, name: str, members: Format) -> None:
        self.name = name
        self._format = members
        self._members = members.scan()
        self._top = _top(set(self._members))

    def place(self, relative: str) -> str:
        return f"{self.name}!/{self._top}{shown(relative, _LONGEST_PATH)}"

    def read_document(self, relative: str, limit: int) -> bytes:
        name = self._there(relative)
        return self._format.read(name, self._members[name], limit)

    def hash(self, relative: str) -> tuple[str, int] | None:
        member = self._members.get(self._top + relative)
        return None if member is None else (member.sha256, member.bytes)

    @contextmanager
    def open(self, relative: str) -> Iterator[BinaryIO]:
        name = self._there(relative)
        with self._format.open(name, self._members[name]) as stream:
            yield stream

    def _there(self, relative: str) -> str:
        name = self._top + relative
        if name not in self._members:
            raise _absent(self.name, relative)
        return name


def _top(names: set[str]) -> str:
    """The single folder that an archiver put around everything, with its `/`; empty when there is none."""
    # What macOS adds beside the folder for its own use is not part of it.
    tops = {name.split("/")[0] for name in names if not name.startswith(("__MACOSX/", "._"))}
    if DOCUMENT in names or len(tops) != 1:
        return ""
    return tops.pop() + "/"


def _absent(file: str, relative: str) -> GatherError:
    remedy = _NEITHER if relative == DOCUMENT else "add the file, or correct its path"
    return refusal(file, f"holds no `{shown(relative)}`", remedy)
