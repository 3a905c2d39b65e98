"""Facts of a Python program from its syntax tree, by Python's own parser; nothing is run or imported.

Scopes are not followed: a name that is bound, imported or used anywhere counts everywhere, which can only
refuse more. Rows A79 to A83, C19 to C28, H03, H17.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from engine.facts.code_scan_items import Found, ScanFacts
from engine.facts.code_scan_text import web_addresses
from engine.facts.python_scan_imports import Modules
from engine.facts.python_scan_parse import Seen, flat, parse
from engine.facts.python_scan_strings import strings

_READER = "input"
_FORMATTERS = frozenset({"format", "format_map"})

_BUILTINS = frozenset(dir(builtins)) | {
    *("BaseExceptionGroup", "EncodingWarning", "ExceptionGroup", "PythonFinalizationError", "aiter", "anext"),
    *("copyright", "credits", "exit", "help", "license", "quit"),
}
"""Of this Python, of others, and what `site` adds."""

_CODING = re.compile(r"coding[:=][ \t]*([-\w.]+)")
"""As PEP 263 has it, anywhere in one of the first two lines and not in comments alone: rather once too often."""


def scan_python(code: str) -> ScanFacts:
    """The facts of a program. Raises ScanError."""
    found = Found()
    nodes = flat(parse(code))
    found.network_literals = web_addresses(code)
    for name in _declared(code):
        found.add("encodings", name)
    modules = Modules(nodes, found)
    for seen in nodes:
        _look(seen, found, modules)
    strings(nodes, found)
    return found.facts("python")


def _look(seen: Seen, found: Found, modules: Modules) -> None:
    node = seen.node
    if isinstance(node, ast.Name):
        _variable(seen, node, found)
        modules.use(node.id, seen)
    elif isinstance(node, ast.Attribute):
        found.add("attributes", node.attr)
        modules.attribute(node)
        if node.attr in _FORMATTERS and not _is_text(node.value):
            found.add("computed", "format")
    elif isinstance(node, ast.Call):
        _call(node, found)
    elif isinstance(node, ast.MatchClass):
        for name in node.kwd_attrs:  # reads the attribute
            found.add("attributes", name)
            if name in _FORMATTERS:
                found.add("computed", "format")
    elif not isinstance(node, (ast.Import, ast.ImportFrom, ast.alias)):
        for name, bound in _identifiers(node):
            _given(name, found, bound=bound)


def _variable(seen: Seen, node: ast.Name, found: Found) -> None:
    flags = ["variable"]
    if seen.role != "called":
        flags.append("as_value")
        found.input_values += node.id == _READER
    if isinstance(node.ctx, ast.Store):
        flags.append("bound")
    if node.id in _BUILTINS:
        flags.append("builtin")
    found.add("names", node.id, *flags)


def _given(name: str, found: Found, *, bound: bool) -> None:
    """A name that is given to something: a parameter, a keyword, a function, a class, an exception, a capture."""
    flags = ["bound"] if bound else []
    if name in _BUILTINS:
        flags.append("builtin")
    found.add("names", name, *flags)


def _call(node: ast.Call, found: Found) -> None:
    called = node.func
    if isinstance(called, ast.Name):
        found.add("calls", called.id, "by_name", *(["builtin"] if called.id in _BUILTINS else []))
        found.input_calls += called.id == _READER
    elif isinstance(called, ast.Attribute):
        found.add("calls", called.attr, "by_attribute")


def _identifiers(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Every identifier that stands in a node itself, whatever the node is, and whether it binds.

    Other versions of Python have other nodes; text that is no identifier is in constants alone.
    """
    if isinstance(node, ast.Constant):
        return
    for field, value in ast.iter_fields(node):
        if field == "type_comment":
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str):
                yield one, not isinstance(node, ast.keyword)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _declared(code: str) -> Iterator[str]:
    """The encodings that the first two lines declare; the interpreter would read the file by the first."""
    for line in re.split(r"\r\n?|\n", code, maxsplit=2)[:2]:
        for name in _CODING.findall(line):
            yield name.lower().replace("_", "-")
