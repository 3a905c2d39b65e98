"""What a text delivers or mentions that can run: by line, and in which form. Facts only; nothing is judged.

`fenced`: in a block between fences. `line`: a whole line is it. `inline`: a part of a sentence is it.
Bounded by the text that a proposal may have (`engine.facts.proposals`), and linear in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from engine.facts.command_text import (
    installs,
    is_command,
    is_handler,
    mentions_command,
    mentions_handler,
    mentions_package,
    migrations,
)
from engine.facts.python_text import blocks, is_definition, is_python

What = Literal["python_code", "shell_command", "package_name", "executable_handler", "migration"]
Form = Literal["field", "fenced", "line", "inline"]

_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*([\w+#.-]*)")
_MARKER = re.compile(r"\A(?:(?:[-*+>•]|\d{1,3}[.)]|#{1,6}|>>>|\.\.\.)[ \t]+)+")
_LINE_END = re.compile(r"\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_ANNOUNCED = re.compile(
    r"(?i)(?:(?:then|first|next|please|to start)[ ,]+)?"
    r"(?:body|code|commands?|dependenc(?:y|ies)|execute|handler|implementation|install|migration|packages?|pip|python"
    r"|requirements?|run|script|shell|source|sql|type|use)\b[^:\n]{0,60}:\s+"
)
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


@dataclass(frozen=True, slots=True)
class Seen:
    """One thing seen: what, in which form, and on which line, counted from 1."""

    what: What
    form: Form
    line: int


def seen(text: str) -> Iterator[Seen]:
    """Everything that a text delivers or mentions; the same thing may be seen more than once."""
    text = plain(text)
    lines = text.split("\n")
    bare = [line if line[:1].isspace() else _MARKER.sub("", line, count=1) for line in lines]
    fenced = list(_fenced(lines))
    for index, form in _migrations(text):
        yield Seen("migration", "fenced" if fenced[index][0] else form, index + 1)
    if is_python(text):
        yield Seen("python_code", "line", 1)
    for index, block in blocks(bare):
        inside, language = fenced[index]
        if language is not None and lines[index].strip():
            yield Seen(language, "fenced", index + 1)
        for what in _whole(bare[index].strip(), block):
            yield Seen(what, "fenced" if inside else "line", index + 1)
        for what in _mentioned(bare[index]):
            yield Seen(what, "fenced" if inside else "inline", index + 1)


def plain(text: str) -> str:
    """The text without disguises: plain letters and line ends, nothing invisible."""
    if not text.isascii():
        letters = unicodedata.normalize("NFKC", text)
        text = "".join(letter for letter in letters if unicodedata.category(letter) != "Cf")
    return _LINE_END.sub("\n", text)


def _whole(line: str, block: str) -> Iterator[What]:
    """What a line is as a whole, or after words that announce it."""
    announced = _ANNOUNCED.match(line)
    wholes = {line, line.strip("`"), line[announced.end() if announced else 0 :].strip("`")}
    if is_python(block) or any(is_definition(whole) or is_python(whole) for whole in wholes):
        yield "python_code"
    if any(map(is_command, wholes)):
        yield "shell_command"
    if any(map(installs, wholes)):
        yield "package_name"
    if any(map(is_handler, wholes)):
        yield "executable_handler"


def _mentioned(line: str) -> Iterator[What]:
    ticked = [match[1] for match in _TICKED.finditer(line)]
    if any(map(is_python, ticked)):
        yield "python_code"
    if mentions_command(line) or any(map(is_command, ticked)):
        yield "shell_command"
    if mentions_package(line):
        yield "package_name"
    if mentions_handler(line):
        yield "executable_handler"


def _fenced(lines: list[str]) -> Iterator[tuple[bool, What | None]]:
    """For each line whether it stands between fences, and what its block is by its language."""
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
    line, told = 0, 0
    for start in migrations(text):
        line, told = line + text.count("\n", told, start), start
        before = text[max(text.rfind("\n", 0, start) + 1, start - 200) : start]
        before = _MARKER.sub("", before, count=1)
        announced = _ANNOUNCED.match(before)
        rest = before[announced.end() if announced else 0 :].strip(" \t`'\"")
        yield line, "inline" if rest and not rest.endswith((";", "(")) else "line"
