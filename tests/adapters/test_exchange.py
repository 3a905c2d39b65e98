"""One request of a runner to a callback or a platform: whom it trusts, what bounds it, and that a stop closes it."""

from __future__ import annotations

import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.x509.oid import NameOID

from admission_adapters.runner.exchange import Bounds, NoAnswerError, exchange
from engine.errors import WorkError
from engine.model import StopSignal
from tests.api.test_access import Authority
from tests.expect import refused
from tests.processes import until
from tests.runners import Handler, answering, dripping, raw, running

WITHIN = Bounds(60.0, 1_000)


# covers: C68.1
def test_a_stop_closes_the_connection() -> None:
    closed = threading.Event()

    def waiting(handler: Handler) -> None:
        if handler.connection.recv(1) == b"":
            closed.set()

    stop = StopSignal()
    with running(waiting) as found, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(exchange, WITHIN, "POST", found.address, {}, {}, stop)
        until(lambda: found.received)
        assert not closed.is_set()
        stop.set()
        with pytest.raises(NoAnswerError, match="stopped"):
            asked.result(60)
        assert closed.wait(60)
        with pytest.raises(NoAnswerError, match="stopped"):
            exchange(WITHIN, "POST", found.address, {}, {}, stop)
        assert len(found.received) == 1
    assert not stop.awaited


def test_the_answer_is_bounded_and_comes_from_a_host_of_a_trusted_authority(tmp_path: Path) -> None:
    authority, context = Authority(tmp_path), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("callback", (NameOID.COMMON_NAME, "callback")))
    trusting = Bounds(60.0, 1_000, authority.path)
    with running(answering(b"x" * 1_000), context) as found:
        assert exchange(trusting, "POST", found.address, {}, {}, StopSignal()) == (200, b"x" * 1_000)
        with pytest.raises(NoAnswerError, match="cannot be reached"):
            exchange(WITHIN, "POST", found.address, {}, {}, StopSignal())
        with refused(WorkError, "engine.work_failed"):
            exchange(Bounds(60.0, 1_000, tmp_path / "gone"), "POST", found.address, {}, {}, StopSignal())
        assert len(found.received) == 1
        found.behavior = answering(b"x" * 1_001)
        with pytest.raises(NoAnswerError, match="larger than 1000 bytes"):
            exchange(trusting, "POST", found.address, {}, {}, StopSignal())
    with running(raw(b"")) as found, pytest.raises(NoAnswerError, match="closed the connection"):
        exchange(WITHIN, "GET", found.address, None, {}, StopSignal())


def test_a_byte_by_byte_answer_does_not_extend_the_deadline() -> None:
    slow = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    with running(slow) as found, pytest.raises(NoAnswerError, match=r"within 0\.5 seconds"):
        exchange(Bounds(0.5, 100), "POST", found.address, {}, {}, StopSignal())
