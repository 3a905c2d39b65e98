"""Commands in the sandbox with one way out: what reaches a local TLS server, and everything that must not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from engine.engine import Engine
from engine.settings import Settings
from engine.shell import ShellRun
from tests.adapters.gates import AGENT
from tests.command import decisions
from tests.facilities import needs
from tests.sources.https import BODY, HOST, Authority, response, serving
from tests.sources.test_fetch import World, authority, resolving

__all__ = ["authority"]

OTHER = "other.example.org"
pytestmark = needs("bubblewrap", "curl")


@pytest.fixture(scope="module")
def opened(module_settings: Settings, authority: Authority) -> Iterator[World]:
    with serving(authority.context()) as server:
        values = (
            f"networks.ports=[443, {server.port}]",
            f"networks.tunnels.hosts=[{HOST}]",
            'addresses.refused=[{cidr: 10.0.0.0/8, reason: a test, source: a test, date: "2026-01-01"}]',
        )
        with Engine(replace(module_settings, ca_file=authority.path), values=values) as engine:
            assert engine.policy is not None, engine.opa
            world = World(server, engine, authority, values, [])
            resolving(engine, world)
            yield world


@pytest.fixture
def world(opened: World) -> World:
    opened.server.answers(response())
    opened.looked_up.clear()
    opened.addresses = ("127.0.0.1",)
    return opened


def ran(world: World, text: str, *hosts: str) -> ShellRun:
    return world.engine.run_shell(text, hosts=hosts or (HOST,), context=AGENT)


def test_a_command_reaches_a_host_that_policy_and_caller_name(world: World) -> None:
    before = len(decisions(world.state))
    run = ran(world, f"curl -sS {world.server.url('/a?key=canary')} | tr a-z A-Z")
    assert run.ended is not None, run.answer
    assert (run.ended.stdout, run.ended.exit_code) == (BODY.decode().upper().encode(), 0), run
    assert [(one.url, one.outcome) for one in run.connections] == [(f"https://{HOST}:{world.server.port}/", "closed")]
    points = [(one["point"], one["outcome"]) for one in decisions(world.state)[before:]]
    assert points == [("sandbox", "allow"), ("network", "allow")]


def test_a_host_that_policy_does_not_name_is_not_connected_to(world: World) -> None:
    run = ran(world, f"curl -sS {world.server.url(host=OTHER)}", HOST, OTHER)
    assert run.ended is not None, run.answer
    assert run.ended.exit_code == 56, run
    assert [(one.outcome, one.codes) for one in run.connections] == [("refused", ["host_not_allowlisted"])]
    assert (world.server.connections, world.looked_up) == (0, [])
