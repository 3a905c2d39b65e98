"""Runs the tests beside the rules on the served policy and the real values, and reports uncovered lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import Location, Problem
from engine.opa.command import OVERTIME, OpaCommand
from engine.policy_bundle.archives import GENERATED
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.checks import allowed
from engine.policy_bundle.parsing import opa_problems
from engine.policy_bundle.scratch import scratch
from engine.policy_bundle.sources import snapshot

_EXCUSED = "kinds"
"""OPA marks what only its index or early exit skipped; without them it would have been reached."""


@dataclass(frozen=True, slots=True)
class TestRun:
    """How many tests passed, and every test that failed or line that none reached, as problems.

    `untested` are files of rules of one's own that have no tests beside them.
    """

    __test__ = False  # pytest collects no class of this name

    passed: int
    files: int
    problems: tuple[Problem, ...]
    untested: tuple[str, ...] = ()


def run_tests(bundle: PolicyBundle, opa: OpaCommand, *, cases: bool = False) -> TestRun:
    """Run the `*_test.rego` files beside the rules. Raises DecideError, PolicyError.

    They are those of the recipe where it has rules or values of its own, else those of rego/, which are written for
    the values of policy/. With `cases`, a recipe that has only cases needs no tests.
    """
    taken = snapshot(bundle.sources)
    root = f"bundles/{bundle.name}/" if taken.own else "rego/"
    tests = {name: data for name, data in taken.tests.items() if name.startswith(root)}
    if not tests:
        remedy = f"write `<topic>_test.rego` beside each topic{', or cases into cases/' if taken.own else ''}"
        found = [] if cases and taken.own else [Problem(Location(root.rstrip("/")), "there are no tests", remedy)]
        return TestRun(0, 0, bundle.sources.placed(found))
    with scratch() as place:
        folder, capabilities = place / "served", place / "capabilities.json"
        bundle.unpack(folder)
        capabilities.write_text(json.dumps(allowed(opa.capabilities())), encoding="utf-8")
        covered = {*taken.served} if root == "rego/" else {name.replace("_test.rego", ".rego") for name in tests}
        authored = {name: _lines(folder / _served(name)) for name in covered if name.startswith(root)}
        names = {_served(name): name for name in taken.served}
        for name, data in tests.items():
            path = folder / _served(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            names[_served(name)] = name
        finished = opa.test(folder, capabilities)
        results = finished.json() if finished.code in {0, 2} else None
        if not isinstance(results, list):
            checked = opa.check(folder, capabilities)  # reports the lines that `opa test` reports as text only
            found = opa_problems(finished if checked.code == 0 else checked, names, "rego")
            return TestRun(0, 0, bundle.sources.placed(found))
        found = list(_failures(results, names, opa.test_seconds))
        if not found:
            found = list(_uncovered(opa.test(folder, capabilities, coverage=True).json(), authored, names))
        passed = sum(not _failed(one) for one in results)
        untested = sorted({name for name in taken.served if name.startswith(root)} - covered)
        return TestRun(passed, len(authored), bundle.sources.placed(found), tuple(untested))


def _lines(served: Path) -> int:
    """How many lines of a served file are its author's."""
    return len(served.read_text(encoding="utf-8").partition(GENERATED)[0].splitlines())


def _served(name: str) -> str:
    """The path of a file among the served files, such as `admission/added/source/house_test.rego`."""
    root, _, rest = name.partition("/")
    return rest if root == "rego" else f"admission/added/{rest.split('/rules/', 1)[1]}"


def _failures(results: list[dict[str, Any]], names: dict[str, str], seconds: int) -> Iterator[Problem]:
    for one in results:
        if _failed(one):
            where = _where(one, names) or Location("rego")
            error = one.get("error")
            what = _error(error, names, seconds) if error else "is skipped" if one.get("skip") else "fails"
            yield Problem(where, f"`{one.get('name', '?')}` {what}", "correct the rule, or the test")


def _where(of: dict[str, Any], names: dict[str, str]) -> Location | None:
    """Where OPA places a test, or a step of its evaluation; None for what is in no file of ours."""
    location = of.get("location") or {}
    name = names.get(str(location.get("file", "")).removeprefix("./"))
    return None if name is None else Location(name, location.get("row"))


def _error(error: dict[str, Any], names: dict[str, str], seconds: int) -> str:
    """What ended a test, and the line that was evaluated then."""
    message = str(error.get("message", "")).partition("\n")[0].rstrip(":")
    what = f"took longer than {seconds} seconds" if error.get("code") == OVERTIME else f"ends in an error: {message}"
    steps = (_where(step, names) for step in error.get("stack_trace") or ())
    line = next((step for step in steps if step is not None), None)
    return what if line is None else f"{what}, in {line.file}:{line.line}"


def _failed(one: dict[str, Any]) -> bool:
    return bool(one.get("fail") or one.get("error") or one.get("skip"))


def _uncovered(report: Any, authored: dict[str, int], names: dict[str, str]) -> Iterator[Problem]:
    """Lines that no test reaches. A file that the report leaves out has no line that could be reached."""
    files = report.get("files") if isinstance(report, dict) else None
    if not isinstance(files, dict):
        yield Problem(Location("rego"), "OPA did not report which lines the tests cover", "run the tests again")
        return
    for file, lines in sorted(files.items()):
        name = names.get(file.removeprefix("./"), "")
        rows = {one["start"]["row"] for one in lines.get("not_covered", ()) if not one.get(_EXCUSED)}
        for row in sorted(rows):
            if row <= authored.get(name, 0):
                yield Problem(Location(name, row), "no test covers this line", "add a test beside the rule")
