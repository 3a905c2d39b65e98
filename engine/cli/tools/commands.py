"""`engine tools`: what an agent sees, what would happen to a call, why, and what would have to change."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.inputs import content
from engine.cli.outputs import json_text, print_text, write
from engine.cli.terminal import remark
from engine.cli.tools import prefixes
from engine.cli.tools import requests as asked
from engine.cli.usage import Group
from engine.documents.files import counted, printable
from engine.errors import EngineError, GatherError

if TYPE_CHECKING:
    from engine.flow import Answer

_POINTS = ("mcp", "tool_call", "tool_visibility")

app = typer.Typer()
app.add_typer(prefixes.app, name="prefixes", cls=Group)


@app.command("list")
@options.sourced("principal", "state", *options.SERVED, "values")
def list_tools(
    sources: options.Sources,
    tool_policy: asked.ToolPolicy = None,
    profile: asked.Profile = None,
    how: options.Output = "text",
) -> None:
    """List tools: whether an agent sees each, what happens to a call, and which policy value says so.

    Recorded as a dry run. Without --tool-policy, the agent has none and sees nothing.
    """
    from engine.cli.tools.list_tools import as_text, check_names, listing

    stated = {"policy": tool_policy, "profile": profile}
    with sources.engine(*_POINTS) as engine:
        if engine.policy is not None:
            check_names(engine.policy, stated)
        rows = listing(engine, stated, sources.context())
    document = {"tools": [asdict(row) for row in rows]}
    print_text(json_text(document) if how == "json" else as_text(rows, tool_policy, profile))


@app.command("explain")
@options.sourced(*options.CALLER, "state", *options.SERVED, "values", "now")
def explain_tool(
    sources: options.Sources,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Tool name, as agents call it.")],
    call: asked.Input = None,
    tool_policy: asked.ToolPolicy = None,
    profile: asked.Profile = None,
    cwd: asked.WorkingFolder = None,
    home: asked.HomeFolder = None,
    how: options.Output = "text",
) -> None:
    """Explain why an agent can or cannot call a tool with these arguments, and what would change that.

    Without CALL, the call has no arguments. Recorded as a dry run. Exits with the code of the decision.
    """
    from engine.cli.tools.explain import explained

    tool_call = {"name": tool, "arguments": {}} if call is None else content(call)
    asked.demand_call_of(tool_call, tool)
    request = asked.request(tool_call, tool_policy, profile, cwd, home)
    with sources.engine(*_POINTS) as engine:
        context = sources.context()
        answer = engine.check("tool_call", request, context)
        explanation = explained(engine, answer, tool, context.caller.principal)
    print_text(explanation.printed(how))
    raise typer.Exit(answer.exit)


@app.command("call")
@options.sourced(*options.DECIDING, "state", *options.SERVED)
def call_tool(
    sources: options.Sources,
    call: asked.Input = None,
    tool_policy: asked.ToolPolicy = None,
    profile: asked.Profile = None,
    cwd: asked.WorkingFolder = None,
    home: asked.HomeFolder = None,
    how: options.Output = "text",
) -> None:
    """Decide a call without running the tool. Recorded as `enforce`; uses up an approval.

    A call of a tool that reads untrusted or private data, or sends something out, names its run with --run: what a
    run has touched counts for its later calls.

    Reads the call from standard input if no file is named. A confirm prints the id of an approval, which
    `engine approvals grant` grants; then repeat the call with --approval.
    """
    from engine.cli.tools.explain import explained

    request: Any
    try:
        request = asked.request(content(call or Path("-")), tool_policy, profile, cwd, home)
    except EngineError as error:
        request = error
    with sources.engine(*_POINTS) as engine:
        context = sources.context()
        answer = engine.decide("tool_call", request, context=context)
        explanation = explained(engine, answer, str(call or "standard input"), context.caller.principal)
    print_text(explanation.printed(how))
    if how == "text":
        print_text(_afterwards(answer))
    raise typer.Exit(answer.exit)


@app.command("audit")
@options.sourced("state", *options.SERVED, "values")
def audit_tools(
    sources: options.Sources,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The server's tools/list result, or a list of tools, as JSON.")
    ],
    server: Annotated[str, typer.Option(metavar="ID", help="Server id in policy/mcp.yaml.")],
    before: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The list that was reviewed: shows what changed since.")
    ] = None,
    how: options.Output = "text",
) -> None:
    """Audit the tools that an MCP server lists: new, changed, or marked more dangerous by the server.

    Prints the texts of definitions without secrets and with hidden characters named, and an entry to paste for each
    new tool. Recorded as a dry run. Exits with 1 if anything needs attention.
    """
    from engine.cli.tools.audit import audit

    with sources.engine(*_POINTS) as engine:
        done = audit(engine, file, server, before, options.Sources().context())
    print_text(done.printed(how))
    raise typer.Exit(done.report.exit)


@app.command("init")
@options.sourced("policy")
def init_tools(
    sources: options.Sources,
    tools: Annotated[
        list[str],
        typer.Argument(
            metavar="TOOLS…",
            help="Lists of tools as JSON (MCP tools/list, OpenAI, Anthropic), and functions as FILE.py:FUNCTION.",
            show_default=False,
        ),
    ],
    server: Annotated[
        str | None, typer.Option(metavar="ID", help="Server id in policy/mcp.yaml, if the tools are those of one.")
    ] = None,
    into: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="New file (default: standard output).")
    ] = None,
) -> None:
    """Write entries of policy/tools.yaml for new tools, with comments on what only a person can state.

    Nothing that is named is run. Tools whose definitions steer the model are left out.
    """
    from engine.cli.policy.commands import built_policy
    from engine.cli.tools.init import entries
    from engine.facts.text.instructions import Markers

    if into is not None and into.exists():
        raise GatherError(f"`{printable(str(into))}` exists", remedy="leave out --into, and paste the entries")
    made = entries(tools, server, Markers.of(built_policy(sources).data["results"]))
    write([(made.text, into)])
    for one in made.left_out:
        remark(f"engine: left out: {one}")
    if into is not None:
        print_text(f"{printable(str(into))}: {counted(len(made.names), 'tool')}")
        folder = f" --policy {printable(str(into.parent.parent))}" if into.parent.name == "values" else ""
        print_text(f"next: complete the lines that have a comment, write a rule, then run `engine policy lint{folder}`")


def _afterwards(answer: Answer) -> str:
    """What happens now: never a tool that runs."""
    approval = answer.decision.approval
    if approval is not None and approval.state == "requested":
        grant = f"engine approvals grant {approval.id}"
        return f"no tool was run; to approve this one call: {grant}; then ask again with --approval {approval.id}"
    limits = answer.decision.limits
    if limits is None:
        return "no tool was run: this call is not allowed"
    stated = ", ".join(f"{name} {_short(value)}" for name, value in limits.model_dump(mode="json").items())
    return f"no tool was run: this command only decides; limits: {stated}"


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value)) or "none"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
