"""Where the texts of a command go: standard output, or files that are all written or all left alone."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import typer

from engine.errors import GatherError
from engine.files import shown


def write(texts: list[tuple[str, Path | None]]) -> None:
    """Write every text to its file, or to standard output where it has none.

    Regular files, also behind links, are replaced once all texts are on disk; a pipe or device is
    written to. Raises GatherError and leaves every file as it was when one cannot be written.
    """
    ready: list[tuple[Path, Path]] = []
    with ExitStack() as stack:
        for text, output in texts:
            if output is None or _is_special(output):
                continue
            target = Path(os.path.realpath(output))
            partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
            stack.callback(partial.unlink, missing_ok=True)
            _write(partial, text, output, mode="x")
            ready.append((partial, target))
        for text, output in texts:
            if output is None:
                _tell(text)
            elif _is_special(output):
                _write(output, text, output, mode="w")
        for partial, target in ready:
            partial.replace(target)


def _tell(text: str) -> None:
    try:
        typer.echo(text, nl=False)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_standard_output()
        raise GatherError(
            f"cannot write standard output: {(error.strerror or 'failed').lower()}",
            remedy="make room, or name a file with `--output`",
        ) from error


def drop_standard_output() -> None:
    """Let what is left in the buffer go nowhere: the interpreter would fail once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_special(path: Path) -> bool:
    try:
        return path.exists() and not path.is_file()
    except OSError:
        return False  # writing it will say why


def _write(path: Path, text: str, named: Path, *, mode: str) -> None:
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise GatherError(
            f"cannot write `{shown(str(named))}`: {(error.strerror or 'failed').lower()}",
            remedy="name a file in a folder that can be written",
        ) from error
