"""Which cases and tests show which case of which acceptance row.

`covers: [A20.2]` in a case file, or `# covers: A20.2` above a test, says that the second case of row A20 in
fixtures/acceptance.yaml is shown there; `A20.1-4` names several. A row without a number is evidence beyond the
cases that the row lists.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engine.cases.run import CaseFile, read_cases
from engine.documents.files import load
from engine.settings import ReadLimits

ROOT = Path(__file__).resolve().parent.parent
CASE_TEST = "tests/cases/test_cases.py::test_case"
"""The test that runs every case file."""

_COVERS = re.compile(r"^\s*# covers: (.+)$")
_ENTRY = re.compile(r"^([A-Z]\d+)(?:\.(\d+)(?:-(\d+))?)?$")


@dataclass(frozen=True, slots=True)
class Place:
    """A case file or a test, relative to the project; `needs` are the facilities of the machine it asks for.

    `full` tests run with `scripts/test --all` only.
    """

    name: str
    entries: tuple[str, ...]
    needs: tuple[str, ...] = ()
    full: bool = False


def rows() -> list[dict[str, Any]]:
    """The acceptance catalogue, as it is written."""
    path = ROOT / "fixtures" / "acceptance.yaml"
    document: list[dict[str, Any]] = load(path.read_bytes(), "fixtures/acceptance.yaml", ReadLimits()).value
    return document


def expand(entry: str) -> list[tuple[str, int | None]]:
    """`A20.1-3` to [(A20, 1), (A20, 2), (A20, 3)]; `A20` to [(A20, None)]. Raises ValueError for anything else."""
    match = _ENTRY.match(entry)
    if match is None:
        raise ValueError(entry)
    row, first, last = match.groups()
    if first is None:
        return [(row, None)]
    return [(row, number) for number in range(int(first), int(last or first) + 1)]


@cache
def cases() -> tuple[CaseFile, ...]:
    """Every case file; reading them takes seconds."""
    return tuple(read_cases(ROOT / "fixtures" / "cases"))


def places() -> Iterator[Place]:
    """Every case file and every test that names a row."""
    for file in cases():
        if file.case.covers:
            yield Place(str(file.path.relative_to(ROOT)), file.case.covers)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        yield from _of_module(path)


def _of_module(path: Path) -> Iterator[Place]:
    text = path.read_text(encoding="utf-8")
    if "# covers:" not in text:
        return
    tree = ast.parse(text)
    everywhere = [mark for node in tree.body if isinstance(node, ast.Assign) for mark in _pytestmark(node)]
    marks = {
        node.name: [*everywhere, *node.decorator_list]
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    pending: list[str] = []
    for line in text.splitlines():
        if match := _COVERS.match(line):
            pending += re.split(r"[,\s]+", match[1].strip())
        elif pending and (match := re.match(r"^\s*(?:async )?def (test_\w+)", line)):
            asked = tuple(name for mark in marks[match[1]] for name in _needs(mark))
            full = any(isinstance(mark, ast.Attribute) and mark.attr == "full" for mark in marks[match[1]])
            yield Place(f"{path.relative_to(ROOT)}::{match[1]}", tuple(pending), asked, full)
            pending = []


def _pytestmark(node: ast.Assign) -> list[ast.expr]:
    if not any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets):
        return []
    return node.value.elts if isinstance(node.value, ast.List) else [node.value]


def _needs(node: ast.AST) -> Iterator[str]:
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "needs":
            yield from (str(word.value) for word in call.args if isinstance(word, ast.Constant))
