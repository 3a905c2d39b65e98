"""`engine check PATH…`: a dry run on source bundles, told for people and for machines."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from contextlib import suppress
from enum import StrEnum
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.discover import discover
from engine.cli.outputs import write
from engine.errors import Exit, GatherError
from engine.files import shown

if TYPE_CHECKING:
    from engine.report import Report
    from engine.settings import Settings

_RANK = (Exit.ALLOW, Exit.CONFIRM, Exit.DENY, Exit.UNREADABLE, Exit.POLICY_INVALID, Exit.FAILED_CLOSED)
"""From best to worst: a deny outranks a confirm, a fault outranks both."""


class Format(StrEnum):
    """What `--format` takes."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"


def check(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="Source bundles, or folders that contain them.")],
    formats: Annotated[list[Format] | None, typer.Option("--format", help="Output format; repeatable.")] = None,
    outputs: Annotated[
        list[Path] | None,
        typer.Option("--output", metavar="FILE", help="File for the n-th --format (default: standard output)."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Also print rules, labels, revisions and limits.")] = False,
    digest: Annotated[
        str | None, typer.Option("--digest", help="Expected sha256:… digest; any other bundle is refused.")
    ] = None,
    state: options.State = None,
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    values: options.Values = None,
    now: options.Now = None,
) -> None:
    """Decide source bundles without enforcing anything; ends with the worst exit code of all."""
    chosen = formats or [Format.TEXT]
    if len(outputs or ()) > len(chosen) or len(chosen) - len(outputs or ()) > 1:
        raise typer.BadParameter("give one --output for each --format but at most one", param_hint="--output")
    if digest is not None and not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise typer.BadParameter("write it as sha256: and 64 hex digits", param_hint="--digest")
    found = discover(paths)
    if digest is not None and len(found) > 1:
        raise typer.BadParameter("it is of one source bundle, so name one", param_hint="--digest")
    reports = _decide(found, digest, options.settings(state, policy, rego, bundle), tuple(values or ()), now)
    worst = max((report.exit for report in reports), key=_RANK.index)
    told = [
        (_render(format_, reports, worst, explain, to_terminal=output is None and sys.stdout.isatty()), output)
        for format_, output in zip_longest(chosen, outputs or ())
    ]
    write(told)
    raise typer.Exit(worst)


def _decide(
    found: list[Path], digest: str | None, settings: Settings, values: tuple[str, ...], now: str | None
) -> list[Report]:
    from engine.engine import Engine
    from engine.explain import report

    moment = options.moment(now)
    progress = _Progress(len(found))
    reports = []
    with Engine(settings, values=values, now=lambda: moment, progress=progress.part) as engine:
        options.tell_recovered(engine)
        options.tell_lowered(engine, "source")
        for path in found:
            progress.bundle(str(path))
            answer = engine.check("source", _request(path, digest))
            reports.append(report(str(path), answer, engine.policy))
    progress.end()
    return reports


def _request(path: Path, digest: str | None) -> dict[str, Any] | GatherError:
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        return GatherError("the path of the source bundle is not UTF-8 text", remedy="rename the file or folder")
    return {"path": str(path), "digest": digest}


class _Progress:
    """Tells on standard error what is going on, from the second second on and once a second."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._path = ""
        self._next = time.monotonic() + 2.0
        self._terminal = sys.stderr.isatty()
        self._told = False

    def bundle(self, path: str) -> None:
        self._done += 1
        self._path = path
        self.part("checking", 0, 0)

    def part(self, what: str, done: int, of: int) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + 1.0
        self._told = True
        parts = f" {done}/{of}" if of else ""
        line = f"[{self._done}/{self._total}] {what}{parts} {shown(self._path)}"
        with suppress(OSError):  # nobody listens: no reason to stop
            sys.stderr.write(f"\r\x1b[K{line}" if self._terminal else f"{line}\n")
            sys.stderr.flush()

    def end(self) -> None:
        if self._told and self._terminal:
            sys.stderr.write("\r\x1b[K")


def _render(format_: Format, reports: list[Report], worst: Exit, explain: bool, *, to_terminal: bool) -> str:
    from engine.cli.formats import FORMATS, Context

    width = shutil.get_terminal_size().columns if to_terminal else 100
    color = to_terminal and "NO_COLOR" not in os.environ
    context = Context(exit=worst, explain=explain, color=color, width=width, base=str(Path.cwd()))
    return FORMATS[format_.value](reports, context)
