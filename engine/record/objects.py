"""Objects below a URL, at whatever store fsspec knows: a folder, a bucket, memory. The only file that uses fsspec here.

Errors name the store and what its package reported, with every secret in it replaced. A URL has no credentials:
they come from the environment or the configuration of the package (s3fs, gcsfs and others).
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from engine.documents.files import printable
from engine.errors import EngineError, GatherError, RecordError, install_extra
from engine.record.bulk import durable
from engine.record.lines import measured
from engine.record.storage import make_folder, sync_folder
from engine.secrets.redaction import redact_text

_CHUNK = 1 << 20
UNFINISHED = ".new"
"""Ends the name of a small object that is not in its place yet."""


@dataclass(frozen=True, slots=True)
class Part:
    """The first `size` bytes of an object."""

    name: str
    size: int


class ObjectStore:
    """Objects by their names below a URL. Methods raise RecordError, also for what reading an object meets."""

    def __init__(self, url: str) -> None:
        """Raises GatherError if the URL cannot be used at all; the store itself is not asked yet."""
        _demand_plain(url)
        core = _package()
        try:
            self._fs, self._root = core.url_to_fs(url, use_listings_cache=False)
        except ImportError as error:
            needed = f"i{str(error)[1:]}"  # Install s3fs to access S3
            raise GatherError(f"no package for `{printable(url)}` is installed", remedy=needed) from error
        except ValueError as error:
            remedy = "write it as in s3://bucket/folder, gs://bucket/folder or file:///folder"
            raise GatherError(f"`{printable(url)}` is not a URL of a store that fsspec knows", remedy=remedy) from error
        except Exception as error:
            raise self._unusable(url, error) from error
        self._local = "file" in self._fs.protocol
        self.url: str = self._fs.unstrip_protocol(self._root)
        there = urlsplit(url)
        if not self._local and urlsplit(self.url).netloc != there.netloc:  # of sftp and others, fsspec drops the host
            self.url = f"{there.scheme}://{there.netloc}/{self._root.lstrip('/')}"
        self.folder = Path(self._root) if self._local else None
        """Where the objects lie, if that is on this machine."""

    def sizes(self, below: str = "") -> dict[str, int]:
        """The bytes of every object below a name, sorted by name; empty if there is none."""
        start = len(self._root.rstrip("/")) + 1
        with self.translated():
            self._fs.invalidate_cache()
            return dict(sorted((path[start:], size) for path, size in self._listed(self._path(below))))

    def put(self, name: str, source: BinaryIO, size: int) -> None:
        """Write an object of `size` bytes; in a folder it is durable afterwards."""
        with self.translated():
            path = self._path(name)
            if self._local:
                make_folder(Path(path).parent)
            with self._fs.open(path, "wb") as target:
                while size and (chunk := source.read(min(_CHUNK, size))):
                    target.write(chunk)
                    size -= len(chunk)
            if self._local:
                durable(Path(path))

    def replace(self, name: str, data: bytes) -> None:
        """Replace a small object: readers find the old one or the new one."""
        self.put(name + UNFINISHED, io.BytesIO(data), len(data))
        with self.translated():
            self._fs.mv(self._path(name + UNFINISHED), self._path(name))
            if self._local:
                sync_folder(Path(self._path(name)).parent)

    def remove(self, name: str) -> None:
        """Remove an object."""
        with self.translated():
            self._fs.rm_file(self._path(name))

    def open(self, parts: Sequence[Part]) -> BinaryIO:
        """These parts of objects one after another, as one file; where an object is shorter, the file ends."""
        return io.BufferedReader(_Joined(self, parts), _CHUNK)

    def read(self, name: str, most: int) -> bytes:
        """At most the first `most` bytes of an object."""
        with self.open([Part(name, most)]) as file:
            return file.read(most)

    def digest(self, name: str) -> str:
        """The SHA-256 of an object, read back from the store."""
        with self.open([Part(name, sys.maxsize)]) as file:
            return measured(file)[-1]

    def opened(self, name: str) -> Any:
        """An object to read, as the package opens it; for use inside `translated`."""
        return self._fs.open(self._path(name), "rb")

    def _listed(self, path: str) -> Iterator[tuple[str, int]]:
        """Every object below a path. Not `find` of the package: that leaves out what could not be listed."""
        try:
            found = self._fs.ls(path, detail=True)
        except FileNotFoundError:
            return
        for one in found:
            name = str(one["name"]).rstrip("/")
            if one["type"] == "directory" and name != path:
                yield from self._listed(name)
            elif one["type"] != "directory":
                yield name, int(one["size"])

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}".rstrip("/")

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn whatever the package raises into a RecordError."""
        try:
            yield
        except EngineError:
            raise
        except Exception as error:
            raise self._unusable(self.url, error) from error

    @staticmethod
    def _unusable(url: str, error: Exception) -> RecordError:
        reason = redact_text(getattr(error, "strerror", None) or str(error).partition("\n")[0])
        kind = type(error).__name__
        return RecordError(
            f"the store `{printable(url)}` cannot be used: {printable(f'{kind}: {reason}' if reason else kind)}",
            remedy="check its address, the network, and the credentials of this process",
        )


class _Joined(io.RawIOBase):
    """Parts of objects as one file; one of them is open at a time."""

    def __init__(self, store: ObjectStore, parts: Sequence[Part]) -> None:
        self._store, self._parts = store, parts
        self._at = 0
        self._open: tuple[int, Any] | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: sum(part.size for part in self._parts)}[whence]
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        start = 0
        for index, part in enumerate(self._parts):
            if start <= self._at < start + part.size:
                with self._store.translated():
                    file, within = self._file(index), self._at - start
                    file.seek(within)
                    chunk = file.read(min(len(buffer), part.size - within))
                buffer[: len(chunk)] = chunk
                self._at += len(chunk)
                return len(chunk)
            start += part.size
        return 0

    def close(self) -> None:
        if not self.closed and self._open is not None:
            self._open[1].close()
            self._open = None
        super().close()

    def _file(self, index: int) -> Any:
        if self._open is None or self._open[0] != index:
            if self._open is not None:
                self._open[1].close()
            self._open = index, self._store.opened(self._parts[index].name)
        return self._open[1]


_SEVERAL = re.compile(r".?::")
"""Where fsspec begins another protocol."""
_NO_PLACE = re.compile(r"\s*(\w+:)?[\s/]*")
"""An unset variable of a shell; fsspec would take it for the current folder or the root."""


def _demand_plain(url: str) -> None:
    """Raise GatherError unless a URL names one place that keeps what it is given, and no credentials.

    Other processes could read those.
    """
    scheme, found, _ = url.partition("://")
    local = not found or scheme == "file"
    if _SEVERAL.search(url) or (not local and ("?" in url or "@" in urlsplit(url).netloc)):
        raise GatherError(
            f"this URL of `{printable(scheme)}` has credentials, a query or several protocols",
            remedy="write it as in s3://bucket/folder; credentials come from the environment or from the files"
            " that the package of the store reads",
        )
    if url.startswith("memory:"):
        raise GatherError(
            "a store in memory keeps nothing: it ends with this process",
            remedy="name a bucket or a folder, as in s3://bucket/folder or file:///folder",
        )
    if _NO_PLACE.fullmatch(url):
        raise GatherError(
            f"the URL `{printable(url)}` names no folder and no bucket",
            remedy="write it as in s3://bucket/folder or file:///folder; check that the variable it is from is set",
        )


def _package() -> Any:
    try:
        return import_module("fsspec.core")
    except ImportError as error:
        raise GatherError("the package `fsspec` is not installed", remedy=install_extra("ship")) from error
