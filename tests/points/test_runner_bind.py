"""Who can reach a listener is read from its address alone, and no default ever listens everywhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import pytest

from engine.cases.run import Runner
from engine.facts.net.addresses import bound_address
from engine.model import Gate
from engine.points import GatherContext
from engine.points.runner_bind import BindInput, BindRequest, gather
from tests.conftest import ROOT
from tests.expect import of
from tests.values.shipped import SHIPPED


@pytest.mark.parametrize(
    ("text", "reach"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.0.9", "loopback"),
        ("::1", "loopback"),
        ("0:0:0:0:0:0:0:1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("localhost", "loopback"),
        ("0.0.0.0", "unspecified"),  # noqa: S104
        ("::", "unspecified"),
        ("::ffff:0.0.0.0", "unspecified"),
        ("10.0.0.1", "private"),
        ("172.16.0.1", "private"),
        ("192.168.1.1", "private"),
        ("fd00::1", "private"),
        ("::ffff:10.0.0.1", "private"),
        ("100.64.0.1", "shared"),
        ("169.254.169.254", "link_local"),
        ("fe80::1", "link_local"),
        ("8.8.8.8", "global"),
        ("2606:4700::1111", "global"),
        ("::ffff:8.8.8.8", "global"),
        ("224.0.0.1", "other"),
        ("ff02::1", "other"),
        ("240.0.0.1", "other"),
        ("127.1", "name"),
        ("127.0.0.1.", "name"),
        ("0177.0.0.1", "name"),
        ("0x7f000001", "name"),
        ("2130706433", "name"),
        ("0", "name"),
        ("*", "name"),
        ("[::1]", "name"),
        ("127.0.0.1:80", "name"),
        ("localhost.", "name"),
        ("LOCALHOST", "name"),
        ("localhost.example.com", "name"),
        ("", "name"),
        (" 127.0.0.1", "name"),
        ("127.0.0.1\n", "name"),
        ("\uff11\uff12\uff17.0.0.1", "name"),
    ],
)
def test_the_reach_follows_from_the_address(text: str, reach: str) -> None:
    assert bound_address(text)[1] == reach


def test_an_address_is_normalized() -> None:
    assert bound_address("0:0:0:0:0:0:0:1")[0] == "::1"
    assert bound_address("runner.internal")[0] == "runner.internal"


# covers: H22
def test_the_guard_comes_from_the_engine_and_not_from_the_request() -> None:
    request = BindRequest(host="0.0.0.0", port=1, published=False)  # noqa: S104
    for gate in (Gate(), Gate(shared_token=True)):
        world = GatherContext(clock=lambda: 0, boundaries=lambda: (), gate=gate)
        gathered = of(BindInput, gather(request, world).input)
        assert gathered.gate == gate
        assert gathered.listener.reach == "unspecified"


@pytest.mark.parametrize("host", ["", " ", "0.0.0.0\n", "a b", "ä", "x" * 254])
def test_an_invalid_host_makes_the_request_invalid(host: str, runner: Runner) -> None:
    got = runner.engine({}).check("runner_bind", {"host": host, "port": 1, "published": False})
    assert [finding.code for finding in got.decision.findings] == ["engine.request_invalid"]


@pytest.mark.parametrize("port", [-1, 65_536, True, "80", 1.5, None])
def test_an_invalid_port_makes_the_request_invalid(port: Any, runner: Runner) -> None:
    got = runner.engine({}).check("runner_bind", {"host": "127.0.0.1", "port": port, "published": False})
    assert [finding.code for finding in got.decision.findings] == ["engine.request_invalid"]


# covers: D01.2
def test_no_default_setting_listens_everywhere() -> None:
    """Whatever a setting may be by default stands as a text in the sources or in the values."""
    found = {text for text in _texts_of_the_project() if bound_address(text)[1] == "unspecified"}
    assert not found


def test_the_scan_for_defaults_detects_an_open_listener() -> None:
    """Positive control: a default of any of these forms would be noticed."""
    tree = ast.parse('HOST = "0.0.0.0"\n\ndef serve(host: str = "::") -> None:\n    """Not 0.0.0.0."""\n')
    assert [bound_address(text)[1] for text in _constants(tree)] == ["unspecified", "unspecified", "name"]
    assert [bound_address(text)[1] for text in _values({"a": [{"b": "0.0.0.0"}]})] == ["unspecified"]  # noqa: S104
    assert set(_texts_of_the_project()) >= {"127.0.0.1", "http://127.0.0.1:8765/"}


_FORMATS = ROOT / "engine" / "cli" / "formats"
"""There `::` begins a command of a CI service."""


def _texts_of_the_project() -> Iterator[str]:
    for folder in ("engine", "adapters"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.is_relative_to(_FORMATS):
                continue
            yield from _constants(ast.parse(path.read_text(encoding="utf-8")))
    yield from _values(SHIPPED)


def _constants(tree: ast.AST) -> Iterator[str]:
    yield from (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _values(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _values(inner)
    elif isinstance(value, str):
        yield value
