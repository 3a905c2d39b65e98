"""`engine workbench`: pages in a browser for the people who look after the policy."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from engine.cli import options
from engine.cli.administration import acts
from engine.cli.terminal import notice
from engine.cli.waiting import during
from engine.errors import EngineError, Exit


@options.sourced("state", *options.RULES)
def workbench(
    sources: options.Sources,
    port: Annotated[int, typer.Option(min=0, max=65535, help="TCP port on 127.0.0.1; 0 takes any free port.")] = 0,
    releases: Annotated[
        Path | None,
        options.folder(
            "--releases", envvar="ENGINE_RELEASES", help="Folder with a folder for each release of the policy."
        ),
    ] = None,
    key: options.ReleaseKey = None,
) -> None:
    """Show record, policy, previews of edits, approvals and releases in a browser, until SIGTERM or SIGINT.

    Prints a link that works once, on this machine. Approvals are granted and refused, and releases built and approved,
    as the current user, or as the principal of the token in ENGINE_TOKEN; nothing else is enforced.
    """
    from engine.cli.machine.doctor import examine
    from engine.cli.policy.checking import edit_problems
    from engine.cli.policy.commands import activated, activation_report
    from engine.cli.record.commands import existing_folder, verified
    from engine.cli.record.verification import verification_document
    from engine.workbench.desk import Activated, Desk
    from engine.workbench.serve import run

    def activate(reason: str | None) -> tuple[Activated, ...]:
        outcomes = ((chain, *activation_report(answer)) for chain, answer in activated(settings.state, reason).items())
        return tuple(Activated(chain, code is Exit.ALLOW, tuple(lines)) for chain, code, lines in outcomes)

    def act(request: dict[str, Any]) -> dict[str, Any]:
        agreed = key is not None and releases is not None and desk.agreement().binding
        own = options.Sources(state=state)
        return acts.act(replace(own, releases=releases, release_key=key) if agreed else own, request)

    settings = sources.settings()
    state = options.StateAt(settings.state, settings.database)
    desk = Desk(
        settings,
        acts.actor(settings),
        act,
        lambda: [asdict(check) for check in examine(settings)],
        lambda: verification_document(verified(existing_folder(state))),
        activate,
        lambda policy: edit_problems(policy, settings),
        releases,
        key,
    )
    with during("building the policy"), suppress(EngineError):  # its problems are shown on the pages
        desk.policy()
    run(desk, port, lambda link: notice(f"open {link}"))
