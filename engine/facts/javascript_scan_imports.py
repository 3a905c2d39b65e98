"""Which modules a JavaScript program imports, by `import`, `require` or while it runs. Rows A79, C71."""

from __future__ import annotations

from collections.abc import Iterable

from engine.facts.code_scan_items import Found
from engine.facts.javascript_scan_tree import Node, whole, written

_STATEMENTS = frozenset({"import_statement", "export_statement"})
_LOADERS = frozenset({"require", "getBuiltinModule", "createRequire"})
_SCHEME = "node:"


def imports(nodes: Iterable[Node], found: Found) -> None:
    """Find them all; a module that comes as a whole is a value, and only what is imported by name is a member."""
    for node in nodes:
        if node.type in _STATEMENTS and (source := node.named("source")) is not None:
            _from(node, source, found)
        elif node.type == "call_expression" and _loads(node):
            _loaded(node, found)


def _from(node: Node, source: Node, found: Found) -> None:
    module = _module(source, found)
    if module is None:
        return
    waiting = list(node.below)
    names = 0
    while waiting:
        one = waiting.pop()
        name = one.named("name")
        if one.type in {"import_specifier", "export_specifier"} and name is not None:
            found.member(module, name.text)
            names += 1
        elif one.type in {"import_clause", "named_imports", "export_clause"}:
            waiting += one.below
        elif one.type in {"identifier", "namespace_import", "namespace_export"}:
            found.add("modules", module, "as_value")
            names += 1
    if not names and node.type == "export_statement":
        found.add("modules", module, "as_value")
    found.add("modules", module)


def _loads(node: Node) -> bool:
    called = node.named("function")
    if called is None:
        return False
    if called.type == "member_expression":
        called = called.named("property") or called
    return called.type == "import" or called.text in _LOADERS


def _loaded(node: Node, found: Found) -> None:
    given = node.named("arguments")
    source = given.below[0] if given is not None and given.below else None
    module = None if source is None else _module(source, found)
    if source is None:
        found.imported("computed", "computed")
    if module is not None:
        found.add("modules", module, "as_value")


def _module(source: Node, found: Found) -> str | None:
    """The top-level name of a module; None for a file, or for what is known only while the program runs."""
    text = written(source)
    if text is None or not whole(source):
        found.imported("computed", "computed")
        return None
    if not text or text[0] in "./\\" or ":" in text.removeprefix(_SCHEME):
        found.imported("relative", "relative")
        return None
    parts = text.removeprefix(_SCHEME).split("/")
    top = "/".join(parts[:2]) if parts[0].startswith("@") else parts[0]
    found.imported(top)
    return top
