"""What the tests of OPA as a process share: the policy of this tree, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.policy_bundle.build import PolicyBundle
from tests.opa.served import policy_of


def pytest_itemcollected(item: pytest.Item) -> None:
    """They are about the process."""
    item.add_marker("own_opa")


@pytest.fixture(scope="module")
def policy(cache: Path) -> PolicyBundle:
    return policy_of(cache)
