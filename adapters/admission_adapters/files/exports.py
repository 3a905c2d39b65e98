"""A new file of exported samples: written aside under the permit of each part, then named: all of it or nothing.

JSON lines, or Parquet where the name of the file ends in `.parquet` and the extra `parquet` is installed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import BufferedRandom
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self

from admission_adapters.files.new_files import opened, writing
from admission_adapters.grants import granted
from engine.errors import GatherError, WorkError, install_extra, reason_of
from engine.model import Limits, Permit, Result

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
PARQUET = ".parquet"

Line = Mapping[str, Any]
Lines = Callable[[Any], Sequence[Line]]
"""The exported form of samples, by the limits under which they may leave."""


class _Writer(Protocol):
    def write(self, lines: Sequence[Line]) -> None:
        """Add samples."""

    def close(self) -> None:
        """Write what is left."""


class ExportFile:
    """A file that appears as a whole at `finish`, or not at all. A context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._draft = self._path.with_name(f".{self._path.name}.{secrets.token_hex(8)}.part")
        self._file: BufferedRandom | None = None
        self._writer: _Writer | None = None

    def __enter__(self) -> Self:
        """Raises GatherError if something is there already, or the format is not available.

        First removes what killed processes left of the same file.
        """
        if os.path.lexists(self._path):
            raise GatherError("the file for the export exists", remedy="name a new file, or remove this one")
        make = _parquet() if self._path.suffix.lower() == PARQUET else _JsonLines
        try:
            with opened(self._path.parent.resolve()) as folder:
                fcntl.flock(folder, fcntl.LOCK_EX)  # no draft is swept before it is locked
                self._sweep()
                self._file = os.fdopen(os.open(self._draft, _NEW, 0o600), "w+b")
                fcntl.flock(self._file, fcntl.LOCK_EX)
        except OSError as error:
            raise GatherError(
                f"the file for the export cannot be written: {reason_of(error)}",
                remedy="name a file in a folder that exists and can be written",
            ) from error
        self._writer = make(self._file)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):  # of a draft that is removed anyway
            if self._writer is not None:
                self._writer.close()
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._draft.unlink(missing_ok=True)

    def add(self, permit: Permit, input_digest: str, lines: Lines) -> Result:
        """Write samples aside. Raises WorkError without a permit for exactly these."""
        ready = lines(granted(permit, "export", input_digest, Limits))
        with writing("the file for the export", "name a new file"):
            self._open().write(ready)
        return Result("written", {"samples": len(ready)})

    def finish(self) -> tuple[int, str]:
        """Give the file its name, durably; returns its size and SHA-256 in hex. Raises WorkError."""
        with writing("the file for the export", "name a new file"):
            self._open().close()
            self._writer = None
            if self._file is None:
                raise OSError(errno.EBADF, "closed")
            self._file.flush()
            os.fsync(self._file.fileno())
            size = self._file.seek(0, os.SEEK_END)
            self._file.seek(0)
            sha256 = hashlib.file_digest(self._file, "sha256").hexdigest()
            os.link(self._draft, self._path, follow_symlinks=False)  # fails if something is there by now
            with opened(self._path.parent.resolve()) as folder:
                os.fsync(folder)
        return size, sha256

    def _sweep(self) -> None:
        """Remove drafts whose locks are free: their processes are dead."""
        name = re.compile(rf"\.{re.escape(self._path.name)}\.[0-9a-f]{{16}}\.part")
        for path in self._path.parent.iterdir():
            if name.fullmatch(path.name):
                with suppress(OSError), os.fdopen(os.open(path, _OLD), "rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()

    def _open(self) -> _Writer:
        if self._writer is None:
            raise WorkError("the file for the export is not open", remedy="use it as a context manager")
        return self._writer


class _JsonLines:
    """One sample a line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, lines: Sequence[Line]) -> None:
        for line in lines:
            self._file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n")

    def close(self) -> None:
        self._file.flush()


def _parquet() -> Callable[[BinaryIO], _Writer]:
    """The writer of Parquet. Raises GatherError if the package is missing."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise GatherError(
            "the package for Parquet is not installed",
            remedy=f"name a `.jsonl` file, or {install_extra('parquet')}",
        ) from error
    text = pa.string()
    origin = pa.struct([(name, text) for name in ("source", "record", "kind", "sha256")])
    columns = {"kind": text, "treatment": text, "provenance": pa.list_(origin), "content": text}
    schema = pa.schema(list(columns.items()))

    class _Parquet:
        """One row a sample; the content is JSON text."""

        def __init__(self, file: BinaryIO) -> None:
            self._writer = parquet.ParquetWriter(file, schema)

        def write(self, lines: Sequence[Line]) -> None:
            rows = [{**line, "content": json.dumps(line["content"], ensure_ascii=False)} for line in lines]
            self._writer.write_table(pa.Table.from_pylist(rows, schema=schema))

        def close(self) -> None:
            self._writer.close()

    return _Parquet
