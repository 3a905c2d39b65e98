"""Law 6: a limit that cannot be enforced is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.cases.run import CaseFile, Runner
from engine.decide import read
from engine.drive import run
from engine.errors import DecideError
from engine.flow import answer
from engine.model import Mode, Outcome
from engine.points.registry import POINTS
from tests.conftest import case_id
from tests.lanes import lane
from tests.laws.asking import ALLOWED, ON_BUNDLES, codes, context, mutated, parts, point_of, taken
from tests.laws.mutations import unknown


# covers: H23.4
@pytest.mark.parametrize("file", lane(ALLOWED, point_of), ids=case_id)
def test_6_a_limit_missing_unknown_or_of_another_type_is_refused(file: CaseFile, runner: Runner, *, full: bool) -> None:
    engine, original, _ = taken(runner, file)
    assert engine.policy is not None
    point, catalogue = POINTS[file.case.point], engine.policy.catalogue
    good = engine.opa.ask("decision", original)
    limits = good.result["limits"]
    mutants = [mutant for _, _, mutant in mutated(file, limits, full=full)] + [mutant for _, mutant in unknown(limits)]
    assert mutants
    for mutant in [None, *mutants]:
        reply = replace(good, body={"result": good.result | {"limits": mutant}})
        try:
            found = read(point, reply, catalogue).limits
        except DecideError as error:
            assert error.code == "engine.limit_unenforceable"  # noqa: PT017  (some mutants are legal limits)
        else:
            # an empty text is of the right type: what comes out is exactly what the policy said
            assert found is not None
            assert found.model_dump(mode="json") == mutant


# covers: A24.3 H23.4
@pytest.mark.parametrize("file", lane(ON_BUNDLES, codes), ids=case_id)
def test_6_a_boundary_that_was_not_shown_is_refused(file: CaseFile, runner: Runner) -> None:
    engine, _, _ = taken(runner, file)
    real = parts(engine)
    held = real.gather_context.boundaries()
    for boundaries in ((), tuple(boundary.model_copy(update={"enforced": False}) for boundary in held)):
        world = replace(real.gather_context, boundaries=lambda found=boundaries: found)  # type: ignore[misc]
        got = run(
            answer(
                POINTS[file.case.point],
                runner.request(file),
                Mode.ENFORCE,
                replace(real, gather_context=world),
                context(file),
            )
        )
        assert got.decision.outcome is Outcome.DENY
    assert all(boundary.enforced for boundary in held)  # the control


def test_6_a_limit_beyond_the_machine_is_refused_even_when_the_policy_allows(runner: Runner) -> None:
    file = next(file for file in ALLOWED if file.case.bundle)
    engine, _, _ = taken(runner, file)
    real = parts(engine)
    calls = iter([real.gather_context.boundaries(), ()])  # shown while gathering, gone when enforcing
    world = replace(real.gather_context, boundaries=lambda: next(calls))
    got = run(
        answer(POINTS["source"], runner.request(file), Mode.ENFORCE, replace(real, gather_context=world), context(file))
    )
    assert [finding.code for finding in got.decision.findings] == ["engine.limit_unenforceable"]
