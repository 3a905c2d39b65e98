"""An adapter of tests: its manifest, values that curate its tools, and engines that have admitted its source."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from admission_adapters.shim.host import Adapter, AdapterHost
from admission_adapters.shim.tools import ToolAdapter
from admission_adapters.tools.gate import ToolGate
from admission_adapters.tools.implementations import implementation_digest
from admission_adapters.tools.registry import ToolRegistry
from engine.engine import Engine
from engine.model import Outcome
from tests.adapters import contact_tools
from tests.adapters.gates import AGENT, OPTIONS
from tests.conftest import BUNDLES

SOURCE = BUNDLES / "external_contacts"
"""A source bundle for the environment `contacts_sqlite`."""

TOOLS = Path(contact_tools.__file__)
CURATED = implementation_digest(contact_tools.contacts_list)
VALUES = (
    *(f'tools.tools.{name}.curated=["{CURATED}"]' for name in ("contacts_list", "contacts_add")),
    'tools.rulesets.workspace.allow=[{"id": "contacts", "tools": ["contacts_list", "contacts_add"]}]',
)
"""What a reviewer of contact_tools.py writes into policy/ to let an assistant use both."""

SCHEMAS: dict[str, dict[str, Any]] = {
    name: {
        "type": "object",
        "description": words,
        "properties": {argument: {"type": "string"} for argument in arguments},
        "required": arguments,
        "additionalProperties": False,
    }
    for name, words, arguments in (
        ("contacts_list", "List contacts", ["search"]),
        ("contacts_add", "Add a contact", ["name", "email"]),
    )
}

MANIFEST: dict[str, Any] = {
    "format": 1,
    "id": "contacts",
    "execution": "in_process",
    "environment_identity": "contacts_sqlite",
    "supported_operations": ["tools/list", "tools/call"],
    "tool_schemas": SCHEMAS,
    "side_effect_classes": {"contacts_list": ["read"], "contacts_add": ["write"]},
    "verifier_implications": {"contacts_list": "unaffected", "contacts_add": "reads_state"},
    "capabilities": [],
}
"""All but the source-policy hash, which depends on the policy."""


def manifest(source_policy_hash: str, **changes: Any) -> dict[str, Any]:
    return copy.deepcopy(MANIFEST) | {"source_policy_hash": source_policy_hash} | changes


def manifest_file(folder: Path, source_policy_hash: str, **changes: Any) -> Path:
    path = folder / "manifest.json"
    path.write_text(json.dumps(manifest(source_policy_hash, **changes)), encoding="utf-8")
    return path


def admitted_source(engine: Engine) -> str:
    """The source-policy hash of the admitted source bundle."""
    answer = engine.admit_environment(SOURCE, AGENT)
    assert answer.result is not None, answer.decision.findings
    found: str = answer.result.facts["source_policy_hash"]
    return found


def curated(engine: Engine) -> ToolRegistry:
    """The registry of both tools, each by its permit."""
    registry = ToolRegistry()
    for name, schema in SCHEMAS.items():
        tool, definition = getattr(contact_tools, name), {"name": name, "input_schema": schema}
        candidate = {
            "definition": definition,
            "implementation": {"local": True, "digest": CURATED},
            "environment": "contacts_sqlite",
            "side_effects": MANIFEST["side_effect_classes"][name],
        }

        def enter(permit: Any, job: Any, tool: Any = tool, definition: Any = definition) -> Any:
            return registry.admit(permit, job.input_digest, tool, definition)

        answer = engine.decide("tool_contract", {"tool": candidate}, enter, AGENT)
        assert answer.decision.outcome is Outcome.ALLOW, answer.decision.findings
    return registry


def hosted(engine: Engine, adapter: Adapter | None = None, **changes: Any) -> AdapterHost:
    """The host of an admitted manifest, over the gate or another adapter."""
    registry = curated(engine)
    answer = engine.admit_adapter(manifest(admitted_source(engine), **changes), registry, AGENT)
    assert answer.result is not None, answer.decision.findings
    gate = ToolGate(engine, registry, AGENT, **OPTIONS)
    own = adapter or ToolAdapter(gate, frozenset(SCHEMAS))
    return AdapterHost(engine, own, answer.result.facts["manifest"], AGENT)
