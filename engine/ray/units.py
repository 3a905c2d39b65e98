"""Units of work: a row group of a Parquet file, or a range of lines of a file of JSON lines; planned by the driver.

Planning reads the metadata of Parquet files, and JSON lines once from end to end, to count them. So the number of
records that each unit must have is known before any worker begins.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from engine.documents.files import counted, printable
from engine.documents.strict_json import AmbiguousJsonError, NotJsonError, read_strict
from engine.errors import EngineError, GatherError, Location
from engine.model import Revisions
from engine.ray.columns import PROVENANCE, Columns, demand_columns
from engine.ray.packages import package
from engine.record.bulk import name_of
from engine.secrets.redaction import redact
from engine.settings import ReadLimits

PARQUET, JSON_LINES = ".parquet", (".jsonl", ".ndjson")
UNIT_ROWS, UNIT_BYTES = 20_000, 64 << 20
"""Lines of JSON in a unit, and their bytes: what is decided again after a worker is lost."""

_NAMED = "this table in the file of --columns"
_BLOCK = 8 << 20
_CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")
_QUERY = re.compile(r"(?<=://)(?<!file://)([^\s'\"?]*)\?[^\s'\"]*")
_VERSIONS = (
    "ETag",
    "etag",
    "Content-MD5",
    "md5Hash",
    "LastModified",
    "Last-Modified",
    "last_modified",
    "updated",
    "mtime",
)
"""What file systems state about a file that changes with its content, the best first."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of one file. `first` is the number of its first row or line in the file, from 1.

    `part` is a row group, or None for lines; `start` and `end` are bytes of the file, 0 for a row group.
    """

    path: str
    version: str
    part: int | None
    start: int
    end: int
    first: int
    rows: int

    def name(self, policy: Revisions, conditions: str) -> str:
        """The digest of what this unit is, of the policy, and of what is asked about its rows."""
        return name_of({**asdict(self), "policy": policy.model_dump(mode="json"), "asked": conditions})

    @property
    def file(self) -> str:
        """The path as it is recorded."""
        return public_path(self.path)

    @property
    def place(self) -> str:
        """What request ids of rows begin with: the file; or `row` where the record would take the name for a secret."""
        named = f"{self.file}:{self.first}"
        return self.file if redact(named)[0] == named else "row"

    @property
    def source(self) -> str:
        """The file and the part of it."""
        part = f"lines from {self.first}" if self.part is None else f"row group {self.part}"
        return f"{self.file} ({part}, {counted(self.rows, 'row')})"


def public_path(text: str) -> str:
    """A path, or words about it, without the user, password and query that an address may have."""
    return _QUERY.sub(r"\1", _CREDENTIALS.sub("", text))


def plan(paths: Sequence[str], columns: Columns, into: Path | None = None) -> list[Unit]:
    """The units of these files and folders, but of none below `into`, the folder of the run.

    Raises GatherError for what cannot be read, or lacks a column.
    """
    own = f"file://{into}/"
    files: dict[str, str] = {}  # each under its first path
    for path in paths:
        for file in _files(path):
            local = file.removeprefix("file://")
            files.setdefault(file if local == file else os.path.realpath(local), file)
    units: list[Unit] = []
    for file in files.values():
        if not file.startswith(own):
            units += _row_groups(file, columns) if _ends(public_path(file), PARQUET) else _lines(file, columns)
    return units


def _ends(path: str, suffixes: str | tuple[str, ...]) -> bool:
    return path.lower().endswith(suffixes)


@contextmanager
def opened(path: str, version: str | None = None) -> Iterator[tuple[BinaryIO, str]]:
    """A file to read, and its version; with `version`, exactly this one. Raises GatherError."""
    with _readable(path):
        fs, inside = package("fsspec.core").url_to_fs(path)
        info = fs.info(inside)
        if info["type"] != "file":  # to open a pipe would wait for a writer
            raise OSError("it is not a file")
        found = f"{info.get('size')}/{next((info[name] for name in _VERSIONS if info.get(name)), '')}"
        if version is not None and found != version:
            raise GatherError(
                "the file changed after the run was planned",
                remedy="start the run again; units of files that did not change are not decided again",
                where=Location(public_path(path)),
            )
        with fs.open(inside, "rb") as file:
            yield file, found


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Turn what any file system raises into a GatherError."""
    try:
        yield
    except EngineError:
        raise
    except Exception as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0] or type(error).__name__
        raise GatherError(
            f"cannot read `{printable(public_path(path))}`: {printable(redact(public_path(reason))[0]).lower()}",
            remedy="check the path, its permissions and the credentials of this process",
        ) from error


def _files(path: str) -> list[str]:
    """The file of this name, the files that a pattern matches, or those below a folder."""
    suffixes = (PARQUET, *JSON_LINES)
    if not path.strip():
        raise GatherError("the path of a corpus is empty", remedy=f"name files that end in {', '.join(suffixes)}")
    with _readable(path):
        fs, inside = package("fsspec.core").url_to_fs(path)
        named = _ends(public_path(inside), suffixes) and "*" not in public_path(inside)
        if named and fs.info(inside)["type"] != "directory":
            return [fs.unstrip_protocol(inside)]
        found = fs.glob(inside) if "*" in inside else fs.find(inside)
        files = sorted(fs.unstrip_protocol(one) for one in found if _ends(one, suffixes))
    if not files:
        message = f"there is no corpus in `{printable(public_path(path))}`"
        raise GatherError(message, remedy=f"name files that end in {', '.join(suffixes)}")
    return files


def _row_groups(path: str, columns: Columns) -> Iterator[Unit]:
    pq = package("pyarrow.parquet")
    with opened(path) as (file, version):
        parquet = pq.ParquetFile(file)
        where = Location(public_path(path))
        demand_columns(parquet.schema_arrow.names, columns.needed, PROVENANCE, _NAMED, where)
        for name in columns.needed:
            _demand_type(parquet.schema_arrow.field(name).type, name, columns, where)
        first = 1
        for number in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(number).num_rows
            yield Unit(path, version, number, 0, 0, first, rows)
            first += rows


def _demand_type(type_: Any, name: str, columns: Columns, where: Location) -> None:
    types = package("pyarrow").types
    if types.is_dictionary(type_):
        type_ = type_.value_type
    fits = types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_)
    decided = columns.license_decision
    if name == columns.content:
        fits = fits or types.is_binary(type_) or types.is_large_binary(type_)
    if decided is not None and name == decided.decided_at:
        fits = fits or (types.is_timestamp(type_) and type_.tz is not None and _is_known_zone(type_))
    if not fits:
        raise GatherError(
            f"the column `{printable(name)}` has the type {type_}, which is not read",
            remedy="write text; for times, text in UTC or timestamps with a time zone",
            where=where,
        )


def _is_known_zone(type_: Any) -> bool:
    try:
        package("pyarrow").scalar(0, type_).as_py()
    except (ValueError, LookupError):
        return False
    return True


def _lines(path: str, columns: Columns) -> Iterator[Unit]:
    """Ranges of lines; blank lines belong to the range before and are no rows."""
    with opened(path) as (file, version):
        at = start = rows = 0
        number = first = 1
        seen = False
        for line in whole_lines(file, path):
            at += len(line)
            if line.strip():
                if not seen:
                    seen = True
                    _demand_fields(line, columns, Location(public_path(path), number))
                rows += 1
            number += 1
            if rows == UNIT_ROWS or at - start >= UNIT_BYTES:
                yield Unit(path, version, None, start, at, first, rows)
                start, first, rows = at, number, 0
        if at > start:
            yield Unit(path, version, None, start, at, first, rows)


def _demand_fields(line: bytes, columns: Columns, where: Location) -> None:
    """Look at the first row, as if it were the header of a table; a line that is broken is left to its worker."""
    try:
        row = read_strict(line.decode("utf-8"))
    except (UnicodeDecodeError, NotJsonError, AmbiguousJsonError):
        return
    if isinstance(row, dict):
        demand_columns(list(row), columns.needed, PROVENANCE, _NAMED, where)


def whole_lines(file: BinaryIO, path: str, size: int = sys.maxsize) -> Iterator[bytes]:
    """The lines of the next `size` bytes of a file, each with its newline. Raises GatherError for one too long."""
    rest, most, number = b"", ReadLimits().document_bytes, 1
    while block := file.read(min(_BLOCK, size)):
        size -= len(block)
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        number += len(lines)
        if len(rest) > most:
            where = Location(public_path(path), number)
            raise GatherError(f"a line is longer than {most} bytes", remedy="split the row", where=where)
        for line in lines:
            yield line + b"\n"
    if rest:
        yield rest
