"""`engine sandbox`: run one program in a sandbox, when the policy allows it; install what sandboxes need."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from engine.cli import options
from engine.cli.inputs import all_bytes
from engine.cli.outputs import json_text, print_text
from engine.cli.terminal import tamed
from engine.cli.usage import Group
from engine.cli.waiting import during, sandbox_tried
from engine.documents.files import printable
from engine.errors import Exit

if TYPE_CHECKING:
    from admission_adapters.sandbox.model import RunResult
    from engine.engine import Engine
    from engine.flow import Answer
    from engine.policy_bundle.build import PolicyBundle
    from engine.shell import ShellRun

app = typer.Typer()
environments = typer.Typer(
    cls=Group, no_args_is_help=True, help="Build and list environments of Python packages that programs may import."
)
app.add_typer(environments, name="env")

_INPUT_BYTES = 1 << 20
"""Maximum size of a program's standard input, which is read into memory."""


@app.command("run")
@options.sourced("principal", "approval", "state", *options.SERVED)
def run(
    sources: options.Sources,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- PROGRAM [ARGUMENT]…", help="Executable listed in policy/sandbox.yaml.", show_default=False
        ),
    ] = None,
    *,
    profile: Annotated[str, typer.Option(metavar="NAME", help="Profile listed in policy/sandbox.yaml.")],
    tighten: Annotated[
        list[str] | None,
        typer.Option(metavar="LIMIT=NUMBER", help="Lower a limit, such as wall_seconds=2; repeatable."),
    ] = None,
    stdin: Annotated[
        Path | None, options.read(help="File that the program reads as standard input; - passes on standard input.")
    ] = None,
    shell: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Command for the shell of the profile, in place of PROGRAM; no rules on tools apply."
        ),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="Host that a --shell command may ask for over TLS; repeatable."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of a --shell command: copies are in inputs/, artifacts/ comes back."),
    ] = None,
    ca_file: options.CaFile = None,
) -> None:
    """Run a program in a sandbox, within limits: without shell, network, and files of this machine except /usr.

    With --shell, runs a command in the sandbox of the tool sandbox_shell. It is your command and not an agent's: only
    points sandbox and network decide, once for the command and once for each connection, which is printed with its
    outcome. The rules on calls and results of tools (policy/tools.yaml, policy/results.yaml) do not apply; a ToolGate
    applies them, and `engine tools call` shows what they decide.

    The program can read everything below /usr, except /usr/local. Its output goes to standard output and standard
    error; how it ended is printed on standard error. Exits with 0 if it was allowed and succeeded, and with 1 if it
    was refused or failed.
    """
    if (shell is None) == (not command):
        raise typer.BadParameter("name a program or --shell TEXT, and not both", param_hint="PROGRAM")
    if shell is None and (host or folder):
        hint = "--host" if host else "--folder"
        raise typer.BadParameter("only a --shell command takes --host and --folder", param_hint=hint)
    if shell is not None and (tighten or stdin is not None):
        raise typer.BadParameter("a --shell command takes neither --input nor --tighten", param_hint="--shell")
    if shell is not None:
        with sources.engine("sandbox", "network", "code_output", progress=sandbox_tried, ca_file=ca_file) as engine:
            done = engine.run_shell(
                shell, hosts=tuple(host or ()), folder=folder, profile=profile, context=sources.context()
            )
            policy = engine.policy
        _show(done.answer, done.ended, policy)
        for path, data in done.files.items():
            typer.echo(f"wrote {printable(path, 300)} ({len(data)} bytes)", err=True)
        for path, reason in done.not_kept.items():
            typer.echo(f"not kept: {printable(path, 300)} ({reason})", err=True)
        for line in dict.fromkeys(_connections(done, policy)):  # programs try again
            typer.echo(line, err=True)
        raise typer.Exit(_exit(done.answer, done.ended))
    request: dict[str, Any] = {"profile": profile, "command": command}
    if tighten:
        request["tighten"] = dict(map(_amount, tighten))
    input_bytes = b"" if stdin is None else all_bytes(stdin, _INPUT_BYTES)
    with sources.engine("sandbox", progress=sandbox_tried) as engine:
        answer, ended = perform(engine, request, input_bytes, sources.context())
    _show(answer, ended, engine.policy)
    raise typer.Exit(_exit(answer, ended))


@app.command("install")
def install(
    name: Annotated[
        Literal["gvisor"], typer.Argument(help="Sandbox to build from its pinned source.", metavar="gvisor")
    ],
) -> None:
    """Build a sandbox from its pinned source into the user's cache. It is verified before every use.

    It is used once a profile in policy/sandbox.yaml names it and its probe has passed on this machine.
    """
    from engine.sandboxes.install import install_gvisor

    with during(f"building {name}"):
        done = install_gvisor(options.Sources().settings())
    print_text(f"{name} {done.version} is in {done.path}, sha256 {done.sha256}")


@environments.command("build")
def build_packages(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the environment.")],
    lock: Annotated[Path, options.file(help="Lock file: NAME==VERSION --hash=sha256:… for every package.")],
    wheels: Annotated[Path | None, options.folder(help="Folder of wheels, in place of pip's index.")] = None,
) -> None:
    """Build a package environment from wheels whose hashes a lock file states, and print its row for the policy.

    Nothing of a package is executed. Needs pip; downloads what is missing, unless --wheels is given. The environment
    can be used once policy/sandbox.yaml has its row.
    """
    from admission_adapters.sandbox import packages

    settings = options.Sources().settings()
    with during(f"building the environment {name}"):
        made = packages.build(name, lock, packages.place(settings.cache), wheels)
    print_text(f"{len(made.modules)} modules are in {made.folder}; lock file {made.lock}")
    print_text("add to policy/sandbox.yaml, below `packages`, and name the profile of programs that use it:")
    print_text(f'  {made.name}: {{tree: "{made.tree}", profile: analysis}}')


@environments.command("list")
def list_packages(how: options.Output = "text") -> None:
    """List the package environments of this machine, with the digests that the policy must have."""
    from admission_adapters.sandbox import packages

    found = packages.found(packages.place(options.Sources().settings().cache))
    if how == "json":
        rows = [{"name": one.name, "tree": one.tree, "lock": one.lock, "modules": one.modules} for one in found]
        print_text(json_text({"environments": rows}))
        return
    lines = [f"{one.name}  {one.tree}  {', '.join(one.modules)}" for one in found]
    print_text("\n".join(lines) or "no package environments")


def _connections(done: ShellRun, policy: PolicyBundle | None) -> Iterator[str]:
    """The outcome of each connection, and what to do about those that were refused."""
    for one in done.connections:
        codes = f" ({', '.join(one.codes)})" if one.codes else ""
        yield f"connection to {printable(one.url or 'no address', 300)}: {one.outcome}{codes}"
        if one.approval:
            yield f"to approve it: engine approvals grant {one.approval}, then run this again"
        elif policy is not None:
            words = filter(None, (policy.catalogue.words("network", code) for code in one.codes))
            yield from (f"  {each.code}: {each.remedy}" for each in words)


def perform(engine: Engine, request: dict[str, Any], stdin: bytes, context: Any) -> tuple[Answer, RunResult | None]:
    """Decide a command and run it if it is allowed; None if it did not run."""
    from admission_adapters.sandbox.command import Command, run_command
    from engine.model import Permit, Result
    from engine.points.sandbox import SandboxLimits
    from engine.work import Job

    seen: list[RunResult] = []
    world, backends = engine.opened.gather_context, engine.executors.machine().backend

    def executor(permit: Permit, job: Job) -> Result:
        backend = permit.demand("sandbox", job.input_digest, SandboxLimits).backend
        found = world.sandbox_facts(backend, None)
        command = Command(tuple(request["command"]), stdin, cancel=job.stop)
        result, ended = run_command(permit, job.input_digest, command, backends, found)
        seen.append(ended)
        return result

    answer = engine.decide("sandbox", request, executor, context)
    return answer, seen[0] if seen else None


def _show(answer: Answer, ended: RunResult | None, policy: PolicyBundle | None) -> None:
    from engine.cli.formats.show import print_findings

    if ended is None:
        print_findings(answer, policy)
        typer.echo(f"nothing was run: {answer.decision.outcome}, decision {answer.decision.decision_id}", err=True)
        return
    for data, stream in ((ended.stdout, sys.stdout), (ended.stderr, sys.stderr)):
        stream.flush()
        stream.buffer.write(tamed(data) if stream.isatty() else data)
        stream.flush()
    limit = "" if ended.limit is None else f", limit {ended.limit}"
    code = "" if ended.exit_code is None else f", exit code {ended.exit_code}"
    facts = {} if answer.result is None else answer.result.facts
    where = f"{facts.get('profile')} on {facts.get('backend')} ({facts.get('isolation')})"
    typer.echo(f"{ended.status.value}{code}{limit}: {where}, decision {answer.decision.decision_id}", err=True)


def _exit(answer: Answer, ended: RunResult | None) -> Exit:
    if ended is None or answer.exit is not Exit.ALLOW:
        return answer.exit
    if ended.status.value == "sandbox_error":
        return Exit.FAILED_CLOSED
    return Exit.ALLOW if ended.status.value == "ok" else Exit.DENY


def _amount(text: str) -> tuple[str, Any]:
    name, equals, number = text.partition("=")
    try:
        return name, int(number) if number.isdigit() else float(number)
    except ValueError as error:
        if equals:
            raise typer.BadParameter(f"`{printable(text)}` has no number", param_hint="--tighten") from error
        raise typer.BadParameter(f"`{printable(text)}` is not LIMIT=NUMBER", param_hint="--tighten") from error
