"""`engine serve`: the decision API on one address of this machine, and a control socket beside its state."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from engine.cli import options


class LogLevel(StrEnum):
    """What `--log-level` takes."""

    INFO = "info"
    WARNING = "warning"


class LogDetail(StrEnum):
    """What `--log-detail` takes; `payload` needs the leave of the policy."""

    FACTS = "facts"
    PAYLOAD = "payload"


def serve(
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Address to listen on (default: $AGENTA_AGENT_RUNNER_HOST, else 127.0.0.1).",
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="TCP port; 0 takes any free port.")] = 8642,
    names: Annotated[
        list[str] | None,
        typer.Option("--server-name", metavar="NAME", help="Additional host name that clients use; repeatable."),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option("--root", metavar="DIR", help="Folder in which requests may name source bundles."),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option("--tls-cert", metavar="FILE", help="TLS certificate chain (PEM).")
    ] = None,
    key: Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="TLS private key (PEM).")] = None,
    client_authority: Annotated[
        Path | None,
        typer.Option(
            "--tls-client-ca",
            metavar="FILE",
            help="Certificate authority (PEM) that client certificates must be issued by.",
        ),
    ] = None,
    log_level: Annotated[LogLevel, typer.Option("--log-level", help="Log level on standard error.")] = LogLevel.INFO,
    log_detail: Annotated[
        LogDetail,
        typer.Option(
            "--log-detail", help="Detail of the log; payload adds redacted request bodies, if the policy admits that."
        ),
    ] = LogDetail.FACTS,
    log_days: Annotated[
        int | None,
        typer.Option(
            "--log-retention-days", min=0, help="Days for which you keep a log with payloads; checked by the policy."
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Reload the policy when its folders change; for development.")
    ] = False,
    otlp: Annotated[
        str | None,
        typer.Option(
            "--otlp",
            metavar="URL",
            help="Send a span of every request to this OpenTelemetry collector, such as http://127.0.0.1:4318; "
            "needs the extra `otel`.",
        ),
    ] = None,
    deadline: Annotated[
        float,
        typer.Option(
            "--deadline", metavar="SECONDS", min=0.05, max=60, help="Time limit for an answer of OPA, in seconds."
        ),
    ] = 5.0,
    warm: Annotated[
        int,
        typer.Option(
            "--warm-sandboxes",
            metavar="N",
            min=0,
            max=64,
            help="Number of warm sandboxes to keep for code like the last that ran.",
        ),
    ] = 0,
    state: options.State = None,
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    release: options.Release = None,
    release_key: options.ReleaseKey = None,
) -> None:
    """Answer decisions over HTTP until SIGTERM or SIGINT; SIGHUP activates a changed policy."""
    from dataclasses import replace

    from engine.api.oplog import Level
    from engine.api.server import Listen, run

    if (certificate is None) != (key is None):
        raise typer.BadParameter("give --tls-cert and --tls-key together", param_hint="--tls-cert")
    if client_authority is not None and certificate is None:
        raise typer.BadParameter("client certificates need --tls-cert and --tls-key", param_hint="--tls-client-ca")
    if log_detail is LogDetail.PAYLOAD and log_days is None:
        raise typer.BadParameter("say how long it is kept, with --log-retention-days", param_hint="--log-detail")
    if root is not None and not root.is_dir():
        raise typer.BadParameter("there is no such folder", param_hint="--root")
    listen = Listen(
        host=host or os.environ.get("AGENTA_AGENT_RUNNER_HOST", "").strip() or "127.0.0.1",
        port=port,
        certificate=certificate,
        key=key,
        client_authority=client_authority,
        log_level=Level(log_level.value),
        payload_days=log_days if log_detail is LogDetail.PAYLOAD else None,
        watch=watch,
        names=tuple(names or ()),
        otlp=otlp,
    )
    chosen = options.settings(state, policy, rego, bundle, (release, release_key))
    settings = replace(chosen, root=root or Path(os.devnull), opa=replace(chosen.opa, answer_seconds=deadline))
    settings = replace(settings, warm_sandboxes=warm)
    raise typer.Exit(run(settings, listen, lambda url: typer.echo(f"engine: listening on {url}", err=True)))
