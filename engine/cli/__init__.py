"""The command `engine`. One file a command group; what is heavy is imported when it is used."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from engine import __version__
from engine.cli import (
    approvals,
    check,
    code,
    decide,
    doctor,
    policy,
    policy_coverage,
    record,
    sandbox,
    sandbox_run,
    serve,
    tokens,
    tools,
)
from engine.cli.outputs import drop_standard_output
from engine.errors import EngineError, Exit, PolicyError

app = typer.Typer(
    name="engine",
    help="Policy-as-code admission engine: decides what may run, and within what limits.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("check")(check.check)
app.command("decide")(decide.decide)
app.command("doctor")(doctor.doctor)
app.command("serve")(serve.serve)
app.add_typer(approvals.app, name="approvals")
app.add_typer(code.app, name="code")
policy.app.command("coverage")(policy_coverage.coverage)
app.add_typer(policy.app, name="policy")
app.add_typer(record.app, name="record")
sandbox.app.command("run")(sandbox_run.run)
app.add_typer(sandbox.app, name="sandbox")
app.add_typer(tokens.app, name="tokens")
app.add_typer(tools.app, name="tools")


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_tell_version)
    ] = False,
) -> None:
    """Take the options that stand before the command."""


def main() -> None:
    """Run the command line; every error ends in its exit code and a text, never in a traceback."""
    gc.set_threshold(200_000, 20, 20)  # documents of many records and no cycles: a fifth of the time of 10,000
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  (until the process ends)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a character the terminal lacks stops nothing
    try:
        app(prog_name="engine")
    except EngineError as error:
        told = isinstance(error, PolicyError)  # each of its problems says what to do
        typer.echo(f"engine: {error}" if told else f"engine: {error}\n  {error.remedy}", err=True)
        sys.exit(error.exit)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        drop_standard_output()
        sys.exit(Exit.UNREADABLE)
    except Exception as error:  # noqa: BLE001  (a person gets a sentence, whatever went wrong)
        typer.echo(f"engine: an unexpected {type(error).__name__} stopped the command; nothing was allowed", err=True)
        sys.exit(Exit.FAILED_CLOSED)
