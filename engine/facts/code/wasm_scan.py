"""Facts of WebAssembly in its text format: the imported modules and members.

A module can access only its imports, so these are all the facts. Modules given as bytes that cannot be
read here (`binary`, `quote`) are not scanned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.facts.code.scan_items import DEPTH, NODES, Collector, Lines, ScanError, ScanFacts

_TOKEN = re.compile(
    r'(?P<blank>[ \t\r\n]+|;;[^\r\n]*)|(?P<block>\(;)|(?P<word>[()])|(?P<text>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<atom>[!#-'*-:<-~]+)",
)
_EDGE = re.compile(r"\(;|;\)")
_ESCAPE = re.compile(rb"\\(?:u\{([0-9A-Fa-f_]{1,16})\}|([0-9A-Fa-f]{2})|(.))")
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_OPAQUE = frozenset({"binary", "component", "quote"})


def scan_wasm(code: str, lines: Lines) -> ScanFacts:
    """The facts of a module. Raises ScanError."""
    found, tokens, depth = Collector(lines), list(_tokens(code)), 0
    found.source(code)
    if not tokens or tokens[0] != "(":
        raise ScanError("syntax")
    for at, token in enumerate(tokens):
        if token in _OPAQUE or token.startswith("@"):
            raise ScanError("syntax")
        depth += (token == "(") - (token == ")")  # noqa: S105 (a bracket)
        if depth < 0:
            raise ScanError("syntax")
        if depth > DEPTH:
            raise ScanError("too_deep")
        if token.startswith('"'):
            found.text(_ESCAPE.sub(_unescaped, token[1:-1].encode()).decode(errors="replace"))
        if token == "import":  # noqa: S105
            _import(tokens[at + 1 : at + 3], found)
    if depth:
        raise ScanError("syntax")
    return found.facts("wasm")


def _unescaped(match: re.Match[bytes]) -> bytes:
    character, byte, letter = match.groups()
    if byte is not None:
        return bytes.fromhex(byte.decode())
    if character is None:
        return _LETTERS.get(letter, letter)
    try:
        return chr(int(character, 16)).encode()
    except (OverflowError, ValueError) as error:
        raise ScanError("syntax") from error


def _import(names: list[str], found: Collector) -> None:
    """A module and a member, each in quotes; an escape could spell any other name."""
    if len(names) < 2 or not all(name.startswith('"') for name in names):  # noqa: PLR2004 (explained above)
        raise ScanError("syntax")
    module, member = (name[1:-1] for name in names)
    if "\\" in module + member:
        found.imported(module, "computed")
    else:
        found.imported(module)
        found.member(module, member)


def _tokens(code: str) -> Iterator[str]:
    """All but blanks and comments. Raises ScanError."""
    position = count = 0
    while position < len(code):
        match = _TOKEN.match(code, position)
        if match is None:
            raise ScanError("syntax")
        position = match.end()
        if match["block"]:
            position = _after_comment(code, position)
        elif not match["blank"]:
            count += 1
            if count > NODES:
                raise ScanError("too_large")
            yield match[0]


def _after_comment(code: str, position: int) -> int:
    level = 1
    while level:
        match = _EDGE.search(code, position)
        if match is None:
            raise ScanError("syntax")
        level += 1 if match[0] == "(;" else -1
        position = match.end()
    return position
