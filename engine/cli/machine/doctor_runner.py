"""`engine doctor --runner URL`: what of a runner can be reached from here, where its callers are.

A runner that listens on 127.0.0.1 passes a health check in its own container while nobody else can connect. So every
address of the host is tried from this machine, and `/health` is asked over the same connection that a run would use.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import typer

from engine.cli.machine.machine import Check, State, judged, reason

_SECONDS = 5.0
"""For each connection and each answer; a runner answers `/health` in milliseconds."""

_ANSWER_BYTES = 64 << 10

_TOKEN = "AGENTA_AGENT_RUNNER_TOKEN"  # noqa: S105  (the name of a variable)

_LISTEN = (
    "let the runner listen on an address that callers reach: set AGENTA_AGENT_RUNNER_HOST and a token where it runs; "
    "by default it listens on 127.0.0.1, where only its own machine or container can connect"
)


def examine(url: str, ca_file: Path | None) -> list[Check]:
    """The checks of a runner, in the order of the report; all are needed. Raises typer.BadParameter."""
    return [replace(check, needed=True) for check in _checks(_address(url), ca_file)]


def _address(url: str) -> SplitResult:
    with suppress(ValueError):
        found = urlsplit(url)
        known = found.scheme in {"http", "https"} and found.port != 0
        if known and found.hostname and not (found.username or found.query or found.fragment):
            return found
    raise typer.BadParameter("use the address of a runner, such as http://runner:8765", param_hint="--runner")


def _checks(url: SplitResult, ca_file: Path | None) -> Iterator[Check]:
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
    told = "; ".join(f"{place} port {port}: {problem}" for place, problem in problems.items() if problem)
    yield judged("connection", "" if reached else told, _LISTEN, f"to {', '.join(reached)} port {port}")
    if reached:
        yield _health(url, host, port, ca_file)


def _problem(place: str, port: int) -> str:
    try:
        socket.create_connection((place, port), timeout=_SECONDS).close()
    except TimeoutError:
        return f"no answer within {_SECONDS:g} seconds"
    except OSError as error:
        return reason(error)
    return ""


def _health(url: SplitResult, host: str, port: int, ca_file: Path | None) -> Check:
    """Ask as a caller does; the token of the environment, where there is one, shows the trust level."""
    try:
        status, document = _answer(url, host, port, ca_file)
    except ssl.SSLError as error:
        why = f"TLS failed: {(error.reason or reason(error)).lower().replace('_', ' ')}"
        return Check(
            "health", State.FAILED, why, "name its authority with --ca-file; client certificates are not tried"
        )
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Check("health", State.FAILED, f"no usable answer: {reason(error)}", "check that a runner listens there")
    level = document.get("trust_level")
    known = f"trust level {level}" if isinstance(level, int) else f"its trust level is shown with {_TOKEN}"
    problem = "" if status == http.HTTPStatus.OK else f"answered {status}"
    return judged("health", problem, "see the log of the runner", f"answered {status}; {known}")


def _answer(url: SplitResult, host: str, port: int, ca_file: Path | None) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
    if url.scheme == "https":
        context = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
        connection = http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=context)
    token = os.environ.get(_TOKEN, "").strip()
    try:
        connection.request(
            "GET", f"{url.path.rstrip('/')}/health", headers={"X-Agenta-Runner-Token": token} if token else {}
        )
        response = connection.getresponse()
        document = json.loads(response.read(_ANSWER_BYTES))
    finally:
        connection.close()
    return response.status, document if isinstance(document, dict) else {}
