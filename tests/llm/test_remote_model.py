"""The remote model end to end, over real TLS on loopback: answers, errors, retries, the throttle, the record."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from admission_adapters.llm import RemoteModel
from admission_adapters.llm_answer import Tokens
from admission_adapters.llm_provider import Provider, ProviderKey
from engine.completing import Completion, Prompt
from engine.engine import AsyncEngine
from engine.errors import Exit, GatherError, WorkError
from engine.model import Limits, Outcome, Permit, StopSignal
from engine.points.llm import LlmLimits
from engine.record.model_log import ModelLogEntry
from engine.settings import Settings
from tests.administration.test_stops import stopped
from tests.command import decisions, lines, written
from tests.conftest import BUNDLES
from tests.expect import of, refused, there
from tests.llm.server import (
    HELLO,
    HOST,
    KEY,
    MODEL,
    SAID,
    ModelServer,
    World,
    chunks,
    completion,
    document,
    failed,
    model_serving,
    resolving,
    streamed,
    use,
    values,
    variables,
    world_of,
)
from tests.processes import until
from tests.sources.https import Authority, drips, endless, response

THROTTLED = failed("429 Too Many Requests")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    with model_serving(tmp_path_factory.mktemp("authority")) as found:
        yield found


@pytest.fixture(scope="module")
def opened(server: ModelServer, module_settings: Settings) -> Iterator[World]:
    with world_of(server, module_settings) as world:
        yield world


@pytest.fixture
def world(opened: World) -> World:
    opened.server.answers(completion())
    opened.waits.clear()
    opened.addresses = ("127.0.0.1",)
    opened.configured(variables(opened.server))
    return opened


def entries(world: World, done: Completion) -> list[dict[str, Any]]:
    """The log entries of a run."""
    own = {one.decision.decision_id for one in done.answers}
    return [
        one["facts"]
        for one in lines(world.engine.settings.state)
        if one["kind"] == "result" and one["decision_id"] in own
    ]


# covers: A102.1, A62.1, A64.1, A67.1-7, A04.1
def test_a_plain_answer_with_its_usage_and_cost(world: World) -> None:
    done = world.ask()
    assert (done.text, done.error, done.exit) == (SAID, None, Exit.ALLOW)
    assert (done.tokens, there(done.cost).amount, there(done.cost).currency) == (
        Tokens(12, 30), Decimal("0.0000528"), "USD",
    )  # fmt: skip
    (request,) = world.server.requests
    head, _, body = request.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    assert head.count(KEY.encode()) == 1
    assert f"authorization: bearer {KEY}".encode().lower() in head.lower()
    assert json.loads(body) == {"model": MODEL, "messages": HELLO, "max_tokens": 1024}
    (entry,) = entries(world, done)
    limits = of(LlmLimits, done.answers[0].decision.limits)
    assert entry == {
        "provider": "local", "host": HOST, "model": MODEL, "prompt_digest": limits.prompt_digest, "retries": 0,
        "tokens": {"prompt": 12, "completion": 30}, "cost": {"amount": "0.0000528", "currency": "USD"},
    }  # fmt: skip


# covers: A102.1
def test_a_streamed_answer_is_whole_and_counted(world: World) -> None:
    world.server.answers(streamed(*chunks("Hello ", "from ", "the model")))
    done = world.ask(stream=True)
    assert (done.text, done.tokens) == (SAID, Tokens(12, 30))
    (body,) = world.server.bodies()
    assert body["stream_options"] == {"include_usage": True}


CALL = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
CALLED = {"role": "assistant", "content": None, "tool_calls": CALL}
LATE_CHUNK = chunks("a", "b")[1]

BAD: dict[str, tuple[bytes, str]] = {
    "a page": (response(b"<html>sorry</html>", type_="text/html"), "answer_not_in_contract"),
    "an answer as a page": (response(json.dumps(document()).encode(), type_="text/html"), "answer_not_in_contract"),
    "a page as JSON": (response(b"<html>sorry</html>"), "answer_not_in_contract"),
    "JSON of another kind": (response(b'{"text": "hello"}'), "answer_not_in_contract"),
    "an error with status 200": (response(b'{"error": {"message": "no"}}'), "answer_not_in_contract"),
    "a stream nobody asked for": (streamed(*chunks("a")), "answer_not_in_contract"),
    "no usage": (response(json.dumps({k: v for k, v in document().items() if k != "usage"}).encode()),
                 "usage_missing"),
    "negative usage": (completion(usage={"prompt_tokens": -1, "completion_tokens": 1}), "answer_not_in_contract"),
    "usage as text": (completion(usage={"prompt_tokens": "1", "completion_tokens": 1}), "answer_not_in_contract"),
    "no choice": (completion(choices=[]), "answer_not_in_contract"),
    "a call of a tool": (completion(choices=[{"message": CALLED, "finish_reason": "tool_calls"}]),
                         "answer_not_in_contract"),
    "text beside a call": (completion(choices=[{"message": CALLED | {"content": "x"}, "finish_reason": "stop"}]),
                           "answer_not_in_contract"),
    "deep": (response(b"[" * 100_000), "answer_not_in_contract"),
    "another model": (completion(model="gpt-other"), "other_model"),
    "filtered": (completion(choices=[{"message": {"role": "assistant", "content": ""},
                                      "finish_reason": "content_filter"}]), "finish_not_admitted"),
    "the key as its text": (completion(KEY), "key_in_answer"),
    "the key in a page": (response(f"<html>{KEY}".encode(), type_="text/html"), "key_in_answer"),
    "the key in escapes": (response(json.dumps(document()).replace(
        SAID, "".join(f"\\u{ord(letter):04x}" for letter in KEY)).encode()), "key_in_answer"),
    "the key as the model": (completion(model=KEY), "key_in_answer"),
    "the key in an error": (failed("400 Bad Request", body=f"bad key {KEY}".encode()), "request_refused"),
    "a wrong key": (failed("401 Unauthorized", body=f"bad key {KEY}".encode()), "key_refused"),
    "forbidden": (failed("403 Forbidden"), "key_refused"),
    "redirect": (response(b"", status="307 Temporary Redirect", more=("Location: https://evil.example/v1",)),
                 "redirect_blocked"),
    "cut off": (response(b'{"a"', length=400), "answer_incomplete"),
    "packed": (response(b"x", more=("Content-Encoding: gzip",)), "response_malformed"),
    "no framing": (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}", "response_malformed"),
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n\r\n", "response_malformed"),
    "declared too long": (response(b"", length=10**12), "answer_too_large"),
}  # fmt: skip


# covers: A102.2, A67.8, A68.1-3, H21.1
@pytest.mark.parametrize("name", BAD)
def test_a_bad_answer_is_an_error_class_and_never_text(name: str, world: World) -> None:
    answer, error = BAD[name]
    world.server.answers(answer)
    done = world.ask()
    assert (done.text, done.error, done.exit, done.retries) == (None, error, Exit.DENY, 0)
    assert world.server.server.connections == 1, "it asked again, or elsewhere"
    assert [entry["error_class"] for entry in entries(world, done)] == [error]
    assert KEY not in json.dumps(lines(world.engine.settings.state))


BAD_STREAMS: dict[str, tuple[bytes, str]] = {
    "torn": (streamed(*chunks("a")[:2], torn=True), "answer_incomplete"),
    "half, with an end of the transfer": (streamed(*chunks("a")[:2]), "answer_not_in_contract"),
    "no end mark": (streamed(*chunks("a")[:-1]), "answer_not_in_contract"),
    "going on after the end mark": (streamed(*chunks("a"), LATE_CHUNK), "answer_not_in_contract"),
    "no usage": (streamed(*chunks("a", usage=False)), "usage_missing"),
    "an error in it": (streamed(chunks("a")[0], '{"error": {"message": "no"}}', "[DONE]"), "answer_not_in_contract"),
    "no JSON": (streamed("hello", "[DONE]"), "answer_not_in_contract"),
    "two models": (streamed(chunks("a", model="x")[0], *chunks("a")), "answer_not_in_contract"),
    "another model": (streamed(*chunks("a", model="x")), "other_model"),
    "the key over two chunks": (streamed(*chunks(KEY[:9], KEY[9:])), "key_in_answer"),
    "a plain answer": (completion(), "answer_not_in_contract"),
}


# covers: A102.2
@pytest.mark.parametrize("name", BAD_STREAMS)
def test_a_bad_stream_is_an_error_class_and_never_half_a_text(name: str, world: World) -> None:
    answer, error = BAD_STREAMS[name]
    world.server.answers(answer)
    done = world.ask(stream=True)
    assert (done.text, done.error) == (None, error)


def test_tokens_of_a_refused_answer_count_too(world: World) -> None:
    world.server.answers(completion(model="gpt-other"))
    done = world.ask()
    assert (done.tokens, there(done.cost).amount) == (Tokens(12, 30), Decimal("0.0000528"))


# covers: A102.3
def test_an_answer_without_usage_counts_where_the_policy_says_so(server: ModelServer, settings: Settings) -> None:
    with world_of(server, settings, **{"llm.request.unmetered_answers": "true"}) as world:
        for said, stream in ((completion("hi", usage=None), False), (streamed(*chunks("hi", usage=False)), True)):
            server.answers(said)
            done = world.ask(stream=stream)
            assert (done.text, done.tokens, done.cost) == ("hi", None, None)
            assert not {"tokens", "cost"} & entries(world, done)[0].keys()
        server.answers(streamed(*chunks("hi")))
        assert world.ask(stream=True).tokens == Tokens(12, 30)


# covers: A102.3
def test_without_a_price_the_cost_is_absent_and_not_zero(server: ModelServer, settings: Settings) -> None:
    server.answers(completion("hi", model="example-model"))
    with world_of(server, settings, **{"llm.providers.local.models": "[example-model]"}) as world:
        world.configured(variables(server, AGENT_DATA_LLM_MODEL="example-model"))
        done = world.ask()
        assert (done.text, done.tokens, done.cost) == ("hi", Tokens(12, 30), None)
        assert "cost" not in entries(world, done)[0]


# covers: E15.1, E15.3
def test_a_429_is_retried_after_a_growing_wait(world: World) -> None:
    world.server.answers(THROTTLED, THROTTLED, failed("503 Service Unavailable"), completion())
    done = world.ask()
    assert (done.text, done.retries, len(done.answers)) == (SAID, 3, 4)
    assert [0.5 <= world.waits[0] <= 1, 1 <= world.waits[1] <= 2, 2 <= world.waits[2] <= 4] == [True] * 3
    assert [(entry["retries"], entry.get("error_class")) for entry in entries(world, done)] == [
        (0, "throttled"), (1, "throttled"), (2, "provider_failed"), (3, None),
    ]  # fmt: skip


# covers: E15.2-3
def test_a_permanent_429_ends_after_the_attempts_of_the_policy(world: World) -> None:
    world.server.answers(THROTTLED)
    done = world.ask()
    assert (done.text, done.error, done.exit, done.retries, done.tokens) == (None, "throttled", Exit.DENY, 4, None)
    assert (len(world.server.requests), len(world.waits)) == (5, 4)


@pytest.mark.parametrize(
    ("asked_for", "waited"),
    [
        ("7", 7.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 -2300", None),
        ("soon", None),
        ("-1", None),
    ],
)
def test_a_valid_retry_after_is_honored(asked_for: str, waited: float | None, world: World) -> None:
    world.server.answers(failed("429 Too Many Requests", f"Retry-After: {asked_for}"), completion())
    assert world.ask().text == SAID
    (wait,) = world.waits
    assert wait == waited if waited is not None else 0.5 <= wait <= 1


@pytest.mark.parametrize("asked_for", ["86400", "9" * 10, "9" * 400], ids=len)
def test_a_retry_after_above_the_longest_wait_is_not_retried(asked_for: str, world: World) -> None:
    world.server.answers(failed("429 Too Many Requests", f"Retry-After: {asked_for}"), completion())
    done = world.ask()
    assert (done.error, done.retries, world.waits) == ("throttled", 0, [])


# covers: E14.1-2
def test_the_request_over_the_limit_of_the_minute_is_held_back(server: ModelServer, settings: Settings) -> None:
    server.answers(completion(), completion(), THROTTLED)
    with world_of(server, settings, **{"budgets.quotas.llm.host.limit": "3"}) as world:
        assert [world.ask().text for _ in range(2)] == [SAID, SAID]
        retried = world.ask()  # its retry is the fourth request
        assert (retried.error, retried.exit, len(server.requests)) == ("rate_limited", Exit.DENY, 3)
        assert (world.ask().error, len(server.requests)) == ("rate_limited", 3)
        refused_ = world.ask(max_output_tokens=10**6)
        assert refused_.error in {"output_too_long", "rate_limited"}


LATE: dict[str, Any] = {
    "silence": drips([]),
    "a head": drips([b"HTTP/1.1 200 OK\r\n", *[b"X: y\r\n"] * 10_000]),
    "a stream": drips([streamed(*chunks("a")[:2], torn=True), *[b"1\r\n:\r\n"] * 10_000]),
}


@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", LATE)
def test_a_drip_ends_at_the_deadline(name: str, server: ModelServer, settings: Settings) -> None:
    server.answers(LATE[name])
    with world_of(server, settings, **{"llm.request.seconds": "1", "llm.retry.max_attempts": "1"}) as world:
        done = world.ask(stream=name == "a stream")
        assert done.error == "deadline_exceeded"
        assert not server.server.ended.is_set()  # it would have gone on
        (result,) = [one for one in lines(world.engine.settings.state) if one["kind"] == "result"]
        assert result["duration"] >= 1_000_000


# covers: C68.1
def test_a_stop_closes_the_connection(server: ModelServer, settings: Settings) -> None:
    server.answers(LATE["a stream"])
    with (
        world_of(server, settings, **{"llm.request.seconds": "60"}) as world,
        ThreadPoolExecutor(1) as pool,
    ):
        running = pool.submit(world.ask, stream=True)
        until(lambda: server.requests)
        with stopped(world.engine):
            done = running.result(60)
            assert (done.text, done.error, len(done.answers)) == (None, "engine.transfer_stopped", 1)
            assert world.ask().error == "stopped"


def test_a_prompt_with_the_key_is_not_sent(world: World) -> None:
    done = world.ask([{"role": "user", "content": f"use {KEY}"}])
    assert (done.error, world.server.server.connections) == ("key_in_request", 0)


def test_an_endless_answer_ends_at_the_cap(server: ModelServer, settings: Settings) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    server.answers(endless(head, b"1000\r\n" + b"0" * 4096 + b"\r\n"))
    with world_of(server, settings, **{"llm.request.max_answer_bytes": "50000"}) as world:
        assert world.ask().error == "answer_too_large"


def test_a_server_that_cannot_prove_its_name_gets_no_key(world: World, tmp_path: Path) -> None:
    context = world.server.server.context
    world.server.server.context = Authority(tmp_path).context(HOST)
    try:
        done = world.ask()
    finally:
        world.server.server.context = context
    assert (done.error, world.server.requests) == ("tls_failed", [])


# covers: H21.1-2, A04.2, A65.1, A62.1
@pytest.mark.parametrize(
    ("changes", "how", "code"),
    [
        ({"AGENT_DATA_LLM_BASE_URL": "http://models.example/v1"}, {}, "base_url_not_https"),
        ({"AGENT_DATA_LLM_BASE_URL": f"https://{HOST}@evil.example/v1"}, {}, "base_url_not_canonical"),
        ({"AGENT_DATA_LLM_BASE_URL": "https://localhost/v1"}, {}, "base_url_not_canonical"),
        ({"AGENT_DATA_LLM_BASE_URL": "https://evil.example/v1"}, {}, "provider_not_admitted"),
        ({"AGENT_DATA_LLM_MODEL": "gpt-other"}, {}, "model_not_admitted"),
        ({"AGENT_DATA_API_KEY": "with space"}, {}, "model_variable_missing"),
        ({"AGENT_DATA_LLM_MODEL": KEY}, {}, "model_variable_missing"),
        ({}, {"target": "evil.example"}, "key_target_refused"),
        ({}, {"messages": []}, "prompt_missing"),
        ({}, {"messages": [{"role": "root", "content": "x"}]}, "engine.request_invalid"),
    ],
)
def test_a_denied_request_opens_no_connection(
    changes: dict[str, str], how: dict[str, Any], code: str, world: World
) -> None:
    world.configured(variables(world.server, **changes))
    done = world.ask(**how)
    assert (done.error, done.text, world.server.server.connections) == (code, None, 0)
    assert KEY not in json.dumps(lines(world.engine.settings.state))


# covers: A65.1
def test_a_private_address_refuses_the_provider(world: World) -> None:
    world.addresses = ("127.0.0.1", "10.0.0.7")
    assert (world.ask().error, world.server.server.connections) == ("provider_not_remote", 0)


# covers: A101.1
@pytest.mark.parametrize("gone", ["AGENT_DATA_LLM_BASE_URL", "AGENT_DATA_API_KEY", "AGENT_DATA_LLM_MODEL"])
def test_a_missing_variable_is_named_without_any_value(
    gone: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the variables are read again, so that setting it is enough."""
    kept = {name: text for name, text in variables(world.server).items() if name != gone}
    for name, text in kept.items():
        monkeypatch.setenv(name, text)
    world.configured({})
    done = world.ask()
    decision = done.answers[0].decision
    assert [one.subject for one in decision.findings if one.code == "model_variable_missing"] == [f"missing/{gone}"]
    told = decision.model_dump_json()
    assert KEY not in told
    assert world.server.server.connections == 0
    monkeypatch.setenv(gone, variables(world.server)[gone])
    assert world.ask().text == SAID


# covers: A101.2
def test_offline_work_needs_none_of_the_variables(world: World) -> None:
    world.configured({})
    assert world.ask().error == "model_variable_missing"
    found = world.engine.decide("source", {"path": str(BUNDLES / "offline_fixture"), "digest": None})
    assert found.decision.outcome is Outcome.ALLOW


# covers: C32.2-3, A63.1
def test_the_variables_of_openai_and_a_file_of_variables(tmp_path: Path) -> None:
    alone = Provider.read({"OPENAI_API_KEY": KEY}).settings
    assert (alone.missing, alone.defaults, alone.model, alone.timeout_seconds) == ((), True, None, None)
    file = tmp_path / ".env"
    file.write_text(
        f'# a comment\nexport OPENAI_API_KEY="{KEY}"\nOPENAI_MODEL=gpt-x # mine\nOPENAI_TIMEOUT_SECONDS=5\nOTHER=1\n',
        encoding="utf-8",
    )
    read = Provider.read({}, file)
    assert (read.settings.missing, read.settings.model, read.settings.timeout_seconds) == ((), "gpt-x", 5)
    assert (repr(read.key), str(read.key), f"{read.key}") == ("[redacted]",) * 3
    assert KEY not in repr(read)
    with pytest.raises(TypeError):
        pickle.dumps(read.key)
    assert Provider.read({"OPENAI_MODEL": "gpt-y"}, file).settings.model == "gpt-y"  # a variable that is set wins
    both = Provider.read({"OPENAI_API_KEY": KEY, "AGENT_DATA_LLM_MODEL": MODEL}).settings
    assert both.missing == ("AGENT_DATA_LLM_BASE_URL", "AGENT_DATA_API_KEY")
    bad = Provider.read({"OPENAI_API_KEY": KEY, "OPENAI_TIMEOUT_SECONDS": "soon", "OPENAI_MODEL": f"x{KEY}"}).settings
    assert (bad.missing, bad.model) == (("OPENAI_MODEL", "OPENAI_TIMEOUT_SECONDS"), None)
    file.write_text(f"{KEY}\n", encoding="utf-8")
    with pytest.raises(GatherError) as caught:
        Provider.read({}, file)
    assert KEY not in str(caught.value)
    with pytest.raises(GatherError):
        Provider.read({}, tmp_path / "nowhere")


FULL: dict[str, Any] = {
    "provider": "local", "host": HOST, "model": MODEL, "prompt_digest": "sha256:" + "ab" * 32, "retries": 0,
    "tokens": {"prompt": 1, "completion": 2}, "cost": {"amount": "0.1", "currency": "USD"}, "error_class": "throttled",
}  # fmt: skip


# covers: A67.1-8, A68.1-2
@pytest.mark.parametrize(
    "changes",
    [
        {"prompt": "text"}, {"authorization": f"Bearer {KEY}"}, {"api_key": KEY}, {"headers": {}}, {"url": "x"},
        {"host": f"{HOST}/v1"}, {"host": f"https://{HOST}"}, {"prompt_digest": "say hello"},
        {"error_class": f"bad key {KEY}"}, {"tokens": {"prompt": 1, "completion": 2, "text": "x"}},
        {"provider": f"Bearer {KEY}"}, {"model": "a model with spaces"}, {"retries": -1},
    ],
)  # fmt: skip
def test_a_log_entry_has_these_eight_fields_and_nothing_else(changes: dict[str, Any]) -> None:
    assert set(ModelLogEntry.model_validate(FULL).model_dump()) == set(ModelLogEntry.model_fields) == set(FULL)
    assert len(FULL) == 8
    with pytest.raises(ValidationError):
        ModelLogEntry.model_validate(FULL | changes)


def test_the_executor_works_only_under_its_permit(world: World) -> None:
    done = world.ask()
    decision = done.answers[0].decision
    limits, about = of(LlmLimits, decision.limits), there(decision.input_digest)
    model, url = there(world.engine.executors._remote_model), f"{world.server.base_url}/chat/completions"
    permit = Permit.seal(decision_id="d", point="llm", input_digest=about, limits=limits)
    body = world.server.requests[0].partition(b"\r\n\r\n")[2]
    assert model.attempt(permit, about, url, body, StopSignal()).text == SAID  # the control
    other = Permit.seal(decision_id="d", point="network", input_digest=about, limits=limits)
    changed = replace(permit, limits=limits.model_copy(update={"port": 443}))
    evil = url.replace(HOST, "evil.example")
    for wrong, asked, sent, code in (
        (permit, evil, body, "engine.limit_unenforceable"),
        (permit, f"{url}x", body, "engine.limit_unenforceable"),
        (permit, url, body + b" ", "engine.limit_unenforceable"),
        (other, url, body, "engine.permit_missing"),
        (changed, url, body, "engine.permit_missing"),
    ):
        with refused(WorkError, code):
            model.attempt(wrong, about, asked, sent, StopSignal())
    assert len(world.server.requests) == 2


def test_without_a_key_nothing_is_sent_also_under_a_permit(world: World) -> None:
    decision = world.ask().answers[0].decision
    limits, about = of(LlmLimits, decision.limits), there(decision.input_digest)
    permit = Permit.seal(decision_id="d", point="llm", input_digest=about, limits=limits)
    keyless = RemoteModel(replace(Provider.read(variables(world.server)), key=None), world.server.authority.path)
    body, url = world.server.requests[0].partition(b"\r\n\r\n")[2], f"{world.server.base_url}/chat/completions"
    with refused(WorkError, "engine.limit_unenforceable"):
        keyless.attempt(permit, about, url, body, StopSignal())
    assert len(world.server.requests) == 1


def test_a_wait_of_exactly_the_longest_one_is_kept_to(world: World) -> None:
    limits = of(LlmLimits, world.ask().answers[0].decision.limits)
    model, longest = there(world.engine.executors._remote_model), limits.longest_wait_ms / 1000
    assert model.wait(limits, longest) == longest
    assert model.wait(limits, longest + 0.001) is None
    assert model.wait(Limits(), None) is None


def test_a_decision_alone_sends_no_request(world: World) -> None:
    request = {
        "target": HOST, "messages": HELLO, "max_output_tokens": 1, "stream": False, "attempt": 1, "after": "none",
    }  # fmt: skip
    assert world.engine.check("llm", request).decision.outcome is Outcome.ALLOW
    enforced = world.engine.decide("llm", request)
    assert [finding.code for finding in enforced.decision.findings] == ["engine.request_invalid"]
    assert there(enforced.fault).remedy.startswith("use `engine model ask`, or `complete` in Python; a dry run")
    assert world.server.server.connections == 0


def test_a_record_that_cannot_be_written_gives_no_text(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelLogEntry, "model_dump", lambda *_, **__: {"x": object()})
    done = world.ask()
    assert (done.text, there(done.fault).exit) == (None, Exit.FAILED_CLOSED)
    assert len(world.server.requests) == 1


def test_the_async_engine_asks_alike(world: World, tmp_path: Path) -> None:
    world.server.answers(THROTTLED, completion())

    async def asked() -> Completion:
        settings = replace(world.engine.settings, state=tmp_path / "state")
        async with AsyncEngine(settings, values=values(world.server.server.port)) as engine:
            resolving(engine, lambda _: ("127.0.0.1",))
            use(engine, variables(world.server), world.server.authority.path, world.waits.append)
            return await engine.complete(Prompt(HELLO))

    done = asyncio.run(asked())
    assert (done.text, done.retries, len(world.waits)) == (SAID, 1, 1)


def test_nothing_of_prompt_and_answer_is_recorded(world: World) -> None:
    world.server.answers(completion("canary-answer"))
    assert world.ask().text == "canary-answer"
    world.ask([{"role": "user", "content": "canary-prompt"}], target="evil.example")
    found = written(world.engine.settings.state)
    for word in (b"canary-prompt", b"canary-answer", KEY.encode(), b"/chat/completions", b"Bearer"):
        assert word not in found
    assert decisions(world.engine.settings.state)


def test_a_key_is_found_in_text_and_bytes() -> None:
    key = ProviderKey(KEY)
    assert key.found_in("x", f"a{KEY}b")
    assert key.found_in(f"a{KEY}b".encode())
    assert not key.found_in("x", b"y")
