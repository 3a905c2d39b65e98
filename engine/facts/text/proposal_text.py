"""What a text delivers or mentions that can run: by line, and in which form. Facts only; nothing is judged or run.

`fenced`: in a block between fences. `line`: a whole line is it. `inline`: a part of a sentence is it.
Bounded by the text that a proposal may have (`engine.facts.tools.proposals`), and linear in it.

Much prose parses as Python (`limit: int`, `contacts`, `search(name)`). So only these forms, which prose does not have,
count as Python: a definition, an import with an origin, a loop over calls, a call of a function that runs code.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Literal

from engine.facts.tools.command_text import (
    HANDLER,
    MIGRATION,
    installs,
    is_command,
    mentions_command,
    mentions_package,
)

What = Literal["python_code", "shell_command", "package_name", "executable_handler", "migration"]
Form = Literal["field", "fenced", "line", "inline"]

_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*([\w+#.-]*)")
_MARKER = re.compile(r"\A(?:(?:[-*+>•]|\d{1,3}[.)]|#{1,6}|>>>|\.\.\.)[ \t]+)+")
_LINE_END = re.compile(r"\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_ANNOUNCED = re.compile(
    r"(?i)(?:(?:then|first|next|please|to start)[ ,]+)?"
    r"(?:body|code|commands?|dependenc(?:y|ies)|execute|handler|implementation|install|migration|packages?|pip|python"
    r"|requirements?|requires?|run|script|shell|source|sql|type|use)\b[^:\n]{0,60}:\s+"
)
_COMMENT = re.compile(r"/\*[^*\n]{0,200}\*/")
_TICKED = re.compile(r"`([^`\n]+)`")

_LANGUAGES: dict[str, What] = {
    **dict.fromkeys(("py", "py3", "python", "python3", "pycon", "ipython"), "python_code"),
    **dict.fromkeys(("bash", "bat", "cmd", "console", "fish", "powershell", "ps1", "pwsh", "sh"), "shell_command"),
    **dict.fromkeys(("shell", "shell-session", "terminal", "zsh"), "shell_command"),
    **dict.fromkeys(("c", "c++", "cpp", "cs", "csharp", "go", "java", "javascript", "js", "jsx"), "executable_handler"),
    **dict.fromkeys(("kotlin", "lua", "mjs", "perl", "php", "r", "rb", "ruby", "rust", "scala"), "executable_handler"),
    **dict.fromkeys(("swift", "ts", "tsx", "typescript", "wasm", "wat"), "executable_handler"),
    "requirements": "package_name",
    "requirements.txt": "package_name",
}
"""Languages of fenced blocks that are made to be run."""


class NestedError(Exception):
    """A text opens blocks within blocks so often that reading each of them would take long."""


def occurrences(text: str) -> Iterator[tuple[What, Form, int]]:
    """Everything that a text delivers or mentions, in which form, and on which line, counted from 1.

    The same thing may be seen more than once. Raises NestedError.
    """
    text = plain(text)
    lines = text.split("\n")
    bare = [line if line[:1].isspace() else _MARKER.sub("", line, count=1) for line in lines]
    fenced = list(_fenced(lines))
    for index, form in _migrations(text):
        yield "migration", "fenced" if fenced[index][0] else form, index + 1
    if is_python(text):
        yield "python_code", "line", 1
    left = FEW + NESTED * len(text)
    for index, block in blocks(bare):
        left -= len(block)
        if left < 0:
            raise NestedError
        inside, language = fenced[index]
        if language is not None and lines[index].strip():
            yield language, "fenced", index + 1
        for what in _whole_line(bare[index].strip(), block):
            yield what, "fenced" if inside else "line", index + 1
        for what in _mentioned(bare[index]):
            yield what, "fenced" if inside else "inline", index + 1


def plain(text: str) -> str:
    """The text without disguises: plain letters and line ends, nothing invisible."""
    if not text.isascii():
        letters = unicodedata.normalize("NFKC", text)
        text = "".join(letter for letter in letters if unicodedata.category(letter) != "Cf")
    return _LINE_END.sub("\n", text)


def _whole_line(line: str, block: str) -> Iterator[What]:
    """What a line is as a whole, or after words that announce it."""
    announced = _ANNOUNCED.match(line)
    wholes = {line, line.strip("`"), line[announced.end() if announced else 0 :].strip("`")}
    if is_python(block) or any(is_definition(statement) or is_python(statement) for statement in wholes):
        yield "python_code"
    if any(map(is_command, wholes)):
        yield "shell_command"
    if any(map(installs, wholes)):
        yield "package_name"
    if any(map(HANDLER.match, wholes)):
        yield "executable_handler"


def _mentioned(line: str) -> Iterator[What]:
    ticked = [match[1] for match in _TICKED.finditer(line)]
    if any(map(is_python, ticked)):
        yield "python_code"
    if mentions_command(line) or any(map(is_command, ticked)):
        yield "shell_command"
    if mentions_package(line):
        yield "package_name"
    if HANDLER.search(line):
        yield "executable_handler"


def _fenced(lines: list[str]) -> Iterator[tuple[bool, What | None]]:
    """For each line, whether it is between fences, and the language of its block."""
    fence: str = ""
    language: What | None = None
    for line in lines:
        match = _FENCE.match(line)
        opens = match is not None and not fence
        closes = match is not None and bool(fence) and match[1].startswith(fence) and not match[2]
        if match is not None and opens:
            fence, language = match[1], _LANGUAGES.get(match[2].lower())
        elif closes:
            fence, language = "", None
        yield (False, None) if opens or closes else (bool(fence), language)


def _migrations(text: str) -> Iterator[tuple[int, Form]]:
    """Each statement that changes a database: its line, counted from 0, and whether it begins the line."""
    line, position = 0, 0
    for start in (match.start() for match in MIGRATION.finditer(text)):
        line, position = line + text.count("\n", position, start), start
        before = text[max(text.rfind("\n", 0, start) + 1, start - 200) : start]
        before = _MARKER.sub("", before, count=1)
        announced = _ANNOUNCED.match(before)
        rest = _COMMENT.sub("", before[announced.end() if announced else 0 :]).strip(" \t`'\"")
        yield line, "inline" if rest and not rest.endswith((";", "(")) else "line"


LONGEST = 8_000
"""Maximum number of characters parsed at once; the parser is linear, but its input is bounded."""

NESTED, FEW = 8, 20_000
"""Blocks that each character of a text may be in, on average, and characters of them that any text may have."""

BLOCK = 50
"""Maximum number of lines of a block; the start of a longer block is enough."""

_MAY_BE = re.compile(r"[(=\[]|\b(?:import|lambda|class)\b")
_HEADER = re.compile(r"(?:async\s+)?(?:def|class|for|while|with|if|try|match)\b[^\n]*:|@[A-Za-z_]")
_DEFINITION = re.compile(r"(?:async\s+)?def\s+\w+\s*\([^\n]*\)\s*(?:->[^\n]+)?:|class\s+\w+\s*(?:\([^\n]*\))?:\s*$")
_CONTINUED = re.compile(r"(?:else|elif|except|finally)\b")
_DECORATED = re.compile(r"(?:async|def|class)\b|@")
_ESCAPE = re.compile(r"\\[^\n]")  # an escape that Python does not know would be a warning, which is irrelevant here

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
    tree = None if _MAY_BE.search(text) is None else _parsed(text)
    if tree is None:
        return False
    known = _MODULES | set(_imported(tree.body))
    return any(_does_something(statement, known) for statement in tree.body)


def _parsed(text: str) -> ast.Module | None:
    if len(text) > LONGEST:
        return None
    try:
        return ast.parse(_ESCAPE.sub("__", text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_statement(text: str) -> bool:
    """Whether the whole text is Python with a statement that is more than a name or a value."""
    tree = _parsed(text)
    return tree is not None and any(not isinstance(one, (ast.Expr, ast.Pass)) for one in tree.body)


def is_definition(line: str) -> bool:
    """Whether a line begins a function or class, whatever follows."""
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
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)


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
