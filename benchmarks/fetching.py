"""F1: an admitted fetch of 1 MiB of JSON over TLS on loopback, divided by the same GET with httpx and nothing else.

An engine in this process, its record on disk, the server in a process of its own. The fetch takes two decisions and
records them and their results, reads the JSON strictly, hashes it, and makes a durable source bundle; httpx only
gets the bytes. Both open a new connection each time, with a TLS context that exists already. F1 floor is what no order
of these steps can save: the same GET, one hash and one reading of the JSON, and a folder made durable.

F3: the same GET of a small answer, and of 1 MiB, through the proxy of a sandbox, divided by the direct one: a decision
that is recorded before, its result after, and bytes that pass through this process.

F2: how long after its deadline of one second a fetch ends, whose server sends a piece every twentieth of a second.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx

from benchmarks.measure import Bench, NotMeasuredError, Row, interleaved
from engine.engine import Engine
from engine.fetching import FetchOrder
from engine.flow import Context
from engine.points.sandbox import EgressLimits
from engine.settings import Settings
from engine.shell import tunnel_server
from tests.sources.https import HOST, Authority, Script, drips, response, serving

_BYTES = 1 << 20
_GOAL = 1.3
_LATE = 0.5
_AT_ONCE = 5
"""Fetches of one round: one alone takes milliseconds."""


def rows(bench: Bench) -> Iterator[Row]:
    """The rows that were asked for."""
    if "F1" in bench.asked:
        yield from _speed(bench)
    if "F2" in bench.asked:
        yield from _late(bench)
    if "F3" in bench.asked:
        yield from _tunnelled(bench)


def _speed(bench: Bench) -> Iterator[Row]:
    """Wall time of fetches, and the floor."""
    folder = bench.folder("f1")
    authority = Authority(folder)
    with _served(authority, response(_body())) as port, _engine(bench, folder, authority, port) as engine:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(authority.path)
        bare = partial(_bare, context, port)
        made = folder / "floor"
        parts = [
            partial(_fetched, engine, port, folder / "into"),
            partial(_timed, bare),
            partial(_timed, partial(_floor, context, port, made), made),
        ]
        found = interleaved(parts, bench.rounds, partial(bench.report_round, "F1"))
    yield Row("F1", "admitted fetch of 1 MiB over TLS ÷ bare httpx", _GOAL, tuple(one / of for one, of, _ in found))
    yield Row(
        "F1 floor", "httpx, hash, JSON and a durable folder ÷ bare httpx", None, tuple(f / b for _, b, f in found)
    )


def _tunnelled(bench: Bench) -> Iterator[Row]:
    """Wall time of connections through the proxy, which listens on this machine instead of in a sandbox."""
    folder = bench.folder("f3")
    authority = Authority(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.path)
    limits = EgressLimits(at_once=1, most=10_000, sent_bytes=1 << 30, received_bytes=1 << 40)
    for name, body in (("a small answer", b"{}"), ("1 MiB", _body())):
        with (
            _served(authority, response(body)) as port,
            _engine(bench, folder, authority, port, f"networks.tunnels.hosts=[{HOST}]") as engine,
            socket.create_server(("127.0.0.1", 0)) as listener,
        ):
            server = tunnel_server((HOST,), limits, engine.opened, Context())
            proxy = f"http://127.0.0.1:{listener.getsockname()[1]}"
            server.begin(listener)
            parts = [
                partial(_timed, partial(_through, context, port, proxy)),
                partial(_timed, partial(_bare, context, port)),
            ]
            found = interleaved(parts, bench.rounds, partial(bench.report_round, f"F3 {name}"))
            server.end(cancelled=False)
        what = f"GET of {name} through a decided tunnel ÷ direct"
        yield Row("F3", what, None, tuple(one / of for one, of in found))


def _through(context: ssl.SSLContext, port: int, proxy: str) -> bytes:
    with httpx.Client(verify=context, trust_env=False, proxy=proxy) as client:
        return client.get(f"https://{HOST}:{port}/contacts.json").raise_for_status().content


_DRIPS = {
    "head": [b"HTTP/1.1 200 OK\r\n", *[b"X: y\r\n"] * 10_000],
    "body": [response(b"", length=_BYTES), *[b"0"] * 10_000],
    "interim answers": [b"HTTP/1.1 100 Continue\r\n\r\n"] * 10_000,
}


def _late(bench: Bench) -> Iterator[Row]:
    """Seconds between the deadline and the end of a whole run, its decisions included."""
    folder = bench.folder("f2")
    authority = Authority(folder)
    for name, pieces in _DRIPS.items():
        with _served(authority, drips(pieces)) as port:
            found = _seconds(bench, folder, authority, port)
            yield Row("F2", f"end of a fetch after its deadline, dripping {name}", _LATE, found, "s")


def _seconds(bench: Bench, folder: Path, authority: Authority, port: int) -> tuple[float, ...]:
    seconds = []
    with _engine(bench, folder, authority, port, "networks.fetch.seconds=1") as engine:
        for number in range(bench.rounds):
            bench.report_round("F2", number + 1, bench.rounds)
            start = time.perf_counter()
            done = engine.fetch(_order(port, folder / "into"))
            seconds.append(time.perf_counter() - start - 1)
            codes = [finding.code for finding in done.answers[-1].decision.findings]
            if codes != ["fetch_deadline_exceeded"]:
                raise NotMeasuredError(f"F2 measures something else: {codes} {done.fault}")
    return tuple(seconds)


def _order(port: int, into: Path) -> FetchOrder:
    return FetchOrder((f"https://{HOST}:{port}/contacts.json",), into, "CC-BY-4.0", (HOST,))


def _body() -> bytes:
    """A list of contacts of about 1 MiB."""
    contacts = [{"id": at, "name": f"Contact {at}", "city": "Bern", "note": "x" * 40} for at in range(_BYTES // 100)]
    return json.dumps(contacts).encode()


@contextmanager
def _served(authority: Authority, script: Script | bytes) -> Iterator[int]:
    """The port of a server that answers like this, in a process of its own."""
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    process = fork.Process(target=_serve, args=(authority, script, there), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        here.send(None)
        process.join()


def _serve(authority: Authority, script: Script | bytes, end: Connection) -> None:
    with serving(authority.context()) as server:
        server.answers(script)
        end.send(server.port)
        end.recv()


@contextmanager
def _engine(bench: Bench, folder: Path, authority: Authority, port: int, *more: str) -> Iterator[Engine]:
    values = (
        f"networks.ports=[443, {port}]",
        'addresses.refused=[{cidr: 10.0.0.0/8, reason: loopback, source: a benchmark, date: "2026-01-01"}]',
        *more,
    )
    settings = Settings(state=folder / "state", cache=bench.cache, ca_file=authority.path)
    with Engine(settings, values=values) as engine:
        services = engine.opened
        context = replace(services.gather_context, addresses=lambda _: ("127.0.0.1",))
        engine.services = replace(services, gather_context=context)
        yield engine


def _fetched(engine: Engine, port: int, into: Path) -> float:
    def one() -> None:
        done = engine.fetch(_order(port, into))
        if done.folder is None:
            raise NotMeasuredError(f"F1 measures a refusal: {done.answers[-1].decision.findings} {done.fault}")

    return _timed(one, into)


def _bare(context: ssl.SSLContext, port: int) -> bytes:
    with httpx.Client(verify=context, trust_env=False) as client:
        address = f"https://127.0.0.1:{port}/contacts.json"
        answer = client.get(address, headers={"host": f"{HOST}:{port}"}, extensions={"sni_hostname": HOST})
        return answer.raise_for_status().content


def _floor(context: ssl.SSLContext, port: int, folder: Path) -> None:
    data = _bare(context, port)
    json.loads(data)
    (folder / "content").mkdir(parents=True)
    for name, text in (("content/contacts.json", data), ("bundle.yaml", hashlib.sha256(data).hexdigest().encode())):
        with (folder / name).open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    for one in (folder / "content", folder, folder.parent):
        descriptor = os.open(one, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _timed(one: Any, made: Path | None = None) -> float:
    """Seconds of some of these in turn, without those of removing what they made."""
    seconds = 0.0
    for _ in range(_AT_ONCE):
        start = time.perf_counter()
        one()
        seconds += time.perf_counter() - start
        if made is not None:
            shutil.rmtree(made)
    return seconds
