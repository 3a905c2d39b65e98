"""One engine for the agents of a file, and a specification."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.engine import Engine
from engine.settings import Settings


@pytest.fixture
def engine(settings: Settings) -> Iterator[Engine]:
    with Engine(settings, points=frozenset({"provisioning"})) as running:
        yield running
