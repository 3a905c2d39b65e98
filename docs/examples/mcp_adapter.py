"""An MCP client that lists and calls the tools of an adapter, all in one process.

The source bundle of the environment, the tool, the manifest and each call are decided on. Run it with
`.venv/bin/python docs/examples/mcp_adapter.py`; the records go to the usual state folder.
"""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.server.lowlevel import Server
from ruamel.yaml import YAML

from admission_adapters.shim.host import AdapterHost
from admission_adapters.shim.server import mcp_server
from admission_adapters.shim.tools import ToolAdapter
from admission_adapters.tools.gate import ToolGate
from admission_adapters.tools.implementations import implementation_digest
from admission_adapters.tools.registry import ToolRegistry
from engine import Caller, Context, Engine, Settings, Via

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "fixtures" / "source_bundles" / "external_contacts"
CONTEXT = Context(caller=Caller(via=Via.PROCESS, principal="assistant-7"))


def tool(name: str) -> Any:
    """A function of adapter/tools.py; a program would import its own."""
    spec = importlib.util.spec_from_file_location("contact_tools", HERE / "adapter" / "tools.py")
    assert spec is not None  # noqa: S101
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def curated(engine: Engine, manifest: dict[str, Any]) -> ToolRegistry:
    """The registry of the manifest's tools, each by a permit."""
    registry = ToolRegistry()
    for name, schema in manifest["tool_schemas"].items():
        function, definition = tool(name), {"name": name, "input_schema": schema}
        candidate = {
            "definition": definition,
            "implementation": {"local": True, "digest": implementation_digest(function)},
            "environment": manifest["environment_identity"],
            "side_effects": manifest["side_effect_classes"][name],
        }

        def enter(permit: Any, job: Any, function: Any = function, definition: Any = definition) -> Any:
            return registry.admit(permit, job.input_digest, function, definition)

        engine.decide("tool_contract", {"tool": candidate}, enter, CONTEXT)
    return registry


def server(engine: Engine, manifest: dict[str, Any]) -> Server[Any] | None:
    """The MCP server of the manifest, or None if it is refused."""
    registry = curated(engine, manifest)
    engine.admit_environment(SOURCE, CONTEXT)
    answer = engine.admit_adapter(manifest, registry, CONTEXT)
    if answer.result is None:
        print("refused:", ", ".join(finding.code for finding in answer.decision.findings))
        return None
    gate = ToolGate(engine, registry, CONTEXT, policy="assistant", profile="reading")
    adapter = ToolAdapter(gate, frozenset(answer.result.facts["tools"]))
    return mcp_server(AdapterHost(engine, adapter, answer.result.facts["manifest"], CONTEXT), "contacts", "1")


async def ask(found: Server[Any]) -> None:
    """A client of the SDK: the tools, a call, and a call that breaks the contract."""
    async with Client(found) as client:
        print("tools:", ", ".join(one.name for one in (await client.list_tools()).tools))
        for arguments in ({"search": "A"}, {"search": 7}):
            result: Any = await client.call_tool("contacts_list", arguments)
            print("error:" if result.is_error else "result:", result.content[0].text)


def main() -> None:
    """First without the switch, then with it."""
    manifest = YAML(typ="safe").load(HERE / "adapter" / "manifest.yaml")
    reviewed = (f'tools.tools.contacts_list.curated=["{implementation_digest(tool("contacts_list"))}"]',)
    with Engine(Settings(), values=reviewed) as engine:
        server(engine, manifest)
    with Engine(Settings(), values=reviewed, enable_mcp_adapter=True) as engine:
        found = server(engine, manifest)
        if found is not None:
            asyncio.run(ask(found))


if __name__ == "__main__":
    main()
