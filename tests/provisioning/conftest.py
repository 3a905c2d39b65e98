"""Engines for agents: one for a file, of tests that mount none, and one for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.engine import Engine
from engine.settings import Settings

ONLY = frozenset({"provisioning"})


@pytest.fixture
def engine(settings: Settings) -> Iterator[Engine]:
    with Engine(settings, points=ONLY) as running:
        yield running


@pytest.fixture(scope="module")
def empty(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings, points=ONLY) as running:
        yield running
