"""Requests that commands read: a JSON or YAML file, or standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from engine.cli.terminal import remark
from engine.errors import GatherError


def content(file: Path) -> Any:
    """The plain JSON of a file or of standard input (`-`). Raises GatherError."""
    from engine.documents.files import load, read_bytes
    from engine.settings import ReadLimits

    limits = ReadLimits()
    if str(file) == "-":
        if sys.stdin.isatty():
            remark("engine: reading standard input; Ctrl-D ends it")
        return load(sys.stdin.buffer.read(limits.document_bytes + 1), "standard input", limits).value
    return load(read_bytes(file, limits.document_bytes), str(file), limits).value


def content_or_error(file: Path) -> Any:
    """The same, or the error from reading it, which the engine records."""
    try:
        return content(file)
    except GatherError as error:
        return error
