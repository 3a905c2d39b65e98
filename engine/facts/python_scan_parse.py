"""Parses Python within bounds: any text ends in a tree or in a reason why there is none.

The parser recurses in C, so it runs on a thread with a stack that is large enough for whatever it
admits itself; there its depth is the same whoever calls, and the same code always gives the same facts.
Rows C27, C65, H18.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from engine.facts.code_scan_items import DEPTH, NODES, Problem, ScanError

STACK_BYTES = 32 << 20
"""Address space, not memory: the deepest code that CPython's parser takes needs about 1 MiB."""

_FILE = "<scanned code>"
_MODULE = re.escape(_FILE)
_QUIET = ("ignore", None, Warning, re.compile(_MODULE), 0)
"""A filter of warnings about scanned code alone: they are neither printed nor errors, in any thread."""
_STACK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Seen:
    """A node, what it is for the one above it (`called`, `base` of an attribute), and where it is."""

    node: ast.AST
    role: str
    in_class: bool  # a name that is bound here is an attribute of a class
    in_text: bool  # inside of an f-string or a sum, whose text is looked at as a whole


def parse(code: str) -> ast.Module:
    """The syntax tree of a program. Raises ScanError."""
    done: list[ast.Module | Problem] = []
    thread = _thread(lambda: done.append(_parse(code)))
    thread.join()
    if not done or not isinstance(done[0], ast.Module):
        raise ScanError(done[0] if done and not isinstance(done[0], ast.Module) else "too_deep")
    return done[0]


def flat(tree: ast.Module) -> list[Seen]:
    """Every node of a tree, without recursion. Raises ScanError where it is too large or too deep."""
    nodes: list[Seen] = []
    waiting: list[tuple[Seen, int]] = [(Seen(tree, "", in_class=False, in_text=False), 0)]
    while waiting:
        seen, depth = waiting.pop()
        nodes.append(seen)
        if depth > DEPTH:
            raise ScanError("too_deep")
        below = list(_below(seen))
        if len(nodes) + len(waiting) + len(below) > NODES:
            raise ScanError("too_large")
        waiting += [(one, depth + 1) for one in below]
    return nodes


def _below(seen: Seen) -> list[Seen]:
    node = seen.node
    own = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    in_class = isinstance(node, ast.ClassDef) or (seen.in_class and not own)
    in_text = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add))
    callee = node.func if isinstance(node, ast.Call) else None
    base = node.value if isinstance(node, ast.Attribute) else None
    return [
        Seen(one, "called" if one is callee else "base" if one is base else "", in_class, in_text)
        for one in ast.iter_child_nodes(node)
    ]


def _parse(code: str) -> ast.Module | Problem:
    try:
        return ast.parse(code, _FILE)
    except (RecursionError, MemoryError):
        return "too_deep"
    except (SyntaxError, ValueError, OverflowError, SystemError):  # UnicodeError is a ValueError
        return "syntax"


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
