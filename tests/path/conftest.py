"""The bench of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.state import open_store
from tests.path.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    store = open_store(tmp_path / "state")
    yield Bench(store)
    store.close()
