"""Spans for a collector: one a request, with the ids it was answered with, without content, and never in the way."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.api import tracing
from engine.api.messages import Exchange, Head, Operation, Peer, Response, Trace
from engine.api.oplog import OperationalLog
from engine.api.tracing import Tracing
from engine.errors import GatherError
from tests.api.collector import Collector, Span, collecting
from tests.api.serving import ALLOWED, LICENSE, Reply, Serving, environment, issue, refused, serving, until
from tests.conftest import ROOT
from tests.processes import own_port

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SHARED = "correct-horse-battery-staple"
CANARY = "canary-9f27c1d4"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory, cache: Path, collector: Collector) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("traced"), cache, "--otlp", collector.url) as running:
        yield running


def of(collector: Collector, reply: Reply) -> Span:
    """The one span with the id that this request was answered with."""
    _, trace_id, span_id, _ = reply.headers["traceparent"].split("-")
    found: list[Span] = until(
        lambda: [one for one in collector.spans() if (one.trace_id, one.span_id) == (trace_id, span_id)]
    )
    assert len(found) == 1
    return found[0]


@pytest.mark.full
def test_a_span_has_the_trace_and_parent_that_came_and_the_span_id_that_was_answered(
    traced: Serving, collector: Collector
) -> None:
    before = time.time_ns()
    reply = traced.decide("license", ALLOWED, traceparent=f"00-{TRACE}-{PARENT}-01")
    after = time.time_ns()
    span = of(collector, reply)
    assert (span.name, span.trace_id, span.parent_id, span.kind, span.error) == ("decide", TRACE, PARENT, 2, False)
    assert before <= span.start < span.end <= after
    assert span.attributes == {
        "point": "license",
        "outcome": "allow",
        "mode": "enforce",
        "status": 200,
        "decision_id": reply.json["decision_id"],
    }


@pytest.mark.parametrize("given", ["", f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE}-{CANARY}-01"])
def test_without_a_valid_parent_a_trace_begins(traced: Serving, collector: Collector, given: str) -> None:
    span = of(collector, traced.decide("license", ALLOWED, traceparent=given))
    assert span.parent_id == ""
    assert span.trace_id not in {TRACE, "0" * 32}


def test_a_request_that_its_caller_does_not_sample_has_a_span_too(traced: Serving, collector: Collector) -> None:
    span = of(collector, traced.decide("license", ALLOWED, traceparent=f"00-{TRACE}-{PARENT}-00"))
    assert (span.trace_id, span.parent_id) == (TRACE, PARENT)


def test_a_deny_carries_its_codes_and_a_dry_run_its_mode(traced: Serving, collector: Collector) -> None:
    reply = traced.decide("license", LICENSE, "?mode=check")
    codes = [finding["code"] for finding in reply.json["findings"]]
    assert codes
    told = of(collector, reply).attributes
    assert (told["outcome"], told["codes"], told["mode"]) == ("deny", codes, "check")


@pytest.mark.parametrize(
    ("method", "path", "body", "name", "told"),
    [
        ("GET", "/health", None, "health", {"status": 200}),
        ("GET", "/nothing/here", None, "none", {"status": 404, "codes": ["engine.not_found"]}),
        (
            "POST",
            "/v1/decide/license/batch",
            {"inputs": {"a": ALLOWED}},
            "decide_batch",
            {"status": 200, "point": "license", "outcome": "batch", "mode": "enforce"},
        ),
    ],
)
def test_every_operation_names_its_span(
    traced: Serving, collector: Collector, method: str, path: str, body: Any, name: str, told: dict[str, Any]
) -> None:
    span = of(collector, traced.ask(method, path, body))
    assert (span.name, span.attributes) == (name, told)


def test_requests_side_by_side_on_many_connections_have_one_span_each(traced: Serving, collector: Collector) -> None:
    replies = [traced.ask("GET", "/ready") for _ in range(300)]
    spans = until(lambda: found if len(found := collector.spans("ready")) >= 300 else None)
    assert sorted(one.span_id for one in spans) == sorted(
        reply.headers["traceparent"].split("-")[2] for reply in replies
    )


def test_the_resource_names_the_engine_and_nothing_of_the_machine(traced: Serving, collector: Collector) -> None:
    of(collector, traced.ask("GET", "/health"))
    (path, headers, _), request = collector.posts[0], collector.requests()[0]
    assert (path, headers["content-type"]) == ("/v1/traces", "application/x-protobuf")
    (resource,) = request.resource_spans
    assert {item.key for item in resource.resource.attributes} == {"service.name", "service.version"}


# covers: B41.1 B43.3 D29
def test_no_request_content_reaches_the_collector(tmp_path: Path, cache: Path) -> None:
    """Every place a caller can write into holds a canary; every such request has its span all the same."""
    call = {"tool": CANARY, "arguments": {"path": CANARY, CANARY: CANARY}, "result": CANARY}
    run = {"harness": CANARY, "secrets": {"KEY": CANARY}, "messages": [{"role": "user", "content": CANARY}]}
    headers = {
        "X-Request-ID": CANARY,
        "X-Run-ID": CANARY,
        "X-Approval": CANARY,
        "Idempotency-Key": CANARY,
        "User-Agent": CANARY,
        "tracestate": f"vendor={CANARY}",
        "baggage": f"user={CANARY}",
        "Cookie": CANARY,
    }
    guard = {"AGENTA_AGENT_RUNNER_TOKEN": SHARED}
    env = guard | {"OTEL_RESOURCE_ATTRIBUTES": f"x={CANARY}", "OTEL_SERVICE_NAME": CANARY}
    with collecting() as collector:
        with serving(tmp_path, cache, "--otlp", collector.url, env=env) as running:
            running.headers["X-Agenta-Runner-Token"] = SHARED
            token = issue(running.state, CANARY)
            known = {"X-Agenta-Runner-Token": "", "Authorization": f"Bearer {token}"}
            replies = [
                running.ask("POST", "/v1/decide/license", ALLOWED, known),
                running.ask("POST", "/v1/decide/license", {**ALLOWED, "license": CANARY, "purpose": CANARY}, headers),
                running.ask("POST", "/v1/decide/license", {CANARY: CANARY}, headers),
                running.ask("POST", "/v1/decide/license", f'{{"{CANARY}":1,"{CANARY}":2}}'.encode()),
                running.ask("POST", f"/v1/decide/license?mode={CANARY}&{CANARY}={CANARY}", ALLOWED),
                running.ask("POST", "/v1/decide/license/batch", {"inputs": {CANARY: call}}, headers),
                running.ask("POST", "/v1/decide/source", {"path": CANARY, "digest": CANARY}),
                running.ask("POST", "/v1/decide/runner_request", call, headers),
                running.ask("POST", "/access/v1/evaluation", {"subject": CANARY, "action": {"name": CANARY}}),
                running.ask("POST", "/run", run, headers),
                running.ask("POST", f"/{CANARY}", call),
                running.ask("POST", "/v1/decide/license", ALLOWED, {"Content-Type": CANARY}),
                running.ask("GET", "/health", None, {"Authorization": f"Bearer {CANARY}"}),
                running.ask(
                    "POST",
                    "/v1/decide/license",
                    ALLOWED,
                    {"X-Agenta-Runner-Token": "", "Authorization": f"Bearer {CANARY}"},
                ),
            ]
            until(lambda: len(collector.spans()) >= len(replies))
            assert running.stop() == 0
        spans = {span.span_id: span for span in collector.spans()}
        for reply in replies:
            span = spans[reply.headers["traceparent"].split("-")[2]]
            assert span.attributes["status"] == reply.status
            assert span.attributes.keys() <= {"point", "outcome", "codes", "status", "mode", "decision_id"}
        assert len(spans) == len(replies)
        for private in (CANARY, SHARED, token, str(tmp_path)):
            assert private.encode() not in collector.bytes()
        assert replies[0].json["decision_id"].encode() in collector.bytes()
    assert replies[0].json["outcome"] == "allow"
    assert CANARY in b"".join(reply.body for reply in replies).decode()  # it did come in, and only the caller has it
    assert CANARY in {line.get("principal") for line in running.records()}


@pytest.mark.full
def test_a_stop_sends_what_is_left(tmp_path: Path, cache: Path) -> None:
    with collecting() as collector, serving(tmp_path, cache, "--otlp", collector.url + "/") as running:
        replies = [running.decide("license", ALLOWED) for _ in range(3)]
        assert running.stop() == 0
        sent = {span.attributes.get("decision_id") for span in collector.spans("decide")}
    assert sent == {reply.json["decision_id"] for reply in replies}
    assert not [line for line in running.log_lines() if line["event"].startswith("spans_")]


def answers(running: Serving) -> list[tuple[int, Any]]:
    """What an engine says, without what is new each time."""
    found = []
    for body in (ALLOWED, LICENSE, {"unknown": 1}, b"{"):
        reply = running.decide("license", body)
        decision = reply.json.get("decision", reply.json)
        found.append((reply.status, (decision["outcome"], [one["code"] for one in decision["findings"]])))
    return found


@pytest.fixture(scope="module")
def plain(api: Serving) -> list[tuple[int, Any]]:
    found = answers(api)
    assert [status for status, _ in found] == [200, 200, 422, 400]
    return found


def told(running: Serving) -> list[dict[str, Any]]:
    """What the log says of spans; a line that is not JSON fails."""
    lines = [json.loads(line) for line in running.log.read_text().splitlines() if not line.startswith("engine: ")]
    return [line for line in lines if line["event"].startswith("spans_")]


@pytest.mark.full
def test_a_collector_that_is_not_there_changes_no_answer(
    tmp_path: Path, cache: Path, plain: list[tuple[int, Any]]
) -> None:
    with own_port() as port, serving(tmp_path, cache, "--otlp", f"http://127.0.0.1:{port}") as running:
        assert answers(running) == plain
        until(lambda: told(running))
        until(lambda: running.metric("engine_spans_lost_total") >= 4)
        assert answers(running) == plain
        assert running.stop() == 0
    assert [line["event"] for line in told(running)] == ["spans_not_sent", "spans_lost"]


@pytest.mark.full
def test_a_hanging_collector_delays_neither_answers_nor_shutdown(
    tmp_path: Path, cache: Path, plain: list[tuple[int, Any]]
) -> None:
    with collecting(slow=True) as collector, serving(tmp_path, cache, "--otlp", collector.url) as running:
        assert answers(running) == plain
        until(lambda: collector.posts)  # now the thread waits for the collector
        assert answers(running) == plain
        assert running.stop() == 0
        assert not collector.open.is_set()
    assert told(running)[-1]["event"] == "spans_lost"


@pytest.mark.full
def test_a_collector_failure_and_its_recovery_are_each_logged_once(tmp_path: Path, cache: Path) -> None:
    with collecting(status=400) as collector, serving(tmp_path, cache, "--otlp", collector.url) as running:
        running.decide("license", ALLOWED)
        (line,) = until(lambda: told(running))
        assert (line["event"], line["level"], line["lost"]) == ("spans_not_sent", "warning", 1)
        collector.status = 200
        reply = running.decide("license", ALLOWED)
        of(collector, reply)
        until(lambda: len(told(running)) > 1)
        assert running.stop() == 0
    assert [line["event"] for line in told(running)] == ["spans_not_sent", "spans_sent_again", "spans_lost"]


@contextmanager
def logging(path: Path) -> Iterator[OperationalLog]:
    """An operational log in this file."""
    with path.open("wb") as file, closing(OperationalLog(descriptor=file.fileno())) as log:
        yield log


def test_the_queue_of_spans_and_the_shutdown_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_STOP_SECONDS", 0.1)
    monkeypatch.setattr(tracing, "_SEND_SECONDS", 600.0)
    with logging(tmp_path / "log") as log, collecting(slow=True) as collector:
        spans = Tracing(collector.url, log)
        exchange, response = an_exchange(), Response(200)
        spans.answered(exchange, response, 1_000)
        until(lambda: collector.posts)  # the thread is held by the collector
        for _ in range(10_000):
            spans.answered(exchange, response, 1_000)
        assert (len(spans._waiting), spans.lost) == (8_192, 10_000 - 8_192)
        spans.close()  # though the collector does not answer yet
        collector.open.set()
        spans._thread.join(30)
        assert not spans._thread.is_alive()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert (lines[0]["event"], lines[0]["spans"]) == ("spans_lost", 10_000)


def test_an_invalid_span_is_lost_alone(tmp_path: Path) -> None:
    with logging(tmp_path / "log") as log, collecting() as collector:
        spans = Tracing(collector.url, log)
        spans.answered(an_exchange(Trace("no hexadecimal digits", PARENT)), Response(200), 1_000)
        until(lambda: spans.lost == 1)
        spans.answered(an_exchange(), Response(500), 1_000)
        until(collector.spans)
        spans.close()
        (span,) = collector.spans()
    assert (span.name, span.error, span.end - span.start) == ("nothing", True, 1_000)


def an_exchange(trace: Trace = Trace(TRACE, PARENT)) -> Exchange:  # noqa: B008  (frozen)
    async def nothing(_api: Any, _exchange: Exchange) -> Response:
        return Response(200)

    return Exchange(
        head=Head("GET", "/", "", {}),
        peer=Peer("127.0.0.1", loopback=True),
        operation=Operation("nothing", nothing),
        request_id="1",
        trace=trace,
        started=0,
        limit=0,
    )


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:4318",
        "http://",
        "ftp://127.0.0.1",
        "http://127.0.0.1:0",
        "http://127.0.0.1:99999",
        "http://[::1",
        "http://user:canary-9f27c1d4@127.0.0.1:4318",
        "http://127.0.0.1:4318/?key=canary-9f27c1d4",
        "http://127.0.0.1:4318/#canary-9f27c1d4",
        "http://127.0.0.1:4318/ x",
        "http://127.0.0.1:4318/\n",
        "",
    ],
)
def test_an_invalid_collector_url_is_refused_and_not_echoed(tmp_path: Path, url: str) -> None:
    with logging(tmp_path / "log") as log, pytest.raises(GatherError) as caught:
        Tracing(url, log)
    assert caught.value.code == "engine.otlp_invalid"
    assert CANARY not in caught.value.message + caught.value.remedy


def test_an_invalid_collector_url_is_refused_at_startup(tmp_path: Path, cache: Path) -> None:
    code, said = refused(tmp_path, cache, "--port", "0", "--otlp", f"http://user:{CANARY}@127.0.0.1:4318")
    assert code == 2
    assert "OTEL_EXPORTER_OTLP_HEADERS" in said
    assert CANARY not in said
    assert "Traceback" not in said


def test_a_variable_that_the_exporter_cannot_take_is_refused(tmp_path: Path, cache: Path) -> None:
    env = {"OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER": CANARY}
    code, said = refused(tmp_path, cache, "--port", "0", "--otlp", "http://127.0.0.1:4318", env=env)
    assert code == 2
    assert "variables that begin with OTEL_" in said
    assert CANARY not in said


@pytest.mark.full
def test_headers_for_the_collector_come_from_the_environment(tmp_path: Path, cache: Path) -> None:
    env = {"OTEL_EXPORTER_OTLP_HEADERS": "x-key=known"}
    with collecting() as collector, serving(tmp_path, cache, "--otlp", collector.url, env=env) as running:
        of(collector, running.ask("GET", "/health"))
        assert collector.posts[0][1]["x-key"] == "known"


@pytest.mark.full
def test_without_the_extra_the_option_is_refused_and_the_engine_serves(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "without" / "opentelemetry").mkdir(parents=True)
    (tmp_path / "without" / "opentelemetry" / "__init__.py").touch()  # hides whatever is installed
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "without"), environment(cache)["PYTHONPATH"]])}
    code, said = refused(tmp_path, cache, "--port", "0", "--otlp", "http://127.0.0.1:4318", env=env)
    assert code == 2
    assert "admission-engine[otel]" in said
    assert "Traceback" not in said
    with serving(tmp_path, cache, env=env) as running:
        assert running.decide("license", ALLOWED).json["outcome"] == "allow"


@pytest.mark.full
def test_without_spans_their_packages_are_not_imported(api: Serving, cache: Path) -> None:
    asked = "import sys, engine.api.server, engine.cli.serve; print([m for m in sys.modules if 'telemetry' in m])"
    done = subprocess.run(
        [sys.executable, "-c", asked], env=environment(cache), capture_output=True, check=True, timeout=60, text=True
    )
    assert done.stdout.strip() == "[]"
    assert b"engine_spans" not in api.ask("GET", "/metrics").body


def test_every_metric_of_the_dashboard_and_the_alerts_exists(api: Serving) -> None:
    deploy = ROOT / "deploy"
    dashboard = json.loads((deploy / "grafana" / "dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    texts = [*asked, (deploy / "prometheus" / "alerts.yaml").read_text()]
    named = {name for text in texts for name in re.findall(r"\bengine_[a-z_]+\b", text)}
    body = api.ask("GET", "/metrics").body.decode()
    kinds = dict(re.findall(r"^# TYPE (\S+) (\w+)$", body, re.MULTILINE))
    suffixed = {f"{name}_bucket" for name, kind in kinds.items() if kind == "histogram"}
    assert len(named) > 10
    assert named <= kinds.keys() | suffixed
