"""Mutants of Rego: every condition of a rule left out or turned round; `opa test` of every test that reaches it judges.

Places come from `opa parse`, so a change is made in the text exactly where OPA read the condition.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from engine.binaries import find_binary
from mutation.model import ROOT, Mutant, Results, Verdict, digest, named, short

_SECONDS = 120
_TURNED = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_OPERATORS = {"equal": "==", "neq": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_EVERY = re.compile(r"every\s+(?P<names>[\w\s,]+?)\s+in\s+")
_NEVER_RUN = 2
"""The exit code of `opa test` where a test failed; 1 where something does not compile."""


@cache
def _opa() -> str:
    return str(find_binary().path)


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of one file."""
    done = subprocess.run(
        [_opa(), "parse", "--format", "json", "--json-include", "locations,-comments", path],
        check=True,
        capture_output=True,
    )
    yield from named(_File(path, path.read_bytes()).mutants(json.loads(done.stdout)))


@dataclass(frozen=True)
class _File:
    path: Path
    source: bytes

    @cached_property
    def lines(self) -> list[int]:
        """Where each line begins."""
        return [0, *(at.end() for at in re.finditer(rb"\n", self.source))]

    def mutants(self, tree: dict[str, Any]) -> Iterator[Mutant]:
        rules = tree.get("rules", [])
        names = [_head(rule) for rule in rules]
        for rule, name in zip(rules, names, strict=True):
            if names.count(name) > 1 and not rule.get("default"):
                yield from self._change(rule, name, "", "the alternative", "is left out")
            seen: set[tuple[int, int, str]] = set()
            for expression in _expressions(rule):
                place = expression["location"]
                text = _text(place)
                if (at := (place["row"], place["col"], text)) in seen or text.startswith("else"):
                    continue
                seen.add(at)
                yield from self._of(expression, name, text)

    def _of(self, expression: dict[str, Any], rule: str, text: str) -> Iterator[Mutant]:
        terms = expression["terms"]
        if isinstance(terms, dict) and terms.get("type") == "boolean":
            return
        if not text.startswith("some "):
            yield from self._change(expression, rule, "true", text, "true")
        if text.startswith("not "):
            yield from self._change(expression, rule, text.removeprefix("not "), text, "without `not`")
        if found := _EVERY.match(text):
            head, _, body = text.partition("{")
            some = f"count([true | some {head[len('every ') :].rstrip()}\n{body.rstrip().removesuffix('}')}\n]) > 0"
            yield from self._change(expression, rule, some, text, f"some {found['names']}")
        if isinstance(terms, list) and (operator := _operator(terms)) in _TURNED:
            left, right = _text(terms[1]["location"]), _text(terms[2]["location"])
            turned = re.sub(rf"\s{re.escape(operator)}\s", f" {_TURNED[operator]} ", text, count=1)
            if left and right and turned != text:
                yield from self._change(expression, rule, turned, text, _TURNED[operator])

    def _change(self, node: dict[str, Any], rule: str, new: str, old: str, what: str) -> Iterator[Mutant]:
        place = node["location"]
        text = _text(place).encode()
        start = self.lines[place["row"] - 1] + place["col"] - 1  # OPA counts bytes
        if self.source[start : start + len(text)] != text:
            raise AssertionError(f"{self.path}:{place['row']}: OPA read something else there")
        name = f"{rule}: {short(old)} → {what}"
        file = self.path.relative_to(ROOT).as_posix()
        yield Mutant(file, place["row"], start, start + len(text), new, name)


def _head(rule: dict[str, Any]) -> str:
    return ".".join(str(part["value"]) for part in rule["head"].get("ref", ())) or str(rule["head"].get("name"))


def _text(place: dict[str, Any]) -> str:
    return base64.b64decode(place.get("text", "")).decode()


def _operator(terms: list[Any]) -> str:
    ref = terms[0].get("value") if terms and terms[0].get("type") == "ref" else None
    named_ = ref[0].get("value") if ref and len(ref) == 1 else None
    return _OPERATORS.get(str(named_), "")


def _expressions(node: Any) -> Iterator[dict[str, Any]]:
    """Every condition below a node of the tree, however deep in comprehensions, `every` and `else`."""
    if isinstance(node, dict):
        if "terms" in node and "location" in node:
            yield node
        for key, value in node.items():
            if key != "location":
                yield from _expressions(value)
    elif isinstance(node, list):
        for value in node:
            yield from _expressions(value)


class Judge:
    """Runs `opa test` to find whether a mutant is noticed."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._sources = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "rego").rglob("*.rego"))}
        packages = {_package(text): path for path, text in self._sources.items()}
        self._uses = {
            path: {
                packages[name]
                for found in re.findall(r"\bdata\.(admission[\w.]*)", text)
                for name in _beginnings(found)
                if name in packages
            }
            for path, text in self._sources.items()
        }
        self._scope: dict[Path, list[Path]] = {}

    def verdict(self, mutant: Mutant) -> Verdict:
        """Run the tests beside the file, with the file changed, then every test that reaches it."""
        path = ROOT / mutant.file
        scope = self._reached(path)
        changed = mutant.applied(path.read_bytes())
        key = digest(mutant.name.encode(), changed, *(self._sources[one].encode() for one in scope))
        if (known := self._results.get(key)) is not None:
            return Verdict(known[0])
        beside = {path, path.with_stem(f"{path.stem}_test")} & self._uses.keys()
        found = self._run(changed, path, sorted(_closed(beside, self._uses)))
        if found is Verdict.SURVIVED:
            found = self._run(changed, path, scope)
        self._results.put(key, [found])
        return found

    def _run(self, source: bytes, path: Path, scope: list[Path]) -> Verdict:
        with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
            changed = Path(folder) / path.name
            changed.write_bytes(source)
            files = [str(changed), *(str(one) for one in scope if one != path)]
            done = subprocess.run([_opa(), "test", *files], check=False, capture_output=True, timeout=_SECONDS)
        if done.returncode not in {0, _NEVER_RUN}:
            return Verdict.INVALID
        return Verdict.KILLED if done.returncode else Verdict.SURVIVED

    def _reached(self, path: Path) -> list[Path]:
        """The tests that reach a file through whatever, and all that they need."""
        if path not in self._scope:
            reaching = _closed(
                {path}, {one: {by for by, uses in self._uses.items() if one in uses} for one in self._uses}
            )
            tests = {one for one in reaching if one.stem.endswith("_test")}
            self._scope[path] = sorted(_closed(tests | {path}, self._uses))
        return self._scope[path]


def _package(text: str) -> str:
    found = re.search(r"^package ([\w.]+)", text, re.MULTILINE)
    return "" if found is None else found[1]


def _beginnings(name: str) -> Iterator[str]:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        yield ".".join(parts[:length])


def _closed(start: set[Path], edges: dict[Path, set[Path]]) -> set[Path]:
    found, waiting = set(start), list(start)
    while waiting:
        for one in edges[waiting.pop()] - found:
            found.add(one)
            waiting.append(one)
    return found
