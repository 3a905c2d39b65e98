"""Waivers: one that is removed or broken lets nothing more through, and what one lets through has its record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.cases.run import CaseFile, Runner
from engine.documents.canonical import canonical
from engine.model import Outcome, Permit, Result
from engine.policy_bundle.waivers import idle, waivers_in
from engine.record.storage import make_folder
from engine.settings import Settings
from engine.values.waivers import Waivers
from tests.conftest import case_id
from tests.covers import cases
from tests.expect import there
from tests.laws.asking import RANK, enforced, evaluated, served_values, taken
from tests.laws.mutations import Path_, single, with_value

WAIVED = [file for file in cases() if file.case.want.waivers]


@pytest.mark.parametrize("file", WAIVED, ids=case_id)
def test_a_removed_or_invalid_waiver_admits_nothing_more(file: CaseFile, runner: Runner) -> None:
    """Every field of the values of waivers; in the waiver itself, each one counts."""
    engine, document, outcome = taken(runner, file)
    values = served_values(engine)
    changes = list(single(values["waivers"]))
    policies = [{**values, "waivers": changed} for _, _, changed in changes]
    without = {**values, "waivers": {**values["waivers"], "waivers": {}}}
    (bare,), (control,), *found = evaluated(engine, [without, values, *policies], [document])
    assert (RANK[bare["outcome"]] < RANK[outcome], control["outcome"]) == (True, outcome)
    row = ("waivers", file.case.point, *file.case.want.codes, *file.case.want.waivers)
    assert sum(path[: len(row)] == row for path, *_ in changes) > 50
    for (path, value, _), (got,) in zip(changes, found, strict=True):
        assert RANK[got["outcome"]] <= RANK[outcome], f"{path} as {value!r}"
        if path[: len(row)] == row:
            assert got == bare, f"{path} as {value!r}"


def changed_rows(row: dict[str, Any]) -> Iterator[tuple[Path_, Any]]:
    """Waivers that are well-formed and do nothing, each by one change."""
    yield ("subject",), "any"
    yield ("subject",), "records/#0"
    yield ("facts",), {"bundle.id": "b"}
    yield ("approver",), row["owner"].upper()
    yield ("starts",), "2026-09-01"
    yield ("starts",), "2026-11-22"
    yield ("starts",), "2027-01-01"
    yield ("until",), "2026-11-20"


@pytest.mark.parametrize("file", WAIVED, ids=case_id)
def test_the_report_on_a_waiver_agrees_with_the_rules(file: CaseFile, runner: Runner) -> None:
    engine, document, outcome = taken(runner, file)
    values = served_values(engine)
    at: Path_ = ("waivers", file.case.point, *file.case.want.codes, *file.case.want.waivers)
    own: dict[str, Any] = values["waivers"]
    for name in at:
        own = own[str(name)]
    moved = {**values["waivers"], "waivable": {}}
    documents = [with_value(values["waivers"], (*at, *path), new) for path, new in changed_rows(own)]
    catalogue = there(engine.policy).catalogue
    for changed in (*documents, moved):
        Waivers.model_validate_json(canonical(changed))  # nothing else refuses it
    policies = [{**values, "waivers": one} for one in (values["waivers"], *documents, moved)]
    found = evaluated(engine, policies, [document])
    told = [
        idle(waivers_in(one["waivers"], lambda _: None)[0], one["waivers"], catalogue, file.case.now)
        for one in policies
    ]
    assert [one is None for one in told] == [got["outcome"] == outcome for (got,) in found]
    assert told[0] is None


def test_without_a_record_a_waiver_lets_nothing_through(shared_settings: Settings, tmp_path: Path) -> None:
    ran: list[str] = []

    def executor(permit: Permit, _: Any) -> Result:
        ran.append(permit.point)
        return Result("done", {})

    file = WAIVED[0]
    for folder, outcome in (("good", Outcome.ALLOW), ("bad", Outcome.DENY)):
        state = tmp_path / folder / "state-0"
        make_folder(state)
        if folder == "bad":
            (state / "records").write_text("a file where the folder should be")
        with Runner(shared_settings, tmp_path / folder) as runner:
            got = enforced(runner.at(file), file, runner.request(file), executor)
        assert got.decision.outcome is outcome
    assert ran == [file.case.point]  # the control: with a record it does run
