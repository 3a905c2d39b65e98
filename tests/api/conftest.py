"""One serving engine a module: a start costs seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.serving import Serving, serving
from tests.conftest import BUNDLES


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("serving"), cache, "--root", BUNDLES) as running:
        yield running
