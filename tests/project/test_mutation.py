"""The mutation run itself: which changes it makes, that it tells a noticed one from another, and when it fails."""

from __future__ import annotations

import ast
import gc
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from mutation import python, rego
from mutation.__main__ import ACCEPTED, accepted, in_sample, report
from mutation.model import Mutant, Results, Verdict
from mutation.tested import Baseline
from mutation.warm import _exchange
from tests.conftest import ROOT
from tests.expect import there

CALLER = ROOT / "rego/admission/requirements/common/caller.rego"
DIGEST = ROOT / "rego/admission/lib/digest.rego"


def test_every_condition_of_a_rule_is_changed_where_it_stands() -> None:
    found = {mutant.name: mutant for mutant in rego.mutants(CALLER)}
    assert {
        'caller_in_scope: input.caller.via == "token" → true',
        'caller_in_scope: input.caller.via == "token" → !=',
        "caller_in_scope: input.point in input.caller.points → true",
        "caller_in_scope: the alternative → is left out (2)",
    } < found.keys()
    changed = found['caller_in_scope: input.caller.via == "token" → !='].applied(CALLER.read_bytes()).decode()
    assert changed == CALLER.read_text().replace('input.caller.via == "token"', 'input.caller.via != "token"', 1)


def test_every_becomes_some_and_not_is_dropped() -> None:
    names = {mutant.name for mutant in rego.mutants(ROOT / "rego/admission/requirements/code_output/text.rego")}
    assert "complete: every field in input.output.fields { field.present == true } → some field" in names
    names = {mutant.name for mutant in rego.mutants(ROOT / "rego/admission/requirements/code_output/fields.rego")}
    assert "as_agreed: not code_output.fits(earlier) → without `not`" in names


def test_killed_and_surviving_mutants_are_distinguished(tmp_path: Path) -> None:
    judge = rego.Judge(Results(tmp_path / "results.json"))
    verdicts = {mutant.name: judge.verdict(mutant) for mutant in rego.mutants(DIGEST)}
    assert verdicts == {
        "sha256: is_string(text) → true": Verdict.SURVIVED,
        "sha256: regex.match('^[0-9a-f]{64}$', text) → true": Verdict.KILLED,
    }
    again = rego.Judge(Results(tmp_path / "results.json"))
    assert {mutant.name: again.verdict(mutant) for mutant in rego.mutants(DIGEST)} == verdicts


def test_comparisons_of_python_are_changed() -> None:
    names = {mutant.name for mutant in python.mutants(ROOT / "engine/idempotency.py")}
    now, was = "facts.input_digest, verdict.outcome, verdict.limits", "was.input_digest, was.outcome, was.limits"
    compared = f"_again: ({now}) != ({was})"
    assert {
        f"{compared} → True",
        f"{compared} → False",
        f"{compared} → without facts.input_digest",
        f"{compared} → without verdict.outcome",
        f"{compared} → without verdict.limits",
    } < names
    adapters = ROOT / "adapters/admission_adapters"
    permits = [mutant.name for name in ("grants", "files/skills") for mutant in python.mutants(adapters / f"{name}.py")]
    assert "granted: permit.demand(point, input_digest, type(permit.limits)) → permit.limits" in permits
    executor = "_Reading.executor: granted(permit, POINT, job.input_digest, SkillFileGrant) → permit.limits"
    assert executor in permits


def test_further_changes_leave_out_statements_and_change_conditions_without_a_comparison() -> None:
    path = ROOT / "engine/record/checkpoint.py"
    found = {mutant.name: mutant for mutant in python.mutants(path, further=True)}
    signed = "parsed: not (same_bytes and hmac.compare_digest(identity.sign(fields), signed.mac))"
    assert {
        f"{signed} → True",
        f"{signed} → False",
        "parsed: same_bytes and hmac.compare_digest(identity.sign(fields), signed.mac) → without same_bytes",
        "parsed: identity is None or not identity.key → without not identity.key",
        "new_identity: write_file(storage, KEY, key) → pass",
    } < found.keys()
    assert not found.keys() & {mutant.name for mutant in python.mutants(path)}
    other = next(one for name, one in found.items() if name.startswith("parsed: raise") and "another signature" in name)
    lines = other.applied(path.read_bytes()).decode().splitlines()
    assert lines[other.line - 1] == "        pass"
    assert len([*ast.walk(ast.parse("\n".join(lines)))]) < len([*ast.walk(ast.parse(path.read_text()))])


def imported(path: Path) -> ModuleType:
    spec = there(importlib.util.spec_from_file_location("changed_by_a_test", path))
    module = importlib.util.module_from_spec(spec)
    there(spec.loader).exec_module(module)
    return module


def test_existing_functions_get_the_mutated_code(tmp_path: Path) -> None:
    path, before = tmp_path / "small.py", "def small(x):\n    return x < 3\n"
    path.write_text(before)
    small = imported(path).small
    assert not small(3)
    gc.freeze()  # as after the collection of tests
    assert _exchange(path, before, before.replace("<", "<="))
    assert small(3)
    assert not _exchange(path, before, before)  # the source is no longer that of the function
    gc.freeze()


def test_a_file_without_measured_coverage_is_tested_by_every_test() -> None:
    """As of one that is run in a sandbox, where nobody counts lines."""
    once, *_ = python.mutants(ROOT / "engine/idempotency.py")
    seconds = {"tests/a.py::slow": 2.0, "tests/a.py::fast": 1.0}
    assert Baseline(seconds, {}).tests(once) == ["tests/a.py::fast", "tests/a.py::slow"]
    assert Baseline(seconds, {once.file: {"1": [""]}}).tests(once) == ["tests/a.py::fast", "tests/a.py::slow"]
    seen = {once.file: {str(once.first): ["tests/a.py::slow"]}}
    assert Baseline(seconds, seen).tests(once) == ["tests/a.py::slow"]


MUTANT = Mutant("rego/a.rego", 7, 0, 1, "", "rule: x → true")
ENTRY = "### rego/a.rego\n\n- ``rule: x → true``\n  Another line asks the same.\n"


@pytest.mark.parametrize(
    ("verdict", "text", "code", "told"),
    [
        (Verdict.KILLED, "", 0, "all survivors are accepted"),
        (Verdict.SURVIVED, ENTRY, 0, "all survivors are accepted"),
        (Verdict.SURVIVED, "", 1, "survives and is not in docs/mutation.md: rego/a.rego: rule: x → true"),
        (Verdict.KILLED, ENTRY, 1, "is in docs/mutation.md and does not survive: rego/a.rego: rule: x → true"),
    ],
    ids=["noticed", "accepted", "survivor", "stale entry"],
)
def test_the_run_fails_for_a_survivor_that_is_not_accepted_and_for_a_stale_entry(
    verdict: Verdict, text: str, code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report({MUTANT.file: [(MUTANT, verdict)]}, accepted(text), every=False) == code
    assert told in capsys.readouterr().out


def test_further_survivors_are_only_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert report({MUTANT.file: [(MUTANT, Verdict.SURVIVED)]}, None, every=True) == 0
    assert "rego/a.rego:7: rule: x → true" in capsys.readouterr().out


def test_a_sample_has_the_requested_share_and_is_reproducible() -> None:
    names = [f"rule: x == {number} → true" for number in range(3_000)]
    found = [name for name in names if in_sample("rego/a.rego", name, 30)]
    assert 70 < len(found) < 130
    assert found == [name for name in reversed(names) if in_sample("rego/a.rego", name, 30)][::-1]
    assert all(in_sample("rego/a.rego", name, 1) for name in names)


def test_every_accepted_survivor_is_a_change_that_can_be_made() -> None:
    gone = []
    for file, names in accepted(ACCEPTED.read_text(encoding="utf-8")).items():
        path = ROOT / file
        made = {one.name for one in (rego.mutants(path) if path.suffix == ".rego" else python.mutants(path))}
        gone += [f"{file}: {name}" for name in names - made]
    assert not gone, "correct or remove these entries of docs/mutation.md"
