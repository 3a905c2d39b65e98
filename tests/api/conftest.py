"""One serving engine a module: a start costs seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.serving import Serving, serving
from tests.conftest import BUNDLES
from tests.postgres import Server
from tests.postgres import running as running_postgres


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("serving"), cache, "--root", BUNDLES) as running:
        yield running


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with running_postgres() as server:
        yield server
