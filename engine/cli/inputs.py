"""Requests that commands read: a JSON or YAML file, or standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from engine.cli.terminal import remark
from engine.documents.files import load, read_bytes, unreadable
from engine.errors import GatherError
from engine.settings import ReadLimits


def all_bytes(file: Path, limit: int) -> bytes:
    """All bytes, at most `limit`, of a file or of standard input (`-`). Raises GatherError."""
    if str(file) != "-":
        return read_bytes(file, limit)
    if sys.stdin.isatty():
        remark("engine: reading standard input; Ctrl-D ends it")
    try:
        found = sys.stdin.buffer.read(limit + 1)
    except OSError as error:
        raise unreadable("standard input", error) from error
    if len(found) > limit:
        raise GatherError(f"standard input is larger than {limit} bytes", remedy="reduce the input")
    return found


def text_of(file: Path, limit: int, what: str) -> str:
    """The text of a file or of standard input (`-`). Raises GatherError, which calls it `what`."""
    try:
        return all_bytes(file, limit).decode("utf-8")
    except UnicodeDecodeError as error:
        raise GatherError(f"the {what} is not UTF-8 text", remedy="name a text file") from error


def content(file: Path) -> Any:
    """The plain JSON of a file or of standard input (`-`). Raises GatherError."""
    limits = ReadLimits()
    name = "standard input" if str(file) == "-" else str(file)
    return load(all_bytes(file, limits.document_bytes), name, limits).value


def content_or_error(file: Path) -> Any:
    """The same, or the error from reading it, which the engine records."""
    try:
        return content(file)
    except GatherError as error:
        return error


def request_or_error(point: str, file: Path | None) -> Any:
    """A request as JSON or YAML (None: standard input), at point `source` also a folder with its `bundle.yaml`."""
    from engine.facts.archives.source_bundle import DOCUMENT

    if point == "source" and file is not None and (file.is_dir() or file.name == DOCUMENT):
        return {"path": str(file.parent if file.name == DOCUMENT else file), "digest": None}
    return content_or_error(file or Path("-"))
