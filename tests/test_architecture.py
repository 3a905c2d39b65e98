"""The arrows of ARCHITECTURE.md: who may import whom, and where each third-party package may appear."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

BASE = {
    "engine",
    "engine.errors",
    "engine.model",
    "engine.settings",
    "engine.canonical",
    "engine.files",
    "engine.secret_forms",
    "engine.parsing",
}
RECORD = {"engine.record"}
BUNDLE = {"engine.policy_bundle", "engine.values"}

MAY_IMPORT: dict[str, set[str]] = {
    "adapters": {"engine.model", "engine.errors", "adapters"},
    "engine.errors": set(),
    "engine.model": {"engine.errors"},
    "engine.settings": set(),
    "engine.secret_forms": set(),
    "engine.canonical": set(),
    "engine.files": {"engine.errors", "engine.settings"},
    "engine.parsing": {"engine.canonical", "engine.errors", "engine.files", "engine.settings"},
    "engine.values": BASE
    | {"engine.values", "engine.facts.boundaries", "engine.facts.commands", "engine.facts.licenses"}
    | {"engine.facts.origins"},
    "engine.facts": BASE | {"engine.facts"},
    "engine.opa": BASE | {"engine.opa"},
    "engine.record": BASE | RECORD,
    "engine.policy_bundle": BASE | BUNDLE | {"engine.opa", "engine.report"},
    "engine.points": BASE
    | RECORD
    | {"engine.points", "engine.facts", "engine.policy_bundle.catalogue", "engine.state.store"},
    "engine.sandboxes": BASE | {"engine.sandboxes", "engine.points", "adapters.sandbox"},
    "engine.drive": BASE,
    "engine.state": BASE | {"engine.state"},
    "engine.decide": BASE | {"engine.drive", "engine.points", "engine.policy_bundle.catalogue"},
    "engine.enforce": BASE,
    "engine.work": BASE,
    "engine.flow": BASE
    | RECORD
    | {"engine.drive", "engine.points", "engine.decide", "engine.enforce", "engine.work", "engine.state.store"}
    | {"engine.policy_bundle.catalogue"},
    "engine.once": BASE
    | RECORD
    | {"engine.decide", "engine.drive", "engine.flow", "engine.points", "engine.state.store", "engine.work"},
    "engine.serving": BASE | BUNDLE | {"engine.opa"},
    "engine.client": BASE | {"engine.points"},
    "engine.code": BASE
    | RECORD
    | {
        "engine.code",
        "engine.drive",
        "engine.flow",
        "engine.once",
        "engine.points",
        "engine.state.store",
        "engine.work",
    }
    | {"engine.facts.code_answers", "engine.facts.sandboxes", "adapters.artifact_store", "adapters.sandbox"},
    "engine.api": BASE
    | RECORD
    | {"engine.api", "engine.code", "engine.drive", "engine.engine", "engine.enforce", "engine.flow", "engine.once"}
    | {"engine.points", "engine.state", "engine.unix_socket", "engine.users", "engine.work"}
    | {"adapters.runner", "adapters.runner_answer", "adapters.runner_errors"},
    "engine.report": BASE,
    "engine.sandbox_install": BASE | {"engine.opa", "adapters.sandbox"},
}
"""The rooms whose arrows are held; cli, engine.engine, explain and cases stand above them all."""

THIRD_PARTY: dict[str, set[str]] = {
    "ruamel": {"engine.files"},
    "opa_client": {"engine.opa.client"},
    "requests": {"engine.opa.client"},
    "urllib3": {"engine.opa.client"},
    "httpx": {"adapters.runner", "engine.client", "engine.facts.urls"},
    "httptools": {"engine.api", "engine.opa"},
    "orjson": {"engine.canonical"},
    "opentelemetry": {"engine.api"},
    "prometheus_client": {"engine.api"},
    "uvloop": {"engine.api"},
    "wasmtime": {"adapters.sandbox.wasm_child"},
    "jsonschema": {"engine.facts.schemas"},
    "referencing": {"engine.facts.schemas"},
    "license_expression": {"engine.facts.licenses"},
    "boolean": {"engine.facts.licenses"},
    "tree_sitter": {"engine.facts.javascript_scan_tree"},
    "tree_sitter_javascript": {"engine.facts.javascript_scan_tree"},
    "typer": {"engine.cli"},
    "pydantic_core": {"engine.parsing", "engine.api", "engine.facts.schemas", "engine.values"},
}
"""One package, one file or one folder. pydantic is the language of the models and may be anywhere."""


def modules() -> list[tuple[str, Path]]:
    paths = sorted((ROOT / "engine").rglob("*.py")) + sorted((ROOT / "adapters").rglob("*.py"))
    return [(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path) for path in paths]


@cache
def imports(path: Path) -> set[str]:
    """Everything a module imports, also inside functions; `from a import b` counts as `a` and `a.b`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module}
            found |= {f"{node.module}.{alias.name}" for alias in node.names} & known()
    return found


@cache
def known() -> set[str]:
    return {name for name, _ in modules()}


def below(name: str, rooms: set[str]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms - {"engine"}) or name in rooms


def room_of(name: str) -> str:
    """The room of a module; empty for what stands above the rooms whose arrows are held."""
    return max((room for room in MAY_IMPORT if name == room or name.startswith(f"{room}.")), key=len, default="")


@pytest.mark.parametrize(
    ("name", "path"),
    [(name, path) for name, path in modules() if room_of(name)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arrows_point_down(name: str, path: Path) -> None:
    room = room_of(name)
    own = {item for item in imports(path) if item.split(".")[0] in {"engine", "adapters"}}
    upward = {item for item in own if not below(item, MAY_IMPORT[room])}
    assert not upward, f"{name} imports {sorted(upward)}"


@pytest.mark.parametrize(("name", "path"), modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_one_package_one_place(name: str, path: Path) -> None:
    packages = {item.split(".")[0] for item in imports(path)} - {"engine", "adapters", "pydantic"}
    foreign = packages - set(sys.stdlib_module_names)
    wrong = {package for package in foreign if not below(name, THIRD_PARTY.get(package, set()))}
    assert not wrong, f"{name} imports {sorted(wrong)}"


def test_the_test_sees_a_wrong_arrow(tmp_path: Path) -> None:
    """Positive control: an adapter that imports the flow would be noticed."""
    module = tmp_path / "bad.py"
    module.write_text("def f():\n    from engine.flow import answer\n", encoding="utf-8")
    assert not below("engine.flow", MAY_IMPORT["adapters"])
    assert "engine.flow" in imports(module)
