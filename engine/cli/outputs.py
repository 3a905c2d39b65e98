"""Where the texts of a command go: standard output, or files that are all written or all left alone."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import typer

from engine.cli.terminal import colored
from engine.documents.files import printable
from engine.errors import GatherError, reason_of

_LONG = 4_000  # characters of one row; limits of a large source bundle are cut, --format json has them whole


def write(texts: list[tuple[str, Path | None]]) -> None:
    """Write every text to its file, or to standard output where it has none.

    Regular files, also targets of links, are replaced once all texts are on disk; a pipe or device is
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
                print_text(text)
            elif _is_special(output):
                _write(output, text, output, mode="w")
        for partial, target in ready:
            partial.replace(target)


def print_text(text: str) -> None:
    """Write to standard output, with colors where it has some; a line feed ends any text."""
    typer.echo(text, nl=text[-1:] not in {"", "\n"}, color=colored(sys.stdout))


def _is_special(path: Path) -> bool:
    try:
        return path.exists() and not path.is_file()
    except OSError:
        return False  # writing it will report why


def _write(path: Path, text: str, named: Path, *, mode: str) -> None:
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise GatherError(
            f"cannot write `{printable(str(named))}`: {reason_of(error)}",
            remedy="name a file in a folder that can be written",
        ) from error


def write_file(target: Path, data: bytes, *, again: bool = False) -> None:
    """Write a new file, or, `again`, the whole of one that exists. Raises GatherError and leaves no part of it."""
    new = target.with_name(f".{target.name}.{os.urandom(8).hex()}") if again else target
    try:
        with new.open("xb") as file, ExitStack() as failed:
            failed.callback(new.unlink)
            file.write(data)
            file.flush()
            if again:
                new.chmod(target.stat().st_mode & 0o777)
                new.replace(target)
            failed.pop_all()
    except OSError as error:
        raise GatherError(
            f"cannot write `{printable(str(target))}`: {reason_of(error)}",
            remedy="check the folder and its permissions",
        ) from error


_STYLES = {
    **dict.fromkeys(("yes", "allowed", "valid", "granted", "allow", "ok"), "green"),
    **dict.fromkeys(("denied", "revoked", "expired", "refused", "deny", "failed"), "red"),
    **dict.fromkeys(("a person is asked", "requested", "confirm", "missing"), "yellow"),
}
"""Words for states, by color."""


def painted(word: str, width: int) -> str:
    """A word for a state, padded, in its color where standard output has colors."""
    text = f"{word:<{width}}"
    return typer.style(text, fg=_STYLES[word]) if word in _STYLES and colored(sys.stdout) else text


def table(head: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """Cells below their titles: as a table of its width on a terminal, else in plain columns."""
    if sys.stdout.isatty():
        return _drawn(head, cells)
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    padded = (" ".join(f"{cell:<{width}} " for cell, width in zip(row, widths, strict=True)) for row in (head, *cells))
    return "\n".join(line.rstrip() for line in padded)


def _drawn(head: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for title in head:
        drawn.add_column(title, overflow="fold")
    for row in cells:
        drawn.add_row(*(Text(cell, _STYLES.get(cell, "")) for cell in row))
    colors: Literal["auto"] | None = "auto" if colored(sys.stdout) else None
    console = Console(force_terminal=True, color_system=colors, highlight=False)
    with console.capture() as captured:
        console.print(drawn)
    return captured.get().rstrip("\n")


def json_text(value: Any, *, sort: bool = False) -> str:
    """A document for programs, indented; with `sort`, keys are in order."""
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=sort)


def rows(pairs: Mapping[str, str | None], width: int = 10) -> list[str]:
    """Names and values in two columns, without those that are absent; each on one line, cut when it is long."""
    return [f"  {name:<{width}} {printable(value, _LONG)}" for name, value in pairs.items() if value is not None]
