"""`engine runner`: the reference runner, which runs agents on this machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from engine.cli import inputs, options, options_file
from engine.cli.outputs import print_text
from engine.cli.serve import LOOPBACK, Audience, Certificate, ClientAuthority, Host, Key, LogLevel, Names, check_tls
from engine.cli.terminal import notice
from engine.documents.files import printable
from engine.errors import GatherError

app = typer.Typer()

_PLACES = re.compile(r"tool_callback|trace|secrets/.+|mcp_servers/[^/]+/.+")
_SECRET_BYTES = 48 << 10
"""A sealed secret is a third longer, and a run accepts 64 KiB."""


@app.command("serve")
@options.sourced("state", *options.SERVED)
def serve(
    sources: options.Sources,
    _config: options_file.Config = None,
    host: Host = LOOPBACK,
    port: Annotated[
        int, typer.Option(min=0, max=65535, envvar=["ENGINE_PORT", "PORT"], help="TCP port; 0 takes any free port.")
    ] = 8765,
    server_name: Names = None,
    audience: Audience = None,
    tls_cert: Certificate = None,
    tls_key: Key = None,
    tls_client_ca: ClientAuthority = None,
    secret_key: Annotated[
        Path | None,
        options.file(
            "--secret-key", envvar="ENGINE_SECRET_KEY", help="Private X25519 key (PEM) that opens sealed secrets."
        ),
    ] = None,
    callbacks: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar=["ENGINE_CALLBACKS", "AGENTA_HOST"],
            help="Origin for the tools of runs that state no tool_callback.",
        ),
    ] = "",
    pi_dir: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            envvar=["ENGINE_PI_DIR", "PI_CODING_AGENT_DIR"],
            help="Folder of the Pi harness, as it sees it in its sandbox; passed on as PI_CODING_AGENT_DIR.",
        ),
    ] = "",
    ca_file: options.CaFile = None,
    log_level: LogLevel = "info",
) -> None:
    """Serve runs of agents over HTTP until SIGTERM or SIGINT: each is decided, and its harness runs in a sandbox."""
    from admission_adapters.runner.sealed import Opener
    from engine.api.oplog import Level
    from engine.api.server import Listen, run
    from engine.runner.run import RunnerSettings

    check_tls(tls_cert, tls_key, tls_client_ca)
    variables = {"PI_CODING_AGENT_DIR": pi_dir.strip()} if pi_dir.strip() else {}
    settings = RunnerSettings(Opener(secret_key), _origin(callbacks.strip()), variables, ca_file)
    listen = Listen(
        host=host.strip() or LOOPBACK,
        port=port,
        certificate=tls_cert,
        key=tls_key,
        client_authority=tls_client_ca,
        log_level=Level(log_level),
        names=tuple(server_name or ()),
        audience=audience,
        runner=settings,
    )
    raise typer.Exit(run(sources.settings(), listen, _started))


def _origin(url: str) -> str | None:
    """The origin for callbacks; None if it is not set."""
    from engine.facts.net.urls import origin_facts

    if not url:
        return None
    found = origin_facts(f"{url.rstrip('/')}/")
    if not found.canonical or found.origin != url.rstrip("/"):
        raise typer.BadParameter("use an origin, such as https://agenta.example.com", param_hint="--callbacks")
    return found.origin


def _started(url: str) -> None:
    """Report where it listens, and what operators of earlier runners would miss (D54)."""
    from engine.api.peers import is_loopback

    notice(f"listening on {url}")
    if is_loopback(urlsplit(url).hostname or ""):
        notice("only this machine can connect; for access from elsewhere set AGENTA_AGENT_RUNNER_HOST and a token")
    notice("support for MCP servers that a command starts was removed; runs with one are refused")


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
        Path,
        options.file("--public-key", envvar="ENGINE_RUNNER_PUBLIC_KEY", help="Public X25519 key of the runner (PEM)."),
    ],
) -> None:
    """Seal a secret from standard input to the key of a runner, for one place in a run.

    A line break at the end is not part of the secret. Needs the extra `sealed`.
    """
    from admission_adapters.runner.sealed import seal as sealed

    if _PLACES.fullmatch(place) is None:  # no runner could open it
        known = "`tool_callback`, `trace`, `secrets/NAME` or `mcp_servers/SERVER/NAME`"
        raise typer.BadParameter(f"`{printable(place)}` holds no secret of a run; name {known}", param_hint="PLACE")
    data = inputs.all_bytes(Path("-"), _SECRET_BYTES)
    try:
        secret = data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise GatherError("the secret is not UTF-8 text", remedy="seal its text, such as base64") from error
    if not secret:
        raise GatherError("there is no secret on standard input", remedy="pipe the secret into the command")
    print_text(sealed(secret, place, key))
