"""What a terminal gets and a pipe does not: colors, remarks, and the options that say so."""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import Annotated, Literal, TextIO

import typer

Choice = Literal["auto", "always", "never"]

_COLOR: ContextVar[Choice] = ContextVar("color", default="auto")
_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


def _choose_color(chosen: Choice | None) -> None:
    if chosen is not None:
        _COLOR.set(chosen)


def _choose_quiet(chosen: bool) -> None:
    if chosen:
        _QUIET.set(True)


Color = Annotated[
    Choice | None,
    typer.Option(
        "--color",
        help="Use colors (default: auto, on a terminal without NO_COLOR).",
        callback=_choose_color,
        expose_value=False,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print no progress and no remarks.", callback=_choose_quiet, expose_value=False),
]


def common(_color: Color = None, _quiet: Quiet = False) -> None:
    """Declare the options that every command has, before its name and after it."""


def colored(stream: TextIO) -> bool:
    """Whether text on this stream has colors: as `--color` says, else on a terminal without NO_COLOR."""
    chosen = _COLOR.get()
    if chosen == "auto":
        return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return chosen == "always"


def quiet() -> bool:
    """Whether progress and remarks are left out."""
    return _QUIET.get()


def remark(text: str) -> None:
    """Print a remark for people on standard error."""
    if not quiet():
        typer.echo(text, err=True)


def notice(text: str) -> None:
    """Print on standard error what people need to know, also with --quiet."""
    typer.echo(f"engine: {text}", err=True)


def tamed(data: bytes) -> bytes:
    """What a terminal may get: nothing in it that would drive the terminal."""
    text = data.decode("utf-8", "replace")
    return "".join(one if one.isprintable() or one in "\n\t" else "\N{REPLACEMENT CHARACTER}" for one in text).encode()
