"""Facts of a Python program from its syntax tree, by Python's own parser; nothing is run or imported.

Scopes are ignored: a name that is bound, imported or used anywhere counts everywhere, which can only
refuse more. The parser recurses in C, so it runs on a thread with a stack that is large enough for whatever it
admits itself; there its depth does not depend on the caller, and the same code always gives the same facts.
Rows A79 to A83, C19 to C28, C65, H03, H17, H18.
"""

from __future__ import annotations

import ast
import builtins
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from engine.facts.code.scan_items import DEPTH, NODES, Collector, Lines, ScanError, ScanFacts, reaches

_READER = "input"
_TEXT = (ast.Constant, getattr(ast, "Interpolation", ast.Constant))
"""Nodes with text that names nothing: a template string, new in Python 3.14, has the source of its expressions."""
_RELATIVE = "relative"
_FORMATTERS = frozenset({"format", "format_map"})

_BUILTINS = frozenset(dir(builtins)) | {
    *("BaseExceptionGroup", "EncodingWarning", "ExceptionGroup", "PythonFinalizationError", "aiter", "anext"),
    *("copyright", "credits", "exit", "help", "license", "quit"),
}
"""Of this Python, of others, and what `site` adds."""

_FILLED = "0"
"""Stands for what an f-string fills in: no separator and no dot."""

_CODING = re.compile(r"coding[:=][ \t]*([-\w.]+)")
"""As PEP 263 has it, anywhere in one of the first two lines and not in comments alone: rather once too often."""


def scan_python(code: str, lines: Lines) -> ScanFacts:
    """The facts of a program. Raises ScanError."""
    found = Collector(lines)
    nodes = flat(parse(code))
    found.source(code)
    for name in _declared(code):
        found.add("encodings", name)
    modules = _Modules(nodes, found)
    for parsed in nodes:
        found.line = getattr(parsed.node, "lineno", 0)
        _look(parsed, found, modules)
        _string(parsed, found)
    return found.facts("python")


def _look(parsed: Node, found: Collector, modules: _Modules) -> None:
    node = parsed.node
    if isinstance(node, ast.Name):
        _variable(parsed, node, found)
        modules.use(node.id, parsed)
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
        for name in _identifiers(node):
            found.add("names", name, bound=not isinstance(node, ast.keyword), builtin=name in _BUILTINS)


def _variable(parsed: Node, node: ast.Name, found: Collector) -> None:
    as_value, bound = parsed.role != "called", isinstance(node.ctx, ast.Store)
    found.reads(value=as_value and node.id == _READER)
    found.add("names", node.id, variable=True, as_value=as_value, bound=bound, builtin=node.id in _BUILTINS)


def _call(node: ast.Call, found: Collector) -> None:
    called = node.func
    if isinstance(called, ast.Name):
        found.add("calls", called.id, by_name=True, builtin=called.id in _BUILTINS)
        found.reads(call=called.id == _READER)
    elif isinstance(called, ast.Attribute):
        found.add("calls", called.attr, by_attribute=True)


def _identifiers(node: ast.AST) -> Iterator[str]:
    """Every name that a node binds, whatever its type: a parameter, a keyword, a class.

    Other versions of Python have other nodes; text that is no identifier is in nodes with `_TEXT` alone.
    """
    if isinstance(node, _TEXT):
        return
    for field, value in ast.iter_fields(node):
        if field == "type_comment":
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str):
                yield item


def _string(parsed: Node, found: Collector) -> None:
    """A string, one that is put together from literals as a whole."""
    node = parsed.node
    literal = isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    if parsed.in_text or not (literal or isinstance(node, (ast.JoinedStr, ast.BinOp))):
        return  # no string, or a part of what is looked at as a whole
    text = "".join(_pieces(node))
    found.text(text)
    if reaches(text):
        found.add("literals", "format")


def _pieces(node: ast.AST) -> Iterator[str]:
    """The literal text of a concatenation or an f-string, from left to right."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Constant):
            yield _decoded(part.value)
        elif isinstance(part, ast.JoinedStr):
            waiting += reversed(part.values)
        elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add):
            waiting += [part.right, part.left]
        else:
            yield _FILLED


def _decoded(value: object) -> str:
    if isinstance(value, str):
        return value
    return value.decode("latin-1") if isinstance(value, bytes) else _FILLED


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _declared(code: str) -> Iterator[str]:
    """The encodings that the first two lines declare; the interpreter would read the file by the first."""
    for line in re.split(r"\r\n?|\n", code, maxsplit=2)[:2]:
        for name in _CODING.findall(line):
            yield name.lower().replace("_", "-")


class _Modules:
    """The imports of a program, known before its names are looked at: a module may be used above its import."""

    def __init__(self, nodes: Iterable[Node], found: Collector) -> None:
        self._found = found
        self._names: dict[str, str] = {}
        for parsed in nodes:
            found.line = getattr(parsed.node, "lineno", 0)
            if isinstance(parsed.node, ast.Import):
                self._import(parsed.node, in_class=parsed.in_class)
            elif isinstance(parsed.node, ast.ImportFrom):
                self._from(parsed.node)

    def use(self, name: str, parsed: Node) -> None:
        """A variable: the name of a module is at home before a dot, and a value anywhere else."""
        if name in self._names and parsed.role != "base":
            self._found.add("modules", self._names[name], as_value=True)

    def attribute(self, node: ast.Attribute) -> None:
        """An attribute: of a module it is what is taken out of it."""
        if isinstance(node.value, ast.Name) and node.value.id in self._names:
            self._found.member(self._names[node.value.id], node.attr)

    def _import(self, node: ast.Import, *, in_class: bool) -> None:
        for alias in node.names:
            top = self._imported(alias.name)
            module = alias.name if alias.asname else top
            self._name(alias.asname or top, module)
            # what a class body binds is reached as an attribute of the class, and not by this name
            self._found.add("modules", module, as_value=in_class)
            if alias.asname:
                self._found.add("names", alias.asname, bound=True)

    def _from(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._found.add("names", alias.asname or alias.name, bound=True)
            self._found.add("names", alias.name)
        if node.level or not node.module:
            self._found.imported(_RELATIVE, "relative")
            return
        self._imported(node.module)
        for alias in node.names:
            self._found.member(node.module, alias.name)

    def _imported(self, module: str) -> str:
        """A module by its top-level name, of which the next one below is a member."""
        top, *below = module.split(".")
        self._found.imported(top)
        for name in below[:1]:
            self._found.member(top, name)
        return top

    def _name(self, name: str, module: str) -> None:
        """One name for two modules is a value of both: it is unknown whose members are used."""
        if self._names.setdefault(name, module) != module:
            self._found.add("modules", module, as_value=True)
            self._found.add("modules", self._names[name], as_value=True)


STACK_BYTES = 32 << 20
"""Address space, not memory: the deepest code that CPython's parser accepts needs about 1 MiB."""

_FILE = "<scanned code>"
_MODULE = re.escape(_FILE)
_QUIET = ("ignore", None, Warning, re.compile(_MODULE), 0)
"""A filter of warnings about scanned code alone: they are neither printed nor errors, in any thread."""
_STACK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Node:
    """A node, what it is for the one above it (`called`, `base` of an attribute), and where it is."""

    node: ast.AST
    role: str
    in_class: bool  # a name that is bound here is an attribute of a class
    in_text: bool  # inside of an f-string or a sum, whose text is looked at as a whole


def parse(code: str) -> ast.Module:
    """The syntax tree of a program. Raises ScanError."""
    done: list[ast.Module | ScanError] = []
    thread = _thread(lambda: done.append(_parse(code)))
    thread.join()
    if not done or not isinstance(done[0], ast.Module):
        raise done[0] if done and not isinstance(done[0], ast.Module) else ScanError("too_deep")
    return done[0]


def flat(tree: ast.Module) -> list[Node]:
    """Every node of a tree, without recursion. Raises ScanError where it is too large or too deep."""
    nodes: list[Node] = []
    waiting: list[tuple[Node, int]] = [(Node(tree, "", in_class=False, in_text=False), 0)]
    while waiting:
        parsed, depth = waiting.pop()
        nodes.append(parsed)
        if depth > DEPTH:
            raise ScanError("too_deep")
        below = list(_below(parsed))
        if len(nodes) + len(waiting) + len(below) > NODES:
            raise ScanError("too_large")
        waiting += [(child, depth + 1) for child in below]
    return nodes


def _below(parsed: Node) -> list[Node]:
    node = parsed.node
    own = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    in_class = isinstance(node, ast.ClassDef) or (parsed.in_class and not own)
    in_text = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add))
    callee = node.func if isinstance(node, ast.Call) else None
    base = node.value if isinstance(node, ast.Attribute) else None
    return [
        Node(child, "called" if child is callee else "base" if child is base else "", in_class, in_text)
        for child in ast.iter_child_nodes(node)
    ]


def _parse(code: str) -> ast.Module | ScanError:
    try:
        return ast.parse(code, _FILE)
    except (RecursionError, MemoryError):
        return ScanError("too_deep")
    except (SyntaxError, ValueError, OverflowError, SystemError) as error:  # UnicodeError is a ValueError
        return ScanError("syntax", error.lineno if isinstance(error, SyntaxError) else None)


def _thread(target: Callable[[], None]) -> threading.Thread:
    """A started thread with a stack of our own size; the setting is one for the whole process."""
    thread = threading.Thread(target=target, name="scan", daemon=True)
    with _STACK:
        if not warnings.filters or warnings.filters[0] != _QUIET:  # doubtful escapes are the author's business
            warnings.filterwarnings("ignore", module=_MODULE)
        before = threading.stack_size(STACK_BYTES)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    return thread
