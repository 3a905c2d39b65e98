"""What point `code_execution` sees of an action, and the limits that hints, profile, role and time make of it."""

from __future__ import annotations

from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from engine.cases.run import CaseFile, Runner
from engine.model import Caller, Via
from engine.points import GatherContext
from engine.points.code_execution import CodeExecutionInput, CodeExecutionLimits, CodeExecutionRequest, gather
from engine.state import open_store
from engine.state.rows import AttemptRow
from tests.conftest import case
from tests.expect import of, there

ID = "00000000-0000-4000-8000-00000000000"


def limits(runner: Runner, **changes: Any) -> CodeExecutionLimits:
    """What the permit of the plain case says, with these fields of its request."""
    file = case("code_execution", "defaults")
    engine = runner.at(file)
    answer = engine.decide("code_execution", {**deepcopy(file.case.request), **changes})
    assert isinstance(answer.decision.limits, CodeExecutionLimits), answer.decision.findings
    return answer.decision.limits


def codes(runner: Runner, **changes: Any) -> list[str]:
    file = case("code_execution", "defaults")
    request = {**deepcopy(file.case.request), **changes}
    return [one.code for one in runner.at(file).decide("code_execution", request).decision.findings]


# covers: C08.1-2
@pytest.mark.parametrize(
    ("hint", "seconds"),
    [
        (0.1, 0.2), (0.2, 0.2), (-5, 0.2), (20.0, 20.0), (20.1, 20.0), (1e308, 20.0), ("NaN", 2.0), ("nan", 2.0),
        ("Infinity", 2.0), ("-inf", 2.0), ("soon", 2.0), (None, 2.0), (True, 2.0), ([], 2.0), ({}, 2.0), ("3.5", 3.5),
    ],
)  # fmt: skip
def test_a_timeout_hint_is_clamped(runner: Runner, hint: Any, seconds: float) -> None:
    assert limits(runner, policy_hints={"exec_timeout_seconds": hint}).wall_seconds == seconds


# covers: C06.1 C08 C09.1-2
def test_missing_hints_give_the_default_limits(runner: Runner) -> None:
    stated: tuple[Any, ...] = (None, "none", [], {})
    for hints in stated:
        found = limits(runner, policy_hints=hints)
        assert (found.wall_seconds, found.stdout_bytes, found.stderr_bytes) == (2.0, 4096, 4096)
    assert codes(runner, elapsed_ms=24_999) == []
    assert codes(runner, elapsed_ms=25_000) == ["max_seconds"]


# covers: C78.2
@pytest.mark.parametrize(
    "hints",
    [
        {"max_seconds": 600}, {"max_stdout_bytes": 1 << 20, "max_stderr_bytes": 1 << 20},
        {"execution_languages": ["javascript"], "allowed_languages_execution": ["javascript"]},
        {"environment": {"PYTHONPATH": "/srv"}, "retention_days": 1, "profile": "wasm"},
    ],
)  # fmt: skip
def test_unsupported_hints_change_no_limit(runner: Runner, hints: dict[str, Any]) -> None:
    assert limits(runner, policy_hints=hints) == limits(runner)


# covers: C78
def test_a_numeric_hint_given_as_text_is_accepted(runner: Runner) -> None:
    code = {**case("code_execution", "defaults").case.request["action"], "code": "print(1)" + " " * 2_393}
    assert codes(runner, action=code) == ["invalid_action:contract"]  # 2,401 characters
    assert codes(runner, action=code, policy_hints={"max_code_chars": "2401"}) == []


# covers: C44
def test_the_remaining_time_limits_the_wall_clock(runner: Runner) -> None:
    assert limits(runner, elapsed_ms=24_000).wall_seconds == 1.0
    assert limits(runner, elapsed_ms=23_000).wall_seconds == 2.0


# covers: A84.1
@pytest.mark.parametrize("seconds", [None, 0, -1, 0.0, float("inf"), float("nan"), "2", True])
def test_no_execution_without_a_timeout(runner: Runner, seconds: Any) -> None:
    found = limits(runner).model_dump(mode="json")
    CodeExecutionLimits.model_validate_json(CodeExecutionLimits(**_tuples(found)).model_dump_json())  # the control
    for changed in ({**found, "wall_seconds": seconds}, {k: v for k, v in found.items() if k != "wall_seconds"}):
        with pytest.raises(ValidationError):
            CodeExecutionLimits(**_tuples(changed))


def _tuples(found: dict[str, Any]) -> dict[str, Any]:
    required = {name: tuple(kinds) for name, kinds in found["required"].items()}
    return {**found, "required": required, "files": tuple(found["files"]), "packages": ()}


# covers: A86.1
def test_the_seed_is_recorded_and_reproduces_the_limits(runner: Runner) -> None:
    twice = [limits(runner, seed=4_294_967_295) for _ in range(2)]
    assert twice[0] == twice[1]
    assert twice[0].seed == 4_294_967_295
    assert twice[0].environment == {
        "PYTHONHASHSEED": "4294967295", "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1",
        "LOGNAME": "sandbox", "MALLOC_ARENA_MAX": "2", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg",
    }  # fmt: skip
    answer = runner.answer(case("code_execution", "proven"))
    record = runner._record(case("code_execution", "proven"), answer.decision.decision_id)
    assert (record["limits"]["seed"], record["limits"]["environment"]["PYTHONHASHSEED"]) == (7, "7")
    for seed in (-1, 4_294_967_296, 1.5, True, "7"):
        assert codes(runner, seed=seed) == ["engine.request_invalid"]


# covers: A86.1
def test_an_environment_without_the_matching_hash_seed_is_invalid(runner: Runner) -> None:
    found = _tuples(limits(runner).model_dump(mode="json"))
    for environment in ({}, {"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "random"}):
        with pytest.raises(ValidationError):
            CodeExecutionLimits(**{**found, "environment": environment})


# covers: A87.1
def test_a_verifier_has_limits_of_its_own(runner: Runner) -> None:
    hints = {"exec_timeout_seconds": 20}
    solution = limits(runner, artifacts=True, policy_hints=hints)
    verifier = limits(runner, artifacts=True, policy_hints=hints, role="verifier")
    assert (solution.role, verifier.role) == ("solution", "verifier")
    assert (solution.wall_seconds, verifier.wall_seconds) == (20.0, 10.0)
    assert verifier.processes < solution.processes
    assert (verifier.artifact_files, verifier.artifact_bytes) == (0, 0)
    assert solution.artifact_files > 0


def test_no_artifacts_are_permitted_by_default(runner: Runner) -> None:
    found = limits(runner)
    assert (found.artifact_files, found.artifact_bytes) == (0, 0)


# covers: C04.2 C53.1
def test_policy_and_execution_languages_are_separate_lists(runner: Runner) -> None:
    action = {**case("code_execution", "defaults").case.request["action"], "language": "javascript"}
    assert codes(runner, action=action) == ["language_denied_execution"]
    assert codes(runner, action={**action, "language": "ruby"}) == ["language_denied_policy"]


# covers: C18.1 C71
def test_policy_can_admit_another_language(runner: Runner) -> None:
    file = case("code_execution", "javascript")
    admitted = file.case.model_copy(update={"values": {"code": {"execution": {"+javascript": "standard"}}}})
    answer = runner.answer(CaseFile(file.path, admitted))
    assert isinstance(answer.decision.limits, CodeExecutionLimits), answer.decision.findings
    assert answer.decision.limits.language == "javascript"


def facts(**changes: Any) -> CodeExecutionInput:
    request = CodeExecutionRequest(**{"elapsed_ms": 0, "role": "solution", **changes})
    return of(CodeExecutionInput, gather(request, GatherContext(clock=lambda: 0, boundaries=tuple)).input)


# covers: C01.1
def test_neither_code_nor_payload_is_in_the_input() -> None:
    action = {**case("code_execution", "defaults").case.request["action"], "input_payload": {"quokka": "quokka"}}
    found = facts(action={**action, "code": "quokka = 'quokka'  # quokka"}).model_dump_json()
    assert found.count("quokka") == 1  # the scan says which name it found


# covers: H18
@pytest.mark.parametrize("action", [None, [], "print(1)", {}, {"code": 1}, {"language": "python"}, {"code": "x"}])
def test_an_action_that_cannot_be_scanned_has_no_scan(action: Any) -> None:
    assert facts(action=action).scan is None


# covers: C63
def test_only_earlier_attempts_of_the_same_principal_are_listed(tmp_path: Path) -> None:
    with closing(open_store(tmp_path)) as store:
        for number, principal in enumerate(("ana", "ana", "bo", "ana"), 1):
            store.begin_attempt(AttemptRow(f"{ID}{number}", principal, "t", f"{number}" * 64, number))
        store.end_attempt(f"{ID}1", "failed", 5)

        def earlier(principal: str | None, attempt: str | None, task: str = "t") -> list[tuple[str, str]]:
            request = CodeExecutionRequest(elapsed_ms=0, role="solution", task=task, attempt=attempt)
            ask = there(gather(request, GatherContext(clock=lambda: 0, boundaries=tuple)).state)
            rows = ask(store, Caller(via=Via.PROCESS, principal=principal))["attempts"]
            return [(row["id"][-1], row["state"]) for row in rows]

        assert earlier("ana", f"{ID}4") == [("2", "begun"), ("1", "failed")]
        assert earlier("ana", None) == [("4", "begun"), ("2", "begun"), ("1", "failed")]
        assert earlier("bo", None) == [("3", "begun")]
        assert earlier(None, None) == earlier("ana", None, "other") == []
    request = CodeExecutionRequest(elapsed_ms=0, role="solution")
    assert gather(request, GatherContext(clock=lambda: 0, boundaries=tuple)).state is None
