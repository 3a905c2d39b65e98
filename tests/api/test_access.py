"""Who may ask: every caller has to prove its identity. Real servers, one for each guard."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import shutil
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from engine.state import open_store
from tests.api.serving import ALLOWED, Serving, issue, read_all, refused, serving, until
from tests.conftest import BUNDLES, ROOT

SHARED = "correct-horse-battery-staple"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Serving]:
    """An engine with a shared token and scoped ones."""
    with serving(tmp_path_factory.mktemp("guarded"), cache, env={"AGENTA_AGENT_RUNNER_TOKEN": SHARED}) as running:
        yield running


# covers: D03 D04 D05
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": f"Bearer {SHARED}"}, 200),
        ({"Authorization": f"bearer {SHARED}"}, 200),
        ({"X-Agenta-Runner-Token": SHARED}, 200),
        ({"X-Agenta-Runner-Token": SHARED, "Authorization": f"Bearer {SHARED}"}, 200),
        ({}, 401),
        ({"Authorization": "Bearer mistaken"}, 401),
        ({"X-Agenta-Runner-Token": SHARED, "Authorization": "Bearer mistaken"}, 401),
    ],
)
def test_the_shared_token_is_needed_once_it_is_set(guarded: Serving, headers: dict[str, str], status: int) -> None:
    reply = guarded.ask("POST", "/v1/decide/license", ALLOWED, headers)
    assert reply.status == status
    if status == 401:
        assert reply.json["code"] == "unauthorized"
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert [finding["code"] for finding in reply.json["decision"]["findings"]] == ["unauthorized"]
        assert b"mistaken" not in reply.body


# covers: D06.1
def test_health_and_ready_stay_open_and_show_nothing_more(guarded: Serving) -> None:
    assert guarded.ask("GET", "/health").json == {"status": "ok"}
    assert guarded.ask("GET", "/ready").status == 200
    assert guarded.ask("GET", "/health", headers={"Authorization": "Bearer nothing"}).json == {"status": "ok"}


# covers: D56.2
def test_health_shows_details_to_identified_callers(guarded: Serving) -> None:
    found = guarded.ask("GET", "/health", headers={"X-Agenta-Runner-Token": SHARED}).json
    assert found["caller"] == {"via": "shared_token", "principal": None}
    assert set(found["policy"]) == {"rules", "values"}
    assert found["trust_level"] == 1
    assert guarded.ask("GET", "/health", control=True).json["caller"]["via"] == "control"


# covers: D31.1-2
def test_a_scoped_token_is_taken_until_it_expires_or_is_revoked(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache) as running:
        assert running.decide("license", ALLOWED).status == 200
        good, late = issue(running.state), issue(running.state, seconds=2)
        until(lambda: running.decide("license", ALLOWED).status == 401)
        assert running.decide("license", ALLOWED, Authorization=f"Bearer {good}").status == 200
        assert running.ask("GET", "/health", headers={"Authorization": f"Bearer {good}"}).json["caller"] == {
            "via": "token",
            "principal": "pipeline",
        }
        until(lambda: running.decide("license", ALLOWED, Authorization=f"Bearer {late}").status == 401)
        with closing(open_store(running.state)) as store:
            store.revoke(store.tokens()[-1].id, int(time.time()))
        assert running.decide("license", ALLOWED, Authorization=f"Bearer {good}").status == 401


# covers: D31.2
@pytest.mark.parametrize("single_use", [False, True])
def test_a_token_that_is_revoked_while_the_body_is_awaited_decides_nothing(
    tmp_path: Path, cache: Path, *, single_use: bool
) -> None:
    body = json.dumps(ALLOWED).encode()
    head = "POST /v1/decide/license HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Connection: close\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\nAuthorization: Bearer "
    with serving(tmp_path, cache) as running, ExitStack() as open_:
        kept, revoked = (issue(running.state, principal, single_use=single_use) for principal in ("kept", "revoked"))
        until(lambda: running.decide("license", ALLOWED).status == 401)
        waiting = []
        for token in (kept, revoked):
            one = open_.enter_context(socket.create_connection((running.host, running.port), timeout=60))
            one.sendall(f"{head}{token}\r\n\r\n".encode())
            assert one.recv(1 << 16) == b"HTTP/1.1 100 Continue\r\n\r\n"  # its head was accepted
            waiting.append(one)
        with closing(open_store(running.state)) as store:
            store.revoke(next(one.id for one in store.tokens() if one.principal == "revoked"), int(time.time()))
        for one in waiting:
            one.sendall(body)
        allowed, unauthorized = (read_all(one) for one in waiting)
        assert allowed.startswith(b"HTTP/1.1 200 OK")
        assert unauthorized.startswith(b"HTTP/1.1 401 Unauthorized")
    decided = [one for one in running.records() if one.get("point") == "license" and one.get("principal")]
    assert [(one["principal"], one["outcome"]) for one in decided] == [("kept", "allow")]


# covers: D31.4 D56.1 D56.4-5
def test_a_token_for_another_server_or_used_before_is_unauthorized(tmp_path: Path, cache: Path) -> None:
    policy = tmp_path / "policy"
    shutil.copytree(ROOT / "policy", policy)
    with serving(tmp_path, cache, "--audience", "runner-1", "--policy", policy) as running:

        def level() -> int:
            found: int = running.ask("GET", "/health", control=True).json["trust_level"]
            return found

        assert level() == 0
        mine, other = (issue(running.state, audience=name) for name in ("runner-1", "runner-2"))
        once = issue(running.state, audience="runner-1", single_use=True)
        until(lambda: running.decide("license", ALLOWED).status == 401)

        def status(token: str) -> int:
            return running.decide("license", ALLOWED, Authorization=f"Bearer {token}").status

        assert [status(mine), status(other), status(mine)] == [200, 401, 200]
        assert [status(once), status(once)] == [200, 401]
        assert level() == 3
        runners = policy / "runners.yaml"
        runners.write_text(runners.read_text().replace("payload_secrets: [plain, sealed]", "payload_secrets: [sealed]"))
        assert running.ask("POST", "/v1/policy/activate", control=True).status == 200
        assert level() == 4


# covers: D31.3
def test_a_token_of_another_scope_is_denied_by_the_policy(guarded: Serving) -> None:
    token = issue(guarded.state, points=("source",))
    reply = guarded.decide("license", ALLOWED, Authorization=f"Bearer {token}")
    assert (reply.status, reply.json["outcome"]) == (200, "deny")


def test_a_foreign_token_is_unauthorized(guarded: Serving, tmp_path: Path) -> None:
    foreign = issue(tmp_path / "elsewhere")
    assert guarded.decide("license", ALLOWED, Authorization=f"Bearer {foreign}").status == 401


def test_a_token_in_the_url_is_ignored(guarded: Serving) -> None:
    reply = guarded.decide("license", ALLOWED, f"?token={SHARED}")
    assert reply.status == 401
    assert SHARED.encode() not in reply.body


def test_unauthorized_requests_are_recorded_and_flooding_is_not(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache, env={"AGENTA_AGENT_RUNNER_TOKEN": SHARED}) as running:
        found = [running.decide("license", ALLOWED, Authorization=f"Bearer {number}") for number in range(40)]

        def refuses_a_guess() -> bool:
            found.append(running.decide("license", ALLOWED, Authorization="Bearer mistaken"))
            return running.decide("license", ALLOWED, Authorization=f"Bearer {SHARED}").status == 429

        until(refuses_a_guess)  # on a busy machine the allowance may be back just then
        statuses = [reply.status for reply in found]
        token = issue(running.state)
        assert running.decide("license", ALLOWED, Authorization=f"Bearer {token}").status == 200
        assert running.stop() == 0
    assert statuses[:10] == [401] * 10
    assert 429 in statuses
    limited = found[statuses.index(429)]
    assert (limited.json["decision"], limited.headers["retry-after"]) == (None, "1")
    refusals = [line for line in running.records() if line.get("outcome") == "deny"]
    assert [line["findings"][0]["code"] for line in refusals] == ["unauthorized"]
    again = [(line["decision_id"], line["times"]) for line in running.records() if line["kind"] == "replay"]
    assert again == [(refusals[0]["decision_id"], statuses.count(401) - 1)]


# covers: D58.1
@pytest.mark.full(after=1)
@pytest.mark.parametrize("value", ["", "   "])
def test_an_empty_or_blank_token_variable_sets_no_token(tmp_path: Path, cache: Path, value: str) -> None:
    with serving(tmp_path, cache, env={"AGENTA_AGENT_RUNNER_TOKEN": value}) as running:
        assert running.decide("license", ALLOWED).status == 200
        assert running.raw(
            b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \r\nConnection: close\r\n\r\n"
        ).startswith(b"HTTP/1.1 200")
        bare = b"POST /v1/decide/license HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \r\nConnection: close\r\n"
        assert running.raw(bare + b"Content-Length: 0\r\n\r\n").startswith(b"HTTP/1.1 401")


# covers: D01.1
def test_the_host_is_read_from_the_variable_and_defaults_to_loopback(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache) as running:
        assert running.host == "127.0.0.1"
    (tmp_path / "other").mkdir()
    with serving(tmp_path / "other", cache, env={"AGENTA_AGENT_RUNNER_HOST": "127.0.0.2"}) as running:
        assert running.host == "127.0.0.2"
        assert running.decide("license", ALLOWED, Host="localhost").status == 200


# covers: D01
@pytest.mark.full(after=1)
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "8.8.8.8"])  # noqa: S104  (what is tested)
def test_a_non_loopback_address_without_authentication_is_refused_at_startup(
    tmp_path: Path, cache: Path, host: str
) -> None:
    code, error = refused(tmp_path, cache, "--port", "0", "--host", host)
    assert code == 1
    assert "required" in error
    assert "Traceback" not in error


def test_on_all_interfaces_decisions_and_metrics_need_a_token(tmp_path: Path, cache: Path) -> None:
    everywhere = "0.0.0.0"  # noqa: S104  (what is tested)
    named = ("--host", everywhere, "--server-name", "any.example")
    with serving(tmp_path, cache, *named, env={"AGENTA_AGENT_RUNNER_TOKEN": SHARED}) as running:
        running.host = "127.0.0.1"
        assert running.ask("GET", "/health").status == 200
        assert running.ask("GET", "/metrics").status == 401
        assert running.decide("license", ALLOWED).status == 401
        headers = {"X-Agenta-Runner-Token": SHARED}
        assert running.ask("GET", "/metrics", headers=headers).status == 200
        assert running.decide("license", ALLOWED, X_Agenta_Runner_Token=SHARED, Host="any.example").status == 200
        assert running.decide("license", ALLOWED, X_Agenta_Runner_Token=SHARED, Host="192.0.2.1:80").status == 200
        assert running.decide("license", ALLOWED, X_Agenta_Runner_Token=SHARED, Host="other.example").status == 421
        assert running.ask("GET", "/health", headers=headers).json["trust_level"] == 1


def test_the_control_socket_is_its_owners_alone(api: Serving) -> None:
    path = api.state / "run" / "control.sock"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


class Authority:
    """A certificate authority of the tests, and what it signs."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.path = folder / f"{name}.pem"
        certificate = self._signed(self._name, self._key.public_key(), authority=True)
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, file: str, *names: tuple[x509.ObjectIdentifier, str], days: int = 1) -> tuple[Path, Path]:
        """A certificate and its key, valid for so many days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(kind, value) for kind, value in names])
        certificate = self._signed(subject, key.public_key(), authority=False, days=days)
        paths = self.folder / f"{file}.pem", self.folder / f"{file}.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        paths[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return paths

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, authority: bool, days: int = 1
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        own = x509.SubjectKeyIdentifier.from_public_key(key)
        above = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=authority,
            crl_sign=authority,
            encipher_only=False,
            decipher_only=False,
        )
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=9))
            .not_valid_after(now + dt.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(address, critical=False)
            .add_extension(own, critical=False)
            .add_extension(above, critical=False)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )


# covers: D30 D56.3
def test_with_mutual_tls_the_certificate_subject_is_the_principal(tmp_path: Path, cache: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server", (NameOID.COMMON_NAME, "engine"))
    mine = authority.issue("client", (NameOID.ORGANIZATION_NAME, "Acme, Inc."), (NameOID.COMMON_NAME, "pipeline-7"))
    other = Authority(tmp_path, "other").issue("foreign", (NameOID.COMMON_NAME, "pipeline-7"))
    context = ssl.create_default_context(cafile=str(authority.path))
    policy = tmp_path / "policy"
    shutil.copytree(ROOT / "policy", policy)
    callers = policy / "callers.yaml"
    named = callers.read_text().replace("certificates: {}", "certificates: {'CN=pipeline-7,O=Acme\\, Inc.': [license]}")
    callers.write_text(named)
    tls = ("--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", authority.path)
    with serving(tmp_path, cache, *tls, "--policy", policy, "--root", BUNDLES) as running:
        running.context = context
        plain = running.raw(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert not plain.startswith(b"HTTP/")
        for chain in (None, other):
            if chain is not None:
                context = ssl.create_default_context(cafile=str(authority.path))
                context.load_cert_chain(*chain)
            with pytest.raises((ssl.SSLError, ConnectionError)):
                running.ask("GET", "/health", context=context)
        good = ssl.create_default_context(cafile=str(authority.path))
        good.load_cert_chain(*mine)
        found = running.ask("GET", "/health", context=good).json
        assert found["caller"] == {"via": "certificate", "principal": "CN=pipeline-7,O=Acme\\, Inc."}
        assert (found["trust_level"], found["trust"]["mutual_tls"]) == (2, True)
        reply = running.ask("POST", "/v1/decide/license", ALLOWED, context=good)
        assert reply.json["outcome"] == "allow"
        bundle = {"path": "offline_fixture", "digest": None}
        reply = running.ask("POST", "/v1/decide/source", bundle, context=good)
        assert (reply.json["outcome"], [finding["code"] for finding in reply.json["findings"]]) == (
            "deny",
            ["caller_out_of_scope"],
        )
        unlisted = ssl.create_default_context(cafile=str(authority.path))
        unlisted.load_cert_chain(*authority.issue("unlisted", (NameOID.COMMON_NAME, "pipeline-7")))
        reply = running.ask("POST", "/v1/decide/license", ALLOWED, context=unlisted)
        assert [finding["code"] for finding in reply.json["findings"]] == ["caller_out_of_scope"]
        assert running.stop() == 0
    recorded = [line for line in running.records() if line.get("point") == "license"]
    assert [line["principal"] for line in recorded] == ["CN=pipeline-7,O=Acme\\, Inc.", "CN=pipeline-7"]


def test_sighup_serves_a_renewed_certificate_and_keeps_the_old_one_for_a_broken_file(
    tmp_path: Path, cache: Path
) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server", (NameOID.COMMON_NAME, "engine"), days=-1)
    with serving(tmp_path, cache, "--tls-cert", certificate, "--tls-key", key) as running:

        def reloaded(event: str) -> None:
            running.process.send_signal(signal.SIGHUP)
            until(lambda: any(line["event"] == event for line in running.log_lines()))

        running.context = ssl.create_default_context(cafile=str(authority.path))
        with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
            running.ask("GET", "/health")
        renewed = authority.issue("renewed", (NameOID.COMMON_NAME, "engine"))
        for to, source in zip((certificate, key), renewed, strict=True):
            shutil.copyfile(source, to)
        reloaded("certificate_renewed")
        assert running.ask("GET", "/health").status == 200
        key.write_text("nothing")
        reloaded("certificate_refused")
        assert running.ask("GET", "/health").status == 200


def test_invalid_certificate_files_are_refused_at_startup(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "none.pem").write_text("nothing")
    none = tmp_path / "none.pem"
    code, error = refused(tmp_path, cache, "--tls-cert", none, "--tls-key", none)
    assert code == 2
    assert f"TLS cannot be set up with `{none}` and `{none}`: the content is not valid\n" in error
    assert "Traceback" not in error


SECRETS = ("sk-proj-Zt4Qm81LwXk2Vb7Nc3Ys9Hd5", "AKIAIOSFODNN7EXAMPLF", "ghp_16C7e42F292c6912E7710c838347Ae178B4a")


# covers: B41.1 B43.1-2 D29
def test_no_planted_secret_reaches_log_metrics_answer_or_record(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache, env={"AGENTA_AGENT_RUNNER_TOKEN": SHARED}) as running:
        output: bytes = b""
        for secret in SECRETS:
            headers = {"X-Agenta-Runner-Token": SHARED, "X-Request-ID": secret, "X-Run-ID": secret}
            body = {**ALLOWED, "purpose": secret, "license": f"Bearer {secret}"}
            for path, sent in (
                ("/v1/decide/license", body),
                ("/v1/decide/license", {secret: secret}),
                ("/v1/decide/license", f'{{"{secret}":1,"{secret}":2}}'.encode()),
                ("/v1/decide/license/batch", {"inputs": {"a": body, "b": {secret: 1}}}),
                (f"/v1/decide/license?token={secret}", body),
                (f"/v1/{secret}", body),
            ):
                reply = running.ask("POST", path, sent, headers)
                output += reply.body
            output += running.ask("POST", "/v1/decide/license", body, {"Authorization": f"Bearer {secret}"}).body
        output += running.ask("GET", "/metrics").body
        assert running.stop() == 0
    output += running.log.read_bytes()
    for file in (running.state / "records").rglob("*"):
        output += file.read_bytes() if file.is_file() else b""
    for secret in (*SECRETS, SHARED):
        assert secret.encode() not in output, output[max(0, output.find(secret.encode()) - 300) :][:400]
    assert b"[redacted:" in output  # and the places were reached
    assert ALLOWED["sha256"].encode() not in running.log.read_bytes()


# covers: B42.1
def test_payloads_are_logged_only_where_the_policy_admits_it(tmp_path: Path, cache: Path) -> None:
    arguments = ("--log-detail", "payload", "--log-retention-days", "400")
    code, error = refused(tmp_path, cache, "--port", "0", *arguments)
    assert code == 1
    assert "payload_detail_not_admitted" in error


def test_the_log_is_json_lines_with_the_ids_to_trace_a_request(api: Serving) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    api.decide("license", ALLOWED, X_Request_ID="follow-me", traceparent=f"00-{trace}-b7ad6b7169203331-01")
    (line,) = until(lambda: [line for line in api.log_lines() if line.get("request_id") == "follow-me"])
    names = "time level event operation request_id trace status duration_ms via point outcome decision_id"
    assert " ".join(line) == names
    assert (line["trace"], line["outcome"], line["status"]) == (trace, "allow", 200)


def test_metrics_count_by_point_outcome_and_code_and_carry_no_ids(api: Serving) -> None:
    reply = api.decide("license", {**ALLOWED, "decisions": []}, X_Run_ID="run-of-metrics")
    found = api.ask("GET", "/metrics").body.decode()
    assert 'engine_decisions_total{mode="enforce",outcome="deny",point="license"}' in found
    assert 'engine_findings_total{code="license_decision_missing",level="deny",point="license"}' in found
    assert json.loads(reply.body)["decision_id"] not in found
    assert "run-of-metrics" not in found
