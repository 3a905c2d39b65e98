"""`engine code`: run generated code in a sandbox, and show what was kept of a run."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli import tool_requests as asked
from engine.cli.waiting import sandbox_tried
from engine.errors import EngineError, GatherError

if TYPE_CHECKING:
    from engine.code.result import CodeRun

app = typer.Typer(help="Run generated code in a sandbox; show stored code, results and logs.", no_args_is_help=True)

_INTERRUPTED = 130
"""The exit code of a run that Ctrl-C ended, as shells have it."""


class Format(StrEnum):
    """What `--format` takes."""

    TEXT = "text"
    JSON = "json"


@app.command("run")
def run_action(
    action: Annotated[
        Path,
        typer.Argument(
            metavar="ACTION.json", help="JSON document with action, request, policy_hints, …; - reads standard input."
        ),
    ],
    how: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.TEXT,
    principal: options.Principal = None,
    run: options.Run = None,
    approvals: Annotated[
        list[str] | None,
        typer.Option(
            "--approval", metavar="DECISION=ID", help="Granted approval, such as code_execution=ID; repeatable."
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--idempotency-key", metavar="KEY", help="Run once per key; repeating it returns the first result."
        ),
    ] = None,
    repair: Annotated[
        str | None,
        typer.Option(
            "--repair",
            metavar="PROGRAM",
            help="Program that reads each rejection as JSON on standard input and prints the next action.",
        ),
    ] = None,
    repair_seconds: Annotated[
        float,
        typer.Option("--repair-seconds", min=0.1, max=3_600, help="Time limit for each run of PROGRAM, in seconds."),
    ] = 120.0,
    state: options.State = None,
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    release: options.Release = None,
    release_key: options.ReleaseKey = None,
) -> None:
    """Decide on an action, run it in a sandbox, check its output and record each step.

    The program can read the machine's /usr, but for /usr/local, and no other file. Files that it leaves are kept byte
    for byte or not at all; the answer names each that is not kept, with its reason, and the sandbox that ran.

    Ends with 0 for a good run, 1 where it was refused or failed, 3 where a person must approve first. Ctrl-C
    kills the sandbox and records the run as cancelled.
    """
    from dataclasses import replace

    if repair is not None and key is not None:
        raise typer.BadParameter("a key is for one run, and --repair makes several", param_hint="--idempotency-key")
    from engine.cli.code_repair import repairing
    from engine.code.once import Watch
    from engine.engine import Engine

    document = _document(action, approvals or [])
    context = replace(options.context(principal, run), idempotency_key=key)
    chosen = options.settings(state, policy, rego, bundle, (release, release_key))
    cancel = threading.Event()
    with Engine(chosen, progress=sandbox_tried) as engine, _cancelled_by_interrupt(cancel):
        options.tell_recovered(engine)
        watch = Watch(cancel, _tell if how is Format.TEXT else None)
        if repair is None:
            done = engine.run_code(document, context, watch)
        else:
            done = engine.repair_code(document, repairing(repair, repair_seconds, cancel), context, watch)
    typer.echo(_text(done) if how is Format.TEXT else json.dumps(done.document, indent=2, ensure_ascii=False))
    raise typer.Exit(_INTERRUPTED if done.stop_reason == "cancelled" else done.exit)


@app.command("show")
def show_kept(
    digest: Annotated[
        str,
        typer.Argument(
            metavar="DIGEST", help="Digest listed under `stored` in the result of a run: sha256:… or its hex digits."
        ),
    ],
    state: options.State = None,
) -> None:
    """Print stored code, a result or a failure log by its digest."""
    from adapters.artifact_store import ArtifactStore
    from engine.files import shown

    data = ArtifactStore(options.settings(state).state / "artifacts").get(digest)
    if data is None:
        raise GatherError(
            f"nothing is stored under `{shown(digest, 80)}`",
            remedy="take a digest from `stored` of a result or of the record; what is old is removed",
        )
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _document(action: Path, approvals: list[str]) -> Any:
    """The run as it stands in the file, with the approvals of the command; or the error that the engine records."""
    pairs = [one.partition("=") for one in approvals]
    if any(not (name and id_) for name, _, id_ in pairs):
        raise typer.BadParameter("write it as DECISION=ID, such as code_execution=ID", param_hint="--approval")
    try:
        document = asked.content(action)
    except EngineError as error:
        return error
    if pairs and isinstance(document, dict):
        document = {**document, "approvals": {name: id_ for name, _, id_ in pairs}}
    return document


@contextmanager
def _cancelled_by_interrupt(cancel: threading.Event) -> Iterator[None]:
    """The first Ctrl-C ends the run and records it; a second one ends this command too."""

    def interrupted(number: int, frame: Any) -> None:
        if cancel.is_set():
            signal.default_int_handler(number, frame)
        cancel.set()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_PHASES = {"plan": "checking the action", "policy_check": "checking the policy", "execute": "running in the sandbox"}


def _tell(phase: str) -> None:
    typer.echo(f"engine: {_PHASES[phase]}", err=True)


def _text(done: CodeRun) -> str:
    """A run for people: the answer, or why there is none and what to do."""
    from engine.cli.formats.show import said

    document = done.document
    lines = [document["answer"]] if done.ok else [f"stopped in phase {document['phase']}: {document['stop_reason']}"]
    if done.replayed:
        lines.append("replayed: this idempotency key was used before; nothing was run")
    for one in document.get("findings", ()):
        about = f" ({one['subject']})" if one["subject"] else ""
        told = said(one["code"], one["message"])
        lines += [f"  {one['point']}: {one['code']}{about}: {told}", f"    {one['remedy']}"]
    for step in document["trace"]:
        lines += [f"  {name}: {step[name]}" for name in ("stderr_snippet", "stdout_snippet") if name in step]
    if (wanted := document.get("approval")) is not None:
        lines.append(
            f"  a person must approve: engine approvals grant {wanted['id']}; "
            f"then run it again with --approval {wanted['for']}={wanted['id']}"
        )
    if done.fault is not None and not document.get("findings"):
        lines += [f"  {done.fault.one_line()}", f"    {done.fault.remedy}"]
    lines += [f"  {name}: {value}" for name, value in _told(document).items()]
    return "\n".join(lines)


def _told(document: dict[str, Any]) -> dict[str, str]:
    """What helps to find the run again."""
    found = {"run": document["run_id"]}
    if (execution := document.get("execution")) is not None:
        network = execution["network_denied"]
        found["ran in"] = f"{execution['backend']} ({execution['isolation']}), no network: {network}"
    stored = document.get("stored", {})
    found |= {name: stored[name] for name in ("code", "result", "log") if name in stored}
    found |= {f"artifact {one['path']}": one["stored"] for one in document.get("artifacts", ())}
    found |= {f"not kept {one['name']}": one["reason"] for one in document.get("artifacts_not_kept", ())}
    if len(attempts := document.get("attempts", ())) > 1:
        found["attempts"] = ", ".join(one["stop_reason"] for one in attempts)
    return found
