"""`engine runner`: the reference runner, which runs agents on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.cli import inputs, options, options_file
from engine.cli.serve import LOOPBACK, Audience, Certificate, ClientAuthority, Key, LogLevel, Names, check_tls
from engine.errors import GatherError

app = typer.Typer()

_SECRET_BYTES = 48 << 10
"""A sealed secret is a third longer, and a run accepts 64 KiB."""


@app.callback()
def _group() -> None:
    """Run agents on this machine."""


@app.command("serve")
@options.sourced("state", *options.SERVED)
def serve(
    sources: options.Sources,
    _config: options_file.Config = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", envvar=["ENGINE_HOST", "AGENTA_AGENT_RUNNER_HOST"], help="Address to listen on."
        ),
    ] = LOOPBACK,
    port: Annotated[
        int, typer.Option(min=0, max=65535, envvar=["ENGINE_PORT", "PORT"], help="TCP port; 0 takes any free port.")
    ] = 8765,
    server_name: Names = None,
    audience: Audience = None,
    tls_cert: Certificate = None,
    tls_key: Key = None,
    tls_client_ca: ClientAuthority = None,
    log_level: LogLevel = "info",
) -> None:
    """Serve runs of agents over HTTP until SIGTERM or SIGINT: each is decided, and its harness runs in a sandbox."""
    from engine.api.oplog import Level
    from engine.api.server import Listen, run

    check_tls(tls_cert, tls_key, tls_client_ca)
    listen = Listen(
        host=host.strip() or LOOPBACK,
        port=port,
        certificate=tls_cert,
        key=tls_key,
        client_authority=tls_client_ca,
        log_level=Level(log_level),
        names=tuple(server_name or ()),
        audience=audience,
        runner=True,
    )
    raise typer.Exit(run(sources.settings(), listen, lambda url: typer.echo(f"engine: listening on {url}", err=True)))


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
