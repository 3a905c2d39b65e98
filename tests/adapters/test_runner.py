"""The executor of a run: one place, one body, one answer, and nothing without two permits. Real sockets."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import NameOID

from admission_adapters.runner.access import RunnerAccess
from admission_adapters.runner.answer import ERROR_CHARACTERS, RunAnswer, clean, run_result, secrets_of
from admission_adapters.runner.run import ForwardLimits, Grant, Runner
from admission_adapters.runner.run import _failed as no_answer
from engine.errors import WorkError
from engine.model import Limits, Result
from tests.adapters.permits import misused, sealed
from tests.api.test_access import Authority
from tests.expect import refused
from tests.processes import own_port
from tests.runners import OUTPUT, Behavior, LoopbackRunner, answering, dripping, flooding, holding, raw, running

RUN, ADDRESS = "sha256:" + "ab" * 32, "sha256:" + "cd" * 32
BODY = b'{ "messages": [{"role": "user", "content": "h\xc3\xa9"}],  "agent": {"harness": "pi_core"} }'
NDJSON = "application/x-ndjson"
SOON = ForwardLimits(seconds=1.0, connect_seconds=0.5, answer_bytes=4096)
EVER = ForwardLimits(seconds=60.0, connect_seconds=60.0, answer_bytes=4096)
"""Far more time than an answer takes here, also on a busy machine."""


class RunLimits(Limits):
    harness: str


class AddressLimits(Limits):
    uri: str
    encrypted: bool
    credentials: bool = True


@pytest.fixture
def runner() -> Iterator[LoopbackRunner]:
    with running() as found:
        yield found


def run_grant() -> Grant:
    return Grant(sealed("runner_request", RunLimits(harness="pi_core"), RUN), RUN)


def address_grant(uri: str) -> Grant:
    limits = AddressLimits(uri=uri, encrypted=not uri.startswith("http://127.0.0.1:"))
    return Grant(sealed("runner_uri", limits, ADDRESS), ADDRESS)


def forward(uri: str, limits: ForwardLimits = EVER, body: bytes = BODY) -> tuple[Result, RunAnswer]:
    return Runner(limits).forward(run_grant(), address_grant(uri), body)


def refusal(uri: str, limits: ForwardLimits = EVER) -> WorkError:
    with pytest.raises(WorkError) as caught:
        forward(uri, limits)
    assert "127.0.0.1" not in str(caught.value)
    return caught.value


def test_the_body_is_posted_unchanged_with_the_engines_own_headers(runner: LoopbackRunner) -> None:
    result, answer = forward(runner.address)
    (one,) = runner.received
    assert (one.method, one.path, one.body) == ("POST", "/run", BODY)
    assert {name.lower(): value for name, value in one.headers} == {
        "host": f"127.0.0.1:{runner.port}",
        "accept": "application/json",
        "accept-encoding": "identity",
        "connection": "keep-alive",
        "content-length": str(len(BODY)),
        "content-type": "application/json",
        "user-agent": "admission-engine",
    }
    data = json.dumps(OUTPUT).encode()
    assert answer == RunAnswer(data)
    assert result == Result("forwarded", {"http_status": 200, "bytes": len(data), "ok": True})


def test_events_reach_only_a_follower_and_only_from_streaming_media_types(
    runner: LoopbackRunner,
) -> None:
    seen: list[dict[str, Any]] = []
    data = b'{"at": 1}\n' + json.dumps(OUTPUT).encode() + b"\n"
    for media in ("application/x-ndjson", "text/event-stream; charset=utf-8"):
        about: dict[str, Any] = {"Content-Type": media}
        runner.behavior = answering(data, **about)
        _, answer = Runner().forward(run_grant(), address_grant(runner.address), BODY, seen.append)
        assert (json.loads(answer.data), seen) == (OUTPUT, [{"at": 1}])
        seen.clear()
        assert "application/x-ndjson" in dict(runner.received[-1].headers)["accept"]
        assert refusal(runner.address).code == "engine.runner_answer"
    runner.behavior = answering(data)
    with refused(WorkError, "engine.runner_answer"):
        Runner().forward(run_grant(), address_grant(runner.address), BODY, seen.append)
    assert seen == []


@pytest.mark.parametrize(("below", "path"), [("", "/run"), ("agents/7", "/agents/7/run"), ("a/", "/a/run")])
def test_a_run_is_posted_below_the_address(runner: LoopbackRunner, below: str, path: str) -> None:
    forward(runner.address + below)
    assert [one.path for one in runner.received] == [path]


def test_nothing_is_sent_without_permits_for_this_run_and_address(runner: LoopbackRunner) -> None:
    good, to = run_grant(), address_grant(runner.address)
    pairs = [(replace(good, permit=wrong), to) for wrong in misused(good.permit).values()]
    pairs += [(good, replace(to, permit=wrong)) for wrong in misused(to.permit).values()]
    for run, address in pairs:
        with refused(WorkError, "engine.permit_missing"):
            Runner().forward(run, address, BODY)
    assert runner.received == []
    Runner().forward(good, to, BODY)  # the control: with both it is sent
    assert len(runner.received) == 1


def test_limits_without_an_address_are_refused() -> None:
    other = Grant(sealed("runner_uri", Limits(), ADDRESS), ADDRESS)
    with refused(WorkError, "engine.limit_unenforceable"):
        Runner().forward(run_grant(), other, BODY)


@pytest.mark.parametrize(
    "uri",
    [
        *("http://192.0.2.1/", "http://10.0.0.8:8765/", "http://runner.example.com/", "http://127.0.0.1.example.com/"),
        *("http://0.0.0.0:1/", "http://localhost.:1/", "http://[::2]:1/", "http://127.1:1/", "http://2130706433:1/"),
        *("ftp://127.0.0.1/", "unix:/run/docker.sock", "file:///etc/passwd", "127.0.0.1:8765", "", "/", "https://"),
        *("http://me:secret@127.0.0.1:1/", "http://127.0.0.1:1/?to=x", "http://127.0.0.1:1/#x", "http://127.0.0.1:x/"),
    ],
)
def test_a_malformed_or_unpermitted_address_is_refused(uri: str) -> None:
    assert refusal(uri).code == "engine.limit_unenforceable"


def test_nothing_is_sent_to_a_runner_with_an_untrusted_certificate(tmp_path: Path) -> None:
    authority, context = Authority(tmp_path), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("runner", (NameOID.COMMON_NAME, "runner")))
    with running(context=context) as found:
        assert refusal(found.address).code == "engine.runner_tls"
        assert found.received == []
        trusting = ssl.create_default_context(cafile=str(authority.path))
        assert httpx.post(found.address, verify=trusting, trust_env=False).json() == OUTPUT  # the control
        assert len(found.received) == 1


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def with_access(uri: str, access: RunnerAccess, *, credentials: bool = True) -> RunAnswer:
    limits = AddressLimits(uri=uri, encrypted=uri.startswith("https"), credentials=credentials)
    address = Grant(sealed("runner_uri", limits, ADDRESS), ADDRESS)
    return Runner(EVER, access).forward(run_grant(), address, BODY)[1]


# covers: D30.2
def test_a_runner_requiring_client_certificates_gets_that_of_the_gate(authority: Authority, tmp_path: Path) -> None:
    guarded = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    guarded.load_cert_chain(*authority.issue("runner", (NameOID.COMMON_NAME, "runner")))
    guarded.verify_mode = ssl.CERT_REQUIRED
    guarded.load_verify_locations(authority.path)
    mine = authority.issue("gate", (NameOID.COMMON_NAME, "gate"))
    wrong = {
        "none": (None, None),
        "expired": authority.issue("expired", (NameOID.COMMON_NAME, "gate"), days=-1),
        "unknown authority": Authority(tmp_path, "other").issue("other", (NameOID.COMMON_NAME, "gate")),
    }
    with running(context=guarded) as found:
        good = RunnerAccess(None, *mine, authority.path)
        assert json.loads(with_access(found.address, good).data) == OUTPUT
        for pair in wrong.values():
            with refused(WorkError, "engine.runner_hung_up"):
                with_access(found.address, RunnerAccess(None, *pair, authority.path))
        with refused(WorkError, "engine.runner_hung_up"):  # the permit names no credentials
            with_access(found.address, good, credentials=False)
        with refused(WorkError, "engine.runner_tls"):
            with_access(found.address, RunnerAccess(None, *mine))
        assert len(found.received) == 1


def test_a_runner_without_tls_at_an_https_address_is_reported_as_that(authority: Authority) -> None:
    access = RunnerAccess(None, *authority.issue("gate", (NameOID.COMMON_NAME, "gate")), authority.path)
    with running() as found, pytest.raises(WorkError) as caught:
        with_access(found.address.replace("http:", "https:"), access)
    assert (caught.value.code, "without TLS" in str(caught.value)) == ("engine.runner_tls", True)
    assert "--runner-cert" not in caught.value.remedy
    assert found.received == []


def test_the_tls_alert_of_a_refused_certificate_is_reported() -> None:
    said = ssl.SSLError()
    for reason, told in (
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "answered: tlsv13 alert certificate required"),
        ("", "answered"),
    ):
        said.reason = reason
        assert no_answer(said, answering=False, encrypted=True).message.endswith(told)
    assert no_answer(httpx.ReadError("closed"), answering=False, encrypted=True).message.endswith("answered")


def test_a_runner_whose_certificate_has_expired_gets_nothing(authority: Authority) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("late", (NameOID.COMMON_NAME, "runner"), days=-1))
    with running(context=context) as found:
        with pytest.raises(WorkError, match="certificate has expired") as caught:
            with_access(found.address, RunnerAccess(ca_file=authority.path))
        assert caught.value.code == "engine.runner_tls"
        assert found.received == []


# covers: D31.1
def test_the_token_is_read_for_each_run_and_only_a_listed_runner_gets_it(
    runner: LoopbackRunner, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    access = RunnerAccess(token=file)
    for token in ("first-t0ken", "second-t0ken"):
        file.write_text(f"{token}\n")
        with_access(runner.address, access)
        with_access(runner.address, access, credentials=False)
        *_, own, none = runner.received
        assert dict(own.headers)["authorization"] == f"Bearer {token}"
        assert "authorization" not in dict(none.headers)


def test_the_runner_token_never_appears_in_an_answer(runner: LoopbackRunner, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("own-t0ken")
    runner.behavior = answering({"ok": False, "error": "bad token own-t0ken"})
    assert with_access(runner.address, RunnerAccess(token=file)).error == "bad token [secret]"
    runner.behavior = answering({"ok": True, "output": "own-t0ken"})
    with refused(WorkError, "engine.runner_answer"):
        with_access(runner.address, RunnerAccess(token=file))
    runner.behavior = answering(b'{"type": "update", "text": "own-t0ken"}\n{"ok": true}\n', Content_Type=NDJSON)
    seen: list[dict[str, object]] = []
    with refused(WorkError, "engine.runner_answer"):
        Runner(EVER, RunnerAccess(token=file)).forward(run_grant(), address_grant(runner.address), BODY, seen.append)
    assert seen == []


@pytest.mark.parametrize("status", [401, 403])
def test_a_rejected_runner_token_has_its_own_error_code(runner: LoopbackRunner, status: int) -> None:
    runner.behavior = answering({"ok": False, "error": "c4nary"}, status)
    got = refusal(runner.address)
    assert (got.code, "c4nary" in str(got)) == ("engine.runner_unauthorized", False)
    assert "--runner-token-file" in got.remedy


def test_files_that_cannot_be_used_send_nothing(authority: Authority, runner: LoopbackRunner, tmp_path: Path) -> None:
    certificate, key = authority.issue("mine", (NameOID.COMMON_NAME, "gate"))
    other = authority.issue("another", (NameOID.COMMON_NAME, "gate"))
    locked, token = tmp_path / "locked.key", tmp_path / "token"
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    secret = serialization.BestAvailableEncryption(b"secret")
    locked.write_bytes(private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret))
    broken = [
        *(RunnerAccess(None, certificate, one) for one in (other[1], locked, tmp_path / "gone", certificate)),
        *(RunnerAccess(ca_file=one) for one in (key, tmp_path / "gone")),
    ]
    for text in (b"", b"short", b"two words-in-it", b"t\xc3\xb6ken-of-a-gate", b"x" * 5_000, None):
        if text is None:
            token.unlink()
        else:
            token.write_bytes(text)
        with refused(WorkError, "engine.runner_credentials"):
            with_access(runner.address, RunnerAccess(token=token))
    for access in broken:
        with refused(WorkError, "engine.runner_credentials"):
            with_access(runner.address, access)
    assert runner.received == []


def test_no_redirect_is_followed(runner: LoopbackRunner) -> None:
    for status in (301, 302, 303, 307, 308):
        with running(answering(OUTPUT, status, Location=f"{runner.address}run")) as moved:
            assert refusal(moved.address).code == "engine.runner_answer"
            assert (len(moved.received), runner.received) == (1, [])
            moved.behavior = answering({"ok": False, "error": "moved"}, status, Location=f"{runner.address}run")
            assert "it points elsewhere" in str(refusal(moved.address))
            httpx.post(moved.address, content=BODY, follow_redirects=True, trust_env=False)  # the control
            assert len(runner.received) == 1
            runner.received.clear()


def test_no_proxy_of_the_environment_is_used(runner: LoopbackRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.origin)
        forward(runner.address)
        assert (len(runner.received), len(proxy.received)) == (1, 0)
        httpx.post(f"{runner.address}run", content=BODY)  # the control: who asks the environment ends there
        assert (len(runner.received), len(proxy.received)) == (1, 1)


def test_no_cookie_comes_back(runner: LoopbackRunner) -> None:
    runner.behavior = answering(OUTPUT, Set_Cookie="session=1; Path=/")
    executor = Runner()
    for _ in range(2):
        executor.forward(run_grant(), address_grant(runner.address), BODY)
    assert [name for one in runner.received for name, _ in one.headers if name.lower() == "cookie"] == []
    assert len(runner.received) == 2


def test_an_unreachable_runner_is_reported() -> None:
    with own_port() as port:
        assert refusal(f"http://127.0.0.1:{port}/").code == "engine.runner_unreachable"


SLOW: dict[str, Behavior] = {
    "never": holding,
    "headers_that_drip": dripping(b"HTTP/1.1 200 OK\r\nX-Long: "),
    "a_body_that_drips": dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n"),
    "status_that_drips": dripping(b"HTTP/1.1 200 "),
}


@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", SLOW)
def test_the_deadline_is_one_for_the_whole_answer(runner: LoopbackRunner, name: str) -> None:
    runner.behavior = SLOW[name]
    assert refusal(runner.address, SOON).code == "engine.runner_late"


def test_a_listener_that_never_accepts_is_a_timeout() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        held = [socket.socket() for _ in range(3)]
        for one in held:
            one.settimeout(0)
            one.connect_ex(full.getsockname())
        found = refusal(f"http://127.0.0.1:{full.getsockname()[1]}/", SOON)
        for one in held:
            one.close()
    assert found.code == "engine.runner_late"


def whole(length: int) -> bytes:
    start, end = b'{"ok": true, "output": "', b'"}'
    return start + b"x" * (length - len(start) - len(end)) + end


def test_the_size_limit_of_an_answer_is_exact(runner: LoopbackRunner) -> None:
    runner.behavior = answering(whole(4096))
    assert len(forward(runner.address)[1].data) == 4096
    runner.behavior = answering(whole(4097))
    assert refusal(runner.address).code == "engine.runner_answer"


def test_an_answer_without_end_is_cut_off(runner: LoopbackRunner) -> None:
    runner.behavior = flooding
    assert refusal(runner.address).code == "engine.runner_answer"


GARBAGE: dict[str, bytes] = {
    "empty": b"",
    "text": b"done",
    "list": b'[{"ok": true}]',
    "no_ok": b'{"output": "done"}',
    "ok_as_text": b'{"ok": "true"}',
    "ok_as_number": b'{"ok": 1}',
    "ok_null": b'{"ok": null}',
    "ok_twice": b'{"ok": false, "error": "no", "ok": true}',
    "twice_within": b'{"ok": true, "usage": {"a": 1, "a": 2}}',
    "not_a_number": b'{"ok": true, "usage": NaN}',
    "endless": b'{"ok": true, "usage": -Infinity}',
    "two_documents": b'{"ok": true}{"ok": true}',
    "not_utf_8": b'{"ok": true, "output": "\xff"}',
    "byte_order_mark": b'\xef\xbb\xbf{"ok": true}',
    "utf_16": '{"ok": true}'.encode("utf-16"),
    "deep": b'{"ok": true, "output": ' + b"[" * 128 + b"]" * 128 + b"}",
    "deeper_than_python": b'{"ok":' + b"[" * 4_000,
    "half": b'{"ok": true, "output": "do',
}


@pytest.mark.parametrize("name", GARBAGE)
def test_an_ambiguous_answer_is_refused(runner: LoopbackRunner, name: str) -> None:
    runner.behavior = answering(GARBAGE[name])
    found = refusal(runner.address)
    assert found.code == "engine.runner_answer"
    assert "done" not in str(found)
    assert "it answered" not in str(found)


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + whole(90),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
    ],
    ids=["another_protocol", "nothing", "too_short", "bad_chunks", "long_header"],
)
def test_an_incomplete_or_malformed_response_counts_as_unreachable(runner: LoopbackRunner, sent: bytes) -> None:
    runner.behavior = raw(sent)
    assert refusal(runner.address).code == "engine.runner_unreachable"


def test_a_compressed_answer_is_refused(runner: LoopbackRunner) -> None:
    runner.behavior = answering(OUTPUT, Content_Encoding="gzip")
    assert refusal(runner.address).code == "engine.runner_answer"


@pytest.mark.parametrize("status", [201, 204, 401, 404, 500, 503])
def test_any_status_but_200_is_an_error(runner: LoopbackRunner, status: int) -> None:
    runner.behavior = answering(b"" if status == 204 else OUTPUT, status)
    assert f"it answered {status}" in str(refusal(runner.address))


@pytest.mark.parametrize("status", [200, 400, 500])
def test_a_failed_run_returns_only_its_error(runner: LoopbackRunner, status: int) -> None:
    runner.behavior = answering({"ok": False, "error": "the model is not known", "stack": "at x"}, status)
    result, answer = forward(runner.address)
    assert answer == RunAnswer(error="the model is not known")
    assert (result.status, result.facts["ok"], result.facts["http_status"]) == ("run_failed", False, status)


# covers: D44.1
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("the model is not known", "the model is not known"),
        ("Error: no model\n    at run (/app/src/run.ts:10:5)\n    at main (/app/x.ts:1:1)", "Error: no model"),
        ("Error: no model    at run (/app/src/run.ts:10:5) at async main (/app/x.ts:1:1)", "Error: no model"),
        ("too many requests: try again at 10:30", "too many requests: try again at 10:30"),
        ("no quota: try at 2026-12-01T10:30:00Z", "no quota: try at 2026-12-01T10:30:00Z"),
        (
            'Traceback (most recent call last):\n  File "/app/x.py", line 1\nValueError: no model',
            "ValueError: no model",
        ),
        (
            'agent failed: Traceback (most recent call last):\n  File "/app/x.py", line 1\nValueError: no model',
            "ValueError: no model",
        ),
        (
            'failed: Traceback (most recent call last): File "/app/x.py", line 1, in <module> ValueError: no model',
            "failed: ValueError: no model",
        ),
        ("ENOENT: no such file, open '/home/me/.keys/id'", "ENOENT: no such file, open '[path]'"),
        ("cannot read C:\\Users\\me\\key.txt today", "cannot read [path] today"),
        ("cannot read ../keys/id, ~/keys or file:///etc/x", "cannot read [path], [path] or [path]"),
        ("ask https://models.example.org/help and/or try 3/4", "ask https://models.example.org/help and/or try 3/4"),
        ("bad key c4nary-Key and Bearer c4nary-callback", "bad key [secret] and [secret]"),
        ("bad token c4nary-callback", "bad token [secret]"),
        ("a\x1b[31mb\x00", "a [31mb"),
        ("", "the runner gave no reason"),
        (" \n ", "the runner gave no reason"),
        ("x" * 3000, "x" * ERROR_CHARACTERS),
    ],
)
def test_no_stack_path_or_secret_of_the_run_gets_back(runner: LoopbackRunner, said: str, told: str) -> None:
    carried = {
        "secrets": {"MODEL": "c4nary-Key"},
        "toolCallback": {"endpoint": "https://a.example.com/", "authorization": "Bearer c4nary-callback"},
    }
    runner.behavior = answering({"ok": False, "error": said})
    assert forward(runner.address, body=json.dumps(carried).encode())[1].error == told


@pytest.mark.parametrize("error", [None, 5, {"message": "x"}, ["x"]])
def test_a_non_string_error_is_not_forwarded(runner: LoopbackRunner, error: object) -> None:
    runner.behavior = answering({"ok": False, "error": error})
    assert forward(runner.address)[1].error == "the runner gave no reason"


def test_secrets_are_found_wherever_a_run_carries_them() -> None:
    body = {
        "secrets": {"A": "one"},
        "mcp_servers": [{"name": "a", "env": {"B": "two-long"}}],
        "trace": {"authorization": "Bearer three"},
        "messages": [{"role": "user", "content": "not one"}],
    }
    assert set(secrets_of(json.dumps(body).encode())) == {"Bearer three", "two-long", "three", "one"}
    assert clean("two-long Bearer three", ("three", "two-long", "Bearer three")) == "[secret] [secret]"


@pytest.mark.parametrize("unit", [" ", " at ", " at a ", " at <", "\t at async ", "a:1", "/", "~/", 'File "'])
def test_hostile_errors_are_sanitized_in_bounded_time(unit: str) -> None:
    started = time.process_time()
    clean("x" + unit * (60_000 // len(unit)), tuple(f"secret-{number}" for number in range(1_000)))
    assert time.process_time() - started < 1


def test_an_error_that_is_too_long_is_not_passed_on() -> None:
    assert clean("a" * 1_000, ()) == "a" * 500
    assert clean("a" * 100_000, ("a",)) == "the runner's reason is too long to be passed on"


# covers: D44.2
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"ok": False, "error": "no model"}, "Agent run failed: no model"),
        ({"ok": False, "error": "no model", "output": "x"}, "Agent run failed: no model"),
        ({"detail": "the engine is busy", "status": 503}, "Agent run failed: the engine is busy"),
        ({"ok": "true"}, "Agent run failed: there was no answer to the run"),
        ({"ok": 1, "error": " "}, "Agent run failed: there was no answer to the run"),
        (None, "Agent run failed: there was no answer to the run"),
        ([OUTPUT], "Agent run failed: there was no answer to the run"),
    ],
)
def test_a_failed_run_raises_an_error_with_its_reason(answer: object, text: str) -> None:
    with pytest.raises(WorkError) as caught:
        run_result(answer)
    assert (str(caught.value), caught.value.code) == (text, "engine.run_failed")


def test_a_successful_run_is_returned_unchanged() -> None:
    assert run_result(OUTPUT) is OUTPUT
