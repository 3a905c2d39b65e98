"""Generated text is never evaluated: every call that runs text as code is listed here, with the reason."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.conftest import ROOT

EVALUATING = {"eval", "exec"}

KNOWN = {
    "adapters/admission_adapters/sandbox/launcher/inside.py": "inside of the sandbox: the program, and the launcher",
    "engine/cli/adapter.py": "the file of curated tools that its owner names, under a permit for exactly its digest",
}
"""Text that an agent or a model wrote reaches only the first one, inside of the sandbox."""


def calls(tree: ast.AST) -> list[str]:
    """The calls of `eval` and `exec`, also as attributes or under another name."""
    names = [one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    attributes = [
        one.attr
        for one in ast.walk(tree)
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "builtins"
    ]
    return [name for name in names + attributes if name in EVALUATING]


# covers: E06.1
def test_no_path_leads_from_generated_text_to_eval_or_exec() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for folder in ("engine", "adapters"):
        for path in (ROOT / folder).rglob("*.py"):
            if named := calls(ast.parse(path.read_text(encoding="utf-8"))):
                found[str(path.relative_to(ROOT))] += named
    assert found.keys() == KNOWN.keys()
    assert all("eval" not in named for named in found.values())
    assert calls(ast.parse("import builtins\nbuiltins.eval('1')\nrun = exec")) == ["exec", "eval"]  # the control


def test_the_facts_of_a_specification_come_from_the_json_reader_alone() -> None:
    """Its module imports nothing that could run a text."""
    tree = ast.parse(Path(ROOT / "engine/points/provisioning.py").read_text(encoding="utf-8"))
    imported = {one.module for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)}
    imported |= {name.name for one in ast.walk(tree) if isinstance(one, ast.Import) for name in one.names}
    assert not {one for one in imported if one and one.partition(".")[0] in {"ast", "importlib", "subprocess", "yaml"}}
    assert "engine.documents.strict_json" in imported
