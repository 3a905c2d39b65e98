"""`engine adapter`: curated tools for an MCP client, under a manifest that was decided on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.inputs import content_or_error
from engine.cli.tools import requests as asked
from engine.documents.files import read_bytes
from engine.errors import Exit, WorkError
from engine.model import Job, Outcome, Permit, Result
from engine.version import __version__

if TYPE_CHECKING:
    from admission_adapters.shim.tools import Gate
    from admission_adapters.tools.registry import ToolRegistry
    from engine.engine import Engine
    from engine.flow import Answer, Context

app = typer.Typer()
_POINTS = ("adapter", "adapter_envelope", "source", "tool_call", "tool_contract", "tool_result", "tool_visibility")


EnableMcpAdapter = Annotated[
    bool, typer.Option("--enable-mcp-adapter", help="Turn adapters on; without it every manifest is refused.")
]


@app.command("serve")
@options.sourced(*options.CALLER, "state", *options.SERVED, "values")
def serve(
    sources: options.Sources,
    manifest: Annotated[Path, typer.Argument(metavar="MANIFEST", help="Manifest of the adapter, as YAML or JSON.")],
    source: Annotated[
        Path, typer.Option(metavar="BUNDLE", help="Source bundle of the environment, which is admitted first.")
    ],
    tools: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="Python file with a function for each tool; loaded only if the policy curates it."
        ),
    ],
    tool_policy: asked.ToolPolicy = None,
    profile: asked.Profile = None,
    cwd: asked.WorkingFolder = None,
    enable_mcp_adapter: EnableMcpAdapter = False,
) -> None:
    """Serve curated tools of a Python file to one MCP client on standard input and output.

    Decides on the source bundle, each tool, the manifest and each call. The tools run in this process.
    Exits with 0 when the client has closed its side, or with 1 and the findings if something is refused first.
    """
    from admission_adapters.tools.gate import ToolGate
    from admission_adapters.tools.registry import ToolRegistry

    stated, context = content_or_error(manifest), sources.context()
    registry = ToolRegistry()
    with sources.engine(*_POINTS, enable_mcp_adapter=enable_mcp_adapter, follow=True, remote_model=False) as engine:
        if enable_mcp_adapter:
            accepted(engine, engine.admit_environment(source, context), str(source))
            _register(engine, registry, stated, tools, context)
        gate = ToolGate(engine, registry, context, policy=tool_policy, profile=profile, cwd=cwd)
        serve_adapter(engine, gate, stated, registry, str(manifest), context)


def serve_adapter(
    engine: Engine, gate: Gate, manifest: Any, registry: ToolRegistry, name: str, context: Context
) -> None:
    """Decide on a manifest, then serve the tools of a gate under it to one MCP client."""
    from admission_adapters.shim.host import AdapterHost
    from admission_adapters.shim.server import mcp_server, serve_stdio
    from admission_adapters.shim.tools import ToolAdapter

    admitted = accepted(engine, engine.admit_adapter(manifest, registry, context), name)
    adapter = ToolAdapter(gate, frozenset(admitted.facts["tools"]))
    host = AdapterHost(engine, adapter, admitted.facts["manifest"], context)
    serve_stdio(mcp_server(host, admitted.facts["adapter"], __version__))


def accepted(engine: Engine, answer: Answer, name: str) -> Result:
    """What an allow came to; otherwise the findings go to standard error, and the command ends."""
    if answer.result is not None and answer.fault is None:
        return answer.result
    if answer.fault is not None and answer.decision.outcome is Outcome.ALLOW:
        raise answer.fault  # the decision says nothing of work that failed
    from engine.cli.formats import Context as Format
    from engine.cli.formats import ReportFormat, render
    from engine.reports.explain import report

    found = report(name, answer, engine.policy)
    typer.echo(render(ReportFormat.TEXT, [found], Format(exit=answer.exit)).removesuffix("\n"), err=True)
    raise typer.Exit(answer.exit or Exit.FAILED_CLOSED)


def _register(engine: Engine, registry: ToolRegistry, manifest: Any, file: Path, context: Context) -> None:
    """Register the function of each tool of the manifest, by a decision on its file. The file runs only if curated."""
    from engine.documents.canonical import digest
    from engine.points.tool_contract import ToolContractLimits

    source = read_bytes(file, _LARGEST)
    function = _functions(file.resolve(), source)
    for name, schema in _tools_of(manifest).items():
        description = schema.get("description") if isinstance(schema, dict) else None
        definition = {"name": name, "description": description or "", "input_schema": schema}

        def enter(permit: Permit, job: Job, name: str = name, definition: dict[str, Any] = definition) -> Result:
            permit.demand("tool_contract", job.input_digest, ToolContractLimits)
            return registry.admit(permit, job.input_digest, function(name), definition)

        candidate = {
            "definition": definition,
            "implementation": {"local": True, "digest": digest(source)},
            "environment": manifest.get("environment_identity"),
            "side_effects": _tools_of(manifest, "side_effect_classes").get(name),
        }
        answer = engine.decide("tool_contract", {"tool": candidate}, enter, context)
        if answer.fault is not None and answer.fault.code == "engine.request_invalid":
            return  # a field of the manifest has no such form, which the decision on the manifest says
        accepted(engine, answer, f"{file}: {name}")


_LARGEST = 4 << 20
"""Bytes of a file of tools, as the registry reads."""


def _tools_of(manifest: Any, field: str = "tool_schemas") -> dict[str, Any]:
    """A field of the manifest by tool; nothing where it is none, which the decision on the manifest then names."""
    found = manifest.get(field) if isinstance(manifest, dict) else None
    return {str(name): value for name, value in found.items()} if isinstance(found, dict) else {}


def _functions(file: Path, source: bytes) -> Callable[[str], Callable[..., Any]]:
    """The functions of a Python file by name, whose bytes are run once, when the first of them is asked for.

    Exactly these bytes are run: a compiled file beside it, or a change after the decision, is not. Raises WorkError.
    """

    @cache
    def module() -> ModuleType:
        made = sys.modules["adapter_tools"] = ModuleType("adapter_tools")  # where classes of the file are looked up
        made.__file__ = str(file)
        try:
            code = compile(source, str(file), "exec", dont_inherit=True)
            exec(code, made.__dict__)  # noqa: S102  (under a permit for exactly this file)
        except Exception as error:
            message = f"the file of tools cannot be loaded: {type(error).__name__}"
            raise WorkError(message, remedy="run it with `python` to see where, and correct it") from error
        return made

    def function(name: str) -> Callable[..., Any]:
        if (found := getattr(module(), name, None)) is None:
            raise WorkError(f"the file of tools has no function `{name}`", remedy="define it there by this name")
        called: Callable[..., Any] = found
        return called

    return function
