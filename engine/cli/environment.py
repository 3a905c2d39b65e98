"""`engine environment`: use a built environment through the gate, undo what was done, offer it to an MCP client."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.adapter import EnableMcpAdapter, accepted, serve_adapter
from engine.cli.inputs import content_or_error
from engine.cli.outputs import json_text, print_text
from engine.cli.terminal import remark
from engine.cli.tools import requests as asked
from engine.documents.files import counted, printable
from engine.errors import Exit

if TYPE_CHECKING:
    from admission_adapters.environments.session import EnvironmentSession
    from engine.engine import Engine
    from engine.flow import Answer

app = typer.Typer()

_ACTS = ("environment_act", "tool_contract")
_CALLS = ("tool_call", "tool_contract", "tool_result")
_SERVES = ("adapter", "adapter_envelope", "source", "tool_visibility", *_CALLS)
_LONGEST = 1 << 20
"""Characters of a result or a command that are printed for people."""

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="Folder that `engine build` made.")
]


@app.command("show")
def show(folder: Folder, how: options.Output = "text") -> None:
    """Show an environment: what it was built from, its state, its tools, the checkpoints that can be restored.

    Exits with 4 and the differences if another program has changed it.
    """
    from admission_adapters.environments.held import OpenEnvironment
    from admission_adapters.environments.session import EnvironmentTools

    with OpenEnvironment(folder) as environment:
        about, (state, rows) = environment.about, environment.standing()
        found: dict[str, Any] = {
            "environment": environment.name,
            "holds": environment.holds,
            "state": state,
            "rows": rows,
            "built": about.model_dump(include={"decision_id", "bundle_digest", "base_sha256", "rows"}),
            "tools": [
                {"name": tool, "side_effects": list(effects), "description": description}
                for tool, (description, effects, _) in sorted(EnvironmentTools(environment, None).tools.items())
            ],
            "checkpoints": [
                {name: line[name] for name in ("name", "event", "state", "rows")} for line in environment.checkpoints()
            ],
            "problems": environment.verify(),
        }
    print_text(json_text(found) if how == "json" else _text(folder, found))
    raise typer.Exit(Exit.FAILED_CLOSED if found["problems"] else Exit.ALLOW)


@app.command("trajectory")
def trajectory(folder: Folder, how: options.Output = "text") -> None:
    """Show every change of an environment since it was built; no content."""
    from admission_adapters.environments.held import OpenEnvironment

    with OpenEnvironment(folder) as environment:
        lines = environment.trajectory
    text = "\n".join(map(_line, lines)) or "unchanged since it was built"
    print_text(json_text({"changes": lines}) if how == "json" else text)


@app.command("call")
@options.sourced(*options.DECIDING, "state", *options.SERVED, "values")
def call(
    sources: options.Sources,
    folder: Folder,
    input_file: asked.Input = None,
    tool_policy: asked.ToolPolicy = None,
    profile: asked.Profile = None,
    how: options.Output = "text",
) -> None:
    """Call a tool of an environment, if it is allowed, and print its result alone.

    Reads the call from standard input if no file is named. Before a destructive call, the current state is kept as a
    checkpoint. A confirm prints the id of an approval, which `engine approvals grant` grants; then repeat the call
    with --approval. Exits with the code of the decision, or with 1 if the tool failed.
    """
    from admission_adapters.environments.session import open_environment
    from engine.cli.formats import extended
    from engine.reports.explain import report

    request = content_or_error(input_file or Path("-"))
    with sources.engine(*_CALLS) as engine:
        kept, context = _Kept(engine, folder), replace(sources, approval=None).context()
        with open_environment(kept, folder, context, tool_policy, profile) as session:
            before = len(session.trajectory)
            result = session.call(request, sources.approval)
            undo = _undo(session.trajectory, before)
        answer = next((one for one in kept.answers if one.exit is not Exit.ALLOW), kept.answers[0])
        decided = report(str(input_file or "standard input"), answer, engine.policy)
    code = answer.exit or (Exit.ALLOW if result.status == "ok" else Exit.DENY)
    text = result.content if code is answer.exit is Exit.ALLOW else result.content.partition("\n")[0]  # shown above
    lines = [f"{'' if result.status == 'ok' else f'{result.status}: '}{printable(text, _LONGEST)}"]
    if result.approval is not None:
        again = f"then repeat it with --approval {result.approval}"
        lines.append(f"to approve this one call: engine approvals grant {result.approval}; {again}")
    ended = {"status": result.status, "content": result.content, "code": result.code, "metadata": dict(result.metadata)}
    more = {"exit": code, "result": ended, "undo": undo}
    plain = how == "text" and answer.exit is Exit.ALLOW  # the result alone, for the next command of a pipe
    print_text(f"{lines[0]}\n" if plain else extended(how, decided, more, lines))
    if result.metadata.get("truncated") is True:
        remark(f"engine: the result is cut after {len(result.content.encode())} bytes of {result.metadata['bytes']}")
    if undo is not None:
        again = shlex.join(["engine", "environment", "restore", str(folder), undo])
        remark(f"engine: to undo it: {printable(again, _LONGEST)}")
    raise typer.Exit(code)


@app.command("checkpoint")
@options.sourced(*options.DECIDING, "state", *options.SERVED, "values")
def checkpoint(sources: options.Sources, folder: Folder, how: options.Output = "text") -> None:
    """Keep the current state of an environment; prints the name of the checkpoint.

    Exits with the code of the decision.
    """
    _act(sources, folder, how, lambda session: session.checkpoint(sources.approval))


@app.command("restore")
@options.sourced(*options.DECIDING, "state", *options.SERVED, "values")
def restore(
    sources: options.Sources,
    folder: Folder,
    name: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="Checkpoint that `engine environment show` lists.")],
    how: options.Output = "text",
) -> None:
    """Set an environment back to a checkpoint; every change since is undone.

    Exits with the code of the decision.
    """
    checkpoint = options.text(name) or ""
    _act(sources, folder, how, lambda session: session.restore(checkpoint, sources.approval))


@app.command("reset")
@options.sourced(*options.DECIDING, "state", *options.SERVED, "values")
def reset(sources: options.Sources, folder: Folder, how: options.Output = "text") -> None:
    """Set an environment back to what was built; every change is undone.

    Exits with the code of the decision.
    """
    _act(sources, folder, how, lambda session: session.reset(sources.approval))


@app.command("serve")
@options.sourced(*options.CALLER, "state", *options.SERVED, "values")
def serve(
    sources: options.Sources,
    folder: Folder,
    source: Annotated[
        Path, typer.Option(metavar="BUNDLE", help="Source bundle that it was built from, which is decided on again.")
    ],
    tool_policy: asked.ToolPolicy = None,
    profile: asked.Profile = None,
    enable_mcp_adapter: EnableMcpAdapter = False,
) -> None:
    """Serve the tools of an environment to one MCP client on standard input and output.

    The manifest is that of the environment. Decides on the source bundle, each tool, the manifest and each call.
    Exits with 0 when the client has closed its side, or with 1 and the findings if something is refused first.
    """
    from admission_adapters.environments.session import open_environment

    context = sources.context()
    with (
        sources.engine(*_SERVES, enable_mcp_adapter=enable_mcp_adapter, follow=True, remote_model=False) as engine,
        open_environment(_Explained(engine, folder), folder, context, tool_policy, profile) as session,
    ):
        if enable_mcp_adapter:
            accepted(engine, engine.admit_environment(source, context), str(source))
        serve_adapter(engine, session, session.manifest, session.registry, str(folder), context)


class _Explained:
    """An engine that explains why a tool of the environment is not registered, and then ends the command."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine, self._folder = engine, folder
        self.hold, self.forget_environment = engine.hold, engine.forget_environment

    def decide(self, point: str, request: Any, executor: Any, context: Any = None) -> Answer:
        """`Engine.decide`."""
        answer = self._engine.decide(point, request, executor, context)
        if point == "tool_contract":
            accepted(self._engine, answer, str(self._folder))
        return answer


class _Kept(_Explained):
    """One whose answers about calls are kept, to be explained."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        super().__init__(engine, folder)
        self.answers: list[Answer] = []

    def decide(self, point: str, request: Any, executor: Any, context: Any = None) -> Answer:
        """`Engine.decide`."""
        answer = super().decide(point, request, executor, context)
        if point != "tool_contract":
            self.answers.append(answer)
        return answer


def _undo(trajectory: list[dict[str, Any]], before: int) -> str | None:
    """The checkpoint that undoes the destructive change among the lines since; None if there was none."""
    changed = [at for at in range(max(before, 1), len(trajectory)) if trajectory[at].get("class") == "destructive"]
    if not changed:
        return None
    state = trajectory[changed[-1] - 1]["state"]
    return next((line["name"] for line in reversed(trajectory) if "name" in line and line["state"] == state), None)


def _act(sources: options.Sources, folder: Path, how: str, act: Callable[[EnvironmentSession], Any]) -> None:
    """Act on the state of an environment, and print what came of it."""
    from admission_adapters.environments.session import open_environment
    from engine.cli.formats import extended
    from engine.cli.formats.show import approval_lines
    from engine.reports.explain import report

    context = replace(sources, approval=None).context()  # an approval is one of the act alone
    with (
        sources.engine(*_ACTS) as engine,
        open_environment(_Explained(engine, folder), folder, context, None, None) as session,
    ):
        answer: Answer = act(session)
        decided = report(str(folder), answer, engine.policy)
    if answer.fault is not None:
        raise answer.fault
    facts = None if answer.result is None else answer.result.facts
    lines = ["nothing was changed" if facts is None else _line(facts)]
    print_text(extended(how, decided, {"done": facts}, [*lines, *approval_lines(answer.decision)]))
    raise typer.Exit(answer.exit)


def _line(line: dict[str, Any]) -> str:
    """A line of the trajectory, for people."""
    what = line.get("effect") or line.get("name")
    named = line["event"] if what is None else f"{line['event']} {what}"
    return f"line {line['line']}: {named}, state {line['state']}, {counted(line['rows'], 'row')}"


def _text(folder: Path, found: dict[str, Any]) -> str:
    built = found["built"]
    lines = [
        f"{printable(str(folder))}: {found['environment']}, state {found['state']}, {counted(found['rows'], 'row')}",
        f"  built of {counted(built['rows'], 'row')}, sha256 {built['base_sha256']}, decision {built['decision_id']}",
        *(f"  tool {one['name']} ({', '.join(one['side_effects'])}): {one['description']}" for one in found["tools"]),
        *(
            f"  {one['event']} {one['name']}: state {one['state']}, {counted(one['rows'], 'row')}"
            for one in found["checkpoints"]
        ),
        *(f"  problem: {one}" for one in found["problems"]),
    ]
    return "\n".join(lines)
