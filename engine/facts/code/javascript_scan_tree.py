"""Parses JavaScript within limits with tree-sitter; returns a tree or the reason why there is none.

The grammar recovers from errors; a tree with an error is refused. Rows C27, C71, H18.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import tree_sitter
import tree_sitter_javascript

from engine.facts.code.scan_items import DEPTH, NODES, ScanError

_ESCAPE = re.compile(
    r"\\(?:u\{([0-9A-Fa-f]{1,8})\}|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|([0-7]{1,3})|(\r\n|.))", re.DOTALL
)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "\n": "", "\r": "", "\r\n": ""}
_LAST = 0x10FFFF
_HTML_COMMENT = re.compile(rb"<!--|(?:\A|[\n\r]|\*/)[ \t\v\f\x80-\xff]*-->")
"""Begins a comment in scripts. In a text or another comment, it is a part of one token."""
_FUNCTION_KINDS = frozenset({"async", "*"})
_TEXTS = frozenset({"string", "template_string"})
_PIECES = frozenset({"string_fragment", "escape_sequence"})
_FILLED = "0"
"""Stands for what a template fills in: no separator and no dot."""


_PIECE = 1_024
"""Bytes that the parser gets at once; it asks for them again when it goes back."""

_READ, _FEW_PIECES = 16, 100
"""How often the parser may read each byte, and pieces of a short program on top; it reads ordinary code twice."""

_STEPS, _FEW_STEPS = 0.2, 500
"""Hundreds of the parser's steps for each byte, and of a short program on top; ordinary code needs 0.05 at most."""


@dataclass(slots=True)
class Node:
    """A node that tree-sitter names, what it is for the one above it, and its text where it has nothing below.

    `kind` is the word of a declaration (`var`, `let`, `const`), and `async`, `*` or both of a function.
    """

    type: str
    role: str
    above: Node | None
    line: int = 0
    text: str = ""
    operator: str = ""
    kind: str = ""
    below: list[Node] = field(default_factory=list)

    def named(self, role: str) -> Node | None:
        """The node below that plays this role."""
        return next((child for child in self.below if child.role == role), None)


def parse(code: str) -> list[Node]:
    """The nodes of a program, each before those below it. Raises ScanError."""
    source = code.encode("utf-8")
    tree = _tree(source)
    if tree.root_node.has_error:
        raise ScanError("syntax", _wrong_line(tree.root_node))
    _refuse_html_comments(tree, source)
    nodes: list[Node] = []
    cursor = tree.walk()
    above: list[Node] = []
    while True:
        child = _node(cursor, above, source)
        if child is not None:
            nodes.append(child)
        if len(nodes) > NODES:
            raise ScanError("too_large")
        if child is not None and cursor.goto_first_child():
            above.append(child)
            if len(above) > DEPTH:
                raise ScanError("too_deep")
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return nodes
            above.pop()


def _tree(source: bytes) -> tree_sitter.Tree:
    """The tree of a program. Raises ScanError for one that takes the parser many steps a byte, such as `/[/[/[`."""
    read = steps = 0

    def piece(at: int, _: object) -> bytes:
        nonlocal read
        read += len(source[at : at + _PIECE])
        return source[at : at + _PIECE] if read <= _most_read(source) else b""

    def is_too_much(_: int, __: bool) -> bool:  # noqa: FBT001  (as the parser calls it)
        nonlocal steps
        steps += 1
        return steps > _FEW_STEPS + _STEPS * len(source)

    try:
        tree = tree_sitter.Parser(_language()).parse(piece, progress_callback=is_too_much)
    except ValueError as error:
        raise ScanError("too_large") from error
    if read > _most_read(source):
        raise ScanError("too_large")
    return tree


def _refuse_html_comments(tree: tree_sitter.Tree, source: bytes) -> None:
    """Raises ScanError for what scripts read as a comment, but the grammar as operators."""
    for found in _HTML_COMMENT.finditer(source):
        part = tree.root_node.descendant_for_byte_range(found.end() - 3, found.end())
        if part is None or part.child_count > 0:
            raise ScanError("syntax", source.count(b"\n", 0, found.end()) + 1)


def _wrong_line(node: tree_sitter.Node) -> int:
    """The line of the first part that the parser could not read."""
    while (wrong := next((child for child in node.children if child.has_error), None)) is not None:
        node = wrong
    return node.start_point.row + 1


def _most_read(source: bytes) -> int:
    return _FEW_PIECES * _PIECE + _READ * len(source)


def _node(cursor: tree_sitter.TreeCursor, above: list[Node], source: bytes) -> Node | None:
    """The node at the cursor, below the last of `above`; None for a mark or comment, which has nothing below it."""
    node = cursor.node
    if node is None or node.is_extra:  # a comment
        return None
    child = Node(node.type, cursor.field_name or "", above[-1] if above else None, node.start_point.row + 1)
    if not node.is_named:
        if child.role == "operator":
            above[-1].operator = child.type
        elif child.role == "kind" or child.type in _FUNCTION_KINDS:
            above[-1].kind += child.type
        return None
    if above:
        above[-1].below.append(child)
    if node.named_child_count == 0:
        child.text = unescaped(source[node.start_byte : node.end_byte].decode("utf-8"))
    return child


def unescaped(text: str) -> str:
    """Text without JavaScript escapes, as used in strings, templates and identifiers."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def written(node: Node) -> str | None:
    """The text of a string, a template or a sum with one as far as it is written out; None for anything else."""
    return "".join(_pieces(node)) if any(part.type in _TEXTS for part in _parts(node)) else None


def plain(node: Node) -> str | None:
    """The text of a string or template in which nothing is filled in; None for anything else."""
    return written(node) if all(part.type in _PIECES for part in node.below) else None


def is_sum(node: Node) -> bool:
    """Whether a node adds one thing to another."""
    return node.type == "binary_expression" and node.operator == "+"


def _pieces(node: Node) -> Iterator[str]:
    for part in _parts(node):
        if part.type in _PIECES:
            yield part.text
        elif part.type not in _TEXTS:
            yield _FILLED


def _parts(node: Node) -> Iterator[Node]:
    """The texts of a sum with their fragments, and what is added to them; the node itself if it is no sum."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        inside = part.type == "parenthesized_expression" or is_sum(part)
        if not inside:
            yield part
        if inside or part.type in _TEXTS:
            waiting += reversed(part.below)


def _character(found: re.Match[str]) -> str:
    for digits, base in zip(found.groups()[:4], (16, 16, 16, 8), strict=True):
        if digits is not None:
            number = int(digits, base)
            return chr(number) if number <= _LAST else "?"
    return _SIMPLE.get(found[5], found[5])


@cache
def _language() -> tree_sitter.Language:
    return tree_sitter.Language(tree_sitter_javascript.language())
