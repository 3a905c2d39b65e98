"""`engine runner`: the reference runner, which runs agents on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli import options, options_file
from engine.cli.serve import LOOPBACK, Certificate, ClientAuthority, Key, LogLevel, Names, check_tls

app = typer.Typer()


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
        runner=True,
    )
    raise typer.Exit(run(sources.settings(), listen, lambda url: typer.echo(f"engine: listening on {url}", err=True)))
