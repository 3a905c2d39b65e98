"""An adapter behind its envelopes, in process: what is admitted, what is rejected, and how rejections are counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from admission_adapters.shim.host import REJECTED, AdapterHost
from admission_adapters.shim.tools import ToolAdapter
from admission_adapters.tools.gate import ToolGate
from admission_adapters.tools.registry import ToolRegistry, UncuratedToolRegistry
from engine.adapter_admissions import AdapterAdmissions
from engine.engine import AsyncEngine, Engine
from engine.errors import WorkError
from engine.model import Outcome
from engine.settings import Settings
from tests.adapters import contact_tools
from tests.adapters.gates import AGENT, OPTIONS, last
from tests.adapters.shims import SCHEMAS, SOURCE, VALUES, admitted_source, curated, hosted, manifest
from tests.command import lines
from tests.expect import refused

CANARY = "canary-4f1d-of-nobody"


@pytest.fixture(scope="module")
def engine(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings, values=VALUES, enable_mcp_adapter=True) as running:
        yield running


class Own:
    """An adapter that answers what a function makes of a right answer, or raises an error."""

    def __init__(self, change: Callable[[dict[str, Any]], Any] | BaseException) -> None:
        self._change = change
        self.asked: list[dict[str, Any]] = []

    def handle(self, envelope: dict[str, Any]) -> Any:
        self.asked.append(envelope)
        if isinstance(self._change, BaseException):
            raise self._change
        result = {name: envelope[name] for name in ("format", "manifest", "operation", "tool")}
        result |= {"request": envelope["id"], "status": "ok", "content": CANARY, "code": None, "approval": None}
        return self._change(result)


def codes(answer: Any) -> list[str]:
    return [finding.code for finding in answer.decision.findings]


# covers: A45.1 A46
def test_the_tools_of_an_admitted_manifest_are_listed_and_called(engine: Engine) -> None:
    host = hosted(engine)
    listed = host.call("tools/list")
    assert [one["name"] for one in listed.content] == sorted(SCHEMAS)
    assert host.call("tools/call", "contacts_list", {"search": "A"}).content == '["Ada"]'
    assert (host.call("tools/call", "contacts_list", {"search": "Z"}).content, host.failures) == ("[]", {})


# covers: B28.2
def test_a_truncated_result_is_marked(settings: Settings) -> None:
    with Engine(settings, values=(*VALUES, "tools.limits.result_bytes=6"), enable_mcp_adapter=True) as running:
        answer = hosted(running).call("tools/call", "contacts_list", {"search": "A"})
    assert (answer.status, answer.content) == ("ok", '["Ada"\n[cut here; the whole text has 7 bytes]')


# covers: A43.1 A98.2
@pytest.mark.parametrize("switch", [False, None, 1, "true", "True", [True], object], ids=str)
def test_only_the_boolean_true_enables_adapters(switch: Any) -> None:
    assert AdapterAdmissions(switch).facts().enabled is False
    assert AdapterAdmissions(True).facts().enabled is True  # noqa: FBT003  (the control)


# covers: A43.1 A98.1 A98.3
def test_without_the_switch_every_adapter_and_every_envelope_is_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ENABLE_MCP_ADAPTER", "ENGINE_ENABLE_MCP_ADAPTER", "enable_mcp_adapter"):
        monkeypatch.setenv(name, "1")
    with Engine(settings, values=(*VALUES, "adapters.may_be_enabled=true")) as engine:
        document = manifest(admitted_source(engine))
        answer = engine.admit_adapter(document, curated(engine), AGENT)
        assert (answer.decision.outcome, codes(answer)) == (Outcome.DENY, ["adapter_disabled"])
        own = Own(lambda result: result)
        got = AdapterHost(engine, own, "sha256:" + "0" * 64, AGENT).call("tools/list")
        assert (got.status, got.code, got.failure_class) == ("rejected", "adapter_disabled", "policy")
        assert (got.decision_id, own.asked) == (last(settings, "adapter_envelope")["decision_id"], [])


async def _async_verbs(settings: Settings) -> list[Outcome]:
    async with AsyncEngine(settings, values=VALUES, enable_mcp_adapter=True) as engine:
        source = await engine.admit_environment(SOURCE, AGENT)
        assert source.result is not None
        document = manifest(source.result.facts["source_policy_hash"])
        return [source.decision.outcome, (await engine.admit_adapter(document, ToolRegistry(), AGENT)).decision.outcome]


# covers: A45.1
def test_the_async_engine_has_the_same_verbs(settings: Settings) -> None:
    import asyncio

    assert asyncio.run(_async_verbs(settings)) == [Outcome.ALLOW, Outcome.DENY]  # no tool is registered


# covers: A54.2
def test_a_manifest_needs_the_source_of_its_environment_in_this_engine(settings: Settings) -> None:
    with Engine(settings, values=VALUES, enable_mcp_adapter=True) as engine:
        registry = curated(engine)
        before = engine.admit_adapter(manifest("sha256:" + "0" * 64), registry, AGENT)
        found = admitted_source(engine)
        other = engine.admit_adapter(manifest("sha256:" + "0" * 64), registry, AGENT)
        after = engine.admit_adapter(manifest(found), registry, AGENT)
    assert [codes(one) for one in (before, other, after)] == [["source_policy_mismatch"]] * 2 + [[]]


def test_a_refused_source_admits_no_environment(settings: Settings) -> None:
    with Engine(settings, values=VALUES, enable_mcp_adapter=True) as engine:
        answer = engine.admit_environment(SOURCE.with_name("unknown_license"), AGENT)
        assert (answer.decision.outcome, answer.result) == (Outcome.DENY, None)
        assert engine.opened.gather_context.adapters().sources == {}


# covers: A46.2 A52.1
def test_tools_registered_without_a_permit_are_refused(engine: Engine) -> None:
    registry = UncuratedToolRegistry()
    for name, schema in SCHEMAS.items():
        registry.add(name, getattr(contact_tools, name), {"name": name, "input_schema": schema})
    answer = engine.admit_adapter(manifest(admitted_source(engine)), registry, AGENT)
    assert set(codes(answer)) == {"tool_not_curated"}

    class Pretending(ToolRegistry):
        """A registry of another program."""

    assert set(codes(engine.admit_adapter(manifest(admitted_source(engine)), Pretending(), AGENT))) == {
        "tool_not_curated"
    }


def test_a_permit_for_one_manifest_admits_no_other(engine: Engine) -> None:
    document, admissions = manifest(admitted_source(engine)), AdapterAdmissions(True)  # noqa: FBT003

    def note(permit: Any, job: Any) -> Any:
        with refused(WorkError, "engine.permit_missing"):
            admissions.admit_manifest(permit, job, document | {"id": "other"})
        return admissions.admit_manifest(permit, job, document)

    from engine.adapter_admissions import adapter_request

    answer = engine.decide("adapter", adapter_request(document, curated(engine)), note, AGENT)
    assert answer.result is not None
    assert list(admissions.facts().contracts) == [answer.result.facts["manifest"]]


WHOLE = {"fields", "format", "request", "manifest", "operation", "tool", "status", "content"}


def endless() -> list[Any]:
    """A list within itself."""
    found: list[Any] = []
    found.append(found)
    return found


BROKEN: dict[str, tuple[Callable[[dict[str, Any]], Any] | BaseException, set[str]]] = {
    "of another request": (lambda result: result | {"request": "f" * 32}, {"request"}),
    "for another operation": (lambda result: result | {"operation": "tools/list"}, {"operation"}),
    "of another tool": (lambda result: result | {"tool": "contacts_add"}, {"tool"}),
    "under another manifest": (lambda result: result | {"manifest": "sha256:" + "0" * 64}, {"manifest"}),
    "of another type": (lambda result: result | {"content": {"secret": CANARY}}, {"content"}),
    "with another field": (lambda result: result | {CANARY: "passed"}, {"fields"}),
    "with a status of its own": (lambda result: result | {"status": CANARY}, {"status"}),
    "too large": (lambda result: result | {"content": CANARY * 100_000}, {"size"}),
    "a list": (lambda result: [result], WHOLE),
    "nothing": (lambda _: None, WHOLE),
    "an exception": (RuntimeError(CANARY), WHOLE),
    "an exit": (SystemExit(CANARY), WHOLE),
    "not a number": (lambda result: result | {"content": float("nan")}, WHOLE),
    "bytes": (lambda result: result | {"content": CANARY.encode()}, WHOLE),
    "half a character": (lambda result: result | {"content": "\ud800"}, WHOLE),
    "an object": (lambda _: object(), WHOLE),
    "of endless depth": (lambda result: result | {"content": endless()}, WHOLE),
}  # fmt: skip


# covers: A59.2 A60.1-2 A61.1
@pytest.mark.parametrize("fault", BROKEN)
def test_a_result_that_breaks_the_contract_is_not_used(engine: Engine, fault: str) -> None:
    change, terms = BROKEN[fault]
    host = hosted(engine, Own(change))
    answer = host.call("tools/call", "contacts_list", {"search": "A"})
    assert (answer.status, answer.code, answer.content) == ("rejected", REJECTED, "")
    assert set(answer.details) == terms
    assert (answer.failure_class, host.failures) == ("contract", {"contract": 1})  # and no verifier failed
    recorded = json.dumps(lines(engine.settings.state))
    assert answer.decision_id is not None
    assert answer.decision_id in recorded
    assert CANARY not in recorded
    assert not {line.get("point") for line in lines(engine.settings.state)} & {"code_action", "code_output", "artifact"}


# covers: A93
def test_a_result_that_keeps_the_contract_is_used(engine: Engine) -> None:
    """Positive control of the test above, and what a further adapter looks like (A93)."""
    host = hosted(engine, Own(lambda result: result))
    answer = host.call("tools/call", "contacts_list", {"search": "A"})
    assert (answer.status, answer.content, host.failures) == ("ok", CANARY, {})


# covers: A59.1 A60.1-2
@pytest.mark.parametrize(
    ("change", "terms"),
    [
        ({"operation": "resources/read"}, {"operation", "tool", "arguments"}),
        ({"tool": "shell", "arguments": {"command": CANARY}}, {"tool", "arguments"}),
        ({"arguments": {"search": 7}}, {"arguments"}),
        ({"arguments": {"search": "A", "handler": CANARY}}, {"arguments"}),
        ({"arguments": None}, {"arguments"}),
        ({"manifest": "sha256:" + "0" * 64}, {"manifest", "operation", "tool", "arguments"}),
        ({"format": "1"}, {"format"}),
        ({"id": CANARY}, {"id"}),
        ({"approval": {"id": CANARY}}, {"approval"}),
        ({CANARY: 1}, {"fields"}),
    ],
)
def test_a_request_that_breaks_the_contract_does_not_reach_the_adapter(
    engine: Engine, change: dict[str, Any], terms: set[str]
) -> None:
    own = Own(lambda result: result)
    host = hosted(engine, own)
    host.call("tools/call", "contacts_list", {"search": "A"})
    answer = host.answer(own.asked.pop() | change)
    assert (answer.code, set(answer.details), own.asked) == (REJECTED, terms, [])
    assert CANARY not in json.dumps(lines(engine.settings.state))


@pytest.mark.parametrize(
    "envelope",
    [None, [], "x", 7, {}, {"a": {"b": []}}, b"x", {"a": float("nan")}, {"a": "\ud800"}, {"a": {1, 2}}],
    ids=ascii,
)
def test_a_malformed_envelope_does_not_reach_the_adapter(engine: Engine, envelope: Any) -> None:
    own = Own(lambda result: result)
    assert hosted(engine, own).answer(envelope).code == REJECTED
    assert own.asked == []


def test_a_call_that_the_policy_refuses_is_a_result(engine: Engine) -> None:
    """Each call goes through the gate: its policy decides, not the manifest."""
    registry, found = curated(engine), admitted_source(engine)
    admitted = engine.admit_adapter(manifest(found), registry, AGENT)
    assert admitted.result is not None
    gate = ToolGate(engine, registry, AGENT, **OPTIONS | {"profile": "reading"})
    host = AdapterHost(engine, ToolAdapter(gate, frozenset(SCHEMAS)), admitted.result.facts["manifest"], AGENT)
    before = dict(contact_tools.CONTACTS)
    assert [one["name"] for one in host.call("tools/list").content] == ["contacts_list"]
    answer = host.call("tools/call", "contacts_add", {"name": "Eve", "email": "eve at work"})
    assert (answer.status, answer.code, answer.failure_class) == ("refused", "tool_not_in_profile", "policy")
    assert (contact_tools.CONTACTS, host.failures) == (before, {"policy": 1})
    assert last(engine.settings)["outcome"] == "deny"


def test_a_call_that_waits_for_a_person_runs_once_it_is_granted(settings: Settings) -> None:
    from engine.state import open_store

    with Engine(settings, values=VALUES[:-1], enable_mcp_adapter=True) as engine:  # the shipped policy asks
        host, call = hosted(engine), ("tools/call", "contacts_add", {"name": "Grace", "email": "grace at work"})
        waiting = host.call(*call)
        assert (waiting.status, waiting.code) == ("awaiting_approval", "confirmation_by_default")
        store = open_store(settings.state)
        store.resolve(waiting.approval or "", "granted", "user:ana", None, 0)
        store.close()
        assert host.call(*call, approval=waiting.approval).content == "Grace is a contact now"
        assert host.call(*call, approval=waiting.approval).status == "refused"  # an approval is used once
    del contact_tools.CONTACTS["Grace"]


def test_many_calls_at_once_have_their_own_answers(engine: Engine) -> None:
    host = hosted(engine, Own(lambda result: result | {"content": result["request"]}))
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda _: host.call("tools/call", "contacts_list", {"search": "A"}), range(64)))
    assert {one.status for one in answers} == {"ok"}
    assert len({one.content for one in answers}) == 64


def test_a_closed_engine_rejects_calls(settings: Settings) -> None:
    with Engine(settings, values=VALUES, enable_mcp_adapter=True) as engine:
        own = Own(lambda result: result)
        host = hosted(engine, own)
    answer = host.call("tools/call", "contacts_list", {"search": "A"})
    assert (answer.status, answer.failure_class, own.asked) == ("rejected", "engine", [])


LARGE = {"x" * 60 + str(index): {"type": "object"} for index in range(4_000)}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"tool_schemas": LARGE}, "manifest_too_large"),
        ({"tool_schemas": {**SCHEMAS, "shell": SCHEMAS["contacts_list"]}}, "tool_incomplete"),
        ({"supported_operations": ["tools/list", "tools/call", "resources/read"]}, "operation_not_admitted"),
        ({"tool_schemas": SCHEMAS | {"contacts_list": SCHEMAS["contacts_add"]}}, "schema_incompatible"),
        ({"verifier_implications": None}, "manifest_incomplete:verifier_implications"),
        ({"handlers": {"contacts_list": "print(1)"}}, "manifest_field_unknown"),
        ({"id": float("nan")}, "engine.request_invalid"),
    ],
)
def test_a_refused_manifest_creates_no_contract(engine: Engine, change: dict[str, Any], code: str) -> None:
    before = engine.opened.gather_context.adapters().contracts
    answer = engine.admit_adapter(manifest(admitted_source(engine)) | change, curated(engine), AGENT)
    assert code in codes(answer)
    assert (answer.decision.outcome, answer.result) == (Outcome.DENY, None)
    assert engine.opened.gather_context.adapters().contracts == before


class Repeating:
    """Decides on the first request again, whatever it is asked."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._first: Any = None

    def decide(self, point: str, request: Any, executor: Any = None, context: Any = None) -> Any:
        self._first = self._first or request
        return self._engine.decide(point, self._first, executor, context)


def test_a_permit_for_a_request_admits_no_result(engine: Engine) -> None:
    host = hosted(engine)
    host._engine = Repeating(engine)
    answer = host.call("tools/list")
    assert (answer.status, answer.code, answer.content) == ("rejected", "engine.limit_unenforceable", "")
    assert host.failures == {"engine": 1}
