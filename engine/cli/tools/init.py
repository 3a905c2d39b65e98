"""`engine tools init`: entries of policy/tools.yaml for tools that have none, as strict as can be.

What a program or a server says of its tools is written down; what only a person can state has a comment. Python files
are read and never run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.cli.tools.audit import argument_types
from engine.cli.tools.changes import pasted
from engine.cli.tools.requests import definitions_in
from engine.documents.canonical import digest
from engine.documents.edits import scalar
from engine.documents.files import printable, read_bytes
from engine.errors import GatherError, Location
from engine.facts.text.content import steering_in
from engine.facts.text.instructions import Markers
from engine.facts.tools.definitions import Definition
from engine.facts.tools.mcp_names import local_name
from engine.settings import ReadLimits

_HEAD = """\
# Entries for policy/tools.yaml; docs/tools.md explains each. Complete the lines that have a comment. No rule allows
# these tools yet.
tools:
"""
_TITLE = 200
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
_TYPES = {"int": "text", "float": "text", "bool": "text", "Path": "path"}
"""Types of arguments by their annotations in Python; any other is `data`."""


@dataclass(frozen=True, slots=True)
class Entries:
    """The document, the names of its tools, and why others have no entry."""

    text: str
    names: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _LocalTool:
    """A tool, the types of its arguments, and the digest of the file that implements it here."""

    definition: Definition
    arguments: dict[str, str]
    implementation: str | None = None


def entries(sources: Sequence[str], server: str | None, markers: Markers) -> Entries:
    """The entries for lists of tools, and for functions such as `agent.py:search`. Raises GatherError."""
    found = [one for source in sources for one in _tools(source, server)]
    names = [one.definition.name for one in found]
    left_out = []
    rows: dict[str, str] = {}
    for one in found:
        name = one.definition.name
        if _NAME.fullmatch(name) is None:
            left_out.append(f"{printable(name, 128)}: no entry may have this name; rename the tool")
        elif names.count(name) > 1:
            left_out.append(f"{printable(name, 128)}: two tools have this name; rename one of them")
        elif any(steering_in(one.definition.document(), markers)):
            left_out.append(f"{printable(name, 128)}: definition_steers: leave this tool out, or have its text changed")
        else:
            rows[name] = _row(one)
    if not rows:
        raise GatherError("there is no tool to write an entry for", remedy="; ".join(left_out) or "name another list")
    lines = [f"  {line}" for row in rows.values() for line in row.split("\n")]
    return Entries(_HEAD + "\n".join([*lines, ""]), tuple(rows), tuple(left_out))


def _row(one: _LocalTool) -> str:
    stated, here = one.definition, one.implementation
    first = stated.description.strip().partition("\n")[0].partition(". ")[0].rstrip(".")
    more = {"title": printable(first, _TITLE)} if first else {}
    pinned = "none" if here else stated.digest()
    return pasted(scalar(stated.name), one.arguments, pinned, curated=here, **more)


def _tools(source: str, server: str | None) -> Iterator[_LocalTool]:
    file, _, function = source.rpartition(":")
    if file.endswith(".py"):
        yield _function(Path(file), function)
        return
    if source.endswith(".py"):
        raise GatherError(
            "functions of a Python file are named one by one", remedy=f"write {printable(source)}:FUNCTION"
        )
    for one in definitions_in(Path(source)):
        named = one if server is None else replace(one, name=local_name(server, one.name))
        yield _LocalTool(named, argument_types(one))


def _function(file: Path, name: str) -> _LocalTool:
    """A function at the top of a file, as its text states it. Raises GatherError."""
    data = read_bytes(file, ReadLimits().document_bytes)
    try:
        top = ast.parse(data).body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise GatherError("this file is not Python", remedy="name a Python file", where=Location(str(file))) from error
    functions = {one.name: one for one in top if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    if (one := functions.get(name)) is None:
        raise GatherError(
            f"there is no function `{printable(name, 128)}` at the top of this file",
            remedy=f"name one of its functions: {printable(', '.join(functions)) or 'none'}",
            where=Location(str(file)),
        )
    stated = [*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs]
    arguments = {each.arg: _TYPES.get(_annotation(each), "data") for each in stated}
    return _LocalTool(Definition(name, ast.get_docstring(one) or ""), arguments, digest(data))


def _annotation(argument: ast.arg) -> str:
    return "" if argument.annotation is None else ast.unparse(argument.annotation).rpartition(".")[2]
