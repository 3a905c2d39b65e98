"""How much Python code has docstrings: modules, classes and functions of any name, by the folder they are in."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.errors import GatherError

_MOST_FILES = 50_000
_MOST_BYTES = 16 << 20

_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Docstrings:
    """The number of modules, classes and functions, and of those with a docstring that is not blank."""

    total: int = 0
    documented: int = 0


def docstrings_in(project: Path) -> dict[str, Docstrings]:
    """The counts of each top folder of a project, and of `.` for files beside them. Raises GatherError.

    Hidden folders and links are left out. A file that cannot be parsed is a module without a docstring.
    """
    found: dict[str, Docstrings] = {}
    for number, (folder, path) in enumerate(_files(project)):
        if number == _MOST_FILES:
            raise GatherError(
                f"there are more than {_MOST_FILES} Python files", remedy="name the folder of one project"
            )
        counts = found.setdefault(folder, Docstrings())
        for node in _nodes(path):
            counts.total += 1
            counts.documented += node is not None and bool((ast.get_docstring(node) or "").strip())
    return found


def _files(project: Path) -> Iterator[tuple[str, Path]]:
    for root, folders, names in os.walk(project):
        folders[:] = sorted(one for one in folders if not one.startswith((".", "__")))
        inside = Path(root).relative_to(project).parts
        for name in sorted(names):
            path = Path(root, name)
            if name.endswith(".py") and path.is_file() and not path.is_symlink():
                yield (inside[0] if inside else "."), path


def _nodes(path: Path) -> Iterator[_DOCUMENTED | None]:
    try:
        with path.open("rb") as file:
            tree = ast.parse(file.read(_MOST_BYTES))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        yield None
        return
    yield from (node for node in ast.walk(tree) if isinstance(node, _DOCUMENTED))
