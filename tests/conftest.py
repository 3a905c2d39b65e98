"""What all tests share: one policy cache, a scratch state, engines on a real OPA."""

from __future__ import annotations

import fcntl
import gc
import json
import re
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from engine.cases.run import CaseFile, Runner, read_case
from engine.documents.files import load
from engine.engine import Engine
from engine.record.storage import make_folder
from engine.secrets.forms import SecretForms
from engine.secrets.patterns import know
from engine.settings import ReadLimits, Settings
from engine.values.commands import Commands, program_rows
from tests.covers import CASE_TEST, Place, expand, places
from tests.expect import there
from tests.facilities import missing
from tests.lanes import FAST, FULL, split
from tests.shared_opa import POOL, lend

if TYPE_CHECKING:
    from tests.command import Command

gc.disable()  # until all tests are collected: they stay, and each look at them all costs a third of a second

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell started the tests in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

for lane, count in ((FULL, 100), (FAST, 25)):
    hypothesis_settings.register_profile(
        lane, max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )

ROOT = Path(__file__).parent.parent


def _program_rows() -> dict[str, Any]:
    stated = load((ROOT / "policy/commands.yaml").read_bytes(), "commands.yaml", ReadLimits()).value
    return program_rows(Commands.model_validate_json(json.dumps(stated)).model_dump(mode="json", exclude_none=True))


BUNDLES = ROOT / "fixtures" / "source_bundles"
FORMS = SecretForms.of(load((ROOT / "policy/secrets.yaml").read_bytes(), "secrets.yaml", ReadLimits()).value)
"""The forms of secrets of this project's policy."""

ROWS = _program_rows()
"""How this project's policy reads the options of programs."""

know(FORMS)  # as an engine does when it starts: the record is tested with them
NOW = "2026-11-21T00:00:00Z"
_OF_A_POINT = re.compile(r"tests/(?:cases|laws)/.*\[([a-z_]+)(?:/[^/]*)?\]$")
_COSTS = {
    "laws/test_law_3.py": 400,
    "laws": 20,
    "facts": 1,
    "secrets": 2,
    "values": 1,
    "api": 12,
    "policy_bundle": 10,
    "cli": 12,
    "opa": 16,
    "environments": 14,
}
"""Hundredths of a second of CPU that a test takes in a file or folder; 5 in the others."""

KNOWN = ("sandbox/bubblewrap.json", "keys/sandbox.key")
"""Where a state folder has what is known of the sandbox."""

RUNNERS: list[Runner] = []
"""The runner of cases of this process, once a test has asked for it."""

LEFT_OUT = pytest.StashKey[int]()
"""How many tests of the other lanes were left out."""


def lowered(level: str) -> str:
    """A row of policy/levels.yaml that lowers any refusal to this level."""
    return f'{{level: {level}, owner: owner@example.org, reason: a test, until: "2100-01-01"}}'


@lru_cache
def case(point: str, name: str) -> CaseFile:
    return read_case(ROOT / "fixtures" / "cases" / point / f"{name}.yaml")


def case_id(file: CaseFile) -> str:
    return f"{file.path.parent.name}/{file.path.stem}"


@pytest.fixture(scope="session")
def full(pytestconfig: pytest.Config) -> bool:
    """Whether a test of many examples tries all of them, or each kind once as in the fast lane."""
    return bool(pytestconfig.getoption("all"))


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


@pytest.fixture(scope="module")
def module_settings(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Settings:
    """A state of its own for all tests of a file."""
    return Settings(state=tmp_path_factory.mktemp("state"), cache=cache)


@pytest.fixture(scope="session")
def runner(shared_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with Runner(shared_settings, tmp_path_factory.mktemp("cases")) as running:
        RUNNERS.append(running)
        yield running


@pytest.fixture(scope="session")
def probed(tmp_path_factory: pytest.TempPathFactory, cache: Path, worker_id: str) -> Path:
    """A state folder in which the sandbox has been tried, by one worker for all."""
    if (lack := missing("bubblewrap")) is not None:
        pytest.skip(f"NOT TRIED, this machine has no bubblewrap: {lack}")
    base = tmp_path_factory.getbasetemp()
    state = (base if worker_id == "master" else base.parent) / "probed"
    state.mkdir(mode=0o700, exist_ok=True)
    with state.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (state / KNOWN[0]).exists():
            with Engine(Settings(state=state, cache=cache)) as engine:
                there(engine.services).gather_context.sandbox_facts("bubblewrap", None)
    return state


def take_over(probed: Path, state: Path) -> None:
    """Let the engines of a state folder know what the sandbox holds."""
    for name in KNOWN:
        make_folder((state / name).parent)
        shutil.copy2(probed / name, state / name)


@pytest.fixture
def command(tmp_path: Path, cache: Path) -> Command:
    """A user who runs the engine for the first time."""
    from tests.command import Command

    return Command.of(tmp_path, cache)


@pytest.fixture
def unprotected() -> Iterator[Path]:
    """A folder that no deny rule of policy/tools.yaml covers; other folders of tests may be in /dev/shm."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A copy of policy/ to edit, alone in its folder."""
    return Path(shutil.copytree(ROOT / "policy", tmp_path / "values" / "policy"))


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, cache: Path) -> None:
    """No test touches the state or cache of the user; the default state of each test is a folder not made yet."""
    monkeypatch.setenv("ENGINE_STATE_DIR", str(tmp_path_factory.getbasetemp() / "default-state" / uuid4().hex))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests that the fast lane leaves out for their cost")
    parser.addoption("--all", action="store_true", help="run every test, also those marked `full`")
    parser.addoption("--security", metavar="NAME", help="run the security tests: `all`, a category, or an id")


def pytest_configure(config: pytest.Config) -> None:
    """Before tests are collected: decorators ask how many examples there will be."""
    hypothesis_settings.load_profile(FULL if config.getoption("all") else FAST)
    if not config.getoption("all") and not config.getoption("update_snapshots"):
        config.option.disable_unused_snapshots = True  # syrupy would fail for snapshots of tests that were left out
    if not config.getoption("all"):
        lend()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of one lane, but for tests that are named one by one and for new snapshots of whole files.

    With `--security`, keep exactly the security tests of that name.
    """
    for item in items:
        item.user_properties += [("security", " ".join(mark.args)) for mark in item.iter_markers("security")]
    if (asked := config.getoption("security")) is not None:
        chosen = security_tests(items, asked, full=config.getoption("all"))
        if not chosen:
            raise pytest.UsageError(f"there is no security test `{asked}`: name a category, or an id such as SEC-05")
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
        return
    named = any("::" in argument for argument in config.args)
    if named or config.getoption("all") or config.getoption("update_snapshots"):
        return
    lanes = split(items)
    items[:] = lanes.slow if config.getoption("slow") else lanes.fast
    kept = {id(item) for item in items}
    left_out = [item for lane in lanes for item in lane if id(item) not in kept]
    if hasattr(config, "workerinput"):  # of pytest-xdist
        dearest_first(items)
    config.hook.pytest_deselected(items=left_out)
    config.stash[LEFT_OUT] = len(left_out)
    if hasattr(config, "workeroutput"):  # of pytest-xdist
        config.workeroutput["left_out"] = len(left_out)


def unit(test: str) -> str:
    """What one worker runs, of a node id: a file, and of cases and laws a decision point; engines start once there."""
    point = _OF_A_POINT.match(test)
    return test.partition("::")[0] if point is None else point[1]


def dearest_first(items: list[pytest.Item]) -> None:
    """Order the units so that the workers end together, and that only one of them builds the policy.

    While it does, the others have the tests of facts, which need no policy.
    """
    names = {id(item): unit(item.nodeid) for item in items}
    costs: Counter[str] = Counter()
    for item in items:
        file = item.nodeid.partition("::")[0].removeprefix("tests/")
        costs[names[id(item)]] += _COSTS.get(file) or _COSTS.get(file.partition("/")[0], 5)
    ranks = {name: (not name.startswith("tests/facts/"), -cost, name) for name, cost in costs.items()}
    first = min((name for name in ranks if ranks[name][0]), key=ranks.__getitem__, default="")
    items.sort(key=lambda item: (names[id(item)] != first, ranks[names[id(item)]]))


def security_tests(items: list[pytest.Item], asked: str, *, full: bool) -> list[pytest.Item]:
    """The tests of the security test plan, and those with a threat: `all`, or by category or id in any case."""
    lanes = split(items)
    short = {id(item) for item in (items if full else [*lanes.fast, *lanes.slow])}
    planned = {id(item): mark.args for item in items for mark in item.iter_markers("security")}
    labelled = {id(item): mark.args for item in items for mark in item.iter_markers("threat") if id(item) in short}
    names = {key: ("all", *(word.lower() for word in words)) for key, words in {**labelled, **planned}.items()}
    return [item for item in items if asked.lower() in names.get(id(item), ())]


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # by default a twentieth of the time goes into looking for cycles
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Workers of pytest-xdist take files, and of cases and laws decision points: each starts its engines once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByUnit(LoadScopeScheduling):  # type: ignore[misc]  # it carries no types
        def _split_scope(self, nodeid: str) -> str:
            return unit(nodeid)

    config.option.loadscopereorder = bool(config.getoption("all"))  # it counts the tests of a unit
    return ByUnit(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker of pytest-xdist left out; each collects everything."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


@pytest.hookimpl(tryfirst=True)  # before any fixture starts an engine
def pytest_runtest_setup(item: pytest.Item) -> None:
    POOL.lends = not item.config.getoption("all") and item.get_closest_marker("own_opa") is None
    for facility in (name for marker in item.iter_markers("machine") for name in marker.args):
        if (lack := missing(facility)) is not None:
            pytest.skip(f"NOT TRIED, this machine has no {facility}: {lack}")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """An engine that nobody uses still looks after its OPA, record and state: none outlives the tests that use it."""
    if nextitem is not None and unit(nextitem.nodeid) != unit(item.nodeid):
        for runner in RUNNERS:
            runner.close_others()


def pytest_sessionfinish() -> None:
    POOL.end()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Report how many tests were left out, and the acceptance cases that skipped tests would have shown."""
    if left_out := config.stash.get(LEFT_OUT, 0):
        lane = "slow" if config.getoption("slow") else "fast"
        terminalreporter.section(f"{lane} lane")
        terminalreporter.write_line(f"{left_out} tests of other lanes were left out; `scripts/test --all` runs all")
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
