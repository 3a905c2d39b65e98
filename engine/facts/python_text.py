"""Whether text is Python: statements that do something, by Python's own parser, never by words alone.

Much prose parses as Python (`limit: int`, `contacts`, `search(name)`), so what counts is what prose
never is: a definition, an import with an origin, a loop over calls, a call of what a program is made of.
Nothing is ever run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

LONGEST = 8_000
"""Characters that are parsed at once; the parser is linear, but what it may be asked is bounded."""

BLOCK = 50
"""Lines of one block; where more belong to it, its beginning says enough."""

_MAY_BE = re.compile(r"[(=\[]|\b(?:import|lambda|class)\b")
_HEADER = re.compile(r"(?:async\s+)?(?:def|class|for|while|with|if|try|match)\b[^\n]*:|@[A-Za-z_]")
_DEFINITION = re.compile(r"(?:async\s+)?def\s+\w+\s*\([^\n]*\)\s*(?:->[^\n]+)?:|class\s+\w+\s*(?:\([^\n]*\))?:\s*$")
_CONTINUED = re.compile(r"(?:else|elif|except|finally)\b")
_DECORATED = re.compile(r"(?:async|def|class)\b|@")
_ESCAPE = re.compile(r"\\[^\n]")  # an escape that Python does not know would be a warning, and says nothing here

_BUILTINS = frozenset(
    ["__import__", "breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "open", "print", "setattr"]
)
_MODULES = frozenset(
    [
        *("aiohttp", "asyncio", "base64", "builtins", "ctypes", "flask", "httpx", "importlib", "itertools", "json"),
        *("multiprocessing", "numpy", "os", "pandas", "pathlib", "pickle", "psycopg2", "re", "requests", "shutil"),
        *("socket", "sqlalchemy", "sqlite3", "subprocess", "sys", "tempfile", "threading", "urllib", "yaml"),
    ]
)
"""Modules whose names are no words that a description would put after `import`, or before a dot."""

_COMPOUND = (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.If, ast.Try, ast.Match)
_MADE = (ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def is_python(text: str) -> bool:
    """Whether the whole text is Python with a statement that does something."""
    if len(text) > LONGEST or _MAY_BE.search(text) is None:
        return False
    try:
        tree = ast.parse(_ESCAPE.sub("__", text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    known = _MODULES | set(_imported(tree.body))
    return any(_does_something(statement, known) for statement in tree.body)


def is_definition(line: str) -> bool:
    """Whether a line begins a function or class, whatever stands below it."""
    return _DEFINITION.match(line[:500]) is not None


def blocks(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Each line, with the lines that belong to it where it opens a block; its index, counted from 0."""
    for index, line in enumerate(lines):
        block = [line.strip()]
        if _HEADER.match(block[0]):
            block = [line, *_below(line, lines[index + 1 : index + BLOCK])]
        yield index, _dedented(block)[:LONGEST]


def _below(header: str, following: list[str]) -> Iterator[str]:
    own, decorator = _indent(header), header.lstrip().startswith("@")
    for line in following:
        text = line.lstrip()
        indent = len(line) - len(text)
        if text and indent <= own:
            if indent < own or (_DECORATED if decorator else _CONTINUED).match(text) is None:
                return
            decorator = text.startswith("@")
        yield line


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _dedented(block: list[str]) -> str:
    own = _indent(block[0])
    return "\n".join(line[own:] for line in block)


def _imported(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """Names of modules that the text imports and then goes on."""
    for one in statements:
        if isinstance(one, ast.Import):
            yield from (alias.name for alias in one.names)


def _does_something(statement: ast.stmt, modules: frozenset[str]) -> bool:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.ImportFrom() | ast.AugAssign():
            return True
        case ast.Import(names=names):
            return any(alias.asname or "." in alias.name or alias.name in _MODULES for alias in names)
        case ast.Assign() | ast.Return() | ast.Raise():
            return any(isinstance(node, (ast.Call, *_MADE)) for node in ast.walk(statement))
    parts = list(ast.walk(statement))
    if any(isinstance(node, _MADE) for node in parts):
        return True
    calls = [node.func for node in parts if isinstance(node, ast.Call)]
    if isinstance(statement, _COMPOUND):
        return bool(calls) or any(isinstance(node, (ast.Assign, ast.AugAssign)) for node in parts)
    return any(_root(function) in (modules if isinstance(function, ast.Attribute) else _BUILTINS) for function in calls)


def _root(function: ast.expr) -> str:
    while isinstance(function, ast.Attribute):
        function = function.value
    return function.id if isinstance(function, ast.Name) else ""
