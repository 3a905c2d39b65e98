"""What all tests share: one policy cache, a scratch state, engines on a real OPA."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cases import CaseFile, Runner, read_cases
from engine.settings import Settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell started the tests in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent
BUNDLES = ROOT / "fixtures" / "source_bundles"
CASES = read_cases(ROOT / "fixtures" / "cases")
NOW = "2026-11-21T00:00:00Z"


def case_id(file: CaseFile) -> str:
    return f"{file.path.parent.name}/{file.path.stem}"


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One policy cache for all workers: the same policy is built once."""
    return tmp_path_factory.getbasetemp().parent / "xdg-cache" / "admission-engine"


@pytest.fixture(scope="session")
def shared_settings(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Settings:
    return Settings(state=tmp_path_factory.mktemp("state"), cache=cache)


@pytest.fixture
def settings(tmp_path: Path, cache: Path) -> Settings:
    """A state of its own for each test."""
    return Settings(state=tmp_path / "state", cache=cache)


@pytest.fixture(scope="session")
def runner(shared_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with Runner(shared_settings, tmp_path_factory.mktemp("cases")) as running:
        yield running


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> None:
    """No test touches the state or cache of whoever runs it."""
    monkeypatch.setenv("ENGINE_STATE_DIR", str(tmp_path / "default-state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
