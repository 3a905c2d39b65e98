"""The policy of this repository: it builds, its own tests pass and cover every line, and nothing else is served."""

from __future__ import annotations

from pathlib import Path

from engine.binaries import find_binary
from engine.opa.command import OpaCommand
from engine.policy_bundle.testing import run_tests
from tests.opa.served import policy_of


def test_rules_pass_their_own_tests(cache: Path) -> None:
    run = run_tests(policy_of(cache), OpaCommand(find_binary().path))
    assert run.problems == ()
    assert run.passed > 50
