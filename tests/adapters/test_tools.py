"""The gate on a real OPA: what is shown and what runs, for every caller and every format of calls."""

from __future__ import annotations

import asyncio
import copy
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from admission_adapters.tools.executor import CallExecutor, ToolPlaces, measured, result_request
from admission_adapters.tools.gate import AsyncToolGate, ToolGate, ToolValidationError, record_side_effect
from admission_adapters.tools.outcome import Outcome as Ended
from admission_adapters.tools.path import Listed
from admission_adapters.tools.registry import UncuratedToolRegistry
from admission_adapters.tools.request import DEPTH, private_copy
from admission_adapters.tools.result import ToolResult, not_run
from engine.drive import SLOW_CALLS
from engine.engine import AsyncEngine, Engine
from engine.errors import EngineError, GatherError, WorkError
from engine.model import Approval, Caller, Decision, Finding, Level, Limits, Mode, Outcome, Permit, Result, Via
from engine.settings import Settings
from engine.state import open_store
from engine.work import Job
from tests.adapters import isolated_tools
from tests.adapters.gates import AGENT, ASK, OPTIONS, READ, adding, deep, last, reading, registry, results, shapes
from tests.adapters.permits import DIGEST, MISUSED, misused, sealed
from tests.command import lines
from tests.expect import refused

LOADED = frozenset({"tool_call", "tool_contract", "tool_result", "tool_visibility"})
"""The points of these tests: their rules alone are loaded in a third of the time."""


@pytest.fixture(scope="module")
def engine(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings, points=LOADED) as running:
        yield running


class Tools:
    """What was called, with what."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.registry = registry(**{READ: self._list, ASK: self._add, "shell": self._add})

    def _list(self, **arguments: Any) -> str:
        self.calls.append(arguments)
        return f"found {arguments['search']}"

    def _add(self, **arguments: Any) -> dict[str, Any]:
        self.calls.append(arguments)
        return {"added": arguments["name"]}


@pytest.fixture
def tools() -> Tools:
    return Tools()


def gate(engine: Engine, tools: Tools, **options: Any) -> ToolGate:
    return ToolGate(engine, tools.registry, AGENT, **{**OPTIONS, **options})


def names(shown: list[dict[str, Any]]) -> list[str]:
    return [definition["name"] for definition in shown]


def grant(settings: Settings, approval: str | None, by: str = "user:ana") -> None:
    store = open_store(settings.state)
    store.resolve(approval or "", "granted", by, None, 0)
    store.close()


# covers: B01.1 B03.1 B13
def test_only_tools_visible_under_the_policy_are_listed(engine: Engine, tools: Tools) -> None:
    assert ToolGate(engine, tools.registry, AGENT).visible() == []
    assert names(gate(engine, tools).visible()) == sorted([READ, ASK, "shell"])
    assert names(gate(engine, tools, profile="reading").visible()) == [READ]
    assert gate(engine, tools, policy="nobody_knows").visible() == []
    elsewhere = replace(AGENT, caller=Caller(via=Via.TOKEN, principal="agent", points=("license",)))
    assert ToolGate(engine, tools.registry, elsewhere, **OPTIONS).listed() == Listed([], ("caller_out_of_scope",))


# covers: D49.1
def test_shown_definitions_share_no_state_with_the_registry(engine: Engine, tools: Tools) -> None:
    shown = gate(engine, tools).visible()
    before = copy.deepcopy(shown)
    shown[0]["input_schema"]["properties"] = {"path": {}}
    assert gate(engine, tools).visible() == before


def test_a_definition_under_another_name_is_not_shown(engine: Engine) -> None:
    found = registry()
    found.add(READ, print, {"name": ASK, "description": "pretends"})
    assert ToolGate(engine, found, AGENT, **OPTIONS).visible() == []
    found.add(ASK, print, {"name": READ, "description": "pretends too"})
    assert ToolGate(engine, found, AGENT, **OPTIONS).visible() == []


def test_a_call_is_decided_on_with_the_definition_of_its_tool(engine: Engine, tools: Tools) -> None:
    asked: list[Any] = []

    own = ToolGate(Between(engine, "tool_call", before=asked.append), tools.registry, AGENT, **OPTIONS)
    calls: list[dict[str, Any]] = [{"name": name, "arguments": {"search": "x"}} for name in (READ, "unknown", None)]
    assert [own.call(call).status for call in calls] == ["ok", "refused", "refused"]
    assert [one["definition"] for one in asked] == [tools.registry.definition(READ), None, None]


def test_a_call_that_is_allowed_and_not_made_is_refused(engine: Engine, tools: Tools) -> None:
    class Idle:
        def decide(self, point: str, request: Any, _: Any, context: Any = None) -> Any:
            return engine.decide(point, request, lambda *_: Result("done", {}), context)

    result = ToolGate(Idle(), tools.registry, AGENT, **OPTIONS).call(reading())
    assert (result.status, result.code, tools.calls) == ("refused", "engine.work_not_run", [])


class Shown(Limits):
    """Limits that show these tools."""

    visible: tuple[str, ...]


def test_a_permit_cannot_show_tools_outside_the_request(engine: Engine, tools: Tools) -> None:
    def wider(own: Permit) -> Permit:
        return sealed(own.point, Shown(visible=("never_registered", READ)), own.input_digest)

    own = ToolGate(Between(engine, "tool_visibility", wider), tools.registry, AGENT, **OPTIONS)
    assert names(own.visible()) == [READ]


def test_a_reset_stated_by_the_caller_makes_a_call_reversible(engine: Engine, tools: Tools) -> None:
    delete = {"name": "contacts_delete", "arguments": {"name": "jane"}}
    own = registry(contacts_delete=lambda name: name)
    none, reset = {"reset": False, "checkpoint": False}, {"reset": True, "checkpoint": False}
    for environment, missing in ((None, True), (none, True), (reset, False)):
        ToolGate(engine, own, AGENT, **OPTIONS, environment=environment).call(delete)
        assert ("irreversible" in str(last(engine.settings)["findings"])) is missing, environment
    assert tools.calls == []


@pytest.mark.parametrize("shape", shapes("", {}))
def test_a_call_in_any_shape_runs_with_the_decided_arguments(shape: str, engine: Engine, tools: Tools) -> None:
    result = gate(engine, tools).call(shapes(READ, {"search": "é"})[shape])
    assert (result.status, result.content, result.code) == ("ok", "found é", None)
    assert tools.calls == [{"search": "é"}]
    assert results(engine.settings)[-1]["status"] == "done"
    own = gate(engine, tools).call(shapes(READ, {"search": "é"})["own"])
    digests = {
        line["input_digest"]
        for line in lines(engine.settings.state)
        if line.get("decision_id") in {result.decision_id, own.decision_id} and line["kind"] == "decision"
    }
    assert len(digests) == 1  # one input, whatever the shape


# covers: B02.1 B13
def test_under_deny_all_every_call_is_refused_with_its_code(engine: Engine, tools: Tools) -> None:
    for shape in shapes(READ, {"search": "jane"}).values():
        result = ToolGate(engine, tools.registry, AGENT, profile="coding").call(shape)
        assert (result.status, result.code, tools.calls) == ("refused", "denied_by_default", [])
        assert "denied_by_default" in result.content
        assert (last(engine.settings)["outcome"], last(engine.settings)["decision_id"]) == ("deny", result.decision_id)


# covers: B16.1
def test_a_tool_outside_the_profile_leaves_a_result_with_the_reason(engine: Engine, tools: Tools) -> None:
    result = gate(engine, tools, profile="reading").call(adding())
    assert result.status == "refused"
    assert result.code == "tool_not_in_profile"  # what denies comes before what only asks
    assert result.metadata["codes"] == ["tool_not_in_profile", "confirmation_by_default"]
    assert tools.calls == []
    assert "tool_not_in_profile" in {finding["code"] for finding in last(engine.settings)["findings"]}


# covers: B04.1
def test_a_call_that_no_rule_matches_waits_and_runs_once_approved(engine: Engine, tools: Tools) -> None:
    own = gate(engine, tools)
    first = own.call(adding("zoe"))
    assert (first.status, first.code) == ("awaiting_approval", "confirmation_by_default")
    assert own.call(adding("zoe"), first.approval).status == "refused"  # nobody has approved yet
    assert tools.calls == []
    grant(engine.settings, first.approval)
    other = own.call(adding("mallory"), first.approval)
    assert (other.status, "approval_input_changed" in other.metadata["codes"]) == ("refused", True)
    assert tools.calls == []
    done = own.call(shapes(ASK, {"name": "zoe", "email": "nobody"})["anthropic"], first.approval)
    assert (done.status, done.content) == ("ok", '{"added": "zoe"}')
    assert tools.calls == [{"name": "zoe", "email": "nobody"}]
    again = own.call(adding("zoe"), first.approval)
    assert (again.status, "approval_used" in again.metadata["codes"], len(tools.calls)) == ("refused", True, 1)


WITHIN: list[Any] = []
WITHIN.append(WITHIN)


def function(text: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": READ, "arguments": text}}


NO_CALLS: dict[str, Any] = {
    "nothing": None,
    "a number": 7,
    "text": "text",
    "a list": [],
    "an empty object": {},
    "no arguments": {"name": READ},
    "null for arguments": {"name": READ, "arguments": None},
    "not a number": {"name": READ, "arguments": {"search": float("nan")}},
    "bytes": {"name": READ, "arguments": {"search": b"x"}},
    "a key that is a number": {"name": READ, "arguments": {1: "x"}},
    "an object": {"name": READ, "arguments": {"search": object()}},
    "half of a pair": {"name": READ, "arguments": {"search": "half \ud800"}},
    "a name that is a number": {"name": 7, "arguments": {}},
    "a key twice": function('{"search": "a", "search": "b"}'),
    "not a number in text": function('{"search": NaN}'),
    "a hundred thousand levels": function("[" * 100_000),
    "no JSON": function("not JSON"),
    "two names": {"name": READ, "function": {"name": ASK, "arguments": "{}"}},
    "ten megabytes": {"name": READ, "arguments": {"search": "x " * 5_000_000}},
    "a thousand levels": {"name": READ, "arguments": {"search": deep(1_000)}},
    "itself": {"name": READ, "arguments": {"search": WITHIN}},
    "an argument that nobody declared": {"name": READ, "arguments": {"search": "x", "surprise": "y"}},
    "a digit for a letter": {"name": "contacts_1ist", "arguments": {"search": "x"}},
    "a letter of another script": {"name": "contacts_l\u0456st", "arguments": {"search": "x"}},
}


@pytest.mark.parametrize("what", NO_CALLS)
def test_a_malformed_call_is_refused_and_recorded(what: str, engine: Engine, tools: Tools) -> None:
    result = gate(engine, tools).call(NO_CALLS[what])
    assert (result.status, tools.calls) == ("refused", [])
    assert result.code is not None
    assert last(engine.settings)["decision_id"] == result.decision_id


def test_a_tool_that_is_replaced_or_removed_while_its_call_is_decided_is_not_called(
    engine: Engine, tools: Tools
) -> None:
    other = {"name": READ, "description": "another", "input_schema": {"type": "object"}}
    changes: list[Callable[[Any], object]] = [
        lambda _: tools.registry.replace(READ, print, other),
        lambda _: tools.registry.remove(READ),
    ]
    for change in changes:
        own = ToolGate(Between(engine, "tool_call", before=change), tools.registry, AGENT, **OPTIONS)
        result = own.call(reading())
        assert (result.status, tools.calls) == ("refused", [])
        assert result.code in {"engine.tool_changed", "engine.tool_missing"}


def test_an_async_tool_shares_the_loop_and_the_context_of_its_caller(settings: Settings) -> None:
    from contextvars import ContextVar

    language: ContextVar[str] = ContextVar("language")
    seen: list[Any] = []

    async def listing(search: str) -> str:
        seen.append((asyncio.get_running_loop(), language.get(None)))
        record_side_effect("read", id="contacts")
        await asyncio.sleep(0)
        return search

    async def both() -> Any:
        language.set("fr")
        async with AsyncEngine(settings, points=LOADED) as running:
            found = registry(**{READ: listing})
            for on_loop in ((READ,), ()):
                own = AsyncToolGate(running, found, AGENT, **OPTIONS, on_loop=on_loop)
                assert (await own.call(reading())).status == "ok"
        return asyncio.get_running_loop()

    loop = asyncio.run(both())
    assert seen[0] == (loop, "fr")
    assert seen[1][0] is not loop
    assert [effect["id"] for effect in results(settings)[0]["facts"]["side_effects"]] == ["contacts"]


@pytest.mark.parametrize("value", [None, True, False, 7, 1.5, "text", [], {}, {"a": [None, True, False, {"b": 1}]}])
def test_json_values_are_copied_unchanged(value: Any) -> None:
    for whole in (value, [value], {"key": value}):
        found = private_copy(whole)
        assert (type(found), repr(found)) == (type(whole), repr(whole))
    assert private_copy((value,)) == [value]


class Word(str):
    """Text that two readers could read differently."""

    __slots__ = ()


NO_JSON: dict[str, Any] = {
    "a set": {1},
    "bytes": b"x",
    "an iterator": iter("x"),
    "text of its own class": Word("x"),
    "an object of its own class": type("Own", (dict,), {})(),
    "a number of its own class": type("Own", (int,), {})(),
    "a key that is a number": {1: "x"},
    "a key of its own class": {Word("x"): 1},
    "a key that is a number among others": {"x": 1, 2: 3},
}


@pytest.mark.parametrize("what", NO_JSON)
def test_a_value_without_a_json_form_is_not_copied(what: str) -> None:
    for whole in (NO_JSON[what], [NO_JSON[what]], {"key": NO_JSON[what]}):
        with pytest.raises(GatherError, match=r"(a key is not text|it contains a value that has no JSON form)$"):
            private_copy(whole)


def test_the_levels_of_a_copy_are_bounded_exactly() -> None:
    assert private_copy(deep(DEPTH)) == deep(DEPTH)
    with pytest.raises(GatherError, match="nested too deeply"):
        private_copy(deep(DEPTH + 1))


def test_later_changes_of_the_arguments_do_not_affect_a_call(engine: Engine, tools: Tools) -> None:
    """The caller changes its own request while the engine decides; the tool changes what it was given."""
    call = reading("decided")

    meanwhile = Between(engine, "tool_call", before=lambda _: call["arguments"].update(search="changed"))

    def tool(search: list[str]) -> list[str]:
        tools.calls.append({"search": list(search)})
        search.append("more")
        return search

    result = ToolGate(meanwhile, tools.registry, AGENT, **OPTIONS).call(call)
    assert (result.content, tools.calls) == ("found decided", [{"search": "decided"}])
    own = {"name": READ, "arguments": {"search": ["a"]}}
    twice = ToolGate(engine, registry(**{READ: tool}), AGENT, **OPTIONS)
    assert [twice.call(own).content for _ in range(2)] == ['["a", "more"]'] * 2
    assert own == {"name": READ, "arguments": {"search": ["a"]}}


def test_a_tool_that_is_allowed_and_not_registered_is_refused(engine: Engine) -> None:
    result = ToolGate(engine, registry(), AGENT, **OPTIONS).call(reading())
    assert (result.status, result.code) == ("refused", "engine.tool_missing")


class Wide(Limits):
    """Limits that let READ be called."""

    tool: str = READ
    seconds: int = 9
    result_bytes: int = 9
    side_effects: tuple[str, ...] = ()
    record_side_effect: bool = False


SEALED = sealed("tool_call", Wide())
FORGED = {**misused(SEALED), "wider limits": replace(SEALED, limits=Wide(seconds=99))}


class Opened:
    """A call of READ as it was decided on."""

    tool, arguments = READ, {"search": "x"}

    def close(self) -> None:
        """Nothing was opened."""


@pytest.mark.parametrize("what", FORGED)
def test_the_executor_calls_nothing_without_the_permit_for_this_call(what: str, tools: Tools) -> None:
    executor = CallExecutor(tools.registry, ToolPlaces(), READ, tools.registry.definition(READ))
    with refused(WorkError, "engine.permit_missing"):
        executor(FORGED[what], Job(DIGEST, Opened()))
    assert (tools.calls, executor.outcome) == ([], None)
    assert executor(SEALED, Job(DIGEST, Opened())).status == "done"  # the control
    assert tools.calls == [{"search": "x"}]


@pytest.mark.parametrize("limits", [Limits(), None])
def test_the_executor_refuses_unknown_limits(limits: Any, tools: Tools) -> None:
    executor = CallExecutor(tools.registry, ToolPlaces(), READ, tools.registry.definition(READ))
    with refused(WorkError, "engine.limit_unenforceable"):
        executor(sealed("tool_call", limits), Job(DIGEST, Opened()))
    assert tools.calls == []


@pytest.mark.parametrize(("granted", "looked_up"), [(ASK, READ), (READ, ASK), (READ, None), (ASK, ASK)])
def test_the_executor_calls_only_the_decided_and_resolved_tool(
    granted: str, looked_up: str | None, tools: Tools
) -> None:
    executor = CallExecutor(tools.registry, ToolPlaces(), looked_up, tools.registry.definition(READ))
    with refused(WorkError, "engine.permit_missing"):
        executor(sealed("tool_call", Wide(tool=granted)), Job(DIGEST, Opened()))
    assert tools.calls == []


def test_a_permit_is_for_one_call(tools: Tools) -> None:
    executor = CallExecutor(tools.registry, ToolPlaces(), READ, tools.registry.definition(READ))
    executor(SEALED, Job(DIGEST, Opened()))
    with refused(WorkError, "engine.permit_missing"):
        executor(SEALED, Job(DIGEST, Opened()))
    assert len(tools.calls) == 1


@pytest.mark.parametrize(
    ("outcome", "approval", "levels", "wanted"),
    [
        (
            Outcome.DENY,
            None,
            "dw",
            ("refused", "code-d", None, "refused: code-d\n- code-d. Required: must hold. Fix: none."),
        ),
        (
            Outcome.DENY,
            "id",
            "d",
            ("refused", "code-d", None, "refused: code-d\n- code-d. Required: must hold. Fix: none."),
        ),
        (
            Outcome.CONFIRM,
            "id",
            "wc",
            (
                "awaiting_approval",
                "code-c",
                "id",
                "approval id of a person: code-c\n- code-c. Required: must hold. Fix: none.",
            ),
        ),
        (
            Outcome.CONFIRM,
            None,
            "c",
            (
                "awaiting_approval",
                "code-c",
                None,
                "approval None of a person: code-c\n- code-c. Required: must hold. Fix: none.",
            ),
        ),
        (Outcome.DENY, None, "w", ("refused", "engine.work_not_run", None, "is refused: engine.work_not_run")),
    ],
    ids=["deny", "deny with an approval", "confirm", "confirm without an approval", "a warning alone"],
)
def test_a_refused_or_pending_call_reports_its_reasons(
    outcome: Outcome, approval: str | None, levels: str, wanted: tuple[str, str, str | None, str]
) -> None:
    kinds = {"d": Level.DENY, "c": Level.CONFIRM, "w": Level.WARN}
    decision = Decision(
        decision_id="d",
        point="tool_call",
        mode=Mode.ENFORCE,
        outcome=outcome,
        findings=tuple(
            Finding(code=f"code-{one}", level=kinds[one], requirement="must hold", subject=None, remedy="none")
            for one in levels
        ),
        limits=None,
        policy=None,
        input_digest=None,
        approval=Approval(id=approval, state="requested", expires_at="1970-01-01T00:00:01Z") if approval else None,
    )
    result = not_run(decision)
    assert (result.status, result.code, result.approval) == wanted[:3]
    assert result.content.endswith(wanted[3])
    assert result.metadata["codes"] == [wanted[1]]


@pytest.mark.parametrize(
    ("error", "mode", "sent"),
    [
        (OSError("words"), "safe", {}),
        (OSError("words"), "debug", {"message": "words"}),
        (ToolValidationError("wrong", "words"), "safe", {"code": "wrong", "message": "words"}),
        (ToolValidationError("wrong", "words"), "debug", {"code": "wrong", "message": "words"}),
    ],
)
def test_an_error_message_is_decided_on_only_if_it_would_be_shown(
    error: Exception, mode: str, sent: dict[str, str], tools: Tools
) -> None:
    outcome = Ended.failed(error)
    request = result_request(
        CallExecutor(tools.registry, ToolPlaces(), READ, tools.registry.definition(READ)), outcome, "d", mode
    )
    assert request["error"] == measured(outcome)["error"] | sent


class Between:
    """An engine at one point of which something happens before, the executor's permit changes, or a fault comes."""

    def __init__(
        self,
        engine: Engine,
        at: str,
        permit: Callable[[Permit], Permit] = lambda own: own,
        fault: EngineError | None = None,
        before: Callable[[Any], object] = lambda _: None,
    ) -> None:
        self._engine, self._at, self._permit, self._fault, self._before = engine, at, permit, fault, before

    def decide(self, point: str, request: Any, executor: Any, context: Any = None) -> Any:
        if point != self._at:
            return self._engine.decide(point, request, executor, context)
        self._before(request)
        answer = self._engine.decide(point, request, lambda own, job: executor(self._permit(own), job), context)
        return answer if self._fault is None else replace(answer, fault=self._fault)


@pytest.mark.parametrize("wrong", MISUSED)
def test_each_executor_of_the_gate_demands_its_own_permit(wrong: str, engine: Engine, tools: Tools) -> None:
    def meddled(at: str, permit: Callable[[Permit], Permit] = lambda own: misused(own)[wrong]) -> ToolGate:
        return ToolGate(Between(engine, at, permit), tools.registry, AGENT, **OPTIONS)

    assert meddled("tool_visibility").visible() == []
    result = meddled("tool_call").call(reading())
    assert (result.status, result.code, tools.calls) == ("refused", "engine.permit_missing", [])
    result = meddled("tool_result").call(reading("secret text"))
    assert (result.status, result.code, len(tools.calls)) == ("error", "engine.permit_missing", 1)
    assert "secret text" not in result.content
    for point in ("tool_visibility", "tool_call", "tool_result"):  # the control: the permit as it was given
        own = meddled(point, lambda given: given)
        assert (names(own.visible()), own.call(reading()).status) == (sorted([READ, ASK, "shell"]), "ok")


@pytest.mark.parametrize("at", ["tool_call", "tool_result"])
def test_a_fault_after_the_call_withholds_its_result(at: str, engine: Engine, tools: Tools) -> None:
    fault = EngineError("disk full", remedy="none", code="engine.record_unavailable")
    result = ToolGate(Between(engine, at, fault=fault), tools.registry, AGENT, **OPTIONS).call(reading("secret text"))
    assert (result.status, result.code, len(tools.calls)) == ("error", "engine.record_unavailable", 1)
    assert "secret text" not in result.content


def test_a_visibility_fault_shows_no_tool(engine: Engine, tools: Tools) -> None:
    fault = EngineError("disk full", remedy="none", code="engine.record_unavailable")
    assert ToolGate(Between(engine, "tool_visibility", fault=fault), tools.registry, AGENT, **OPTIONS).visible() == []


def test_a_failing_engine_yields_refused_results(tools: Tools, engine: Engine, tmp_path: Path) -> None:
    class Broken:
        def __init__(self, error: Exception) -> None:
            self._error = error

        def decide(self, *_: Any) -> NoReturn:
            raise self._error

    for error, code in (
        (GatherError("no", remedy="none"), "engine.input_unreadable"),
        (ZeroDivisionError(), "engine.internal"),
    ):
        own = ToolGate(Broken(error), tools.registry, AGENT, **OPTIONS)
        assert (own.call(reading()).code, own.call(reading()).status, own.visible()) == (code, "refused", [])
    closed = ToolGate(Engine(engine.settings, points=LOADED), tools.registry, AGENT, **OPTIONS)
    assert (closed.call(reading()).status, closed.visible()) == ("refused", [])
    (tmp_path / "records").write_text("a file where the folder should be")
    with Engine(replace(engine.settings, state=tmp_path), points=LOADED) as unrecorded:
        own = gate(unrecorded, tools)
        assert (own.call(reading()).status, own.visible()) == ("refused", [])
    assert tools.calls == []
    assert gate(engine, tools).call(reading()).status == "ok"  # the control


def test_an_idempotency_key_of_the_caller_is_not_used_for_its_tools(engine: Engine, tools: Tools) -> None:
    own = ToolGate(engine, tools.registry, replace(AGENT, idempotency_key="key-1"), **OPTIONS)
    assert [own.call(reading(word)).content for word in ("a", "b", "a")] == ["found a", "found b", "found a"]


class _Stop(BaseException):
    """What a handler of signals raises."""


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, _Stop])
def test_side_effects_are_recorded_when_the_wait_is_interrupted(stop: type[BaseException], engine: Engine) -> None:
    release = threading.Event()

    def tool(search: str) -> None:
        record_side_effect("read", id=search)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        release.wait(60)

    def handler(*_: Any) -> NoReturn:
        raise stop

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(stop):
            ToolGate(engine, registry(**{READ: tool}), AGENT, **OPTIONS).call(reading("begun"))
    finally:
        signal.signal(signal.SIGUSR1, before)
        release.set()
    told = results(engine.settings)[-1]
    assert (told["status"], told["facts"]["side_effects"]) == ("failed", [{"id": "begun", "class": "read"}])


def test_a_registry_that_fails_gives_a_result_that_is_recorded(engine: Engine) -> None:
    class Broken(UncuratedToolRegistry):
        def names(self) -> NoReturn:
            raise ZeroDivisionError

    own = ToolGate(engine, Broken(), AGENT, **OPTIONS)
    result = own.call(reading())
    assert (result.status, result.code, own.visible()) == ("refused", "engine.internal", [])
    assert last(engine.settings)["decision_id"] == result.decision_id


def test_a_single_name_is_not_accepted_as_a_list_of_names(engine: Engine, tools: Tools) -> None:
    for option in ("isolated", "on_loop"):
        with pytest.raises(TypeError):
            gate(engine, tools, **{option: READ})


def test_a_gate_without_a_run_is_one(engine: Engine, tools: Tools) -> None:
    runs = []
    for run in (None, None, "run-7"):
        ToolGate(engine, tools.registry, replace(AGENT, run=run), **OPTIONS).call(reading())
        runs.append(last(engine.settings)["run"])
    assert (len({*runs}), runs[-1]) == (3, "run-7")


def test_the_async_gate_lists_calls_and_waits_for_approval(settings: Settings, tools: Tools) -> None:
    async def waiting(search: str) -> str:
        await asyncio.sleep(0)
        tools.calls.append({"search": search})
        return f"found {search}"

    async def run() -> None:
        async with AsyncEngine(settings, points=LOADED) as engine:
            own = AsyncToolGate(engine, tools.registry, AGENT, **OPTIONS)
            assert names(await own.visible()) == sorted([READ, ASK, "shell"])
            done = await asyncio.gather(*(own.call(reading(str(number))) for number in range(20)))
            assert [one.content for one in done] == [f"found {number}" for number in range(20)]
            assert sorted(int(one["search"]) for one in tools.calls) == list(range(20))
            other = AsyncToolGate(engine, registry(**{READ: waiting}), AGENT, **OPTIONS)
            assert (await other.call(reading("x"))).content == "found x"
            denied = await AsyncToolGate(engine, tools.registry, AGENT).call(reading())
            assert (denied.status, denied.code) == ("refused", "denied_by_default")
            asked = await own.call(adding())
            assert asked.approval is not None
            await asyncio.to_thread(grant, settings, asked.approval)
            both = await asyncio.gather(*(own.call(adding(), asked.approval) for _ in range(2)))
            assert sorted(one.status for one in both) == ["ok", "refused"]

    asyncio.run(run())


def test_slow_or_nested_tools_do_not_delay_decisions(settings: Settings) -> None:
    """More of them than there are threads that read."""
    many = SLOW_CALLS + 4

    async def run() -> None:
        loop = asyncio.get_running_loop()
        async with AsyncEngine(settings, points=LOADED) as engine:
            inner = AsyncToolGate(engine, registry(**{READ: lambda search: search}), AGENT, **OPTIONS)
            together = threading.Barrier(many)

            def nested(search: str) -> str:
                together.wait(20)
                return asyncio.run_coroutine_threadsafe(inner.call(reading(search)), loop).result(20).content

            outer = AsyncToolGate(engine, registry(**{READ: nested}), AGENT, **OPTIONS)
            done = await asyncio.gather(*(outer.call(reading(str(number))) for number in range(many)))
            assert [one.content for one in done] == [str(number) for number in range(many)]

    asyncio.run(run())


def test_a_loop_shutdown_waits_for_the_running_tool_and_its_record(settings: Settings) -> None:
    begun, release = threading.Event(), threading.Event()

    def tool(search: str) -> str:
        record_side_effect("read", id="before")
        begun.set()
        release.wait(20)
        record_side_effect("read", id="after")
        return search

    async def run() -> None:
        async with AsyncEngine(settings, points=LOADED) as engine:
            own = AsyncToolGate(engine, registry(**{READ: tool}), AGENT, **OPTIONS)
            calling = asyncio.ensure_future(own.call(reading()))
            await asyncio.to_thread(begun.wait, 20)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            asyncio.get_running_loop().call_later(0.1, release.set)
            await asyncio.wait([calling])
            assert calling.cancelled()

    asyncio.run(run())
    assert [one["id"] for one in results(settings)[-1]["facts"]["side_effects"]] == ["before", "after"]


@pytest.mark.parametrize("seconds", [1, 60])
def test_a_hanging_tool_does_not_block_the_event_loop(seconds: int, settings: Settings) -> None:
    begun, release = threading.Event(), threading.Event()

    async def blocking(search: str) -> str:
        begun.set()
        release.wait(60)
        return search

    async def run() -> ToolResult:
        async with AsyncEngine(settings, values=(f"tools.limits.seconds={seconds}",), points=LOADED) as engine:
            own = AsyncToolGate(engine, registry(**{READ: blocking}), AGENT, **OPTIONS)
            calling = asyncio.ensure_future(own.call(reading()))
            if seconds == 60:
                assert await asyncio.to_thread(begun.wait, 60)
                for _ in range(10):
                    await asyncio.sleep(0.01)
                assert not calling.done()
                release.set()
            return await calling

    result = asyncio.run(run())
    release.set()
    hung, done = ("error", "the tool failed with ToolTimeoutError", "timed_out"), ("ok", "jane", "done")
    assert (result.status, result.content, results(settings)[-1]["status"]) == (done if seconds == 60 else hung)


def test_an_isolated_tool_runs_in_its_own_process(engine: Engine) -> None:
    def here(search: str) -> str:
        return search

    own = ToolGate(
        engine,
        registry(**{READ: isolated_tools.find}),
        AGENT,
        **OPTIONS,
        isolated=[READ],
        process_environment={"KNOWN": "yes"},
    )
    result = own.call(reading("KNOWN"))
    assert (result.status, result.content) == ("ok", "yes")
    assert results(engine.settings)[-1]["facts"]["side_effects"] == [{"id": "environment", "class": "read"}]
    local = ToolGate(engine, registry(**{READ: here}), AGENT, **OPTIONS, isolated=[READ])
    refused = local.call(reading())
    assert (refused.status, refused.code) == ("refused", "engine.tool_not_importable")
