"""Lookups: all addresses in time, or none; a resolver that never answers costs its places and nothing more."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from admission_adapters.runner.resolver import LookupLimits, Resolver
from engine.engine import Engine
from engine.settings import Settings
from tests.expect import there
from tests.processes import until
from tests.threads import at_once

V4, V6 = socket.AF_INET, socket.AF_INET6


def row(family: int, *place: Any) -> tuple[Any, ...]:
    return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place)


def answers(*rows: tuple[Any, ...]) -> tuple[str, ...] | None:
    """What comes of these rows of the system."""
    return Resolver(lookup=lambda _: rows).addresses("a.example.org")


class Waiting:
    """A resolver that answers when it is told to."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.asked = threading.Semaphore(0)

    def __call__(self, _: str) -> Sequence[Any]:
        self.asked.release()
        self.go.wait(30)
        return [row(V4, "8.8.8.8", 0)]


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    lookup = Waiting()
    yield lookup
    lookup.go.set()


def test_lookups_use_the_system_resolver() -> None:
    found = there(Resolver(LookupLimits(seconds=20)).addresses("localhost"))
    assert set(found) <= {"127.0.0.1", "::1"}


def test_addresses_are_unique_and_sorted() -> None:
    rows = [row(V6, "2606:4700::1", 0, 0, 0), row(V4, "9.9.9.9", 0), row(V4, "8.8.8.8", 0), row(V4, "9.9.9.9", 0)]
    assert answers(*rows) == ("2606:4700::1", "8.8.8.8", "9.9.9.9")


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (("fe80::1", 0, 0, 2), "fe80::1%2"),
        (("fe80::1%eth0", 0, 0, 2), "fe80::1%eth0"),
        (("fe80::1", 0, 0, 0), "fe80::1"),
    ],
)
def test_a_scope_is_kept(place: tuple[Any, ...], text: str) -> None:
    assert answers(row(V6, *place)) == (text,)


def test_an_empty_foreign_or_oversized_answer_is_discarded() -> None:
    assert answers() is None
    assert answers(row(V4, "8.8.8.8", 0), row(socket.AF_UNIX, "/x")) is None
    assert answers(*(row(V4, f"8.8.8.{index}", 0) for index in range(65))) is None
    assert len(there(answers(*(row(V4, f"8.8.8.{index}", 0) for index in range(64))))) == 64


@pytest.mark.parametrize("error", [socket.gaierror(-2, "not known"), UnicodeError("too long"), OSError(24, "no files")])
def test_a_failed_lookup_has_no_answer(error: Exception) -> None:
    def failing(_: str) -> Sequence[Any]:
        raise error

    assert Resolver(lookup=failing).addresses("a.example.org") is None


def test_a_late_answer_is_discarded(waiting: Waiting) -> None:
    resolver = Resolver(LookupLimits(seconds=0.05), waiting)
    assert resolver.addresses("a.example.org") is None
    waiting.go.set()  # the control: the same resolver answers when it is not late
    assert Resolver(LookupLimits(seconds=20), waiting).addresses("a.example.org") == ("8.8.8.8",)


def test_abandoned_lookups_hold_their_slots_until_they_end(waiting: Waiting) -> None:
    resolver = Resolver(LookupLimits(seconds=0.05, threads=2), waiting)
    before = set(threading.enumerate())
    assert [resolver.addresses("a.example.org") for _ in range(4)] == [None] * 4
    assert [thread.name for thread in set(threading.enumerate()) - before].count("lookup") == 2
    waiting.go.set()
    until(lambda: resolver.addresses("a.example.org") == ("8.8.8.8",))  # a place is free once one of them has ended


def test_concurrent_lookups_wait_for_a_slot() -> None:
    resolver = Resolver(LookupLimits(seconds=20, threads=2), lambda host: [row(V4, host, 0)])
    found = at_once(partial(resolver.addresses, f"8.8.8.{n}") for n in range(20))
    assert found == [(f"8.8.8.{n}",) for n in range(20)]


def test_a_lookup_without_a_thread_fails_and_frees_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    resolver = Resolver(LookupLimits(seconds=20, threads=1), lambda _: [row(V4, "8.8.8.8", 0)])
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", exhausted)
        assert resolver.addresses("a.example.org") is None
    assert resolver.addresses("a.example.org") == ("8.8.8.8",)


def test_a_closed_resolver_looks_nothing_up() -> None:
    resolver = Resolver(lookup=lambda _: [row(V4, "8.8.8.8", 0)])
    resolver.close()
    assert resolver.addresses("a.example.org") is None


def test_the_engine_uses_the_resolver_and_closes_it(settings: Settings) -> None:
    with Engine(settings) as engine:
        look = there(engine.services).gather_context.addresses
        assert look("localhost")
    assert look("localhost") is None
