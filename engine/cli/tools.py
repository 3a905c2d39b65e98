"""`engine tools`: what an agent sees, what would happen to a call, why, and what would have to change."""

from __future__ import annotations

import os
import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options, prefixes
from engine.cli import tool_requests as asked
from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.flow import Answer

app = typer.Typer(
    help="List tools, explain and decide calls, audit an MCP server's tools, approve commands.", no_args_is_help=True
)
app.add_typer(prefixes.app, name="prefixes")


class Format(StrEnum):
    """What `--format` takes."""

    TEXT = "text"
    JSON = "json"


How = Annotated[Format, typer.Option("--format", help="Output format.")]


@app.command("list")
def list_tools(
    tool_policy: asked.ToolPolicy = None,
    profile: asked.Profile = None,
    principal: options.Principal = None,
    state: options.State = None,
    how: How = Format.TEXT,
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    values: options.Values = None,
) -> None:
    """List tools: whether an agent sees each, what happens to a call, and which policy value says so.

    Recorded as a dry run. Without --tool-policy, the agent has none and sees nothing.
    """
    from engine.cli.tool_list import as_json, as_text, listing

    with _engine(state, (policy, rego, bundle), values) as engine:
        rows = listing(engine, {"policy": tool_policy, "profile": profile}, options.context(principal))
    typer.echo(as_json(rows) if how is Format.JSON else as_text(rows, tool_policy, profile))


@app.command("explain")
def explain_tool(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Tool name, as agents call it.")],
    call: asked.Input = None,
    tool_policy: asked.ToolPolicy = None,
    profile: asked.Profile = None,
    cwd: asked.WorkingFolder = None,
    principal: options.Principal = None,
    state: options.State = None,
    how: How = Format.TEXT,
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    values: options.Values = None,
    now: options.Now = None,
) -> None:
    """Explain why an agent can or cannot call a tool with these arguments, and what would change that.

    Without CALL, the call has no arguments. Recorded as a dry run. Exits with the code of the decision.
    """
    from engine.cli.tool_explain import as_json, as_text, explained

    given = {"name": tool, "arguments": {}} if call is None else asked.content(call)
    asked.named(given, tool)
    wanted = asked.request(given, tool_policy, profile, cwd)
    with _engine(state, (policy, rego, bundle), values, now) as engine:
        context = options.context(principal)
        answer = engine.check("tool_call", wanted, context)
        told = explained(engine, answer, tool, context.caller.principal)
    typer.echo(as_json(told) if how is Format.JSON else as_text(told, _width(), color=_color()), nl=False)
    raise typer.Exit(answer.exit)


@app.command("call")
def call_tool(
    call: asked.Input = None,
    tool_policy: asked.ToolPolicy = None,
    profile: asked.Profile = None,
    cwd: asked.WorkingFolder = None,
    principal: options.Principal = None,
    approval: options.Approval = None,
    state: options.State = None,
    how: How = Format.TEXT,
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    release: options.Release = None,
    release_key: options.ReleaseKey = None,
) -> None:
    """Decide a call without running the tool. Recorded as `enforce`; uses up an approval.

    Reads the call from standard input if no file is named. A confirm prints the id of an approval, which
    `engine approvals grant` grants; then repeat the call with --approval.
    """
    from engine.cli.tool_explain import as_json, as_text, explained

    given: Any
    try:
        given = asked.request(asked.content(call or Path("-")), tool_policy, profile, cwd)
    except EngineError as error:
        given = error
    with _engine(state, (policy, rego, bundle), None, None, (release, release_key)) as engine:
        context = options.context(principal, approval=approval)
        answer = engine.decide("tool_call", given, context=context)
        told = explained(engine, answer, str(call or "standard input"), context.caller.principal)
    typer.echo(as_json(told) if how is Format.JSON else as_text(told, _width(), color=_color()), nl=False)
    if how is Format.TEXT:
        typer.echo(_afterwards(answer))
    raise typer.Exit(answer.exit)


@app.command("audit")
def audit_tools(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The server's tools/list result, or a list of tools, as JSON.")
    ],
    server: Annotated[str, typer.Option("--server", metavar="ID", help="Server id in policy/mcp.yaml.")],
    state: options.State = None,
    how: How = Format.TEXT,
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    values: options.Values = None,
) -> None:
    """Audit the tools that an MCP server lists: new, changed, or marked more dangerous by the server.

    Prints an entry to paste for each new tool. Recorded as a dry run. Exits with 1 if anything needs
    attention.
    """
    from engine.cli.tool_audit import as_json, as_text, audit

    with _engine(state, (policy, rego, bundle), values) as engine:
        done = audit(engine, file, server, options.context(None))
    typer.echo(as_json(done) if how is Format.JSON else as_text(done, _width(), color=_color()), nl=False)
    raise typer.Exit(done.exit)


def _afterwards(answer: Answer) -> str:
    """What happens now: never a tool that runs."""
    approval = answer.decision.approval
    if approval is not None and approval.state == "requested":
        grant = f"engine approvals grant {approval.id}"
        return f"no tool was run; to approve this one call: {grant}; then ask again with --approval {approval.id}"
    limits = answer.decision.limits
    if limits is None:
        return "no tool was run, and none may be"
    told = ", ".join(f"{name} {_short(value)}" for name, value in limits.model_dump(mode="json").items())
    return f"no tool was run: this only decides; within {told}"


def _short(value: Any) -> str:
    return ",".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _engine(
    state: Path | None,
    folders: tuple[Path | None, Path | None, Path | None],
    values: list[str] | None,
    now: str | None = None,
    release: tuple[Path | None, Path | None] = (None, None),
) -> Engine:
    from engine.engine import Engine

    moment = options.moment(now)
    chosen = options.settings(state, *folders, release)
    return Engine(chosen, values=tuple(values or ()), now=lambda: moment)


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 100


def _color() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
