"""Bulk decisions on two real nodes of Ray on this machine, with workers and OPAs that are killed midway."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from engine.engine import Engine
from engine.errors import EngineError, GatherError, RecordError
from engine.model import Mode
from engine.ray import Columns, admit, seal
from engine.ray.columns import POINT
from engine.ray.corpus import CorpusRun, check_corpus
from engine.ray.worker import CorpusWorker
from engine.record.bulk import signer, verify_run
from engine.settings import Settings
from tests.processes import children
from tests.ray.samples import COLUMNS, NOW, decisions, request, rows, write_lines, write_parquet

pytestmark = pytest.mark.filterwarnings("ignore:::ray", "ignore::ResourceWarning", "ignore::FutureWarning")
_MARK = "ENGINE_TEST_CLUSTER"
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_DATA_DISABLE_PROGRESS_BARS": "1"}
SECONDS = 240.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of two nodes with two logical processors each, behind a token."""
    token = tmp_path_factory.mktemp("token") / "token"
    token.touch(mode=0o600)
    token.write_text(os.urandom(32).hex(), encoding="ascii")
    own = {**_QUIET, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), _MARK: token.parent.name}
    before = dict(os.environ)
    os.environ |= own
    from ray.cluster_utils import Cluster

    small = {"num_cpus": 2, "object_store_memory": 150 << 20}
    nodes = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    try:
        nodes.add_node(**small)
        yield nodes.address
    finally:
        nodes.shutdown()
        os.environ.clear()
        os.environ |= before


@contextmanager
def bounded() -> Iterator[None]:
    """End the block after some minutes: what hangs in Ray reports nothing."""

    def stop(*_: object) -> None:
        raise TimeoutError

    old = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    with bounded():
        yield


@pytest.fixture
def engine(settings: Settings) -> Iterator[Engine]:
    with Engine(settings, now=lambda: datetime.fromtimestamp(NOW, UTC)) as opened:
        yield opened


def workers() -> list[int]:
    """The processes of our cluster that decide."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().startswith(b"ray::MapWorker"):
                mine = f"{_MARK}={os.environ[_MARK]}".encode() in (folder / "environ").read_bytes().split(b"\0")
                found += [int(folder.name)] * mine
        except OSError:
            continue
    return sorted(found)


def run(engine: Engine, cluster: str, paths: list[Path], **how: Any) -> CorpusRun:
    into = engine.settings.state.parent / "run"
    options = {"address": cluster, "workers": 2, "now": NOW, **how}
    return check_corpus(engine, [*map(str, paths)], COLUMNS, into, **options)


def own_batch(engine: Engine, some: list[dict[str, Any]]) -> Counter[tuple[str | None, str]]:
    answers = engine.decide_many(POINT, [request(one) for one in some], mode=Mode.CHECK)
    return Counter((one.decision.input_digest, one.decision.outcome.value) for one in answers)


def recorded(into: Path) -> Counter[tuple[str | None, str]]:
    return Counter((one["input_digest"], one["outcome"]) for one in decisions(into))


def test_two_nodes_decide_as_one_engine_and_a_second_run_only_what_is_missing(
    engine: Engine, cluster: str, tmp_path: Path
) -> None:
    some, more = rows(3_000), rows(500, 9_000)
    paths = [write_parquet(tmp_path / "a.parquet", some, 500), write_lines(tmp_path / "b.jsonl", more)]
    pids: set[int] = set()
    first = run(engine, cluster, paths, told=lambda *_: pids.update(workers()))
    assert len(pids) == 2
    assert (first.reused, len(first.manifest.segments)) == (0, 7)
    assert recorded(tmp_path / "run") == own_batch(engine, some + more)
    assert verify_run(tmp_path / "run", signer(engine.settings.state)).ok
    written = {
        (one["id"], one["decision_id"])
        for path in (tmp_path / "run" / "rows").glob("*.parquet")
        for one in parquet.read_table(path).to_pylist()
    }
    admitted = {one["decision_id"] for one in decisions(tmp_path / "run") if one["outcome"] == "allow"}
    assert {decision for _, decision in written} <= admitted
    assert len(written) == len({number for number, _ in written})

    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run" / "segments").iterdir()}
    gone, damaged = sorted(before)[:2]
    (tmp_path / "run" / "segments" / gone / "unit.json").unlink()
    line = tmp_path / "run" / "segments" / damaged / "records" / "decisions.000001.jsonl"
    line.write_bytes(line.read_bytes().replace(b"train", b"TRAIN", 1))
    again = run(engine, cluster, paths)
    assert (again.reused, len(again.manifest.segments)) == (5, 7)
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run" / "segments").iterdir()}
    assert {name for name in after if after[name] != before[name]} == {gone, damaged}
    assert recorded(tmp_path / "run") == own_batch(engine, some + more)


def kill_worker() -> None:
    os.kill(workers()[0], signal.SIGKILL)


def kill_opa() -> None:
    for child in children(workers()[0]):
        if b"opa" in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("kill", [kill_worker, kill_opa])
def test_what_is_killed_midway_loses_nothing_and_doubles_nothing(
    engine: Engine, cluster: str, tmp_path: Path, kill: Callable[[], None]
) -> None:
    some = rows(6_000)
    path = write_parquet(tmp_path / "a.parquet", some, 500)
    killed: list[int] = []

    def told(done: int, of: int) -> None:
        if not killed:
            assert done < of
            killed.append(done)
            kill()

    run(engine, cluster, [path], told=told)
    assert killed
    assert recorded(tmp_path / "run") == own_batch(engine, some)
    places = Counter(one["request_id"] for one in decisions(tmp_path / "run"))
    assert places == Counter(f"file://{path}:{number}" for number in range(1, 6_001))
    assert verify_run(tmp_path / "run", signer(engine.settings.state)).ok


def test_a_policy_that_differs_is_refused_in_our_words(
    engine: Engine, cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from engine.ray import corpus
    from engine.ray.policy import SentPolicy

    class Changed:
        @staticmethod
        def of(one: Engine) -> SentPolicy:
            sent = SentPolicy.of(one)
            return replace(sent, packed=sent.packed + b"0")

    monkeypatch.setattr(corpus, "SentPolicy", Changed)
    path = write_parquet(tmp_path / "a.parquet", rows(10), 10)
    with pytest.raises(EngineError) as refused:
        run(engine, cluster, [path])
    assert str(refused.value) == "the policy of this worker is not the one that was sent: its digest differs"
    assert refused.value.code == "policy_stale"
    assert [*decisions(tmp_path / "run")] == []


def test_workers_without_a_free_processor_are_refused(engine: Engine, cluster: str, tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", rows(10), 10)
    with pytest.raises(GatherError, match="4 workers need 5 processors of the cluster, which has 4"):
        run(engine, cluster, [path], workers=4)
