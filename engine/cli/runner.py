"""`engine runner`: secrets of runs, sealed to the key of a runner."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.cli import inputs, options
from engine.errors import GatherError

app = typer.Typer()

_SECRET_BYTES = 48 << 10
"""A sealed secret is a third longer, and a run accepts 64 KiB."""


@app.callback()
def _group() -> None:
    """Keep `seal` a command below `runner`."""


@app.command()
def seal(
    place: Annotated[
        str,
        typer.Argument(
            metavar="PLACE",
            help="Where the run has the secret: secrets/NAME, mcp_servers/SERVER/NAME, tool_callback or trace.",
        ),
    ],
    key: Annotated[
        Path, options.file("--key", envvar="ENGINE_RUNNER_PUBLIC_KEY", help="Public X25519 key of the runner (PEM).")
    ],
) -> None:
    """Seal a secret from standard input to the key of a runner, for one place in a run.

    A line break at the end is not part of the secret. Needs the extra `sealed`.
    """
    from admission_adapters.runner.sealed import seal as sealed

    data = inputs.all_bytes(Path("-"), _SECRET_BYTES)
    try:
        secret = data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise GatherError("the secret is not UTF-8 text", remedy="seal its text, such as base64") from error
    if not secret:
        raise GatherError("there is no secret on standard input", remedy="pipe the secret into the command")
    typer.echo(sealed(secret, place, key))
