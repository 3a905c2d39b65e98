"""Decide, enforce and work by themselves: what counts as an answer, as enforceable, as a permit and as a result."""

from __future__ import annotations

from typing import Any

import pytest

from engine.decide import _REMEMBERED, _SHORT, Verdict, _checked_before, read
from engine.documents.canonical import compact
from engine.enforce import enforceable, permit
from engine.errors import DecideError, EnforceError, EngineError, WorkError
from engine.model import Boundary, Decision, Finding, Level, Limits, Mode, Outcome, Permit, Result, Revisions
from engine.opa.reply import Reply
from engine.points.registry import POINTS
from engine.policy_bundle.catalogue import Catalogue, Entries, Words
from engine.work import Job, work
from tests.expect import refused, there

POINT = POINTS["license"]
LIMITS = {"purpose": "train", "export": {"allowed": False}}
CATALOGUE = Catalogue(
    points={
        "license": Entries(
            requirements={},
            generated={
                code: Words(code=code, title=f"{code} holds", remedy=f"mend {code}") for code in ("one", "two", "three")
            },
        )
    }
)


def found(code: str, level: str, subject: str | None = None, **more: Any) -> dict[str, Any]:
    return {"code": code, "level": level, "subject": subject, **more}


def verdict(outcome: str, *findings: dict[str, Any], **more: Any) -> Verdict:
    return read(POINT, Reply({"result": {"outcome": outcome, "findings": list(findings), **more}}), CATALOGUE)


def test_an_allow_has_its_limits_and_its_warnings_in_order() -> None:
    got = verdict("allow", found("two", "warn", "b"), found("two", "warn", "a"), found("one", "warn"), limits=LIMITS)
    assert got.outcome is Outcome.ALLOW
    assert there(got.limits).model_dump(mode="json") == LIMITS
    assert [(one.code, one.subject, one.requirement, one.remedy) for one in got.findings] == [
        ("one", None, "one holds", "mend one"),
        ("two", "a", "two holds", "mend two"),
        ("two", "b", "two holds", "mend two"),
    ]
    assert (got.approved, got.approval_seconds) == (False, None)


def test_a_cached_answer_has_its_own_limits_and_the_words_of_its_policy() -> None:
    answer = {"outcome": "allow", "findings": [found("one", "warn")], "limits": LIMITS}
    first, again = (read(POINT, Reply({"result": answer}), CATALOGUE) for _ in range(2))
    assert first == again
    assert first.limits is not again.limits
    with refused(DecideError, "engine.answer_malformed"):
        read(POINTS["network"], Reply({"result": answer}), CATALOGUE)
    words = {"one": Words(code="one", title="other", remedy="other")}
    reworded = Catalogue(points={"license": Entries(requirements={}, generated=words)})
    assert [one.requirement for one in read(POINT, Reply({"result": answer}), reworded).findings] == ["other"]
    assert read(POINT, Reply({"result": {**answer, "limits": {**LIMITS, "purpose": "eval"}}}), CATALOGUE) != first


def test_the_cache_of_answers_is_bounded() -> None:
    _checked_before.clear()
    for number in range(_REMEMBERED):
        verdict("deny", found("one", "deny", subject=f"record {number}"))
    assert len(_checked_before) == _REMEMBERED
    verdict("deny", found("one", "deny", subject="one more"))
    assert len(_checked_before) == 1


def test_only_a_short_answer_is_remembered() -> None:
    _checked_before.clear()
    around = len(compact({"outcome": "deny", "findings": [found("one", "deny", subject="")]}))
    for more in (1, 0):
        verdict("deny", found("one", "deny", subject="x" * (_SHORT - around + more)))
        assert len(_checked_before) == 1 - more


def test_a_waived_finding_is_a_warning_that_names_its_waiver() -> None:
    got = verdict("allow", found("one", "warn", waiver="w-1"), limits=LIMITS)
    assert [(one.code, one.level, one.waiver) for one in got.findings] == [("one", Level.WARN, "w-1")]


def test_duplicate_findings_of_an_added_rule_are_merged() -> None:
    got = verdict("deny", found("one", "deny", requirement="own words"), found("one", "deny", requirement="own words"))
    assert [(one.requirement, one.level) for one in got.findings] == [("own words", Level.DENY)]


def test_findings_are_in_the_order_of_their_messages_too() -> None:
    told = [found("one", "deny", requirement=message) for message in ("b", "a")]
    assert [one.requirement for one in verdict("deny", *told).findings] == ["a", "b"]


def test_only_an_allow_has_limits() -> None:
    assert verdict("deny", found("one", "deny"), limits=LIMITS).limits is None
    assert verdict("confirm", found("one", "confirm"), limits=LIMITS).limits is None


def test_an_approved_confirm_is_an_allow() -> None:
    got = verdict("allow", found("one", "confirm"), limits=LIMITS, approved=True, approval_seconds=60)
    assert (got.outcome, got.approved, got.approval_seconds) == (Outcome.ALLOW, True, 60)
    got = verdict("confirm", found("one", "confirm"), found("two", "warn"), approval_seconds=60)
    assert (got.outcome, got.approved, got.approval_seconds) == (Outcome.CONFIRM, False, 60)


@pytest.mark.parametrize(
    "answer",
    [
        {"outcome": "allow", "findings": [found("one", "deny")], "limits": LIMITS},
        {"outcome": "allow", "findings": [found("one", "confirm")], "limits": LIMITS},
        {"outcome": "confirm", "findings": [found("one", "deny"), found("two", "confirm")]},
        {"outcome": "confirm", "findings": []},
        {"outcome": "deny", "findings": []},
        {"outcome": "deny", "findings": [found("one", "confirm")]},
        {"outcome": "deny", "findings": [found("one", "warn")]},
        {"outcome": "allow", "findings": [found("one", "deny")], "limits": LIMITS, "approved": True},
        {"outcome": "confirm", "findings": [found("one", "confirm")], "approved": True},
        {"outcome": "allow", "findings": [], "limits": LIMITS, "approved": True},
        {"outcome": "allow", "findings": [found("one", "warn")], "limits": LIMITS, "approved": True},
        {"outcome": "deny", "findings": [found("one", "deny")], "approved": True},
        {"outcome": "deny", "findings": [found("one", "deny")], "approval_seconds": 60},
        {"outcome": "deny", "findings": [found("engine.internal", "deny")]},
        {"outcome": "deny", "findings": [found("one", "deny"), found("policy_stale", "deny")]},
        {"outcome": "deny", "findings": [found("four", "deny")]},
        {"outcome": "deny", "findings": [found("one", "deny", waiver="w-1")]},
        {"outcome": "confirm", "findings": [found("one", "confirm", waiver="w-1")]},
        {"outcome": "deny", "findings": [found("one", "deny")], "approved": False},
        {"outcome": "allow", "findings": [], "limits": LIMITS, "approval_seconds": 0},
        {"outcome": "perhaps", "findings": []},
        {"outcome": "allow", "findings": [], "limits": LIMITS, "more": 1},
        {"outcome": "allow", "findings": {}},
        {"outcome": "deny", "findings": [{"code": "one", "level": "deny"}]},
        {},
        [],
        None,
    ],
)
def test_a_malformed_decision_is_refused(answer: Any) -> None:
    with refused(DecideError, "engine.answer_malformed"):
        read(POINT, Reply({"result": answer}), CATALOGUE)


@pytest.mark.parametrize("code", ["engine.internal", "policy_stale"])
def test_a_policy_cannot_use_a_reserved_engine_code(code: str) -> None:
    words = {code: Words(code=code, title="holds", remedy="mend")}
    catalogue = Catalogue(points={"license": Entries(requirements={}, generated=words)})
    with pytest.raises(DecideError, match="only the engine"):
        read(POINT, Reply({"result": {"outcome": "deny", "findings": [found(code, "deny")]}}), catalogue)


def test_an_answer_without_a_result_is_undefined() -> None:
    with refused(DecideError, "engine.decision_undefined"):
        read(POINT, Reply({"decision": {"outcome": "allow", "findings": [], "limits": LIMITS}}), CATALOGUE)


@pytest.mark.parametrize("limits", [None, {}, {"purpose": "train"}, {**LIMITS, "more": 1}, {**LIMITS, "purpose": 1}])
def test_an_allow_without_exactly_the_limits_of_its_point_is_unenforceable(limits: Any) -> None:
    with refused(DecideError, "engine.limit_unenforceable"):
        verdict("allow", limits=limits)


class Bound(Limits):
    """Limits that two boundaries have to hold, of one backend or of any."""

    backend: str | None = None

    def boundaries(self) -> frozenset[str]:
        return frozenset({"files", "network"})

    def on_backend(self) -> str | None:
        return self.backend


def held(boundary: str, backend: str = "jail", *, enforced: bool = True) -> Boundary:
    return Boundary(backend=backend, boundary=boundary, kind="kernel", enforced=enforced, evidence="sha256:" + "0" * 64)


BOTH = (held("files"), held("network"))


@pytest.mark.parametrize(
    ("backend", "boundaries", "missing"),
    [
        (None, BOTH, None),
        ("jail", BOTH, None),
        (None, (held("files"), held("network", "other")), None),
        ("jail", (held("files"), held("network", "other")), "network"),
        ("other", BOTH, "files"),
        (None, (), "files"),
        (None, (held("files"),), "network"),
        (None, (held("files"), held("network", enforced=False)), "network"),
        (None, (held("files", enforced=False), held("network")), "files"),
    ],
)
def test_every_boundary_has_to_be_shown_to_hold_on_the_backend(
    backend: str | None, boundaries: tuple[Boundary, ...], missing: str | None
) -> None:
    if missing is None:
        enforceable(Bound(backend=backend), boundaries)
        return
    with pytest.raises(EnforceError, match=f"`{missing}`") as caught:
        enforceable(Bound(backend=backend), boundaries)
    assert caught.value.code == "engine.limit_unenforceable"


DIGEST = "sha256:" + "a" * 64
DENIED = Finding(code="one", level=Level.DENY, requirement="one holds", subject=None, remedy="mend one")


def decided(**changes: Any) -> Decision:
    allowed = {
        "decision_id": "d",
        "point": "license",
        "mode": Mode.ENFORCE,
        "outcome": Outcome.ALLOW,
        "findings": (),
        "limits": Bound(),
        "policy": Revisions(rules=DIGEST, values=DIGEST),
        "input_digest": DIGEST,
    }
    return Decision(**{**allowed, **changes})


def test_the_permit_of_an_enforced_allow_is_for_exactly_that() -> None:
    given = there(permit(decided()))
    assert given.demand("license", DIGEST, Bound) == Bound()
    assert (given.decision_id, given.point, given.input_digest) == ("d", "license", DIGEST)


@pytest.mark.parametrize(
    "changes",
    [
        {"mode": Mode.CHECK},
        {"outcome": Outcome.DENY, "findings": (DENIED,)},
        {"outcome": Outcome.CONFIRM},
        {"limits": None},
        {"input_digest": None},
        {"policy": None},
    ],
)
def test_only_an_enforced_allow_has_a_permit(changes: dict[str, Any]) -> None:
    assert permit(decided(**changes)) is None


@pytest.mark.parametrize(
    "demanded",
    [("source", DIGEST, Bound), ("license", "sha256:" + "b" * 64, Bound), ("license", DIGEST, Limits)],
    ids=["another point", "another input", "other limits"],
)
def test_a_permit_is_for_its_point_its_input_and_its_limits(demanded: tuple[str, str, type[Limits]]) -> None:
    given = there(permit(decided()))
    with refused(WorkError, "engine.permit_missing"):
        given.demand(*demanded)


JOB = Job(DIGEST, None)


def test_work_returns_the_result_of_the_executor() -> None:
    given = there(permit(decided()))
    seen: list[tuple[Permit, Job]] = []

    def executor(permit: Permit, job: Job) -> Result:
        seen.append((permit, job))
        return Result("done", {"files": 1})

    assert work(given, executor, JOB) == Result("done", {"files": 1})
    assert seen == [(given, JOB)]


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (ZeroDivisionError("canary"), "engine.work_failed"),
        (EngineError("no", remedy="none", code="engine.own"), "engine.own"),
    ],
)
def test_an_exception_of_an_executor_becomes_an_engine_error_without_its_text(raised: Exception, code: str) -> None:
    def executor(_permit: Permit, _job: Job) -> Result:
        raise raised

    given = there(permit(decided()))
    with pytest.raises(EngineError) as caught:
        work(given, executor, JOB)
    assert caught.value.code == code
    assert "canary" not in str(caught.value)
