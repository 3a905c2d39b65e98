"""What the tests of OPA as a process share: the policy of this tree, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.policy_bundle.build import PolicyBundle
from tests.opa.served import policy_of


@pytest.fixture(scope="module")
def policy(cache: Path) -> PolicyBundle:
    return policy_of(cache)
