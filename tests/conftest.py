"""What all tests share: one policy cache, a scratch state, engines on a real OPA."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from engine.cases import CaseFile, Runner, read_cases
from engine.files import load
from engine.record.patterns import know
from engine.secret_forms import SecretForms
from engine.settings import ReadLimits, Settings
from tests.covers import CASE_TEST, Place, expand, places
from tests.facilities import missing

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell started the tests in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis_settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("untimed")

ROOT = Path(__file__).parent.parent
BUNDLES = ROOT / "fixtures" / "source_bundles"
CASES = read_cases(ROOT / "fixtures" / "cases")
FORMS = SecretForms.of(load((ROOT / "policy/secrets.yaml").read_bytes(), "secrets.yaml", ReadLimits()).value)
"""The forms of secrets of this project's policy."""

know(FORMS)  # as an engine does when it starts: the record is tested with them
NOW = "2026-11-21T00:00:00Z"


def lowered(level: str) -> str:
    """A row of policy/levels.yaml that lowers any refusal to this level."""
    return f'{{level: {level}, owner: owner@example.org, reason: a test, until: "2100-01-01"}}'


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


def pytest_runtest_setup(item: pytest.Item) -> None:
    for facility in (name for marker in item.iter_markers("machine") for name in marker.args):
        if (lack := missing(facility)) is not None:
            pytest.skip(f"NOT TRIED, this machine has no {facility}: {lack}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the acceptance cases that no test of this run has shown, because those that show them were skipped."""
    skipped = terminalreporter.getreports("skipped")
    if not skipped:
        return
    by_name = {place.name: place for place in places()}
    shown = {case for report in terminalreporter.getreports("passed") for case in _shown(report.nodeid, by_name)}
    unshown = {case for report in skipped for case in _shown(report.nodeid, by_name)} - shown
    if unshown:
        terminalreporter.section("acceptance cases NOT shown on this machine")
        terminalreporter.write_line(" ".join(sorted(f"{row}.{number}" for row, number in unshown)))


def _shown(test: str, by_name: Mapping[str, Place]) -> set[tuple[str, int]]:
    """The cases of rows that a test shows, by its node id."""
    name, _, parameters = test.partition("[")
    if name == CASE_TEST:
        name = f"fixtures/cases/{parameters.removesuffix(']')}.yaml"
    place = by_name.get(name)
    found = [] if place is None else [case for entry in place.entries for case in expand(entry)]
    return {(row, number) for row, number in found if number is not None}
