"""Static scan of generated code: its imports, calls and names, by the parser of its language.

Nothing is run and nothing is judged: what is forbidden is in policy/code.yaml. A scan explains and
pre-filters; it is never the only gate, since what is computed at run time is in no syntax tree.
Any text gives facts: code that cannot be parsed or is too large has a `problem` and is refused. Rows A79 to
A83, C19 to C29, C71, H03, H17, H18.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.facts.code.python_scan import scan_python
from engine.facts.code.scan_items import CODE_BYTES, Lines, Problem, ScanError, ScanFacts, safe
from engine.facts.code.wasm_scan import scan_wasm


def scan(language: str, code: str, lines: Lines | None = None) -> ScanFacts:
    """The facts of a program; `language` is lower case, as in an action. `lines` gets their lines. Never raises."""
    scanner = _SCANNERS.get(language)
    if scanner is None:
        return _without(language, "no_scanner")
    lines = {} if lines is None else lines
    try:
        return scanner(_text(code), lines)
    except ScanError as error:
        lines.clear()
        if error.line is not None:
            lines[None] = error.line
        return _without(language, error.problem)


def _javascript(code: str, lines: Lines) -> ScanFacts:
    from engine.facts.code.javascript_scan import scan_javascript  # a parser in C that few commands need

    return scan_javascript(code, lines)


_SCANNERS: Mapping[str, Callable[[str, Lines], ScanFacts]] = {
    "python": scan_python,
    "javascript": _javascript,
    "wasm": scan_wasm,
}


def _without(language: str, problem: Problem) -> ScanFacts:
    """No facts but the reason why. Code that does not parse was read to its end, and is no program."""
    return ScanFacts(language=safe(language), parsed=False, complete=problem == "syntax", problem=problem)


def _text(code: str) -> str:
    """The code, where it is text of a size that is read at all: no lone surrogate, no NUL. Raises ScanError."""
    if len(code) > CODE_BYTES:
        raise ScanError("too_large")
    try:
        size = len(code.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise ScanError("syntax") from error
    if size > CODE_BYTES:
        raise ScanError("too_large")
    if "\0" in code:
        raise ScanError("syntax")
    return code
