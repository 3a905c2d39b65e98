"""A server on this machine and an engine whose policy admits it, for fetches over real TLS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from engine.engine import AsyncEngine, Engine
from engine.fetching import Fetched, FetchOrder
from engine.settings import Settings
from tests.sources.https import HOST, Authority, Server, serving

REACHABLE = 'addresses.refused=[{cidr: 10.0.0.0/8, reason: a test, source: a test, date: "2026-01-01"}]'
"""The value under which a server on this machine may be reached."""


@dataclass(slots=True)
class World:
    """A server, an engine whose policy admits it, and the hosts that were looked up."""

    server: Server
    engine: Engine
    authority: Authority
    values: tuple[str, ...]
    looked_up: list[str]
    addresses: tuple[str, ...] = ("127.0.0.1",)

    def look(self, host: str) -> tuple[str, ...]:
        self.looked_up.append(host)
        return self.addresses

    def order(self, into: Path, *urls: str, **changes: Any) -> FetchOrder:
        found = FetchOrder(urls or (self.server.url(),), into, "CC-BY-4.0", (HOST,))
        return replace(found, **changes)

    def fetch(self, into: Path, *urls: str, **changes: Any) -> Fetched:
        return self.engine.fetch(self.order(into, *urls, **changes))

    @property
    def state(self) -> Path:
        return self.engine.settings.state


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@contextmanager
def at_world(settings: Settings, authority: Authority, *values: str) -> Iterator[World]:
    """A server on this machine, and an engine whose policy has its port and these values; `PORT` in them is that."""
    with serving(authority.context()) as server:
        known = (
            f"networks.ports=[443, {server.port}]",
            REACHABLE,
            *(value.replace("PORT", str(server.port)) for value in values),
        )
        with Engine(replace(settings, ca_file=authority.path), values=known) as engine:
            assert engine.policy is not None, engine.opa
            world = World(server, engine, authority, known, [])
            resolving(engine, world)
            yield world


def resolving(engine: Engine | AsyncEngine, world: World) -> None:
    assert engine.services is not None
    context = replace(engine.services.gather_context, addresses=world.look)
    engine.services = replace(engine.services, gather_context=context)


def codes(done: Fetched) -> list[str]:
    return sorted({finding.code for finding in done.answers[-1].decision.findings})
