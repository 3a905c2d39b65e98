"""Mutants of Python: every comparison and every check of a permit changed; the tests that run the line judge.

"Further" mutants leave out a `raise` or a call that stands alone, or change a condition without a comparison.

A mutant is written into a copy of the tree, so that processes which the tests start have it too.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from mutation.model import ROOT, Mutant, named, short

_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_BOUNDS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@dataclass(frozen=True, slots=True)
class PythonMutant(Mutant):
    """A mutant with the lines that a test must run to reach it, and whether it is part of a function."""

    first: int
    last: int
    inner: bool
    further: bool


def mutants(path: Path, *, further: bool = False) -> Iterator[PythonMutant]:
    """Every mutant of one file; either the further ones or the others."""
    source = path.read_bytes()
    finder = _Finder(path.relative_to(ROOT).as_posix(), source)
    finder.visit(ast.parse(source))
    found = [one for one in finder.found if one.further == further]
    places = {(one.start, one.end, one.text): one for one in reversed(found)}
    kept = [one for one in found if places[one.start, one.end, one.text] is one]
    for one, plain in zip(kept, named(kept), strict=True):
        yield replace(one, name=plain.name)


def _compares(test: ast.expr) -> bool:
    return any(isinstance(one, ast.Compare) for one in ast.walk(test))


@dataclass
class _Finder(ast.NodeVisitor):
    file: str
    source: bytes
    found: list[PythonMutant] = field(default_factory=list)
    _scope: list[str] = field(default_factory=list)
    _functions: int = 0
    _statement: ast.stmt | None = None
    _whole: set[ast.expr] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._lines = [0]
        for line in self.source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def visit(self, node: ast.AST) -> None:
        before = self._statement
        if isinstance(node, ast.stmt):
            self._statement = node
        super().visit(node)
        self._statement = before

    def _inside(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        function = not isinstance(node, ast.ClassDef)
        self._scope.append(node.name)
        self._functions += function
        for statement in node.body:
            self.visit(statement)
        self._functions -= function
        self._scope.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _inside  # noqa: N815  (the names of ast)

    def visit_If(self, node: ast.If | ast.IfExp | ast.While | ast.comprehension) -> None:
        tests = node.ifs if isinstance(node, ast.comprehension) else [node.test]
        for test in tests:
            self._whole.add(test)
            further = not _compares(test)
            if not isinstance(test, ast.Constant):
                self._change(test, ast.Constant(value=False), further=further)
            if not isinstance(node, ast.While):
                self._change(test, ast.Constant(value=True), further=further)
        self.generic_visit(node)

    visit_IfExp = visit_While = visit_comprehension = visit_If  # noqa: N815

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._whole.update(node.values)
        for number, value in enumerate(node.values):
            rest = [one for place, one in enumerate(node.values) if place != number]
            less = rest[0] if len(rest) == 1 else ast.BoolOp(op=node.op, values=rest)
            self._change(node, less, f"without {short(ast.unparse(value), 80)}", further=not _compares(value))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        further = not _compares(node.operand)
        if isinstance(node.op, ast.Not) and not (further and node in self._whole):
            less = ast.Call(func=ast.Name("bool"), args=[node.operand], keywords=[])
            self._change(node, less, "without not", further=further)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for number, operator in enumerate(node.ops):
            if node in self._whole and not isinstance(operator, _BOUNDS):
                continue  # a whole condition is made true and false, and a part of one is left out
            other = _TURNED[type(operator)]()
            changed = copy.copy(node)
            changed.ops = [*node.ops[:number], other, *node.ops[number + 1 :]]
            self._change(node, changed)
        sides = [node.left, *node.comparators]
        if all(isinstance(side, ast.Tuple) for side in sides):
            tuples = [side for side in sides if isinstance(side, ast.Tuple)]
            for number, part in enumerate(tuples[0].elts):
                fewer = [
                    ast.Tuple(elts=[*one.elts[:number], *one.elts[number + 1 :]], ctx=ast.Load()) for one in tuples
                ]
                changed = ast.Compare(left=fewer[0], ops=node.ops, comparators=list(fewer[1:]))
                self._change(node, changed, f"without {short(ast.unparse(part), 80)}")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if len(node.args) > 1:
            if isinstance(node.func, ast.Attribute) and node.func.attr == "demand":
                self._change(node, ast.Attribute(value=node.func.value, attr="limits", ctx=ast.Load()))
            elif isinstance(node.func, ast.Name) and node.func.id == "granted":
                self._change(node, ast.Attribute(value=node.args[0], attr="limits", ctx=ast.Load()))
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._change(node, ast.Pass(), further=True)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(value, ast.Call):
            self._change(node, ast.Pass(), further=True)
        self.generic_visit(node)

    def _change(
        self, old: ast.expr | ast.stmt, new: ast.expr | ast.stmt, what: str | None = None, *, further: bool = False
    ) -> None:
        start = self._lines[old.lineno - 1] + old.col_offset
        end = self._lines[(old.end_lineno or old.lineno) - 1] + (old.end_col_offset or 0)
        text = ast.unparse(ast.fix_missing_locations(new))
        text = f"({text})" if isinstance(new, ast.expr) else text
        scope = ".".join(self._scope) or "module"
        shown = short(self.source[start:end].decode())
        name = f"{scope}: {shown} → {what or short(text.removeprefix('(').removesuffix(')'))}"
        statement = self._statement
        first = min(old.lineno, statement.lineno if statement is not None else old.lineno)
        last = old.end_lineno or old.lineno
        mutant = PythonMutant(self.file, old.lineno, start, end, text, name, first, last, self._functions > 0, further)
        self.found.append(mutant)
