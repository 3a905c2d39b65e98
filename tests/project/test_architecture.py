"""The layers of ARCHITECTURE.md: who may import whom, and where each third-party package may appear."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

LAYERS: tuple[tuple[str, ...], ...] = (
    ("engine.__main__",),
    ("engine.cli",),
    ("engine.workbench",),
    ("engine", "engine.api", "engine.cases", "engine.ray", "engine.subagents"),
    ("engine.engine",),
    ("engine.verbs",),
    ("engine.assembly",),
    ("engine.executors", "engine.provisioning"),
    ("engine.agreement", "engine.episodes", "engine.releasing", "engine.shell"),
    (
        *("engine.code", "engine.completing", "engine.environments", "engine.exporting"),
        *("engine.fetching", "engine.memory", "engine.replay", "engine.runner", "engine.shell_folder"),
    ),
    (
        "engine.adapter_admissions",
        "engine.administration",
        "engine.admitted_sources",
        "engine.idempotency",
        "engine.reports",
    ),
    ("engine.flow",),
    ("engine.gather", "engine.running"),
    ("engine.decide", "engine.drive", "engine.sandboxes"),
    ("engine.coverage", "engine.points"),
    ("engine.policy_bundle",),
    ("engine.sources", "engine.state", "engine.values"),
    ("admission_adapters", "engine.enforce", "engine.facts", "engine.opa", "engine.record", "engine.work"),
    ("engine.binaries", "engine.documents", "engine.model"),
    ("engine.errors", "engine.secrets", "engine.settings", "engine.steps", "engine.times", "engine.version"),
)
"""From the top down: a package imports only from lower layers, never from its own or a higher one."""

ONLY = {
    "admission_adapters": {"engine.model", "engine.errors", "engine.steps"},
    "engine.enforce": {"engine.model", "engine.errors"},
    "engine.model": {"engine.errors"},
}
"""Packages with fewer allowed imports."""

THIRD_PARTY: dict[str, set[str]] = {
    "ruamel": {"engine.documents"},
    "opa_client": {"engine.opa.client"},
    "requests": {"engine.opa.client"},
    "urllib3": {"engine.opa.client"},
    "httpx": {"admission_adapters.runner", "engine.api.client", "engine.facts.net.urls"},
    "httpcore": {"admission_adapters.fetch"},
    "certifi": {"admission_adapters.trust"},
    "httptools": {"engine.api", "engine.opa"},
    "orjson": {"engine.documents.canonical"},
    "opentelemetry": {"engine.api"},
    "prometheus_client": {"engine.api"},
    "uvloop": {"engine.api"},
    "anyio": {"admission_adapters.shim"},
    "httpx2": {"admission_adapters.shim"},
    "mcp": {"admission_adapters.shim", "admission_adapters.frameworks.claude_agent"},
    "mcp_types": {"admission_adapters.shim"},
    "agents": {"admission_adapters.frameworks.openai_agents"},
    "claude_agent_sdk": {"admission_adapters.frameworks.claude_agent"},
    "langchain": {"admission_adapters.frameworks.langgraph"},
    "langchain_core": {"admission_adapters.frameworks.langgraph"},
    "langgraph": {"admission_adapters.frameworks.langgraph"},
    "pydantic_ai": {"admission_adapters.frameworks.pydantic_ai"},
    "psycopg": {"engine.state.postgres"},
    "psycopg_pool": {"engine.state.postgres"},
    "cryptography": {"admission_adapters.runner"},
    "wasmtime": {"admission_adapters.sandbox.wasm.child"},
    "jsonschema": {"engine.facts.tools.schemas"},
    "referencing": {"engine.facts.tools.schemas"},
    "license_expression": {"engine.facts.licenses"},
    "boolean": {"engine.facts.licenses"},
    "pyarrow": {"admission_adapters.files.exports"},
    "sqlglot": {"engine.facts.tools.sql"},
    "tree_sitter": {"engine.facts.code.javascript_scan_tree"},
    "tree_sitter_javascript": {"engine.facts.code.javascript_scan_tree"},
    "typer": {"engine.cli"},
    "jinja2": {"engine.workbench.pages"},
    "markupsafe": {"engine.workbench.pages"},
    "rich": {"engine.cli.outputs"},
    "pydantic_core": {"engine.documents.validation", "engine.api", "engine.facts.tools.schemas", "engine.values"}
    | {"admission_adapters.frameworks.pydantic_ai"},
}
"""One package, one file or one folder. pydantic is the language of the models and may be anywhere."""


def modules() -> dict[str, Path]:
    """Every module by its name."""
    packages = (ROOT / "engine", ROOT / "adapters" / "admission_adapters")
    paths = [(package.parent, path) for package in packages for path in sorted(package.rglob("*.py"))]
    return {
        ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__"): path for base, path in paths
    }


@cache
def imports(path: Path) -> frozenset[str]:
    """Everything a module imports, also inside functions; `from a import b` is `a.b` where that is a module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & known() | ({node.module} if names - known() else set())
    return frozenset(found)


@cache
def known() -> frozenset[str]:
    return frozenset(modules())


def within(name: str, package: str) -> bool:
    return name == package or (package != "engine" and name.startswith(f"{package}."))


def package_of(name: str) -> str:
    """The package of a module. Raises StopIteration for one that is in no layer."""
    return next(package for packages in LAYERS for package in packages if within(name, package))


def layer(package: str) -> int:
    return next(height for height, packages in enumerate(LAYERS) if package in packages)


def upward(name: str, imported: frozenset[str]) -> list[str]:
    """What a module may not import of what it does."""
    package = package_of(name)
    own = {item for item in imported if item.split(".")[0] in {"engine", "admission_adapters"}}
    others = {item for item in own if package_of(item) != package}
    allowed = ONLY.get(package)
    return sorted(
        item
        for item in others
        if layer(package_of(item)) <= layer(package) or (allowed is not None and package_of(item) not in allowed)
    )


def test_imports_point_down() -> None:
    wrong = {name: found for name, path in modules().items() if (found := upward(name, imports(path)))}
    assert not wrong


def test_no_import_cycles_exist() -> None:
    below = {name: imports(path) & known() - {name} for name, path in modules().items()}
    while leaves := {name for name, items in below.items() if not items}:
        below = {name: items - leaves for name, items in below.items() if name not in leaves}
    assert not below, f"modules in a circle, or above one: {sorted(below)}"


def test_each_third_party_package_is_imported_in_its_allowed_place() -> None:
    wrong = {}
    for name, path in modules().items():
        foreign = {item.split(".")[0] for item in imports(path)} - {"engine", "admission_adapters", "pydantic"}
        foreign -= set(sys.stdlib_module_names)
        if found := {one for one in foreign if not any(within(name, place) for place in THIRD_PARTY.get(one, ()))}:
            wrong[name] = found
    assert not wrong


def test_a_wrong_import_is_seen(tmp_path: Path) -> None:
    """Positive control: an adapter that imports the flow, and a fact that imports the state and a verb."""
    module = tmp_path / "bad.py"
    module.write_text("def f():\n    from engine.flow import answer\n", encoding="utf-8")
    assert upward("admission_adapters.files.staging", imports(module)) == ["engine.flow"]
    module = tmp_path / "worse.py"
    module.write_text("from engine import work\nfrom engine.state.store import Store\n", encoding="utf-8")
    assert upward("engine.facts.licenses", imports(module)) == ["engine.state.store", "engine.work"]
