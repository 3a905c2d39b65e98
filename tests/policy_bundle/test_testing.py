"""`engine policy test` runs what is served, and tells what fails and what no test reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.binaries import find_binary
from engine.opa.command import OpaCommand
from engine.policy_bundle.testing import TestRun, run_tests
from tests.policy_bundle.trees import LIMITS, REQUIREMENTS, RULES, Files, policy

HEAD = """package admission.requirements.source.license_test

import data.admission.limits.source as limits
import data.admission.requirements.source.license

test_limits if limits.limits == {"purpose": "train"} with input as {"bundle": {"purpose": "train"}}

"""
GOOD = (
    HEAD + 'test_mit if license.admitted({"license": "MIT"})\n\ntest_gpl if not license.admitted({"license": "GPL"})\n'
)
TEST = f"{REQUIREMENTS}/license_test.rego"


def run(tmp_path: Path, files: Files) -> TestRun:
    return run_tests(policy(tmp_path, files), OpaCommand(find_binary().path))


def test_passing(tmp_path: Path) -> None:
    assert run(tmp_path, {TEST: GOOD}) == TestRun(passed=3, files=2, problems=())


def test_failing(tmp_path: Path) -> None:
    found = run(tmp_path, {TEST: GOOD + '\ntest_isc if license.admitted({"license": "ISC"})\n'})
    (problem,) = found.problems
    assert (problem.where.file, problem.where.line) == (str(tmp_path / TEST), 12)
    assert "`test_isc` fails" in problem.message
    assert found.passed == 3


def test_a_rule_that_does_not_end_is_named(tmp_path: Path) -> None:
    loops = "some x in numbers.range(1, 20000)\n\tsome y in numbers.range(1, 20000)\n\tx * y < 0"
    bundle = policy(tmp_path, {TEST: f"{GOOD}\ntest_long if {{\n\t{loops}\n}}\n"})
    (problem,) = run_tests(bundle, OpaCommand(find_binary().path, test_seconds=1)).problems
    assert problem.where.line == 12
    assert problem.message.startswith(f"`test_long` took longer than 1 seconds, in {TEST}:1")


def test_a_test_that_ends_in_an_error_says_which(tmp_path: Path) -> None:
    two = "_two := 1 if true\n\n_two := 2 if true\n\ntest_two if _two == 1\n"
    (problem,) = run(tmp_path, {TEST: f"{GOOD}\n{two}"}).problems
    assert problem.message.startswith("`test_two` ends in an error: rule data.")
    assert problem.message.endswith(f"produced conflicting values, in {TEST}:14")


def test_a_skipped_test_does_not_pass(tmp_path: Path) -> None:
    (problem,) = run(tmp_path, {TEST: GOOD + "\ntodo_test_later if false\n"}).problems
    assert "is skipped" in problem.message


def test_a_line_that_no_test_reaches(tmp_path: Path) -> None:
    (problem,) = run(tmp_path, {TEST: GOOD.replace(HEAD.splitlines()[5], "")}).problems
    assert (problem.where.file, problem.where.line) == (str(tmp_path / LIMITS), 5)
    assert "no test covers" in problem.message


@pytest.mark.parametrize("text", [HEAD.split("\n", maxsplit=1)[0] + "\n", None])
def test_no_tests(text: str | None, tmp_path: Path) -> None:
    (problem,) = run(tmp_path, {TEST: text}).problems
    assert "no tests" in problem.message


def test_tests_that_do_not_compile(tmp_path: Path) -> None:
    (problem,) = run(tmp_path, {TEST: GOOD + "\ntest_x if nothing(1)\n"}).problems
    assert (problem.where.file, problem.where.line) == (str(tmp_path / TEST), 12)
    assert "undefined function" in problem.message


def test_added_rules_of_a_recipe_are_tested_with_their_generated_module(tmp_path: Path) -> None:
    test = """package admission.added.source.house_test

test_house if {
	found := data.admission.decision.findings with input as {"point": "source", "bundle": {"x": 1}}
	some one in found
	one.code == "house_deny"
}
"""
    rule = 'package main\n\ndeny contains "x" if input.bundle.x == 1\n'
    files = {TEST: GOOD, f"{RULES}/house.rego": rule, f"{RULES}/house_test.rego": test}
    assert run(tmp_path, files) == TestRun(passed=1, files=1, problems=())
    files[f"{RULES}/house.rego"] = rule + '\ndeny contains "y" if {\n\tinput.bundle.y == 1\n\tinput.bundle.z == 1\n}\n'
    found = run(tmp_path, files).problems
    assert {one.where.file for one in found} == {str(tmp_path / RULES / "house.rego")}
    assert 7 in {one.where.line for one in found}
