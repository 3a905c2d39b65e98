"""Which runner counts, and what an address has to look like before a rule may compare it."""

from __future__ import annotations

from typing import Any

import pytest

from engine.cases.run import Runner
from engine.facts.net.urls import origin_facts
from engine.points import GatherContext
from engine.points.runner_uri import UriInput, UriRequest, gather
from tests.expect import of

WORLD = GatherContext(clock=lambda: 0, boundaries=lambda: ())


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://runner.example.com/", "https://runner.example.com"),
        ("https://runner.example.com", "https://runner.example.com"),
        ("http://127.0.0.1:8765", "http://127.0.0.1:8765"),
        ("https://runner.example.com/a/b", "https://runner.example.com"),
        ("https://runner.example.com:8443/", "https://runner.example.com:8443"),
        ("http://127.0.0.1:8765/", "http://127.0.0.1:8765"),
        ("http://127.0.0.1/", "http://127.0.0.1"),
        ("http://[::1]:8765/a/", "http://[::1]:8765"),
        ("http://localhost:8765/a", "http://localhost:8765"),
    ],
)
def test_a_canonical_address_has_an_origin(text: str, origin: str) -> None:
    facts = origin_facts(text)
    assert (facts.canonical, facts.origin) == (True, origin)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "runner.example.com",
        "https://",
        "https://runner.example.com?a=b",
        "https://runner.example.com/?a=b",
        "https://runner.example.com/#a",
        "https://user@runner.example.com/",
        "https://runner.example.com\\@evil.org/",
        "https://RUNNER.example.com/",
        "https://runner.example.com:443/",
        "https://runner.example.com./",
        "https://127.0.0.1/",
        "https://runner.example.com/\n",
        "http://runner.example.com/",
        "http://10.0.0.1:8765/",
        "http://127.1:8765/",
        "http://127.0.0.2:8765/",
        "http://127.0.0.1:80",
        "http://127.0.0.1:80/",
        "http://127.0.0.1:65536/",
        "http://127.0.0.1:08765/",
        "http://127.0.0.1:8765/../a",
        "http://127.0.0.1:8765/a//b",
        "http://127.0.0.1:8765/?a=b",
        "http://127.0.0.1:8765@evil.org/",
        "http://localhost.:8765/",
        "http://localhost.evil.org/",
        "file:///etc/passwd",
        "unix:///run/runner.sock",
        "https://" + "a" * 2_048 + ".example.com/",
    ],
)
def test_a_non_canonical_address_has_no_origin(text: str) -> None:
    facts = origin_facts(text)
    assert (facts.canonical, facts.origin) == (False, None)


# covers: D43
@pytest.mark.parametrize(
    ("request_", "source"),
    [
        ({"inherited": None}, "default"),
        ({"inherited": " "}, "default"),
        ({"inherited": "https://a.example.com/"}, "inherited"),
        ({"inherited": "https://a.example.com/", "override": None}, "default"),
        ({"inherited": "https://a.example.com/", "override": ""}, "default"),
        ({"inherited": "https://a.example.com/", "override": " \t\n"}, "default"),
        ({"inherited": "https://a.example.com/", "override": "https://b.example.com/"}, "override"),
        ({"inherited": None, "override": "https://b.example.com/"}, "override"),
    ],
)
def test_a_present_override_key_takes_precedence_even_if_blank(request_: dict[str, Any], source: str) -> None:
    assert _facts(request_).source == source


def test_an_address_that_is_not_canonical_is_not_shown() -> None:
    facts = _facts({"inherited": None, "override": "https://user:canary@a.example.com/?key=canary"})
    assert "canary" not in facts.model_dump_json()


# covers: D41.2
def test_a_refused_address_yields_no_limits(runner: Runner) -> None:
    """A caller that resolves anything only with the address in its limits resolves nothing."""
    engine = runner.engine({})
    refused = engine.decide("runner_uri", {"inherited": None, "override": "https://evil.example.org/"})
    assert refused.decision.limits is None
    allowed = engine.decide("runner_uri", {"inherited": None})
    assert allowed.decision.limits is not None


def _facts(request: dict[str, Any]) -> Any:
    return of(UriInput, gather(UriRequest.model_validate(request), WORLD).input).uri
