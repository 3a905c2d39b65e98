"""`engine doctor --runner URL`: what of a runner can be reached from here, where its callers are.

A runner on 127.0.0.1 passes a health check in its own container while no other machine can connect. So every
address of the host is tried from this machine, and `/health` is asked over the same connection that a run would use:
without a client certificate, to find out whether the runner demands one, and with it.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

import typer

from admission_adapters.runner.access import RunnerAccess, presented
from admission_adapters.trust import client_tls
from engine.cli.machine.machine import Check, State, judged, reason
from engine.errors import WorkError

_SECONDS = 5.0
"""For each connection and each answer; a runner answers `/health` in milliseconds."""

_ANSWER_BYTES = 64 << 10

_TOKEN = "AGENTA_AGENT_RUNNER_TOKEN"  # noqa: S105  (the name of a variable)

_LISTEN = (
    "start it, or let it listen on an address that callers reach: set AGENTA_AGENT_RUNNER_HOST and a token where it "
    "runs; by default it listens on 127.0.0.1, where only its own machine or container can connect"
)

_CERTIFICATE = "client certificate"

_ISSUE = "have one issued by the authority of its --tls-client-ca, and name it with --runner-cert and --runner-key"


@dataclass(frozen=True, slots=True)
class _Health:
    """What `/health` answered, or why it did not; `cut` if the runner ended TLS, `problem` for everything else."""

    status: int = 0
    document: Mapping[str, Any] = field(default_factory=dict)
    cut: str = ""
    problem: str = ""
    remedy: str = ""


def examine(url: str, access: RunnerAccess) -> list[Check]:
    """The checks of a runner, in the order of the report; all are needed. Raises typer.BadParameter."""
    return [replace(check, needed=True) for check in _checks(_address(url), access)]


def _address(url: str) -> SplitResult:
    with suppress(ValueError):
        found = urlsplit(url)
        known = found.scheme in {"http", "https"} and found.port != 0
        if known and found.hostname and not (found.username or found.query or found.fragment):
            return found
    raise typer.BadParameter("use the address of a runner, such as http://runner:8765", param_hint="--runner")


def _checks(url: SplitResult, access: RunnerAccess) -> Iterator[Check]:
    host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = f"`{host}` has no address here: {reason(error)}"
        yield Check("address", State.FAILED, why, "use a name that this machine or container can resolve")
        return
    places = list(dict.fromkeys(str(row[4][0]) for row in rows))
    yield Check("address", State.OK, f"{host} is {', '.join(places)}")
    problems = {place: _problem(place, port) for place in places}
    reached = [place for place, problem in problems.items() if not problem]
    refusals = "; ".join(f"{place} port {port}: {problem}" for place, problem in problems.items() if problem)
    yield judged("connection", "" if reached else refusals, _LISTEN, f"to {', '.join(reached)} port {port}")
    if not reached:
        return
    try:
        sent, bare = access.credentials_of_run(), client_tls(access.ca_file)
    except WorkError as error:
        yield Check("credentials", State.FAILED, error.message, error.remedy or "")
        return
    token = sent.token or os.environ.get(_TOKEN, "").strip()
    if url.scheme == "http":
        yield _plain(access)
        yield from _answered(_health(url, host, port, None, token), token)
        return
    without = _health(url, host, port, bare, "" if access.certificate else token)
    found = _health(url, host, port, sent.context, token) if access.certificate and not without.problem else without
    if not found.problem:
        yield _certificate(access, without, found)
    if not found.cut:
        yield from _answered(found, token)


def _problem(place: str, port: int) -> str:
    try:
        socket.create_connection((place, port), timeout=_SECONDS).close()
    except TimeoutError:
        return f"no answer within {_SECONDS:g} seconds"
    except OSError as error:
        return reason(error)
    return ""


def _plain(access: RunnerAccess) -> Check:
    problem = "it is not shown over plain HTTP" if access.certificate else ""
    return judged(_CERTIFICATE, problem, "use the https address of the runner", "plain HTTP: none is requested")


def _certificate(access: RunnerAccess, without: _Health, found: _Health) -> Check:
    """Whether the runner demands a client certificate, and what became of the given one."""
    ours, expired = _described(access)
    if not without.cut:
        known = (found.document.get("caller") or {}).get("via") == "certificate"
        note = f"; yours was {'accepted' if known else 'not asked for'}: {ours}" if ours else ""
        return Check(_CERTIFICATE, State.OK, f"the runner demands none{note}")
    if not ours:
        why = f"the runner {without.cut}: most likely it demands one, and none is given"
        return Check(_CERTIFICATE, State.FAILED, why, _ISSUE)
    if found.cut:
        why = f"the runner {without.cut} without one, and refused yours ({found.cut}): {ours}"
        return Check(_CERTIFICATE, State.FAILED, why, "have it issued again: it has expired" if expired else _ISSUE)
    return Check(_CERTIFICATE, State.OK, f"the runner demands one and accepted yours: {ours}")


def _described(access: RunnerAccess) -> tuple[str, bool]:
    """The given certificate in words, empty if there is none; and whether it has expired."""
    if access.certificate is None:
        return "", False
    if (found := presented(access.certificate)) is None:
        return "its subject and validity are shown with the package cryptography (extra `sealed`)", False
    expired = found.ends < datetime.now(UTC)
    return f"{found.subject}, {'expired on' if expired else 'valid until'} {found.ends:%Y-%m-%dT%H:%M:%SZ}", expired


def _answered(found: _Health, token: str) -> Iterator[Check]:
    """The state of a runner, and whether it knows the token; a known caller sees the trust level."""
    if found.problem:
        yield Check("health", State.FAILED, found.problem, found.remedy)
        return
    level = found.document.get("trust_level")
    known = f"trust level {level}" if isinstance(level, int) else f"its trust level is shown with {_TOKEN}"
    problem = "" if found.status == http.HTTPStatus.OK else f"answered {found.status}"
    yield judged("health", problem, "see the log of the runner", f"answered {found.status}; {known}")
    if token and not problem:
        refused = "" if isinstance(level, int) else "the runner shows no trust level to it: it was not accepted"
        again = "use the token that the runner was started with, or a scoped one for it that is neither late nor used"
        yield judged("token", refused, again, "accepted")


def _health(url: SplitResult, host: str, port: int, context: ssl.SSLContext | None, token: str) -> _Health:
    """Ask as a caller does; with `context` over TLS."""
    try:
        status, document = _answer(url, host, port, context, token)
    except ssl.SSLCertVerificationError as error:
        why = f"its certificate cannot be verified: {error.verify_message}"
        return _Health(problem=why, remedy="name its authority with --ca-file, and use a name that its certificate has")
    except (ssl.SSLError, ConnectionError) as error:
        if context is None:
            return _Health(problem=f"no usable answer: {reason(error)}", remedy=_check_listener("https"))
        reason_text = (getattr(error, "reason", None) or "").lower().replace("_", " ")
        if isinstance(error, ssl.SSLError) and "alert" not in reason_text and not isinstance(error, ssl.SSLEOFError):
            return _Health(problem=f"TLS failed: {reason_text or reason(error)}", remedy=_check_listener("http"))
        return _Health(cut=f"ended TLS before it answered{f' ({reason_text})' if 'alert' in reason_text else ''}")
    except (OSError, http.client.HTTPException, ValueError) as error:
        return _Health(problem=f"no usable answer: {reason(error)}", remedy="check that a runner listens there")
    return _Health(status, document)


def _check_listener(scheme: str) -> str:
    return f"check that a runner listens there, and whether its address begins with {scheme}"


def _answer(
    url: SplitResult, host: str, port: int, context: ssl.SSLContext | None, token: str
) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
    if context is not None:
        connection = http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=context)
    try:
        try:
            headers = {"X-Agenta-Runner-Token": token} if token else {}
            connection.request("GET", f"{url.path.rstrip('/')}/health", headers=headers)
        except ConnectionError:
            if connection.sock is not None:
                connection.sock.recv(1)  # raises what the runner said before it closed
            raise
        response = connection.getresponse()
        document = json.loads(response.read(_ANSWER_BYTES))
    finally:
        connection.close()
    return response.status, document if isinstance(document, dict) else {}
