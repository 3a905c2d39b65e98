"""The list of the slow lane: every line names a test that exists, so that none is left out under an old name."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT
from tests.covers import expand, places
from tests.lanes import SLOW

_LINES = (ROOT / "tests/slow.txt").read_text(encoding="utf-8").splitlines()


def test_the_list_is_in_order_and_names_each_test_once() -> None:
    assert sorted(SLOW) == _LINES


@pytest.mark.parametrize("file", sorted({line.partition("::")[0] for line in _LINES}))
def test_every_slow_test_exists(file: str) -> None:
    slow = {line.split("::")[1] for line in _LINES if line.startswith(f"{file}::")}
    assert slow <= _tests(file)


def test_every_case_of_a_row_is_shown_in_a_lane_that_ci_runs() -> None:
    shown = {case: place.name for place in places() for entry in place.entries for case in expand(entry)}
    in_ci = {case for place in places() if not place.full for entry in place.entries for case in expand(entry)}
    assert {case: name for case, name in shown.items() if case not in in_ci} == {}


def _tests(file: str) -> set[str]:
    """The tests of a file, with those that it takes over from another one."""
    text = (ROOT / file).read_text(encoding="utf-8")
    taken = re.findall(r"^from (tests[.\w]+) import \*", text, re.MULTILINE)
    others = {name for module in taken for name in _tests(f"{module.replace('.', '/')}.py")}
    return (others - {*re.findall(r"^del (test_\w+)", text, re.MULTILINE)}) | {
        *re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE),
        *re.findall(r"^(Test\w+) ", text, re.MULTILINE),
    }
