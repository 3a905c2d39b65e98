"""One engine for the episodes of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.engine import Engine
from engine.settings import Settings


@pytest.fixture(scope="module")
def engine(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings) as running:
        yield running
