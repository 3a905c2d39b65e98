"""The command `engine`. One file a command group; what is heavy is imported when it is used."""

from __future__ import annotations

import gc
import signal
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from engine.cli import terminal
from engine.cli.completion import prepare
from engine.cli.outputs import print_text
from engine.cli.streams import prepare_streams
from engine.cli.usage import Group, finished, print_usage_error
from engine.documents.files import printable
from engine.errors import RAISE_LIMIT, EngineError, Exit, PolicyError, lack_of, reason_of
from engine.version import __version__

_COMMANDS = {
    "adapter": ("adapter", "Serve curated tools to an MCP client, under an admitted manifest; off by default."),
    "agent": ("agent", "Create agents from a specification, with a person's approval; list and end them."),
    "build": ("build", "Build the environment of an admitted source bundle; exits with the code of the decision."),
    "check": ("check", "Check source bundles without enforcing anything; exits with the worst exit code."),
    "completion": ("completion", "Print a script that completes commands, options and values in a shell."),
    "decide": ("decide", "Decide one request and print the decision, as JSON or for people."),
    "doctor": ("machine.doctor", "Report what this machine has: OPA, writable state, sandbox tools."),
    "environment": ("environment", "Use a built environment: call its tools, undo changes, offer it to an MCP client."),
    "episode": ("episode", "Run an episode of several actors, each turn decided and recorded; replay one."),
    "export": ("export", "Export samples with their provenance, if every one of them may leave."),
    "fetch": ("fetch", "Fetch material over HTTPS into a new source bundle, within the policy."),
    "mcp": ("mcp", "Put the gate of this engine in front of an MCP server."),
    "memory": ("memory", "Write, read and forget entries of an agent's memory, each after a decision."),
    "model": ("model", "Ask the remote model, within the policy; off until a provider is admitted."),
    "release": ("release", "Decide whether a version may be released, by reports of its tests and checks."),
    "runner": ("runner", "Run agents on this machine: the reference runner."),
    "serve": ("serve", "Serve decisions over HTTP until SIGTERM or SIGINT; SIGHUP activates a changed policy."),
    "approvals": ("administration.approvals", "List, show, grant and refuse approval requests."),
    "code": ("code.commands", "Run generated code in a sandbox; show stored code, results and logs."),
    "policy": ("policy", "Start, build, show, compare, lint, test, release and activate the policy."),
    "record": ("record.group", "Verify, show, replay, export and prune the decision record."),
    "sbom": ("machine.sbom", "List the packages and modules of this installation as a CycloneDX document."),
    "sandbox": ("machine.sandbox", "Run programs in a sandbox; install additional sandboxes."),
    "state": ("administration.state", "Prepare a PostgreSQL database for the state that several engines share."),
    "stop": ("administration.stops", "Stop everything, one tool or one principal at once; list and lift stops."),
    "source": ("sources", "Start source bundles from files and their metadata, update their hashes, admit them."),
    "tokens": ("administration.tokens", "Issue, list and revoke bearer tokens."),
    "workbench": ("workbench", "Show record, policy, previews and approvals in a browser on this machine."),
    "tools": ("tools.commands", "List tools, explain and decide calls, audit an MCP server's tools, approve commands."),
}
"""Each command: its module below engine/cli, with the function of this name or a group `app`, and its help."""


class _Commands(Group):
    """Imports a command when it runs: the list of commands needs no more than their help."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, help=words) for name, (_, words) in sorted(_COMMANDS.items())}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command to run, with its options."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, loaded(name) if name else None, rest


def _place(error: Exception) -> str:
    """Where an exception that nothing expects arose, never what it holds."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def loaded(name: str) -> Any:
    """A command with everything below it."""
    module, words = _COMMANDS[name]
    found = import_module(f"engine.cli.{module}")
    parent = typer.Typer(add_completion=False, rich_markup_mode=None)
    parent.callback()(lambda: None)
    parent.command("common")(terminal.common)
    if hasattr(found, "app"):
        parent.add_typer(found.app, name=name, cls=Group, help=words, no_args_is_help=True)
    else:
        parent.command(name)(getattr(found, name))
    group: Any = typer.main.get_command(parent)
    return finished(group.commands[name], group.commands["common"].params)


app = typer.Typer(
    name="engine",
    cls=_Commands,
    help="Policy-as-code admission engine: decides what may run, and within what limits.",
    epilog="Exit codes: 0 allow; 1 deny; 2 usage, or an input that cannot be read; 3 confirm; 4 failed closed: OPA, "
    "record or state; 5 rules or values are invalid; 6 a replay decides differently.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_text(__version__)
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
    _color: terminal.Color = None,
    _quiet: terminal.Quiet = False,
) -> None:
    """Read the options before the command."""


def main() -> None:
    """Run the command line; every error ends in its exit code and a text, never in a traceback."""
    gc.set_threshold(200_000, 20, 20)  # documents of many records and no cycles: a fifth of the time of 10,000
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    prepare_streams()
    prepare()
    try:
        sys.exit(finished(typer.main.get_command(app), ())(prog_name="engine", standalone_mode=False))
    except typer.TyperException as error:
        print_usage_error(error)
        sys.exit(Exit.UNREADABLE)
    except EngineError as error:
        if not isinstance(error.__cause__, BrokenPipeError):  # else nobody reads the output any more, as in `| head -1`
            has_remedies = isinstance(error, PolicyError)  # each of its problems has a remedy
            terminal.notice(str(error) if has_remedies else f"{error}\n  {error.remedy}")
        sys.exit(error.exit)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        what = "an operation" if error.filename is None else f"`{printable(str(error.filename), 1_000)}`"
        reason = reason_of(error) if _has_folder() else "the folder of this command was removed"
        remedy = f"make it possible, and run the command again; it stopped at {_place(error)}"
        terminal.notice(f"the system refused {what}: {reason}; nothing was allowed\n  {remedy}")
        sys.exit(Exit.FAILED_CLOSED)
    except Exception as error:  # noqa: BLE001  (users never see a traceback)
        lack, remedy = lack_of(error), RAISE_LIMIT
        if lack is None:
            remedy = f"report the command, `engine --version` and this place: {_place(error)}"
        terminal.notice(f"{lack or 'a fault inside the engine stopped the command'}; nothing was allowed\n  {remedy}")
        sys.exit(Exit.FAILED_CLOSED)


def _has_folder() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True
