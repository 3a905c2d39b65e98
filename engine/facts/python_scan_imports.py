"""Which modules a Python program imports, and what it takes out of them. Rows C20, H17."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from engine.facts.code_scan_items import Found
from engine.facts.python_scan_parse import Seen

_RELATIVE = "relative"


class Modules:
    """The imports of a program, known before its names are looked at: a module may be used above its import."""

    def __init__(self, nodes: Iterable[Seen], found: Found) -> None:
        self._found = found
        self._names: dict[str, str] = {}
        for seen in nodes:
            if isinstance(seen.node, ast.Import):
                self._import(seen.node, in_class=seen.in_class)
            elif isinstance(seen.node, ast.ImportFrom):
                self._from(seen.node)

    def use(self, name: str, seen: Seen) -> None:
        """A variable: the name of a module is at home before a dot, and a value anywhere else."""
        if name in self._names and seen.role != "base":
            self._found.add("modules", self._names[name], "as_value")

    def attribute(self, node: ast.Attribute) -> None:
        """An attribute: of a module it is what is taken out of it."""
        if isinstance(node.value, ast.Name) and node.value.id in self._names:
            self._found.member(self._names[node.value.id], node.attr)

    def _import(self, node: ast.Import, *, in_class: bool) -> None:
        for alias in node.names:
            top, _, below = alias.name.partition(".")
            self._found.imported(top)
            if below:
                self._found.member(top, below.partition(".")[0])
            module = alias.name if alias.asname else top
            self._name(alias.asname or top, module)
            # what a class body binds is reached as an attribute of the class, and not by this name
            self._found.add("modules", module, *(["as_value"] if in_class else []))
            if alias.asname:
                self._found.add("names", alias.asname, "bound")

    def _from(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._found.add("names", alias.asname or alias.name, "bound")
            self._found.add("names", alias.name)
        if node.level or not node.module:
            self._found.imported(_RELATIVE, "relative")
            return
        top, _, below = node.module.partition(".")
        self._found.imported(top)
        if below:
            self._found.member(top, below.partition(".")[0])
        for alias in node.names:
            self._found.member(node.module, alias.name)

    def _name(self, name: str, module: str) -> None:
        """One name for two modules is a value of both: nobody knows whose members are taken."""
        if self._names.setdefault(name, module) != module:
            self._found.add("modules", module, "as_value")
            self._found.add("modules", self._names[name], "as_value")
