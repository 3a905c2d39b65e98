"""No shell takes part in anything that is started: the source of the adapter is looked at."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.threat("ACE")

FILES = sorted((ROOT / "adapters" / "admission_adapters" / "sandbox").rglob("*.py"))
STARTS = {"Popen", "run", "call", "check_call", "check_output"}
SHELLS = {"getoutput", "getstatusoutput", "popen", "system"}


def calls(path: Path) -> list[tuple[str, ast.Call]]:
    """The calls of attributes of `subprocess` and `os`, by the name of each."""
    return [
        (node.func.attr, node)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in {"subprocess", "os", "posix"}
    ]


# covers: C84.4
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_processes_are_started_from_argument_lists_without_a_shell(path: Path) -> None:
    for name, call in calls(path):
        assert name not in SHELLS
        assert not any(word.arg == "shell" for word in call.keywords)
        if name in STARTS:
            assert not isinstance(call.args[0], ast.Constant | ast.JoinedStr | ast.BinOp)


def test_the_scanned_sources_start_processes() -> None:
    assert any(name in STARTS for path in FILES for name, _ in calls(path))
