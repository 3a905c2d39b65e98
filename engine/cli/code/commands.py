"""`engine code`: run generated code in a sandbox, and print stored objects of a run."""

from __future__ import annotations

import base64
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.administration import acts
from engine.cli.inputs import content, content_or_error
from engine.cli.outputs import json_text, print_text
from engine.cli.terminal import remark, tamed
from engine.cli.waiting import sandbox_tried
from engine.documents.files import counted, load, printable, read_bytes
from engine.errors import EngineError, GatherError
from engine.settings import ReadLimits
from engine.state.rows import CodeRunRow
from engine.times import row_document, time_text

if TYPE_CHECKING:
    from admission_adapters.files.artifact_store import ArtifactStore
    from engine.code.repair import Rejection, Repair
    from engine.code.result import CodeRun
    from engine.flow import Answer
    from engine.policy_bundle.build import PolicyBundle
    from engine.reports.explain import Explained


app = typer.Typer()

_AS_MUCH = 1_000_000
"""A hint that the policy lowers to its own limit."""

_INTERRUPTED = 130
"""The exit code of a run that Ctrl-C ended, as shells have it."""


@app.command("run")
@options.sourced(*options.CALLER, "state", *options.SERVED)
def run_action(
    sources: options.Sources,
    action: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="JSON document with action, request, policy_hints, …, or a program (.py); - reads standard input.",
        ),
    ],
    payload: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Standard input of a program as JSON (default: {}).")
    ] = None,
    contract: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Output contract of a program, in policy/code.yaml (default: `program` under `outputs` there).",
        ),
    ] = None,
    packages: Annotated[
        str | None, typer.Option("--env", metavar="NAME", help="Package environment, in policy/sandbox.yaml.")
    ] = None,
    profile: Annotated[str | None, typer.Option(metavar="NAME", help="Profile, in policy/sandbox.yaml.")] = None,
    files: Annotated[
        list[Path] | None, options.read(help="File that the program finds in inputs/; repeatable.")
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder for the files that the program leaves in artifacts/."
        ),
    ] = None,
    how: options.Output = "text",
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
            metavar="PROGRAM",
            help="Program that reads each rejection as JSON on standard input and prints the next action.",
        ),
    ] = None,
    repair_seconds: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Time limit for each run of PROGRAM, in seconds.")
    ] = 120.0,
    repair_env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Variable that PROGRAM gets beside PATH, HOME and the like; repeatable."),
    ] = None,
) -> None:
    """Decide on an action, run it in a sandbox, check its output and record each step.

    The program can read the machine's /usr, except /usr/local, the packages of --env, and the files that it is given.
    Files that it leaves are kept byte for byte or not at all; the answer names each file that is not kept, with its
    reason, and the sandbox that ran. Output that its contract does not check is shown while it runs.

    Exits with 0 if the run succeeded, 1 if it was refused or failed, 3 if a person must approve first. Ctrl-C
    kills the sandbox and records the run as cancelled.
    """
    if repair is not None and key is not None:
        raise typer.BadParameter("a key is for one run, and --repair makes several", param_hint="--idempotency-key")
    from engine.code.gateway import default_contract
    from engine.code.running import RunWatcher

    variables = repair_variables(repair_env or [])
    document = _document(action, approvals or [], payload, contract)
    if isinstance(document, dict):
        document = document | _stated(packages, profile, files or [], into)
    context = replace(sources.context(), idempotency_key=key)
    cancel = threading.Event()
    with sources.engine(progress=sandbox_tried) as engine, _cancelled_by_interrupt(cancel):
        if contract is None and action.suffix == ".py" and isinstance(document, dict):
            with suppress(EngineError):  # then nothing can be decided either, and the run says so
                document["contract"] = default_contract(engine.opened, "program")
        printer = OutputPrinter()
        watch = RunWatcher(cancel, _remark_phase, printer.take) if how == "text" else RunWatcher(cancel)
        if repair is None:
            done = engine.run_code(document, context, watch)
        else:
            done = engine.repair_code(document, repairing(repair, repair_seconds, cancel, variables), context, watch)
        printer.close()
        left = [] if into is None else written(done.document, into, engine.executors.machine().store)
    text = "\n".join([_text(done, engine.policy), *left]) if how == "text" else json_text(done.document)
    if printer.any:
        typer.echo(text, err=True)
    else:
        print_text(text)
    raise typer.Exit(_INTERRUPTED if done.stop_reason == "cancelled" else done.exit)


@app.command("runs")
def list_runs(
    run_id: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Id of a run, whose kept result is printed as JSON.")
    ] = None,
    limit: acts.Limit = 50,
    state: options.State = None,
    how: options.Output = "text",
) -> None:
    """List runs of code that have ended, of all callers, newest first; or print the kept result of one.

    A run is listed for as long as its permit states; one that executed nothing, for 30 days. Runs in progress are
    listed by the server that runs them: GET /v1/code/runs.
    """
    now = int(time.time())
    with acts.found(state) as store:
        if run_id is not None:
            row = store.code_run(run_id, None, now)
            if row is None or row.result is None:
                raise GatherError(
                    f"no result of a run `{printable(run_id, 40)}` is kept",
                    remedy="`engine code runs` lists what is known; runs in progress are listed by their server",
                )
            print_text(json_text(json.loads(row.result)))
            return
        acts.print_rows("runs", store.code_runs(None, None, now, limit), how, _row, _lines, _CELLS)


def _row(row: CodeRunRow) -> dict[str, Any]:
    return {**row_document(row), "result": row.result is not None}


def _lines(row: CodeRunRow) -> list[str]:
    return [f"{row.id}  {time_text(row.ended_at)}  {row.stop_reason}  {printable(row.owner, 256)}"]


_CELLS: dict[str, Callable[[CodeRunRow], str]] = {
    "run": lambda row: row.id,
    "ended": lambda row: time_text(row.ended_at),
    "stop reason": lambda row: row.stop_reason,
    "caller": lambda row: printable(row.owner, 256),
    "kept until": lambda row: time_text(row.expires_at),
}


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
    from admission_adapters.files.artifact_store import ArtifactStore

    data = ArtifactStore(options.state_folder(state) / "artifacts").get(digest)
    if data is None:
        raise GatherError(
            f"nothing is stored under `{printable(digest, 80)}`",
            remedy="use a digest listed under `stored` in a result or in the record; old objects are removed",
        )
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _stated(packages: str | None, profile: str | None, files: list[Path], into: Path | None) -> dict[str, Any]:
    """What the options state about a run."""
    contents = {file.name: base64.b64encode(read_bytes(file, _MOST)).decode("ascii") for file in files}
    if len(contents) != len(files):
        raise typer.BadParameter("two files have the same name", param_hint="--input")
    found = {"packages": packages, "profile": profile, "artifacts": True if into else None, "files": contents or None}
    return {name: value for name, value in found.items() if value is not None}


def written(document: dict[str, Any], into: Path, store: ArtifactStore) -> list[str]:
    """Write the kept files of a run into a folder, each whole or not at all; a line about each. Raises GatherError."""
    from engine.shell_folder import put_back

    found = {str(one["path"]): store.get(one["stored"]) for one in document.get("artifacts", ())}
    files = {path: data for path, data in found.items() if data is not None}
    if files:
        with suppress(OSError):  # then none of them can be written
            into.mkdir(parents=True, exist_ok=True)
    if left := sorted({*put_back(into.resolve(), files), *(found.keys() - files.keys())}):
        raise GatherError(
            f"{', '.join(f'`{printable(path)}`' for path in left)} cannot be written",
            remedy="name a folder of your own without links; hidden files, which tools would use, are never written",
        )
    nothing = [f"  nothing to write into {into}: the program left no file in artifacts/ that is kept"]
    return [f"  wrote {into / path} ({len(data)} bytes)" for path, data in files.items()] or nothing


class OutputPrinter:
    """Shows what a program prints while it runs, on a thread of its own: a slow terminal delays nothing else."""

    def __init__(self) -> None:
        self.any = False
        self._pieces: SimpleQueue[tuple[str, bytes] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._show, name="code-output", daemon=True)
        self._thread.start()

    def take(self, stream: str, data: bytes) -> None:
        """The next bytes of `stdout` or `stderr`."""
        self.any = True
        self._pieces.put((stream, data))

    def close(self) -> None:
        """Show what is left."""
        self._pieces.put(None)
        self._thread.join()

    def _show(self) -> None:
        while (piece := self._pieces.get()) is not None:
            stream = sys.stdout if piece[0] == "stdout" else sys.stderr
            with suppress(OSError, GatherError):  # nobody reads it any more
                stream.buffer.write(tamed(piece[1]) if stream.isatty() else piece[1])
                stream.flush()


def _document(action: Path, approvals: list[str], payload: Path | None, contract: str | None) -> Any:
    """The run in the file, with the approvals of the command; or the error that the engine records."""
    pairs = [one.partition("=") for one in approvals]
    if any(not (name and id_) for name, _, id_ in pairs):
        raise typer.BadParameter("write it as DECISION=ID, such as code_execution=ID", param_hint="--approval")
    program = action.suffix == ".py"
    if not program and (payload is not None or contract is not None):
        raise typer.BadParameter("the document already states them", param_hint="--payload, --contract")
    document = _program(action, payload, contract) if program else content_or_error(action)
    if not isinstance(document, dict | EngineError):
        label = printable(str(action))
        document = GatherError(
            f"`{label}` is not a JSON object", remedy="pass one, or a Python program whose name ends in .py"
        )
    if pairs and isinstance(document, dict):
        document = {**document, "approvals": {name: id_ for name, _, id_ in pairs}}
    return document


def _program(file: Path, payload: Path | None, contract: str | None) -> Any:
    """A run of a program alone, with nothing to be repeated in its answer; or the error that the engine records."""
    try:
        code = read_bytes(file, _MOST).decode("utf-8-sig")  # as Python reads a file
        input_payload = {} if payload is None else content(payload)
    except GatherError as error:
        return error
    except UnicodeDecodeError:
        return GatherError(f"`{printable(str(file))}` is not UTF-8 text", remedy="save it as UTF-8")
    action = {"id": "cli", "language": "python", "entrypoint": "main.py", "code": code, "input_payload": input_payload}
    hints = dict.fromkeys(("max_code_chars", "exec_timeout_seconds"), _AS_MUCH)
    return {"action": action, "request": {}, "policy_hints": hints, "contract": contract}


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


def _remark_phase(phase: str) -> None:
    remark(f"engine: {_PHASES[phase]}")


def _text(done: CodeRun, policy: PolicyBundle | None) -> str:
    """A run as text: the answer, or the reason why there is none, a remedy and the values that decided."""
    from engine.cli.formats.show import requirement_text, there

    document = done.document
    lines = [document["answer"]] if done.ok else [f"stopped in phase {document['phase']}: {document['stop_reason']}"]
    if content := document.get("content"):
        lines.append(json_text(content))
    if done.replayed:
        lines.append("replayed: this idempotency key was used before; nothing was run")
    explained = {} if done.answer is None else _explained(done.answer, policy)
    for one in document.get("findings", ()):
        line = f"line {at}" if (at := one.get("line")) is not None else ""
        about = f" ({', '.join(filter(None, (one['subject'], line)))})" if one["subject"] or line else ""
        requirement = requirement_text(one["code"], one["requirement"])
        lines += [f"  {one['point']}: {one['code']}{about}: {requirement}", f"    {one['remedy']}"]
        if (item := explained.get((one["point"], one["code"], one["subject"]))) is not None:
            lines += [f"    found: {what}" for what in [there(item)] if what]
            rows = [(row, printable(json.dumps(row.value))) for row in item.rows if row.where is not None]
            lines += [f"    policy: {row.path} = {value} ({row.where})" for row, value in rows]
    if advice := document.get("scan_advice"):
        found = sorted({f"{one['code']} {one['subject'] or ''}".strip() for one in advice})
        first = ", ".join(found[:_MOST_TOLD]) + (", …" if len(found) > _MOST_TOLD else "")
        lines.append(f"  allowed by this profile: {counted(len(found), 'finding')} of the scan: {first}")
    for step in document["trace"]:
        lines += [f"  {name}: {step[name]}" for name in ("stderr_snippet", "stdout_snippet") if name in step]
    if (approval := document.get("approval")) is not None:
        lines.append(
            f"  a person must approve: engine approvals grant {approval['id']}; "
            f"then run it again with --approval {approval['for']}={approval['id']}"
        )
    if done.fault is not None and not document.get("findings"):
        lines += [f"  {done.fault.one_line()}", f"    {done.fault.remedy}"]
    lines += [f"  {name}: {value}" for name, value in _details(document).items()]
    return "\n".join(lines)


def _explained(answer: Answer, policy: PolicyBundle | None) -> dict[tuple[str, str, str | None], Explained]:
    """What was found and which values decided, by point, code and subject."""
    from engine.reports.explain import report

    found = report("", answer, policy).explained
    return {(answer.decision.point, one.finding.code, one.finding.subject): one for one in found}


def _details(document: dict[str, Any]) -> dict[str, str]:
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


_MOST = ReadLimits().document_bytes
"""Bytes that a program may print; no action is larger."""

_ORDINARY = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "VIRTUAL_ENV", "PYTHONPATH"),
)
"""Variables that every repair program gets."""

_MOST_TOLD = 5
"""Findings of a scan that are shown."""

_LOOK_SECONDS = 0.02
"""How often to look whether it has ended."""


def repair_variables(named: list[str]) -> dict[str, str]:
    """The environment of a repair program: nothing of the remote model, whose key only its adapter gets (A04, C32)."""
    from admission_adapters.llm_provider import VARIABLES

    for name in named:
        if name in VARIABLES:
            raise typer.BadParameter(
                f"{name} is a variable of the remote model; give the program a key of its own under another name",
                param_hint="--repair-env",
            )
        if name not in os.environ:
            raise typer.BadParameter(f"{printable(name, 80)} is not set", param_hint="--repair-env")
    return {name: os.environ[name] for name in (*_ORDINARY, *named) if name in os.environ}


def repairing(command: str, seconds: float, cancel: threading.Event, variables: dict[str, str]) -> Repair:
    """Asks the program for each next action. Raises GatherError where the command cannot be split or run."""
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise _broken("its command cannot be split into words", "close every quote") from error
    if not argv:
        raise _broken("its command is empty", "name a program")

    def repair(rejection: Rejection) -> Any:
        if cancel.is_set():
            return None
        sent = json.dumps(asdict(rejection), ensure_ascii=False).encode("utf-8", "replace")
        try:
            printed = _repair_output(argv, sent, seconds, cancel, variables)
        except subprocess.TimeoutExpired as error:
            raise _broken(f"it took more than {seconds:g} seconds", "raise --repair-seconds") from error
        except (OSError, ValueError) as error:
            raise _broken("it cannot be run", "check the path and that it is executable") from error
        return load(printed, "the action of the repair program", ReadLimits()).value if printed.strip() else None

    return repair


def _repair_output(
    argv: list[str], sent: bytes, seconds: float, cancel: threading.Event, variables: dict[str, str]
) -> bytes:
    """What a program printed, nothing after Ctrl-C; it is killed then, when it is late, and when it prints too much.

    Raises GatherError where it failed, subprocess.TimeoutExpired, OSError, ValueError.
    """
    end = time.monotonic() + seconds
    with tempfile.TemporaryFile() as sent_file, tempfile.TemporaryFile() as printed:
        sent_file.write(sent)
        sent_file.seek(0)
        with subprocess.Popen(argv, stdin=sent_file, stdout=printed, env=variables) as child:
            try:
                while child.poll() is None and not cancel.is_set() and os.fstat(printed.fileno()).st_size <= _MOST:
                    if time.monotonic() > end:
                        raise subprocess.TimeoutExpired(argv, seconds)
                    cancel.wait(_LOOK_SECONDS)
            finally:
                child.kill()
        printed.seek(0)
        output = b"" if cancel.is_set() else printed.read(_MOST + 1)
    if len(output) > _MOST:
        raise _broken(f"it printed more than {_MOST} bytes", "make it print one action and nothing else")
    if child.returncode != 0 and not cancel.is_set():
        raise _broken(f"it ended with {child.returncode}", "see its standard error")
    return output


def _broken(what: str, remedy: str) -> GatherError:
    return GatherError(f"the repair program returned no action: {what}", remedy=remedy)
