"""Idempotency keys: a repeated request gets the first decision and has no second effect."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from engine.decide import parsed
from engine.documents.canonical import RawJson
from engine.drive import Call, Steps, run
from engine.engine import AsyncEngine, Engine
from engine.errors import DecideError, EngineError, GatherError, StateError
from engine.flow import Answer, Context, answer
from engine.gather import HEAVY_BYTES
from engine.idempotency import Whole, answer_once, facts_to_ask, whole_once
from engine.model import Caller, Mode, Pace, Permit, Result, Via
from engine.points.registry import POINTS
from engine.record.model import ReplayRecord
from engine.record.verify import verify
from engine.settings import OpaLimits, Settings
from engine.state.rows import ArtifactCheckRow, StopRow
from engine.state.store import Store
from engine.work import Executor, Job
from tests.command import decisions
from tests.conftest import BUNDLES, case
from tests.expect import codes, refused, there
from tests.path.bench import ALLOW, DENY, REVISIONS, Bench
from tests.processes import leaks
from tests.state.samples import opened

LOADED = frozenset({"artifact", "license", "source", "tool_call"})
"""The points of these tests: their rules alone are loaded in a third of the time."""

ACCEPTED: Any = case("license", "accepted").case.request
KEY = Context(caller=Caller(via=Via.PROCESS, principal="pipeline"), idempotency_key="run-1/license-7")


def counting(raised: Exception | None = None) -> tuple[Executor, list[str]]:
    """Work that notes the decision that it is done under, and perhaps fails; and its notes."""
    ran: list[str] = []

    def executor(permit: Permit, _: Job) -> Result:
        ran.append(permit.decision_id)
        if raised is not None:
            raise raised
        return Result("done", {})

    return executor, ran


def copied(name: str, folder: Path, old: str = "", new: str = "") -> tuple[dict[str, Any], Path]:
    """A request about a copy of a source bundle, and the document of the copy, with another text in it."""
    document = Path(shutil.copytree(BUNDLES / name, folder / "bundle")) / "bundle.yaml"
    reworded(document, old, new)
    return {"path": str(document.parent), "digest": None}, document


def reworded(document: Path, old: str, new: str) -> None:
    document.write_text(document.read_text().replace(old, new))


@pytest.fixture
def engine(settings: Settings) -> Iterator[Engine]:
    with Engine(settings, points=LOADED) as running:
        yield running


# covers: C69.1 C69.3
def test_a_repeated_request_gets_the_first_decision_and_no_second_effect(engine: Engine) -> None:
    executor, ran = counting()
    first = engine.decide("license", ACCEPTED, executor, KEY)
    again = engine.decide("license", ACCEPTED, executor, KEY)
    text = engine.decide("license", RawJson(json.dumps(ACCEPTED, indent=2).encode()), executor, KEY)
    assert first.decision.outcome == "allow"
    assert first.decision == again.decision == text.decision
    assert ran == [first.decision.decision_id]
    assert (
        engine.decide("license", ACCEPTED, executor).decision != first.decision
    )  # the control: no key, a new decision
    assert len(ran) == 2
    assert verify(engine.settings.state).ok


@pytest.mark.parametrize(("size", "heavy"), [(HEAVY_BYTES, False), (HEAVY_BYTES + 1, True)])
def test_only_a_large_request_is_read_elsewhere_for_its_digest(size: int, heavy: bool, engine: Engine) -> None:  # noqa: FBT001
    text = RawJson(json.dumps(ACCEPTED).encode().ljust(size))
    steps = answer_once(POINTS["license"], text, Mode.ENFORCE, there(engine.services), KEY)
    first = next(steps)
    assert isinstance(first, Call)
    assert first.pace is (Pace.HEAVY if heavy else Pace.SHORT)
    steps.close()


# covers: C69.2
def test_the_same_key_with_another_body_is_an_error(engine: Engine) -> None:
    engine.decide("license", ACCEPTED, context=KEY)
    got = engine.decide("license", {**ACCEPTED, "purpose": "eval"}, context=KEY)
    assert (got.decision.outcome, codes(got)) == ("deny", ["engine.idempotency_conflict"])


# covers: C69.3
def test_of_concurrent_requests_with_one_key_one_is_executed(engine: Engine) -> None:
    executor, ran = counting()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: engine.decide("license", ACCEPTED, executor, KEY), range(8)))
    assert len(ran) == 1
    for one in answers:
        assert one.decision.decision_id in ran or codes(one) == ["engine.idempotency_pending"]


def test_keys_are_separate_for_each_caller(engine: Engine) -> None:
    first = engine.decide("license", ACCEPTED, context=KEY)
    other = Context(caller=Caller(via=Via.PROCESS, principal="another"), idempotency_key=KEY.idempotency_key)
    assert engine.decide("license", ACCEPTED, context=other).decision.decision_id != first.decision.decision_id


# covers: H13.5
def test_an_allow_is_not_replayed_when_the_policy_changed_or_is_down(engine: Engine, settings: Settings) -> None:
    assert engine.decide("license", ACCEPTED, context=KEY).decision.outcome == "allow"
    engine.__exit__()
    with Engine(settings, values=("approvals.valid_seconds=60",), points=LOADED) as other:
        assert codes(other.decide("license", ACCEPTED, context=KEY)) == ["engine.idempotency_stale"]
    with Engine(settings, values=("approvals.valid_seconds=nonsense",), points=LOADED) as broken:
        got = broken.decide("license", ACCEPTED, context=KEY)
        assert (got.decision.outcome, codes(got)) == ("deny", ["engine.policy_invalid"])


@pytest.mark.full
def test_a_fault_takes_no_key(engine: Engine, settings: Settings) -> None:
    engine.__exit__()
    with Engine(settings, values=("approvals.valid_seconds=nonsense",), points=LOADED) as broken:
        assert broken.decide("license", ACCEPTED, context=KEY).decision.outcome == "deny"
    with Engine(settings, points=LOADED) as mended:
        assert mended.decide("license", ACCEPTED, context=KEY).decision.outcome == "allow"


# covers: H13
@pytest.mark.parametrize(
    "changed",
    [
        Context(caller=Caller(via=Via.TOKEN, principal="pipeline", points=("license", "source")), run="run-1"),
        Context(caller=Caller(via=Via.TOKEN, principal="pipeline", points=("license",)), run="run-2"),
        Context(
            caller=Caller(via=Via.TOKEN, principal="pipeline", points=("license",)), run="run-1", approval="a" * 32
        ),
    ],
    ids=["a token with another scope", "another run", "another approval"],
)
def test_an_allow_of_another_scope_run_or_approval_is_not_replayed(changed: Context, engine: Engine) -> None:
    first = Context(caller=Caller(via=Via.TOKEN, principal="pipeline", points=("license",)), run="run-1")
    allowed = engine.decide("license", ACCEPTED, context=replace(first, idempotency_key="k"))
    assert allowed.decision.outcome == "allow"
    got = engine.decide("license", ACCEPTED, context=replace(changed, idempotency_key="k"))
    assert (got.decision.outcome, codes(got)) == ("deny", ["engine.idempotency_conflict"])
    again = engine.decide("license", ACCEPTED, context=replace(first, idempotency_key="k"))
    assert again.decision == allowed.decision  # the control


# covers: H13
def test_a_source_bundle_that_changed_is_not_the_one_that_was_allowed(engine: Engine, tmp_path: Path) -> None:
    request, document = copied("offline_fixture", tmp_path)
    assert engine.decide("source", request, context=KEY).decision.outcome == "allow"
    assert engine.decide("source", request, context=KEY).decision.outcome == "allow"  # the control
    reworded(document, "audit_required: true", "audit_required: false")
    got = engine.decide("source", request, context=KEY)
    assert (got.decision.outcome, codes(got)) == ("deny", ["engine.idempotency_stale"])


# covers: H13
def test_another_input_that_is_allowed_too_is_not_the_one_that_was_allowed(engine: Engine, tmp_path: Path) -> None:
    request, document = copied("offline_fixture", tmp_path)
    assert engine.decide("source", request, context=KEY).decision.outcome == "allow"
    reworded(document, "acme-contacts", "acme-people")
    assert engine.decide("source", request).decision.outcome == "allow"  # the control: the digest alone has changed
    got = engine.decide("source", request, context=KEY)
    assert (got.decision.outcome, codes(got)) == ("deny", ["engine.idempotency_stale"])


def test_a_deny_of_another_input_is_not_replayed(engine: Engine, tmp_path: Path) -> None:
    request, document = copied("non_commercial_for_training", tmp_path)
    first = engine.decide("source", request, context=KEY)
    assert (first.decision.outcome, engine.decide("source", request, context=KEY).decision) == ("deny", first.decision)
    with document.open("a") as file:
        file.write("# the same, and other bytes\n")
    assert codes(engine.decide("source", request)) == codes(first)  # the control
    assert codes(engine.decide("source", request, context=KEY)) == ["engine.idempotency_stale"]


def test_a_confirm_that_would_now_be_a_deny_is_not_replayed(engine: Engine) -> None:
    asked = case("tool_call", "confirm_all").case.request
    first = engine.decide("tool_call", asked, context=KEY)
    assert first.decision.outcome == "confirm"
    assert engine.decide("tool_call", asked, context=KEY).decision == first.decision  # the control
    control = Context(caller=Caller(via=Via.CONTROL, principal="user:ana"))
    engine.administer({"act": "stop", "id": "c" * 32, "stop": {"scope": "all", "name": ""}}, control)
    assert codes(engine.decide("tool_call", asked, context=KEY)) == ["engine.idempotency_stale"]


# covers: H13
def test_an_allow_that_the_policy_no_longer_gives_is_not_replayed(settings: Settings, tmp_path: Path) -> None:
    request, _ = copied("offline_fixture", tmp_path, "2035-11-02", "2026-11-21")
    moment = [datetime(2026, 11, 21, 23, 59, 59, tzinfo=UTC)]
    with Engine(settings, now=lambda: moment[0], points=LOADED) as engine:
        first = engine.decide("source", request, context=KEY)
        assert engine.decide("source", request, context=KEY).decision == first.decision
        moment[0] += timedelta(seconds=1)
        got = engine.decide("source", request, context=KEY)
        fresh = engine.decide("source", request, context=replace(KEY, idempotency_key=None))
    assert (first.decision.outcome, got.decision.outcome, codes(got)) == ("allow", "deny", ["engine.idempotency_stale"])
    assert (fresh.decision.input_digest, codes(fresh)) == (first.decision.input_digest, ["retention_expired"])


def test_a_dry_run_takes_no_key_and_is_not_replayed(engine: Engine) -> None:
    first, second = (engine.check("license", ACCEPTED, KEY) for _ in range(2))
    enforced = engine.decide("license", ACCEPTED, context=KEY)
    assert [one.decision.outcome for one in (first, second, enforced)] == ["allow"] * 3
    assert len({one.decision.decision_id for one in (first, second, enforced)}) == 3
    assert enforced.decision.mode == "enforce"


def test_a_deny_is_replayed_too(engine: Engine) -> None:
    refused = {**ACCEPTED, "decisions": []}
    first = engine.decide("license", refused, context=KEY)
    assert first.decision.outcome == "deny"
    assert engine.decide("license", refused, context=KEY).decision == first.decision


def test_failed_work_is_not_repeated(engine: Engine) -> None:
    executor, ran = counting(ZeroDivisionError())
    first = engine.decide("license", ACCEPTED, executor, KEY)
    assert first.fault is not None
    engine.decide("license", ACCEPTED, executor, KEY)
    assert ran == [first.decision.decision_id]


def test_a_fault_before_any_work_leaves_the_key_to_the_next(settings: Settings) -> None:
    with Engine(replace(settings, opa=OpaLimits(answer_seconds=1e-9)), points=LOADED) as late:
        got = late.decide("license", ACCEPTED, context=KEY)
        assert (codes(got), got.decision.policy is None, got.document is None) == (["policy_unavailable"], False, False)
    with Engine(settings, points=LOADED) as mended:
        assert mended.decide("license", ACCEPTED, context=KEY).decision.outcome == "allow"


class Odd:
    """The state, but for what it is told to do otherwise."""

    def __init__(self, store: Store, **otherwise: Any) -> None:
        self._store, self._otherwise = store, otherwise

    def __getattr__(self, name: str) -> Any:
        return self._otherwise.get(name) or getattr(self._store, name)


def with_store(engine: Engine, change: Callable[[Store], dict[str, Any]]) -> None:
    assert engine.services is not None
    store = engine.services.store
    engine.services = replace(engine.services, store=lambda: cast("Store", Odd(store(), **change(store()))))


def test_an_answer_that_cannot_be_kept_has_a_fault_and_its_key_stays_taken(engine: Engine) -> None:
    def finish(*_: object) -> None:
        raise StateError("the disk is full", remedy="make room")

    with_store(engine, lambda _: {"finish": finish})
    first = engine.decide("license", ACCEPTED, context=KEY)
    assert (first.decision.outcome, first.fault and first.fault.code) == ("allow", "engine.state_unavailable")

    def executor(_permit: Permit, _job: Job) -> Result:
        raise GatherError("of the work", remedy="none", code="engine.own")

    other = engine.decide("license", ACCEPTED, executor, replace(KEY, idempotency_key="other"))
    assert there(other.fault).code == "engine.own"  # the first of two
    assert codes(engine.decide("license", ACCEPTED, context=KEY)) == ["engine.idempotency_pending"]


@pytest.mark.parametrize("what", ["rules", "values"])
def test_an_answer_of_other_rules_or_values_is_stale(what: str, engine: Engine) -> None:
    assert engine.decide("license", ACCEPTED, context=KEY).decision.outcome == "allow"

    def change(store: Store) -> dict[str, Any]:
        other: dict[str, Any] = {what: "sha256:" + "0" * 64}
        return {"begin": lambda *asked: replace(store.begin(*asked), **other)}

    with_store(engine, change)
    assert codes(engine.decide("license", ACCEPTED, context=KEY)) == ["engine.idempotency_stale"]


def test_a_decision_of_an_unknown_policy_is_neither_kept_nor_replayed(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as store:
        bench = Bench(store)

        def ask(key: str) -> Answer:
            context = replace(KEY, idempotency_key=key)
            return run(answer_once(bench.point, ACCEPTED, Mode.ENFORCE, bench.parts(), context))

        known = ask("known")
        assert ask("known").decision == known.decision  # the control
        bench.policy.revisions = None
        assert codes(ask("known")) == ["engine.idempotency_stale"]
        first, again = ask("unknown"), ask("unknown")
        assert (first.decision.outcome, again.decision.outcome) == ("allow", "allow")
        assert first.decision.decision_id != again.decision.decision_id


def test_a_repetition_leaves_no_file_open(engine: Engine) -> None:
    request = {"path": str(BUNDLES / "offline_fixture"), "digest": None}
    assert not leaks(lambda: engine.decide("source", request, context=KEY))


def test_the_allow_that_exhausted_a_budget_is_replayed_to_its_caller(settings: Settings) -> None:
    ceiling = json.dumps({"limit": 1, "window_seconds": 0})
    with Engine(settings, values=(f"budgets.budgets.license.all={ceiling}",), points=LOADED) as engine:
        first = engine.decide("license", ACCEPTED, context=KEY)
        assert engine.decide("license", ACCEPTED, context=KEY).decision == first.decision
        assert codes(engine.decide("license", ACCEPTED)) == ["budget_exhausted"]


@pytest.mark.full(after=1)
@pytest.mark.parametrize("key", ["", "x" * 5000, "\ud800"], ids=["empty", "long", "half a character"])
def test_an_invalid_key_is_refused_and_not_ignored(key: str, engine: Engine) -> None:
    got = engine.decide("license", ACCEPTED, context=replace(KEY, idempotency_key=key))
    assert (got.decision.outcome, codes(got)) == ("deny", ["engine.request_invalid"])


@pytest.mark.full
def test_the_same_archive_sent_again_is_the_same_request(settings: Settings, tmp_path: Path) -> None:
    archives = [Path(shutil.make_archive(str(tmp_path / "a"), "gztar", BUNDLES / "offline_fixture"))]
    archives.append(tmp_path / "b.tar.gz")
    shutil.copy(archives[0], archives[1])

    async def send() -> list[Answer]:
        async with AsyncEngine(settings, points=LOADED) as engine:
            return [await engine.decide_upload(archive, KEY) for archive in archives]

    first, second = asyncio.run(send())
    assert first.decision.outcome == "allow"
    assert second.decision == first.decision


@pytest.mark.full
def test_a_caller_that_is_cancelled_leaves_a_decision_that_is_recorded_and_no_key_taken(settings: Settings) -> None:
    async def hurry() -> int:
        async with AsyncEngine(settings, points=LOADED) as engine:
            gone = 0
            for number in range(60):
                context = replace(KEY, idempotency_key=f"hurry-{number}")
                try:
                    async with asyncio.timeout(number / 20_000):
                        await engine.decide("license", ACCEPTED, context=context)
                except TimeoutError:
                    gone += 1
        async with AsyncEngine(settings, points=LOADED) as engine:
            for number in range(60):
                context = replace(KEY, idempotency_key=f"hurry-{number}")
                assert (await engine.decide("license", ACCEPTED, context=context)).decision.outcome == "allow"
        return gone

    assert asyncio.run(hurry()) > 5
    allowed = [one for one in decisions(settings.state) if one["outcome"] == "allow"]
    assert len(allowed) == 60
    assert verify(settings.state).ok


def test_an_allow_is_not_replayed_after_its_prefix_was_revoked(engine: Engine) -> None:
    control = Context(caller=Caller(via=Via.CONTROL, principal="user:ana"))
    command = ["cargo", "test", "--all"]
    asked = {
        "call": {"name": "shell", "arguments": {"command": command}},
        "policy": "assistant",
        "profile": "coding",
        "cwd": "/work",
    }
    prefix = {"principal": "pipeline", "cwd": "/work", "tool": "shell", "words": command[:2], "seconds": 1000}
    engine.administer({"act": "approve_prefix", "id": "b" * 32, "prefix": prefix}, control)
    first = engine.decide("tool_call", asked, context=KEY)
    assert first.decision.outcome == "allow"
    assert engine.decide("tool_call", asked, context=KEY).decision == first.decision  # the control
    engine.administer({"act": "revoke_prefix", "id": "b" * 32}, control)
    assert codes(engine.decide("tool_call", asked, context=KEY)) == ["engine.idempotency_stale"]


def test_a_call_that_touches_what_its_run_may_touch_is_replayed(engine: Engine) -> None:
    call = {"name": "contacts_list", "arguments": {"search": "jane"}}
    asked = {"call": call, "policy": "assistant", "profile": "coding", "cwd": "/work"}
    named = replace(KEY, run="run-1")
    first = engine.decide("tool_call", asked, context=named)
    assert first.decision.outcome == "allow"
    assert engine.decide("tool_call", asked, context=named).decision == first.decision


def test_an_allow_is_not_replayed_after_a_later_artifact_check_failed(engine: Engine) -> None:
    store, digest = engine.store(), "ab" * 32

    def checked(name: Literal["sandbox", "validation"], *, passed: bool) -> None:
        store.add_artifact_check(ArtifactCheckRow(digest, name, passed, "restricted_process", "d", engine.now()))

    checked("sandbox", passed=True)
    checked("validation", passed=True)
    asked = {"sha256": digest, "kind": "tool"}
    first = engine.decide("artifact", asked, context=KEY)
    assert first.decision.outcome == "allow"
    assert engine.decide("artifact", asked, context=KEY).decision == first.decision  # the control
    checked("validation", passed=False)
    assert codes(engine.decide("artifact", asked, context=KEY)) == ["engine.idempotency_stale"]


def test_a_key_belongs_to_the_request_as_it_was_when_decided(engine: Engine) -> None:
    asked, parts = {**ACCEPTED}, engine.services
    assert parts is not None

    def changed() -> Store:
        asked["purpose"] = "eval"
        return parts.store()

    engine.services = replace(parts, store=changed)
    first = engine.decide("license", asked, context=KEY)
    engine.services = parts
    assert engine.decide("license", ACCEPTED, context=KEY).decision == first.decision
    assert codes(engine.decide("license", asked, context=KEY)) == ["engine.idempotency_conflict"]


class Run:
    """A run of several decisions that ends with one of them, on parts that a test can change."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.runs = 0
        self.fault: EngineError | None = None
        self.made = True

    def whole(self) -> Steps[Answer]:
        self.runs += 1
        if self.fault is not None:
            raise self.fault
        last: Answer = yield from answer(self.bench.point, ACCEPTED, Mode.ENFORCE, self.bench.parts(), KEY)
        return last

    def again(self, kept: Any) -> tuple[Answer, str]:
        decision = parsed(self.bench.point, kept)
        return Answer(decision, None, None), decision.decision_id

    def keep(self, last: Answer) -> tuple[Answer, Any] | None:
        return (last, last.decision.model_dump(mode="json")) if self.made else None

    def unkept(self, last: Answer, error: EngineError) -> Answer:
        return replace(last, fault=error)

    def ask(self, context: Context = KEY, what: str = "all") -> Answer:
        whole = Whole("whole", {"what": what}, self.whole, self.keep, self.again, self.unkept)
        return run(whole_once(whole, self.bench.parts(), context))


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Run]:
    with opened(tmp_path / "state") as store:
        yield Run(Bench(store))


def test_a_whole_run_is_made_once_for_a_key(whole: Run) -> None:
    first = whole.ask()
    assert (first.decision.outcome, whole.ask().decision, whole.runs) == ("allow", first.decision, 1)
    assert isinstance(whole.bench.record.bodies[-1], ReplayRecord)
    whole.ask(replace(KEY, idempotency_key=None))
    assert whole.runs == 2


@pytest.mark.parametrize(
    "changes",
    [{"run": "another"}, {"approval": "a" * 32}, {"caller": KEY.caller.model_copy(update={"points": ("license",)})}],
    ids=str,
)
def test_a_whole_run_of_another_run_approval_or_scope_is_another_request(whole: Run, changes: dict[str, Any]) -> None:
    whole.ask()
    with refused(GatherError, "engine.idempotency_conflict"):
        whole.ask(replace(KEY, **changes))


def test_a_whole_run_of_something_else_is_another_request(whole: Run) -> None:
    whole.ask()
    with refused(GatherError, "engine.idempotency_conflict"):
        whole.ask(what="less")


@pytest.mark.parametrize("what", ["rules", "values"])
def test_a_whole_run_is_not_replayed_under_another_policy(what: str, whole: Run) -> None:
    first = whole.ask()
    whole.bench.policy.revisions = REVISIONS.model_copy(update={what: "sha256:" + "0" * 64})
    with refused(DecideError, "engine.idempotency_stale"):
        whole.ask()
    whole.bench.policy.revisions = REVISIONS
    assert whole.ask().decision == first.decision


def test_a_whole_run_without_a_result_frees_its_key(whole: Run) -> None:
    whole.made = False
    whole.ask()
    whole.made, whole.fault = True, GatherError("before anything", remedy="none", code="engine.own")
    with refused(GatherError, "engine.own"):
        whole.ask()
    whole.fault, whole.bench.policy.revisions = None, None
    whole.ask()  # of an unknown policy
    whole.bench.policy.revisions = REVISIONS
    whole.ask()
    whole.ask()
    assert whole.runs == 4


def test_a_whole_run_that_would_now_be_denied_is_not_replayed(whole: Run) -> None:
    first = whole.ask()
    whole.bench.policy.answer = DENY
    with refused(DecideError, "engine.idempotency_stale"):
        whole.ask()
    whole.bench.policy.answer = ALLOW
    assert whole.ask().decision == first.decision
    whole.bench.store.add_stop(StopRow("all", "", "user:ana", whole.bench.now, id="stop-1"))
    whole.ask()
    assert [stop["id"] for stop in whole.bench.policy.asked[-1]["stops"]] == ["stop-1"]


def test_a_denied_whole_run_is_replayed_without_asking_the_policy(whole: Run) -> None:
    whole.bench.policy.answer = DENY
    first = whole.ask()
    asked = len(whole.bench.policy.asked)
    assert (whole.ask().decision, first.decision.outcome) == (first.decision, "deny")
    assert len(whole.bench.policy.asked) == asked


def test_a_result_of_a_whole_run_that_cannot_be_kept_has_a_fault_and_its_key_stays_taken(
    whole: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def finish(*_: object) -> None:
        raise StateError("the disk is full", remedy="make room")

    monkeypatch.setattr(whole.bench.store, "finish", finish)
    assert there(whole.ask().fault).code == "engine.state_unavailable"
    with refused(GatherError, "engine.idempotency_pending"):
        whole.ask()
    assert whole.runs == 1


def test_without_a_stored_decision_nothing_is_decided_again() -> None:
    assert facts_to_ask(None) is None
