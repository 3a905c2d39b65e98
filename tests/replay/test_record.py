"""Recorded decisions of many points, decided again by a candidate policy: exactly what it decides differently."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from engine.cases.run import CaseFile, Runner
from engine.decide import Verdict
from engine.engine import Engine
from engine.errors import DecideError
from engine.model import Finding, Outcome
from engine.policy_bundle.build import PolicyBundle
from engine.record.chain import Entry
from engine.record.model import DecisionRecord
from engine.record.reader import Filter, entries
from engine.replay.candidate import Candidate, opened, undecidable
from engine.replay.comparing import Change, compared
from engine.replay.run import Replay, replay
from engine.secrets.redaction import redacted
from engine.settings import OpaLimits, Settings
from tests.conftest import BUNDLES
from tests.covers import cases
from tests.expect import there
from tests.policy_bundle.test_rule_errors import CONFLICT, house
from tests.record.samples import open_log

REFUSED = {"licenses": {"licenses": {"CC-BY-4.0": {"decision": "refuse"}}}}
OVERRIDE = "licenses.licenses.CC-BY-4.0.decision=refuse"
SECRET = "sk-proj-0a1b2c3d4e5f6g7h8i9j"  # noqa: S105 (opens nothing)
FAST = 6
"""In the fast lane, one of so many cases at points other than those of licenses."""


@dataclass(frozen=True)
class Recorded:
    """A record of many points, by the policy as shipped; what the same cases get from the candidate, by decision id."""

    state: Path
    candidate: PolicyBundle
    bodies: dict[str, DecisionRecord]
    expected: dict[str, Outcome]


def chosen(*, full: bool) -> list[CaseFile]:
    plain = [file for file in cases() if not file.case.values]
    return [file for at, file in enumerate(plain) if full or file.case.point in {"source", "license"} or at % FAST == 0]


@pytest.fixture(scope="module")
def recorded(module_settings: Settings, tmp_path_factory: pytest.TempPathFactory, *, full: bool) -> Iterator[Recorded]:
    folder = tmp_path_factory.mktemp("recorded")
    with (
        Runner(module_settings, folder / "ours") as ours,
        Runner(module_settings, folder / "theirs", (OVERRIDE,)) as theirs,
    ):
        expected: dict[str, Outcome] = {}
        for one in chosen(full=full):
            answer, other = ours.answer(one), theirs.answer(one)
            expected[answer.decision.decision_id] = other.decision.outcome
        state, policy = ours.engine({}).settings.state, there(theirs.engine({}).policy)
        found = (one.body for one in entries(state, Filter()) if isinstance(one, Entry))
        bodies = {one.decision_id: one for one in found if isinstance(one, DecisionRecord)}
        yield Recorded(state, policy, bodies, expected)


@pytest.fixture(scope="module")
def candidate(recorded: Recorded) -> Iterator[Candidate]:
    with opened(recorded.candidate, OpaLimits()) as found:
        yield found


@pytest.fixture(scope="module")
def found(recorded: Recorded, candidate: Candidate) -> Replay:
    return run(recorded.state, candidate)


def run(state: Path, by: Candidate, sample: int | None = None, **wanted: Any) -> Replay:
    return replay(state, Filter(**wanted), by, sample, lambda *_: None)


def test_every_flip_is_found_and_no_other(recorded: Recorded, found: Replay) -> None:
    decidable = {name: body for name, body in recorded.bodies.items() if undecidable(body) is None}
    flips = {name for name, body in decidable.items() if body.outcome is not recorded.expected[name]}
    assert len(recorded.bodies) > 200
    assert len({body.point for body in decidable.values()}) > 25
    assert flips
    kinds = Counter(recorded.expected[name] for name in flips)
    assert {Outcome.DENY: found.count(Change.DENIED)} == dict(kinds)
    assert {body.point for name, body in decidable.items() if name in flips} == {
        point for point, counted in found.points.items() if counted[Change.DENIED]
    }
    assert found.decisions == len(recorded.bodies)
    assert sum(counted.total() for counted in found.points.values()) == found.decisions
    assert [one.decision_id for one in found.flips] == [name for name in recorded.bodies if name in flips]
    assert all(one.before is recorded.bodies[one.decision_id].outcome for one in found.flips)
    assert {(one.after, one.change) for one in found.flips} == {(Outcome.DENY, Change.DENIED)}
    named = {name for group in found.groups.values() if group.change is Change.DENIED for name in group.examples}
    assert named <= flips


def test_the_requirement_and_the_value_behind_a_flip_are_named(found: Replay) -> None:
    groups = {(one.point, one.code): one for one in found.groups.values() if one.change is Change.DENIED}
    group = groups["license", "license_incompatible"]
    assert (group.before, group.after) == (None, "deny")
    assert there(group.where).file.endswith("rego/admission/requirements/license/license.rego")
    value = group.values["licenses.licenses.CC-BY-4.0"]
    assert value.value["decision"] == "refuse"
    assert str(value.where).startswith("--values")
    assert there(group.words).title
    assert group.decisions == sum(group.subjects.values())


def test_undecidable_records_are_counted_and_listed(recorded: Recorded, found: Replay) -> None:
    reasons = Counter(
        (body.point, reason) for body in recorded.bodies.values() if (reason := undecidable(body)) is not None
    )
    assert reasons
    assert found.undecided == reasons
    assert found.count("not_decided") == reasons.total()


def test_a_redacted_subject_of_a_finding_is_compared_as_it_was_recorded(recorded: Recorded) -> None:
    body = next(one for one in recorded.bodies.values() if one.findings and one.limits is None)
    found = body.findings[0]
    hidden = found.model_copy(update={"subject": redacted(SECRET)})
    body = body.model_copy(update={"findings": (hidden,), "redactions": ("findings.0.subject",)})
    assert undecidable(body) is None
    finding = Finding(code=found.code, level=found.level, requirement="", subject=SECRET, remedy="")
    assert compared(body, Verdict(body.outcome, (finding,), None)) is None


def test_a_redacted_input_and_a_fault_are_never_guessed(settings: Settings, candidate: Candidate) -> None:
    request: dict[str, Any] = {
        "purpose": "train",
        "export_license": None,
        "license": SECRET,
        "sha256": "0" * 64,
        "decisions": [],
    }
    with Engine(settings) as engine:
        engine.check("license", request)
        engine.check("license", {"purpose": 7})
    found = run(settings.state, candidate)
    assert dict(found.undecided) == {
        ("license", "redacted: input.license.alternatives.*.*"): 1,
        ("license", "the engine refused it, not the policy: engine.request_invalid"): 1,
    }
    assert (found.decisions, found.changed) == (2, False)


def test_the_policy_of_the_record_changes_nothing(recorded: Recorded, module_settings: Settings) -> None:
    with Engine(replace(module_settings, state=module_settings.state / "same")) as engine:
        own = there(engine.policy)
    with opened(own, OpaLimits()) as candidate:
        found = run(recorded.state, candidate)
    assert not found.changed, found.groups
    assert found.count("unchanged") + found.count("not_decided") == found.decisions
    assert found.groups == {}


def test_filters_and_samples(recorded: Recorded, candidate: Candidate, found: Replay) -> None:
    licenses = run(recorded.state, candidate, point="license")
    assert licenses.points == {"license": found.points["license"]}
    assert run(recorded.state, candidate, principal="nobody").decisions == 0
    times = sorted(body.time for body in recorded.bodies.values())
    assert run(recorded.state, candidate, since=times[-10]).decisions == 10
    first, second = (run(recorded.state, candidate, 40) for _ in range(2))
    assert first.decisions == 40
    assert (first.points, first.first, first.last) == (second.points, second.first, second.last)
    assert len(first.points) > 3
    assert run(recorded.state, candidate, 100_000).decisions == found.decisions


@pytest.mark.full
def test_a_rule_that_fails_on_one_input_denies_that_one_only(settings: Settings, tmp_path: Path) -> None:
    with Engine(settings) as engine:
        for name in ("offline_fixture", "non_commercial_for_training", "unknown_license"):
            engine.check("source", {"path": str(BUNDLES / name), "digest": None})
        engine.check("source", {"path": str(BUNDLES / "evaluation_only"), "digest": None})
        own = [one.body for one in entries(settings.state, Filter()) if isinstance(one, Entry)]
    broken = replace(settings, state=tmp_path / "other", recipe=house(tmp_path, CONFLICT))
    with Engine(broken) as engine:
        policy = there(engine.policy)
    with opened(policy, OpaLimits()) as candidate:
        found = run(settings.state, candidate)
    failed = [one for one in found.groups.values() if one.code == "engine.opa_error"]
    purposes = [there(body.input)["bundle"]["purpose"] for body in own if isinstance(body, DecisionRecord)]
    assert 0 < purposes.count("train") < len(purposes)
    assert sum(one.decisions for one in failed) == purposes.count("train")
    assert {subject.partition("/own.rego:")[2] for one in failed for subject in one.subjects} == {"19"}


def test_an_opa_that_does_not_answer_stops_the_replay(recorded: Recorded) -> None:
    with opened(recorded.candidate, OpaLimits()) as candidate:
        with candidate.leased() as served:
            served.opa.close()
        with pytest.raises(DecideError):
            run(recorded.state, candidate)


@pytest.mark.full
def test_memory_does_not_grow_with_the_record(recorded: Recorded, candidate: Candidate, tmp_path: Path) -> None:
    bodies = [body for body in recorded.bodies.values() if undecidable(body) is None]
    peaks = []
    for times in (5, 25):
        with open_log(tmp_path / str(times)) as log:
            for number in range(times):
                for body in bodies:
                    log.append(body.model_copy(update={"decision_id": f"{number}-{body.decision_id}"}))
        tracemalloc.start()
        assert run(tmp_path / str(times), candidate).decisions == times * len(bodies)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.25
