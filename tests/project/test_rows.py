"""Rows, rules and tests lead to each other; threats have labelled rules and tests; security tests run by category."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.catalogue import Requirement
from scripts import generate
from tests.conftest import ROOT, security_tests
from tests.covers import rows

THIS = "test_rows.py"
THREATS = {
    "ACE": "Arbitrary code execution",
    "DoS": "Resource exhaustion",
    "injection": "Prompt-injection propagation",
}


@cache
def policy() -> PolicyBundle:
    return generate.shipped()


def requirements() -> list[Requirement]:
    return [one for point in policy().catalogue.points.values() for one in point.requirements.values()]


# covers: H24.1
def test_a_row_without_a_test_fails_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    problems: list[str] = []
    generate.coverage(problems, {})
    assert problems == []  # the control
    made_up = {"id": "Z99", "source": "derived", "kind": "rule", "point": "source", "wave": 1, "code": ""}
    every = [*rows(), {**made_up, "requirement": "Nothing shows this.", "cases": ["no one looks"]}]
    monkeypatch.setattr(generate, "rows", lambda: every)
    generate.coverage(problems, {})
    assert problems == ["row Z99 is claimed (wave 1) but nothing shows case 1: no one looks"]


# covers: H24.2
@pytest.mark.parametrize(("label", "problem"), [(None, "has no row"), ("A20, Z99", "names `Z99`, which is no row")])
def test_a_rule_without_a_row_fails_the_build(label: str | None, problem: str) -> None:
    problems: list[str] = []
    rules = generate.rules_by_row(policy().catalogue, problems)
    assert problems == []  # the control
    assert "source host_not_allowlisted" in rules["A20"]
    entries = policy().catalogue.points["source"]
    one = entries.requirements["host_not_allowlisted"]
    labels = {} if label is None else {"row": label}
    changed = {**entries.requirements, one.code: one.model_copy(update={"labels": labels})}
    points = {**policy().catalogue.points, "source": entries.model_copy(update={"requirements": changed})}
    generate.rules_by_row(policy().catalogue.model_copy(update={"points": points}), problems)
    assert len(problems) == 1
    assert problem in problems[0]


_LABEL = re.compile(r"pytest\.mark\.(?:security|threat)\((?:\"[^\"]+\", )?\"([^\"]+)\"\)")


@cache
def labels() -> dict[Path, list[str]]:
    """The files with markers `security` and `threat`, and their categories: the last word of each."""
    texts = ((path, path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("test_*.py"))
    marked = re.compile(r"mark\.(?:security|threat)\b")
    return {path: _LABEL.findall(text) for path, text in texts if path.name != THIS and marked.search(text)}


@cache
def collected(asked: str) -> frozenset[str]:
    """The tests that `scripts/test security NAME` runs, by the name of their function; other files have none."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "--security", asked]
    done = subprocess.run([*command, *labels()], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = (line for line in done.stdout.splitlines() if "::" in line)
    return frozenset(line.partition("[")[0].rpartition("::")[2] for line in lines)


# covers: E27.1-4
def test_security_tests_run_together_and_by_category_or_id() -> None:
    by_category = {name: collected(name) for name in THREATS}
    assert collected("all") == frozenset().union(*by_category.values())
    for name, found in by_category.items():
        assert found, name
        others = frozenset().union(*(tests for other, tests in by_category.items() if other != name))
        assert not found & others
    assert "test_sec_05_an_episode_over_its_tokens_ends_with_the_score_minus_5" in by_category["DoS"]
    assert "test_sec_11_a_hint_that_quotes_a_monologue_is_delivered_and_marked_for_review" in by_category["injection"]
    assert len(collected("SEC-05")) == 1


def test_a_security_test_that_is_marked_full_runs_and_another_full_test_does_not() -> None:
    class Item:
        def __init__(self, name: str, *marks: pytest.MarkDecorator) -> None:
            self.nodeid = name
            self._marks = [one.mark for one in marks]

        def iter_markers(self, name: str) -> list[pytest.Mark]:
            return [mark for mark in self._marks if mark.name == name]

        def get_closest_marker(self, name: str) -> pytest.Mark | None:
            return next(iter(self.iter_markers(name)), None)

    def chosen(asked: str, *, full: bool = False) -> list[Any]:
        return list(security_tests(items, asked, full=full))

    planned = Item("a", pytest.mark.security("SEC-01", "ACE"), pytest.mark.full)
    slow = Item("b", pytest.mark.threat("ACE"), pytest.mark.full)
    fast = Item("c", pytest.mark.threat("ACE"))
    other = Item("d", pytest.mark.security("SEC-05", "DoS"))
    items: Any = [planned, slow, fast, other]
    assert chosen("ACE") == chosen("ace") == [planned, fast]
    assert chosen("ACE", full=True) == [planned, slow, fast]
    assert chosen("SEC-01") == [planned]
    assert chosen("all") == [planned, fast, other]


# covers: E01.1-3
@pytest.mark.parametrize("threat", THREATS)
def test_a_threat_is_named_and_has_labelled_rules_and_tests(threat: str) -> None:
    page = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    assert f"| {THREATS[threat]} | `{threat}` |" in page
    assert any(threat in one.labels.get("threat", "").split(", ") for one in requirements())
    assert threat in {category for found in labels().values() for category in found}


# covers: E29
def test_ci_runs_the_security_tests_and_a_release_decides_on_their_report() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert "scripts/test security" in ci
    release = (ROOT / "scripts" / "release").read_text(encoding="utf-8")
    assert "scripts/test security --junit-xml=.venv/reports/security.xml" in release
    assert "--report .venv/reports/security.xml" in release
