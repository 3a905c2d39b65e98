"""`engine serve`: the decision API on one address of this machine, and a control socket beside its state."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from engine.cli import options, options_file
from engine.cli.terminal import notice

if TYPE_CHECKING:
    from admission_adapters.runner.access import RunnerAccess
    from engine.policy_bundle.sources import PolicySources

LOOPBACK = "127.0.0.1"

Names = Annotated[
    list[str] | None,
    typer.Option(
        "--server-name",
        metavar="NAME",
        envvar="ENGINE_SERVER_NAME",
        help="Additional host name that clients use; repeatable.",
        callback=options.name,
    ),
]
Host = Annotated[
    str,
    typer.Option(metavar="ADDRESS", envvar=["ENGINE_HOST", "AGENTA_AGENT_RUNNER_HOST"], help="Address to listen on."),
]
Audience = Annotated[
    str | None,
    typer.Option(
        "--audience",
        metavar="NAME",
        envvar="ENGINE_AUDIENCE",
        help="Name of this server in tokens that were issued with --audience.",
        callback=options.audience,
    ),
]
Certificate = Annotated[
    Path | None, options.file("--tls-cert", envvar="ENGINE_TLS_CERT", help="TLS certificate chain (PEM).")
]
Key = Annotated[Path | None, options.file("--tls-key", envvar="ENGINE_TLS_KEY", help="TLS private key (PEM).")]
ClientAuthority = Annotated[
    Path | None,
    options.file(
        "--tls-client-ca",
        envvar="ENGINE_TLS_CLIENT_CA",
        help="Certificate authority (PEM) that client certificates must be issued by.",
    ),
]
RunnerToken = Annotated[
    Path | None,
    options.file(
        "--runner-token-file",
        envvar="ENGINE_RUNNER_TOKEN_FILE",
        help="File with the bearer token for the runner; read for each run.",
    ),
]
RunnerCertificate = Annotated[
    Path | None,
    options.file("--runner-cert", envvar="ENGINE_RUNNER_CERT", help="Client certificate chain for the runner (PEM)."),
]
RunnerKey = Annotated[
    Path | None,
    options.file("--runner-key", envvar="ENGINE_RUNNER_KEY", help="Private key of the client certificate (PEM)."),
]
LogLevel = Annotated[
    Literal["info", "warning"], typer.Option(envvar="ENGINE_LOG_LEVEL", help="Log level on standard error.")
]


def runner_access(token: Path | None, certificate: Path | None, key: Path | None, ca_file: Path | None) -> RunnerAccess:
    """The credentials for a runner, and which authorities are trusted. Refuses a certificate without its key."""
    from admission_adapters.runner.access import RunnerAccess

    if (certificate is None) != (key is None):
        raise typer.BadParameter("give --runner-cert and --runner-key together", param_hint="--runner-cert")
    return RunnerAccess(token, certificate, key, ca_file)


def candidate(sources: options.Sources, folder: Path) -> PolicySources:
    """Where the candidate of `--shadow` is read from: this folder, over the shipped policy."""
    from engine.policy_bundle.sources import PolicySources

    chosen = replace(sources, policy=folder, recipe=None, release=None, releases=None, release_key=None).settings()
    return PolicySources(chosen.rego, chosen.policy, chosen.recipe)


def check_tls(certificate: Path | None, key: Path | None, authority: Path | None) -> None:
    """Refuse files of TLS that are not complete."""
    if (certificate is None) != (key is None):
        raise typer.BadParameter("give --tls-cert and --tls-key together", param_hint="--tls-cert")
    if authority is not None and certificate is None:
        raise typer.BadParameter("client certificates need --tls-cert and --tls-key", param_hint="--tls-client-ca")


@options.sourced("state", *options.SERVED)
def serve(
    sources: options.Sources,
    _config: options_file.Config = None,
    host: Host = LOOPBACK,
    port: Annotated[
        int, typer.Option(min=0, max=65535, envvar="ENGINE_PORT", help="TCP port; 0 takes any free port.")
    ] = 8642,
    server_name: Names = None,
    audience: Audience = None,
    root: Annotated[
        Path | None, options.folder(envvar="ENGINE_ROOT", help="Folder in which requests may name source bundles.")
    ] = None,
    fetch_root: Annotated[
        Path | None,
        options.folder(
            envvar="ENGINE_FETCH_ROOT",
            help="Folder below which POST /v1/fetch writes source bundles; without it, nothing is fetched.",
        ),
    ] = None,
    build_root: Annotated[
        Path | None,
        options.folder(
            envvar="ENGINE_BUILD_ROOT",
            help="Folder below which POST /v1/build writes environments; without it, nothing is built.",
        ),
    ] = None,
    ca_file: options.CaFile = None,
    tls_cert: Certificate = None,
    tls_key: Key = None,
    tls_client_ca: ClientAuthority = None,
    runner_token_file: RunnerToken = None,
    runner_cert: RunnerCertificate = None,
    runner_key: RunnerKey = None,
    log_level: LogLevel = "info",
    log_detail: Annotated[
        Literal["facts", "payload"],
        typer.Option(
            envvar="ENGINE_LOG_DETAIL",
            help="Detail of the log; payload adds redacted request bodies, if the policy allows it.",
        ),
    ] = "facts",
    log_retention_days: Annotated[
        int | None,
        typer.Option(
            min=0,
            envvar="ENGINE_LOG_RETENTION_DAYS",
            help="Days for which you keep a log with payloads; checked by the policy.",
        ),
    ] = None,
    shadow: Annotated[
        Path | None,
        options.folder(
            envvar="ENGINE_SHADOW",
            help="Candidate policy that decides live requests too; its decisions are only recorded.",
        ),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", envvar="ENGINE_WATCH", help="Reload the policy when its folders change; for development."
        ),
    ] = False,
    otlp: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="ENGINE_OTLP",
            help="Send a span of every request to this OpenTelemetry collector, such as http://127.0.0.1:4318; "
            "needs the extra `otel`.",
        ),
    ] = None,
    deadline: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.05,
            max=60,
            envvar="ENGINE_DEADLINE",
            help="Time limit for an answer of OPA, in seconds.",
        ),
    ] = 5.0,
    warm_sandboxes: Annotated[
        int,
        typer.Option(
            envvar="ENGINE_WARM_SANDBOXES",
            min=0,
            max=64,
            help="Number of sandboxes to keep warm, for code like the last that ran.",
        ),
    ] = 0,
    shared_answers: Annotated[
        int,
        typer.Option(
            envvar="ENGINE_SHARED_ANSWERS",
            min=0,
            max=1_000_000,
            help="Number of answers of OPA to keep for equal cases, of about 1 KiB each; 0: ask about every request.",
        ),
    ] = 8_192,
) -> None:
    """Serve decisions over HTTP until SIGTERM or SIGINT; SIGHUP activates a changed policy."""
    from engine.api.oplog import Level
    from engine.api.server import Listen, run

    check_tls(tls_cert, tls_key, tls_client_ca)
    access = runner_access(runner_token_file, runner_cert, runner_key, ca_file)
    if log_detail == "payload" and log_retention_days is None:
        raise typer.BadParameter("state how long the log is kept with --log-retention-days", param_hint="--log-detail")
    listen = Listen(
        host=host.strip() or LOOPBACK,
        port=port,
        certificate=tls_cert,
        key=tls_key,
        client_authority=tls_client_ca,
        log_level=Level(log_level),
        payload_days=log_retention_days if log_detail == "payload" else None,
        watch=watch,
        names=tuple(server_name or ()),
        audience=audience,
        otlp=otlp,
        access=access,
        shadow=None if shadow is None else candidate(sources, shadow),
    )
    chosen = sources.settings()
    opa = replace(chosen.opa, answer_seconds=deadline, shared_answers=shared_answers)
    settings = replace(
        chosen,
        root=root or Path(os.devnull),
        opa=opa,
        fetch_root=fetch_root,
        build_root=build_root,
        ca_file=ca_file,
        warm_sandboxes=warm_sandboxes,
    )
    raise typer.Exit(run(settings, listen, lambda url: notice(f"listening on {url}")))
