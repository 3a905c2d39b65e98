"""Every case under fixtures/cases gives the decision and the record it wants, on a real OPA."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from jsonschema_rs import Draft202012Validator

from engine.cases.run import CaseFile, Runner, changed, read_case
from engine.documents.canonical import canonical
from engine.errors import GatherError
from engine.model import Outcome, is_reserved
from engine.points.registry import POINTS
from engine.settings import Settings
from tests.conftest import ROOT, case_id
from tests.covers import cases


@pytest.mark.parametrize("file", cases(), ids=case_id)
def test_case(file: CaseFile, runner: Runner) -> None:
    """And what OPA sees fits the published schema, so a rule may name every fact that there is."""
    answer = runner.answer(file)
    assert runner.differences(file, answer) == []
    assert answer.document is not None or answer.decision.outcome is Outcome.DENY
    if answer.document is not None:
        assert [error.message for error in validator(file.case.point).iter_errors(in_json(answer.document))] == []


@cache
def validator(point: str) -> Draft202012Validator:
    return Draft202012Validator(POINTS[point].input_schema)


def in_json(document: object) -> object:
    return json.loads(canonical(document))


def test_every_point_has_a_good_and_a_bad_case() -> None:
    """Positive control of the laws: without an allowed case they would hold for nothing."""
    outcomes = {(file.case.point, file.case.want.outcome.value) for file in cases()}
    assert {(point, outcome) for point in POINTS for outcome in ("allow", "deny")} <= outcomes


# covers: H23.3
def test_every_refusal_names_a_code_that_the_catalogue_explains(runner: Runner) -> None:
    """What a case wants is what `test_case` gets: codes and nothing else."""
    policy = runner.engine({}).policy
    assert policy is not None
    for file in cases():
        case = file.case
        assert (case.want.outcome is Outcome.ALLOW) or case.want.codes, file.path
        for code in case.want.codes:
            words = policy.catalogue.words(case.point, code)
            assert is_reserved(code) or (words is not None and words.title and words.remedy), (file.path, code)


def test_no_fixture_is_a_link_or_anything_else_that_a_tool_could_be_caught_in() -> None:
    """Cases state the links they want, and the runner makes them in a copy."""
    for entry in (ROOT / "fixtures").rglob("*"):
        kind = entry.lstat().st_mode
        assert stat.S_ISREG(kind) or stat.S_ISDIR(kind), entry
        assert entry.lstat().st_size < 1 << 20, entry


def test_a_case_is_decided_apart_from_the_state_that_engines_share(shared_settings: Settings, tmp_path: Path) -> None:
    """It would take budgets from them, and be refused once they agreed on a release."""
    file = next(one for one in cases() if one.case.point == "license" and not one.case.values)
    with Runner(replace(shared_settings, database="postgresql://nobody@/none?host=/nowhere"), tmp_path) as runner:
        assert runner.differences(file, runner.answer(file)) == []


WITH_STATE = """
description: a case that finds something in the state
covers: []
point: license
request: {}
now: "2026-11-21T00:00:00Z"
state:
  prefixes:
    - {principal: pipeline, cwd: /work, tool: shell, words: [git, status], approver: "user:lee",
       created_at: "2026-11-20T00:00:00Z", expires_at: "2026-11-22T00:00:00Z"}
    - {principal: other, cwd: /work, tool: shell, words: [ls], approver: "user:lee", revoked: true,
       created_at: "2026-11-20T00:00:00Z", expires_at: "2026-11-22T00:00:00Z"}
  children:
    - {id: 0190b5d2-7c1e-7d3a-9b6f-2f4c5d6e7f80, parent: one, created_at: "2026-11-20T00:00:00Z"}
    - {id: 0190b5d2-7c1e-7d3a-9b6f-2f4c5d6e7f81, parent: one, created_at: "2026-11-20T00:00:00Z", state: killed}
want: {outcome: deny}
"""


def test_a_case_is_decided_on_the_state_it_states_and_no_other_case_sees_it(runner: Runner, tmp_path: Path) -> None:
    path = tmp_path / "with_state.yaml"
    path.write_text(WITH_STATE, encoding="utf-8")
    file = read_case(path)
    for _ in range(2):  # however often it runs
        engine = runner.at(file)
        assert engine.services is not None
        store = engine.services.store()
        revoked, approved = store.prefixes(None, None, 9)
        assert (approved.words, approved.revoked_at) == (("git", "status"), None)
        assert (revoked.principal, revoked.revoked_at) == ("other", 1795132800)
        assert [(row.state, row.ended_at) for row in store.children("one", 9)] == [
            ("killed", 1795132800),
            ("running", None),
        ]
    other = runner.at(cases()[0])
    assert other.services is not None
    assert other.services.store().prefixes(None, None, 9) == ()


def test_an_impossible_state_of_a_case_is_reported(runner: Runner, tmp_path: Path) -> None:
    path = tmp_path / "impossible_state.yaml"
    path.write_text(WITH_STATE.replace("[git, status]", "[]"), encoding="utf-8")
    engine = runner.at(read_case(path))
    assert engine.services is not None
    with pytest.raises(GatherError, match="1 to 16 words") as caught:
        engine.services.store()
    assert str(path) in str(caught.value.where)


def test_a_case_leaves_nothing_behind_in_the_engine_of_its_values(runner: Runner) -> None:
    file = next(one for one in cases() if one.case.world.boundaries == () and not one.case.values)
    engine = runner.at(file)
    assert engine.services is not None
    assert engine.services.gather_context.boundaries() == ()
    moment = engine.services.gather_context.clock()
    assert runner.engine({}) is engine
    assert engine.services.gather_context.boundaries() != ()
    assert engine.services.gather_context.clock() != moment


@pytest.mark.parametrize(
    ("line", "place", "message", "remedy"),
    [
        ("wnat: {outcome: deny}", (4, "wnat"), "`wnat` is not a known field", "did you mean `want`?"),
        (
            "want: {outcome: denied}",
            (4, "want.outcome"),
            "`want.outcome` must be 'allow', 'confirm' or 'deny'",
            "correct",
        ),
    ],
)
def test_an_invalid_field_of_a_case_is_reported_like_one_of_a_value(
    line: str, place: tuple[int, str], message: str, remedy: str, tmp_path: Path
) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(f'description: a case\npoint: license\nnow: "2026-11-21T00:00:00Z"\n{line}\n', encoding="utf-8")
    with pytest.raises(GatherError) as caught:
        read_case(path)
    told = caught.value
    assert told.where is not None
    assert ((told.where.line, told.where.field), told.message) == (place, message)
    assert remedy in told.remedy


@pytest.mark.parametrize(
    ("folder", "drop", "set_", "message"),
    [
        ("offline_fixture", (), {"records.9.license": "MIT"}, "bundle.yaml has no field `records.9.license`"),
        ("offline_fixture", (), {"purpose.x.y": 1}, "bundle.yaml has no field `purpose.x.y`"),
        ("offline_fixture", ("records.first",), {}, "bundle.yaml has no field `records.first`"),
        ("offline_fixture", ("prupose",), {}, "bundle.yaml has no field `prupose`"),
        ("nothing_here", ("purpose",), {}, "cannot read "),
    ],
)
def test_a_change_of_a_missing_field_or_folder_is_reported(
    folder: str, drop: tuple[str, ...], set_: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(GatherError) as caught:
        changed(ROOT / "fixtures" / "source_bundles" / folder, tmp_path / "copy", drop, set_)
    assert caught.value.message.startswith(message)
    assert caught.value.remedy


def test_a_case_refused_by_the_engine_is_reported_with_its_reason(runner: Runner, tmp_path: Path) -> None:
    path = tmp_path / "misspelled_value.yaml"
    request = f"{{purpose: train, export_license: null, license: MIT, sha256: '{'0' * 64}', decisions: []}}"
    case = f'description: a case\npoint: license\nrequest: {request}\nnow: "2026-11-21T00:00:00Z"\n'
    path.write_text(f"{case}values: {{networks: {{host: []}}}}\nwant: {{outcome: allow}}\n", encoding="utf-8")
    (told,) = runner.differences(read_case(path), runner.answer(read_case(path)))
    assert told.startswith("expected allow []; got deny [engine.policy_invalid]: ")
    assert "`host` is not a known field" in told
