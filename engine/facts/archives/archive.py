"""A source bundle as one read-only tree: a folder, a `.tar`, a `.tar.gz` or a `.zip`.

Nothing is unpacked into the file system, no link is followed, and no size that a header states is
believed. Which form a file has is read from its first bytes, not from its name.
"""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

from engine.documents.files import open_beneath, printable
from engine.errors import GatherError, Location
from engine.facts.archives.members import Budget, Names, hashed, refusal
from engine.facts.archives.source_bundle import DOCUMENT
from engine.facts.archives.tar_members import GZIP, TarMembers
from engine.facts.archives.zip_members import ZipMembers
from engine.settings import ReadLimits

_LONGEST_PATH = 4_096
"""Characters of a path in a message: the longest path of Linux."""

_ZIP, _EMPTY_ZIP = b"PK\3\4", b"PK\5\6"
_TAR, _TAR_AT = b"ustar", 257
_NEITHER = f"name a folder with a `{DOCUMENT}`, or a `.tar`, `.tar.gz` or `.zip` of one"


class Tree(AbstractContextManager["Tree"], ABC):
    """The files of one source bundle, by their paths below its `bundle.yaml`; close it after use.

    `name` is the path it was opened by, fit for messages.
    """

    name: str

    @abstractmethod
    def place(self, relative: str) -> str:
        """Where a file is, as one text for a person."""

    @abstractmethod
    def read_document(self, relative: str, limit: int) -> bytes:
        """All bytes of a file of at most `limit` bytes. Raises GatherError, also when it is not there."""

    @abstractmethod
    def members(self) -> dict[str, bool]:
        """Every file below the folder or in the archive, in order, and whether it is a regular one.

        Links, devices and the like are not regular and have no hash. Files of an archive beside the folder of
        its `bundle.yaml` have names `../…`. Raises GatherError past a limit, or for an unsafe name.
        """

    @abstractmethod
    def hash(self, relative: str) -> tuple[str, int] | None:
        """SHA-256 in hex and number of bytes of a file; None when it is not there. Raises GatherError."""

    @abstractmethod
    @contextmanager
    def open(self, relative: str) -> Iterator[BinaryIO]:
        """A file as a stream, in any order and several at once. Raises GatherError, also when it is not there."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the folder or archive."""

    def __exit__(self, *_: object) -> None:
        self.close()


def open_bundle(path: Path, limits: ReadLimits) -> Tree:
    """Open the source bundle at `path` for reading; an archive is read once to its end.

    Raises GatherError when there is nothing, nothing readable, or nothing that is a source bundle.
    """
    name = printable(str(path), _LONGEST_PATH)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise refusal(name, "the source bundle is not there", "check the path") from error
    except PermissionError as error:
        raise refusal(
            name, "the source bundle may not be read", "check its permissions and those of the folders above it"
        ) from error
    except (OSError, ValueError) as error:
        raise refusal(name, "the source bundle cannot be opened", "check the path") from error
    try:
        return _tree(descriptor, name, limits)
    except OSError as error:
        os.close(descriptor)
        raise refusal(name, "the source bundle cannot be read to its end", "check the disk") from error
    except BaseException:
        os.close(descriptor)
        raise


def _tree(descriptor: int, name: str, limits: ReadLimits) -> Tree:
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        return _Folder(descriptor, name, limits)
    if not stat.S_ISREG(mode):
        raise refusal(name, "the source bundle is neither a folder nor a file", _NEITHER)
    start = os.pread(descriptor, 4, 0)
    if start.startswith(GZIP) or os.pread(descriptor, len(_TAR), _TAR_AT) == _TAR:
        return _Archive(descriptor, name, TarMembers(descriptor, name, limits))
    if start in {_ZIP, _EMPTY_ZIP}:
        return _Archive(descriptor, name, ZipMembers(descriptor, name, limits))
    if not start:
        raise refusal(name, "the source bundle is an empty file", _NEITHER)
    if Path(name).name == DOCUMENT:
        raise refusal(name, f"the source bundle is a `{DOCUMENT}` by itself", "name the folder that holds it")
    raise refusal(name, "the source bundle is neither a folder nor a `.tar`, `.tar.gz` or `.zip` archive", _NEITHER)


class _Folder(Tree):
    """A source bundle that is a folder, accessed by its descriptor."""

    def __init__(self, descriptor: int, name: str, limits: ReadLimits) -> None:
        self.name = name
        self._descriptor = descriptor
        self._limits = limits
        self._budget = Budget(name, limits)

    def place(self, relative: str) -> str:
        return str(Path(self.name) / printable(relative, _LONGEST_PATH))

    def read_document(self, relative: str, limit: int) -> bytes:
        with self.open(relative) as stream:
            data = stream.read(limit + 1)
        if len(data) > limit:
            raise refusal(self.place(relative), f"the file is larger than {limit} bytes", "split it")
        return data

    def members(self) -> dict[str, bool]:
        names, found = Names(self.name, self._limits.files), dict[str, bool]()
        try:
            for raw, plain in _walked(self._descriptor, "", self._budget):
                found[names.file(raw)] = plain
        except OSError as error:
            remedy = "check the permissions of the folders in it, and that they are not nested too deeply"
            raise refusal(self.name, "a folder of the source bundle cannot be listed", remedy) from error
        return dict(sorted(found.items()))

    def hash(self, relative: str) -> tuple[str, int] | None:
        try:
            stream = self._opened(relative)
        except FileNotFoundError:
            return None
        with stream:
            try:
                return hashed(stream.read, relative, self.name, self._limits, self._budget)
            except OSError as error:
                raise refusal(self.place(relative), "the file cannot be read to its end", "check the disk") from error

    @contextmanager
    def open(self, relative: str) -> Iterator[BinaryIO]:
        try:
            stream = self._opened(relative)
        except FileNotFoundError as error:
            with os.scandir(self._descriptor) as entries:
                names = [entry.name for entry in entries]
            if not names:
                raise refusal(self.name, "the source bundle is an empty folder", _NEITHER) from error
            if relative == DOCUMENT and (wrong := misspelt(names)) is not None:
                message = f"`{printable(wrong)}` looks like a misspelt bundle document"
                raise refusal(self.name, message, f"name it {DOCUMENT}") from error
            raise _absent(self.name, relative) from error
        with stream:
            yield stream

    def close(self) -> None:
        os.close(self._descriptor)

    def _opened(self, relative: str) -> BinaryIO:
        """The stream by itself, so that an error of its reader is not taken for an error of opening it."""
        try:
            return open_beneath(self._descriptor, relative)
        except GatherError as error:
            raise GatherError(error.message, remedy=error.remedy, where=Location(self.place(relative))) from error


class _Archive(Tree):
    """A source bundle that is an archive, its paths seen from the folder of its `bundle.yaml`."""

    def __init__(self, descriptor: int, name: str, members: TarMembers | ZipMembers) -> None:
        self.name = name
        self._descriptor = descriptor
        self._format = members
        self._members = members.scan()
        self._top = _top(set(self._members))

    def place(self, relative: str) -> str:
        return f"{self.name}!/{self._top}{printable(relative, _LONGEST_PATH)}"

    def read_document(self, relative: str, limit: int) -> bytes:
        member = self._members[self._there(relative)]
        if member.bytes > limit:
            raise refusal(self.place(relative), f"the file is larger than {limit} bytes", "split it")
        return self._format.read(member)

    def members(self) -> dict[str, bool]:
        inside = len(self._top)
        return {name[inside:] if name.startswith(self._top) else f"../{name}": True for name in sorted(self._members)}

    def hash(self, relative: str) -> tuple[str, int] | None:
        outside = relative.startswith("../")
        member = self._members.get(relative.removeprefix("../") if outside else self._top + relative)
        return None if member is None else (member.sha256, member.bytes)

    @contextmanager
    def open(self, relative: str) -> Iterator[BinaryIO]:
        with self._format.open(self._members[self._there(relative)]) as stream:
            yield stream

    def close(self) -> None:
        self._format.close()
        os.close(self._descriptor)

    def _there(self, relative: str) -> str:
        name = self._top + relative
        if name not in self._members:
            raise _absent(self.name, relative)
        return name


def misspelt(names: Iterable[str]) -> str | None:
    """The name, among those of a folder, that was probably meant to be `bundle.yaml`."""
    return min((name for name in names if name.lower() in {DOCUMENT, "bundle.yml", "bundle.json"}), default=None)


def _top(names: set[str]) -> str:
    """The single folder that an archiver put around everything, with its `/`; empty when there is none."""
    # What macOS adds beside the folder for its own use is not part of it.
    tops = {top for name in names if (top := name.split("/")[0]) != "__MACOSX" and not top.startswith("._")}
    top = tops.pop() if len(tops) == 1 else ""
    return f"{top}/" if DOCUMENT not in names and f"{top}/{DOCUMENT}" in names else ""


def _walked(folder: int, below: str, budget: Budget) -> Iterator[tuple[str, bool]]:
    """Every file below a folder descriptor and whether it is a regular one; no link is followed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            budget.member()
            name = f"{below}{entry.name}"
            if not entry.is_dir(follow_symlinks=False):
                yield name, entry.is_file(follow_symlinks=False)
                continue
            deeper = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                yield from _walked(deeper, f"{name}/", budget)
            finally:
                os.close(deeper)


def _absent(file: str, relative: str) -> GatherError:
    remedy = (
        f"start one with `engine source init`, or {_NEITHER}"
        if relative == DOCUMENT
        else "add the file, or correct its path"
    )
    return refusal(file, f"the source bundle has no `{printable(relative)}`", remedy)
