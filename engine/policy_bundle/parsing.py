"""Source files to parsed modules, several at a time; what OPA refuses becomes problems with file and line."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.documents.files import printable
from engine.documents.strict_json import deeper_than
from engine.errors import Location, Problem
from engine.opa.command import Finished, OpaCommand
from engine.policy_bundle import schemas
from engine.policy_bundle.syntax import Module, module

_AT_A_TIME = 4
"""Runs of OPA at once; each uses little more than one core for 10 ms."""

_PARSE_ALL = "json.marshal({name: tree | some name, text in input; tree := rego.parse_module(name, text)})"
_TREE_SIZE = 40
"""A syntax tree as JSON is at most so many times as large as its text."""

_LEVELS = 20
"""Brackets in each other; rules of ours have 9. OPA takes twice as long for each further comprehension in others."""

_REMEDIES = {
    "rego_parse_error": "correct the syntax",
    "rego_unsafe_var_error": "bind the variable, such as by `some x in …`",
    "rego_recursion_error": "remove the cycle: a rule must not depend on itself",
}
_HINTS = (
    ("yaml:", "correct the METADATA: `# title: …` and so on, each text on its line"),
    ("undefined function", "correct the name; only deterministic built-ins may be called"),
    ("unused", "remove it, or write `_` in its place"),
    ("conflicting rules", "give each rule its own name, or the same number of arguments"),
)


class Parser:
    """Parses texts with OPA in a scratch folder, which the caller removes."""

    def __init__(self, opa: OpaCommand, scratch: Path) -> None:
        self._opa = opa
        self._scratch = scratch

    def parse(self, files: Mapping[str, bytes], found: list[Problem]) -> dict[str, Module]:
        """The files that parse, by name; reasons for the others are added to `found`."""
        return self._all(_texts(files, found), found, v0=False)

    def parse_foreign(self, files: Mapping[str, bytes], found: list[Problem]) -> dict[str, Module]:
        """The same for files that may also be in the dialect before Rego v1: those are rewritten first."""
        texts = _texts(files, found)
        refused: list[Problem] = []
        parsed = self._all(texts, refused, v0=False)
        old = {name: text for name, text in texts.items() if name not in parsed}
        formatted = {name: self._opa.format(self._scratch / name, from_v0=True) for name in self._all(old, [], v0=True)}
        rewritten = {name: one.stdout.decode("utf-8") for name, one in formatted.items() if one.code == 0}
        found.extend(one for one in refused if not rewritten.get(one.where.file))
        return parsed | self._all({name: text for name, text in rewritten.items() if text}, found, v0=False)

    def parse_again(self, texts: Mapping[str, str], found: list[Problem]) -> dict[str, Module]:
        """The same for texts of ours, by one run of OPA for all; their trees have neither lines nor text."""
        if not texts:
            return {}
        path = self._scratch / "texts.json"
        path.write_text(json.dumps(texts), encoding="utf-8")
        opa = replace(self._opa, output_bytes=max(self._opa.output_bytes, _TREE_SIZE * path.stat().st_size))
        finished = opa.run("eval", "--format", "raw", "--input", str(path), _PARSE_ALL)
        trees = finished.json() if finished.code == 0 else {}
        parsed = {name: module(name, texts[name], tree) for name, tree in trees.items()}
        left = {name: text for name, text in texts.items() if name not in parsed}
        return parsed | self._all(left, found, v0=False)

    def unformatted(self, modules: Iterable[Module]) -> list[Problem]:
        """A problem for each file that is not as `opa fmt` writes it, at the first line that differs."""
        named = {str(self._scratch / one.name): one for one in modules}
        if not named:
            return []
        listed = self._opa.unformatted([Path(path) for path in named]).stdout.decode("utf-8", "replace")
        return [self._difference(one) for path, one in named.items() if path in listed.splitlines()]

    def _all(self, texts: Mapping[str, str], found: list[Problem], *, v0: bool) -> dict[str, Module]:
        paths = {name: self._scratch / name for name in texts}
        for name, path in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[name], encoding="utf-8", newline="")
        parsed = {}
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            runs = pool.map(lambda path: self._opa.parse(path, v0=v0), paths.values())
            for (name, path), one in zip(paths.items(), runs, strict=True):
                tree = one.json()
                if one.code == 0 and isinstance(tree, dict) and "package" in tree:
                    parsed[name] = module(name, texts[name], tree)
                else:
                    found.extend(opa_problems(one, {str(path): name}, name))
        return parsed

    def _difference(self, one: Module) -> Problem:
        formatted = self._opa.format(self._scratch / one.name).stdout.decode("utf-8", "replace").split("\n")
        written = one.text.split("\n")
        line = next(
            (i for i, pair in enumerate(zip(written, formatted, strict=False), 1) if pair[0] != pair[1]), len(written)
        )
        tool = "`engine policy lint --fix`" if one.name.startswith("bundles/") else "`opa fmt --write` on it"
        return Problem(Location(one.name, line), "the file is not formatted", f"run {tool}")


def _texts(files: Mapping[str, bytes], found: list[Problem]) -> dict[str, str]:
    texts = {}
    for name, data in files.items():
        try:
            texts[name] = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            found.append(Problem(Location(name, line), "the file is not UTF-8 text", "save it as UTF-8"))
            continue
        if data.startswith(BOM_UTF8):
            message = "the file begins with a byte order mark"
            found.append(Problem(Location(name, 1), message, "save it as UTF-8 without one"))
            del texts[name]
        elif deeper_than(data, _LEVELS):
            problem = f"brackets are nested deeper than {_LEVELS}"
            found.append(Problem(Location(name), problem, "give inner parts names of their own"))
            del texts[name]
    return texts


def opa_problems(
    finished: Finished,
    names: Mapping[str, str],
    otherwise: str,
    line: Callable[[str, int, str], int] = lambda _, row, __: row,
) -> list[Problem]:
    """The errors that OPA printed; `names` maps its file names to ours, `otherwise` is used for errors without a file.

    `line` returns the author's line for OPA's file name, line and message.
    """
    report = finished.json()
    errors = report.get("errors") if isinstance(report, dict) else None
    if not isinstance(errors, list) or not errors:
        message = printable(" ".join(finished.stderr.decode("utf-8", "replace").split())) or "OPA refuses the rules"
        return [Problem(Location(otherwise), message, "correct the file")]
    return [_problem(error, names, otherwise, line) for error in errors if isinstance(error, dict)]


def _problem(
    error: dict[str, Any], names: Mapping[str, str], otherwise: str, line: Callable[[str, int, str], int]
) -> Problem:
    location = error.get("location") or {}
    text = str(error.get("message", "OPA refuses the rules"))
    served = str(location.get("file", "")).removeprefix("./")
    row = line(served, max(location["row"], 1), text.splitlines()[0]) if "row" in location else None
    unknown = schemas.problem(error, names.get(served, otherwise), row)
    if unknown is not None:
        return unknown
    message = " ".join(text.split())
    remedy = next(
        (hint for word, hint in _HINTS if word in message), _REMEDIES.get(str(error.get("code")), "correct the rule")
    )
    return Problem(Location(names.get(served, otherwise), row), message[:1].lower() + message[1:], remedy)
