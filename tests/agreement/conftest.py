"""One release of the policy, signed, for all tests of agreements; they copy it before they change it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.binaries import find_binary
from engine.points.registry import POINTS
from engine.policy_bundle.build import build
from engine.policy_bundle.sources import PolicySources
from tests.conftest import ROOT
from tests.policy_bundle.releases import Keys, released


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys.make(tmp_path_factory.mktemp("made") / "keys")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, cache: Path, keys: Keys) -> Path:
    """Release 2."""
    sources = PolicySources(ROOT / "rego", ROOT / "policy", ROOT / "bundles" / "default")
    return released(build(sources, POINTS, find_binary(), cache), tmp_path_factory.mktemp("made") / "r2", keys, 2)
