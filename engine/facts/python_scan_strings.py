"""What the strings of a Python program are: addresses, paths, format strings that reach into things. Rows A80, H03."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from engine.facts.code_scan_items import Found
from engine.facts.code_scan_text import kinds, reaches, web_addresses
from engine.facts.python_scan_parse import Seen

_FILLED = "0"
"""Stands for what an f-string fills in: no separator and no dot."""


def strings(nodes: Iterable[Seen], found: Found) -> None:
    """Look at every string once, one that is put together from literals as a whole."""
    for seen in nodes:
        for text in _texts(seen):
            _text(text, found)


def _text(text: str, found: Found) -> None:
    if web_addresses(text) and not found.network_literals:  # one that its text spells with escapes
        found.network_literals += 1
    for kind in kinds(text):
        found.add("literals", kind)
    if reaches(text):
        found.add("literals", "format")


def _texts(seen: Seen) -> Iterator[str]:
    if seen.in_text:
        return  # a part of what is looked at as a whole
    if isinstance(seen.node, ast.Constant) and isinstance(seen.node.value, (str, bytes)):
        yield _decoded(seen.node.value)
    elif isinstance(seen.node, (ast.JoinedStr, ast.BinOp)):
        yield "".join(_pieces(seen.node))


def _pieces(node: ast.expr) -> Iterator[str]:
    """The text of a sum or an f-string from left to right, as far as it stands in the program."""
    waiting: list[ast.expr] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Constant):
            yield _decoded(one.value)
        elif isinstance(one, ast.JoinedStr):
            waiting += reversed(one.values)
        elif isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add):
            waiting += [one.right, one.left]
        else:
            yield _FILLED


def _decoded(value: object) -> str:
    if isinstance(value, str):
        return value
    return value.decode("latin-1") if isinstance(value, bytes) else _FILLED
