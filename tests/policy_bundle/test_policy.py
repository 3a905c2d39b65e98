"""The policy of this repository: it builds, its own tests pass and reach every line, and nothing else is served."""

from __future__ import annotations

from pathlib import Path

from engine.opa.binary import find_binary
from engine.opa.command import OpaCommand
from engine.points.registry import POINTS
from engine.policy_bundle.build import build
from engine.policy_bundle.sources import PolicySources
from engine.policy_bundle.testing import run_tests
from engine.settings import Settings


def test_rules_pass_their_own_tests(cache: Path) -> None:
    settings = Settings(cache=cache)
    binary = find_binary()
    bundle = build(PolicySources(settings.rego, settings.policy, settings.recipe), POINTS, binary, cache)
    run = run_tests(bundle, OpaCommand(binary.path))
    assert run.problems == ()
    assert run.passed > 50
