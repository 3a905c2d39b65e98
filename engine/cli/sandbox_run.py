"""`engine sandbox run`: one program with its arguments in a sandbox, when the policy allows it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.waiting import sandbox_tried
from engine.errors import EngineError, Exit, GatherError

if TYPE_CHECKING:
    from adapters.sandbox.model import Ended
    from engine.engine import Engine
    from engine.flow import Answer

_INPUT_BYTES = 1 << 20
"""Of the standard input of a program; it is held in memory."""


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM [ARGUMENT]…", help="Executable listed in policy/sandbox.yaml.")
    ],
    profile: Annotated[str, typer.Option("--profile", metavar="NAME", help="Profile listed in policy/sandbox.yaml.")],
    tighten: Annotated[
        list[str] | None,
        typer.Option("--tighten", metavar="LIMIT=NUMBER", help="Lower a limit, such as wall_seconds=2; repeatable."),
    ] = None,
    stdin: Annotated[
        Path | None,
        typer.Option(
            "-i",
            "--input",
            metavar="FILE",
            help="File that the program reads as standard input; - passes on standard input.",
        ),
    ] = None,
    principal: options.Principal = None,
    approval: options.Approval = None,
    state: options.State = None,
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    release: options.Release = None,
    release_key: options.ReleaseKey = None,
) -> None:
    """Run a program in a sandbox: no shell, no network, no files of this machine but /usr, and within limits.

    It can read all that is below /usr, but for /usr/local: programs and libraries, and whatever else was put there.
    Its output goes to standard output and standard error, what became of it to standard error. Ends with 0 where
    it was allowed and ended well, and with 1 where it was refused or ended badly.
    """
    from engine.engine import Engine

    request: dict[str, Any] = {"profile": profile, "command": command}
    if tighten:
        request["tighten"] = dict(map(_amount, tighten))
    given = _read(stdin)
    chosen = options.settings(state, policy, rego, bundle, (release, release_key))
    with Engine(chosen, progress=sandbox_tried) as engine:
        options.tell_recovered(engine)
        answer, ended = perform(engine, request, given, options.context(principal, approval=approval))
    _show(answer, ended)
    raise typer.Exit(_exit(answer, ended))


def perform(engine: Engine, request: dict[str, Any], stdin: bytes, context: Any) -> tuple[Answer, Ended | None]:
    """Decide a command and run it where it is allowed; None where it did not run."""
    from adapters.sandbox.command import Command, run_command
    from adapters.sandbox.granted import Shown
    from engine.model import Permit, Result
    from engine.points.sandbox import SandboxLimits
    from engine.work import Job

    if engine.parts is None:
        raise EngineError("the engine is not open", remedy="use it as a context manager")
    seen: list[Ended] = []
    world, backends = engine.parts.world, engine.code_machine().backend

    def hand(permit: Permit, job: Job) -> Result:
        backend = permit.demand("sandbox", job.input_digest, SandboxLimits).backend
        found = world.sandbox_facts(backend, None)
        command = Command(tuple(request["command"]), stdin)
        shown = Shown(found.boundaries, found.probes)
        result, ended = run_command(permit, job.input_digest, SandboxLimits, command, backends, shown)
        seen.append(ended)
        return result

    answer = engine.decide("sandbox", request, hand, context)
    return answer, seen[0] if seen else None


def _show(answer: Answer, ended: Ended | None) -> None:
    from engine.cli.formats.show import said

    if ended is None:
        for finding in answer.decision.findings:
            about = "" if finding.subject is None else f" ({finding.subject})"
            typer.echo(f"{finding.code}{about}: {said(finding.code, finding.message)}\n  {finding.remedy}", err=True)
        typer.echo(f"nothing was run: {answer.decision.outcome}, decision {answer.decision.decision_id}", err=True)
        return
    for data, stream in ((ended.stdout, sys.stdout), (ended.stderr, sys.stderr)):
        stream.flush()
        stream.buffer.write(_plain(data) if stream.isatty() else data)
        stream.flush()
    limit = "" if ended.limit is None else f", limit {ended.limit}"
    code = "" if ended.exit_code is None else f", exit code {ended.exit_code}"
    facts = {} if answer.result is None else answer.result.facts
    where = f"{facts.get('profile')} on {facts.get('backend')} ({facts.get('isolation')})"
    typer.echo(f"{ended.status.value}{code}{limit}: {where}, decision {answer.decision.decision_id}", err=True)


def _exit(answer: Answer, ended: Ended | None) -> Exit:
    if ended is None or answer.exit is not Exit.ALLOW:
        return answer.exit
    if ended.status.value == "sandbox_error":
        return Exit.FAILED_CLOSED
    return Exit.ALLOW if ended.status.value == "ok" else Exit.DENY


def _plain(data: bytes) -> bytes:
    """What a terminal may get: nothing in it that would drive the terminal."""
    text = data.decode("utf-8", "replace")
    return "".join(one if one.isprintable() or one in "\n\t" else "\N{REPLACEMENT CHARACTER}" for one in text).encode()


def _amount(text: str) -> tuple[str, Any]:
    name, equals, number = text.partition("=")
    try:
        return name, int(number) if number.isdigit() else float(number)
    except ValueError as error:
        if equals:
            raise typer.BadParameter(f"`{text}` has no number", param_hint="--tighten") from error
        raise typer.BadParameter(f"`{text}` is not LIMIT=NUMBER", param_hint="--tighten") from error


def _read(path: Path | None) -> bytes:
    from engine.files import read_bytes

    if path is None:
        return b""
    if str(path) != "-":
        return read_bytes(path, _INPUT_BYTES)
    data = sys.stdin.buffer.read(_INPUT_BYTES + 1)
    if len(data) > _INPUT_BYTES:
        raise GatherError("standard input is larger than 1 MiB", remedy="give the program less to read")
    return data
