"""Equal cases share an answer: each keeps its record, and whatever is not certain is asked."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from engine.drive import BATCH_ITEMS, run, run_async
from engine.engine import Engine
from engine.errors import DecideError
from engine.flow import Answer, Context
from engine.model import Caller, Mode, Outcome, Via
from engine.opa.reply import Reply
from engine.opa.sharing import CHECKED, KEY_BYTES, LARGE, WORTH, Request, SharedAnswers, answers, many
from engine.policy_bundle.serving import Unavailable
from engine.settings import OpaLimits, Settings
from tests.processes import until

EVENTS: list[tuple[str, Mapping[str, Any]]] = []


def request(number: int, license_: str = "MIT", taken: int = 1) -> dict[str, Any]:
    """A license question about content of its own."""
    content = hashlib.sha256(f"{number}".encode()).hexdigest()
    decisions = [{"sha256": content, "decision": "accepted", "decided_at": "2026-11-01T10:00:00Z"}]
    return {
        "purpose": "train",
        "export_license": "CC-BY-4.0",
        "license": license_,
        "sha256": content,
        "decisions": decisions[:taken],
    }


@contextmanager
def learned(settings: Settings, kept: int = 8_192, values: tuple[str, ...] = ()) -> Iterator[Engine]:
    """An engine that knows what point `license` reads; none of the requests that taught it is asked again."""
    EVENTS.clear()
    own = replace(settings, opa=OpaLimits(shared_answers=kept))
    points = frozenset({"license"})
    with Engine(own, values=values, points=points, on_event=lambda *event: EVENTS.append(event)) as engine:
        teaching = [{**request(number), "purpose": "eval"} for number in range(WORTH)]
        engine.decide_many("license", teaching, mode=Mode.CHECK)
        if kept:
            until(lambda: of(engine).finds("license"))
        yield engine


def of(engine: Engine) -> SharedAnswers:
    assert not isinstance(engine.opa, Unavailable)
    assert engine.opa.shared is not None
    return engine.opa.shared


@contextmanager
def counted(engine: Engine) -> Iterator[list[int]]:
    """The number of inputs of each question to OPA."""
    asked: list[int] = []
    generation: Any = engine.opa
    ask = generation.ask

    def counting(rule: str, document: dict[str, Any], seconds: float | None = None) -> Any:
        asked.append(len(document.get("items", [document])))
        return ask(rule, document, seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generation, "ask", counting)
        yield asked


def lines(engine: Engine) -> dict[str, dict[str, Any]]:
    found = {}
    for path in (engine.settings.state / "records").rglob("decisions.*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            body = entry.get("body", entry)
            if body.get("kind") == "decision":
                found[body["decision_id"]] = body
    return found


def shown(answer: Answer) -> Any:
    """A decision without what is of this request alone."""
    return answer.decision.model_dump(mode="json", exclude={"decision_id", "input_digest"})


def test_equal_requests_are_evaluated_once_and_recorded_each(settings: Settings) -> None:
    requests = [request(number, ("MIT", "GPL-3.0-only")[number % 2], number // 2 % 2) for number in range(60)]
    with learned(settings) as engine, counted(engine) as asked:
        answers = engine.decide_many("license", requests)
        answers += [engine.decide("license", request(number)) for number in range(100, 105)]
        answers += asyncio.run(_apart(engine, requests))
        written = lines(engine)
    assert sum(asked) == 4  # two licenses, with a decision and without
    with learned(replace(settings, state=settings.state / "apart"), kept=0) as engine, counted(engine) as asked:
        assert [shown(one) for one in engine.decide_many("license", requests)] == [shown(one) for one in answers[:60]]
    assert sum(asked) == len(requests)
    ids = [one.decision.decision_id for one in answers]
    sources = {one: written[one].get("shared_from") for one in ids}
    assert len({*ids}) == len(ids)
    assert len({one.decision.input_digest for one in answers}) == 65
    assert len([source for source in sources.values() if source is None]) == 4
    for one, source in sources.items():
        if source is not None:
            assert written[source].get("shared_from") is None
            assert written[source]["outcome"] == written[one]["outcome"]


def test_equal_requests_are_evaluated_once_across_the_chunks_of_a_batch(settings: Settings) -> None:
    requests = [request(number, ("MIT", "GPL-3.0-only")[number % 2]) for number in range(3 * BATCH_ITEMS)]
    with learned(settings) as engine, counted(engine) as asked:
        answers = engine.decide_many("license", requests)
        checked = of(engine)._shared // CHECKED
    assert [one.decision.outcome for one in answers[:4]] == [Outcome.ALLOW, Outcome.DENY] * 2
    assert sum(asked) == 2 + checked


async def _apart(engine: Engine, requests: list[Any]) -> list[Answer]:
    return [await run_async(engine._steps("license", one, Mode.ENFORCE, Context(), None)) for one in requests[:10]]


def test_requests_that_differ_in_a_read_fact_are_evaluated_separately(settings: Settings) -> None:
    """Each pair differs in one thing, and both are asked."""
    base = request(1)
    other = hashlib.sha256(b"other").hexdigest()
    late = [{**base["decisions"][0], "decided_at": "2096-11-01T10:00:00Z"}]
    changed = [
        {**base, "purpose": "share"},
        {**base, "license": "GPL-3.0-only"},
        {**base, "export_license": "MIT"},
        {**base, "decisions": []},
        {**base, "decisions": [{**base["decisions"][0], "sha256": other}]},
        {**base, "decisions": late},
        {**base, "decisions": [{**base["decisions"][0], "decision": "incompatible"}]},
        {**base, "decisions": base["decisions"] * 2},
    ]
    with learned(settings) as engine, counted(engine) as asked:
        engine.decide("license", base)
        for number, one in enumerate(changed, 2):
            engine.decide("license", one)
            assert sum(asked) == number, one
        engine.decide("license", base, context=Context(caller=Caller(via=Via.CONTROL, principal="ann")))
        assert sum(asked) == len(changed) + 2


def test_large_inputs_do_not_trigger_the_analysis_of_a_point() -> None:
    found: list[str] = []
    shared = SharedAnswers(8, found.append)
    large: Request = ({"point": "source", "records": ["x" * LARGE]}, "a")
    assert shared.split([large] * 2 * WORTH).asked == [*range(2 * WORTH)]
    small: Request = ({"point": "license", "records": ["x" * KEY_BYTES]}, "a")
    assert shared.split([small] * WORTH).asked == [*range(WORTH)]
    until(lambda: bool(found))
    assert found == ["license"]


def test_every_request_is_evaluated_if_the_analysis_of_its_point_fails() -> None:
    tried: list[str] = []

    def find(point: str) -> None:
        tried.append(point)
        raise EOFError("OPA's plan was removed while it was read")

    shared = SharedAnswers(8, find)
    small: Request = ({"point": "license"}, "a")
    assert shared.split([small] * WORTH).asked == [*range(WORTH)]
    until(lambda: bool(tried) and all(one.name != "opa-reads" for one in threading.enumerate()))
    assert shared.split([small] * WORTH).asked == [*range(WORTH)]
    assert tried == ["license"]


def test_requests_that_consume_a_budget_are_not_shared(settings: Settings) -> None:
    limit = ('budgets.budgets.license.all={"limit": 3, "window_seconds": 0}',)
    with learned(settings, values=limit) as engine:
        answers = [engine.decide("license", request(number)) for number in range(3)]
        answers += engine.decide_many("license", [request(number) for number in range(3, 6)])
    assert [one.decision.outcome for one in answers] == [Outcome.ALLOW] * 3 + [Outcome.DENY] * 3


def test_a_difference_ends_sharing(settings: Settings) -> None:
    """A fault in what is found to be read: one of the checked answers shows it, and from then on all are right."""
    with learned(settings) as engine:
        whole = of(engine)._projections["license"]

        class Holed:
            def canonical(self, document: Mapping[str, Any]) -> Any:
                assert whole is not None
                return whole.canonical({**document, "license": {}})

        of(engine)._projections["license"] = cast("Any", Holed())
        engine.decide("license", request(0))
        wrong = 0
        for number in range(1, CHECKED + 1):
            answer = engine.decide("license", request(number, "GPL-3.0-only"))
            wrong += answer.decision.outcome is Outcome.ALLOW
        assert wrong == CHECKED - 1
        assert [one.code for one in answer.decision.findings] == ["license_incompatible"]  # asked again, whole
        assert not of(engine).finds("license")
        assert [fields["point"] for name, fields in EVENTS if name == "sharing_ended"] == ["license"]
        for one in engine.decide_many("license", [request(number, "GPL-3.0-only") for number in range(5)]):
            assert one.decision.outcome is not Outcome.ALLOW


@pytest.mark.own_opa
def test_without_opa_nothing_is_answered(settings: Settings) -> None:
    with learned(settings) as engine:
        generation: Any = engine.opa
        assert engine.decide("license", request(1)).decision.outcome is Outcome.ALLOW
        generation.server.kill()
        until(lambda: not generation.alive)
        assert generation.shared is None
        late = run(engine._steps("license", request(2), Mode.ENFORCE, Context(), None))
        until(lambda: engine.opa is not generation)
        assert not of(engine).finds("license")  # the next OPA answers for itself
    assert late.decision.outcome is Outcome.ALLOW or late.decision.findings[0].code == "policy_unavailable"


def test_errors_are_not_kept() -> None:
    shared = SharedAnswers(8, lambda _: cast("Any", Whole()))
    shared._projections["license"] = cast("Any", Whole())
    requests: list[Request] = [({"point": "license"}, "a"), ({"point": "license"}, "b")]
    split = shared.split(requests)
    failed = DecideError("no answer", remedy="none", code="policy_unavailable")
    assert shared.joined(split, [failed]) == [failed, failed]
    assert shared.split(requests).asked == [0]
    bodies: list[dict[str, Any]] = [{}, {"result": {}}, {"result": "outcome"}, {"result": ["outcome"]}]
    for body in bodies:
        assert shared.joined(shared.split(requests), [Reply(body)]) is not None
        assert shared.split(requests).asked == [0]


@pytest.mark.parametrize("body", [{}, {"result": {"outcome": "deny"}}])
def test_any_other_answer_to_a_checked_case_ends_sharing(body: dict[str, Any]) -> None:
    ended: list[str] = []
    shared = SharedAnswers(8, lambda _: None, ended.append)
    shared._projections["license"] = cast("Any", Whole())
    case: list[Request] = [({"point": "license"}, "a")]
    for reply in [Reply({"result": {"outcome": "allow"}})] * 2 + [Reply(body)]:
        shared._shared = CHECKED - 1
        answered = shared.joined(shared.split(case), [reply])
    assert answered is None
    assert ended == ["license"]
    assert shared.split(case * 2).asked == [0, 1]


def test_the_least_recently_used_answer_makes_room() -> None:
    shared = SharedAnswers(2, lambda _: None)
    shared._projections["license"] = cast("Any", Whole())
    for number in (1, 2, 1, 3):
        split = shared.split([({"point": "license", "number": number}, str(number))])
        shared.joined(split, [Reply({"result": {"outcome": "deny"}})] * len(split.asked))
    assert [shared.split([({"point": "license", "number": number}, "x")]).asked for number in (1, 2, 3)] == [
        [],
        [0],
        [],
    ]


class Whole:
    """Reads everything."""

    def canonical(self, document: Mapping[str, Any]) -> dict[str, Any]:
        return dict(document)


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (128, [128]), (129, [65, 64]), (300, [100, 100, 100])])
def test_parallel_chunks_have_about_the_same_size(count: int, sizes: list[int]) -> None:
    questions: list[Any] = next(answers(None, [({}, "")] * count, many, 128), [])
    assert [len(document["items"]) for _, document in questions] == sizes
