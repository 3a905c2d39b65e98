"""Bulk decisions on two real nodes of Ray on this machine, with workers and OPAs that are killed midway."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from engine.engine import Engine
from engine.errors import EngineError, GatherError, RecordError
from engine.model import Mode
from engine.ray import admit, corpus, seal
from engine.ray.columns import POINT
from engine.ray.corpus import CorpusRun, check_corpus
from engine.ray.packages import package
from engine.ray.policy import SentPolicy
from engine.record.bulk import signer, verify_run
from engine.settings import Settings
from tests.processes import children
from tests.ray.samples import COLUMNS, COLUMNS_YAML, NOW, decisions, request, rows, write_lines, write_parquet

pytestmark = pytest.mark.filterwarnings("ignore:::ray", "ignore::ResourceWarning", "ignore::FutureWarning")
_MARK = "ENGINE_TEST_CLUSTER"
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_DATA_DISABLE_PROGRESS_BARS": "1"}
SECONDS = 900.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of two nodes with two logical processors each, behind a token."""
    token = tmp_path_factory.mktemp("token") / "token"
    token.touch(mode=0o600)
    token.write_text(os.urandom(32).hex(), encoding="ascii")
    own = {**_QUIET, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), _MARK: token.parent.name}
    before = dict(os.environ)
    os.environ |= own
    small = {"num_cpus": 2, "object_store_memory": 150 << 20}
    nodes = package("ray.cluster_utils").Cluster(
        initialize_head=True, head_node_args={**small, "include_dashboard": False}
    )
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
    first = run(engine, cluster, paths, on_progress=lambda *_: pids.update(workers()))
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
def test_a_worker_or_opa_killed_midway_loses_and_duplicates_no_decision(
    engine: Engine, cluster: str, tmp_path: Path, kill: Callable[[], None]
) -> None:
    some = rows(6_000)
    path = write_parquet(tmp_path / "a.parquet", some, 500)
    killed: list[int] = []

    def on_progress(done: int, of: int) -> None:
        if not killed:
            assert done < of
            killed.append(done)
            kill()

    run(engine, cluster, [path], on_progress=on_progress)
    assert killed
    found = recorded(tmp_path / "run")
    assert found == own_batch(engine, some)
    assert len({digest for digest, _ in found}) == found.total() == 6_000
    assert verify_run(tmp_path / "run", signer(engine.settings.state)).ok


def test_a_policy_that_differs_is_refused_in_our_words(
    engine: Engine, cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


@contextmanager
def connected(address: str) -> Iterator[None]:
    """As a program that uses Ray Data itself."""
    ray = package("ray")
    ray.init(address=address, logging_level="error", log_to_driver=False)
    try:
        yield
    finally:
        ray.shutdown()


def test_a_dataset_gets_decisions_and_its_record_is_sealed(
    engine: Engine, settings: Settings, cluster: str, tmp_path: Path
) -> None:
    some, record, keys = rows(2_000), tmp_path / "run", tmp_path / "keys"
    by = Settings(state=keys, cache=settings.cache)
    with connected(cluster):
        dataset = package("ray.data").from_items(some, override_num_blocks=4)
        with pytest.raises(GatherError, match="there is no column `hash`"):
            admit(dataset, record=record, columns=COLUMNS.model_copy(update={"sha256": "hash"}), settings=by)
        admitted = admit(dataset, record=record, columns=COLUMNS, settings=by, workers=2, batch_size=300, now=NOW)
        admitted = admitted.materialize()
        manifest = seal(admitted, record=record, settings=by)
        found = {one["id"]: one for one in admitted.take_all()}
        twice = admitted.union(admitted)
        with pytest.raises(RecordError, match=r"the unit has [46]00 rows, and [23]00 decisions are recorded"):
            seal(twice, record=record, settings=by)
        seal(admitted, record=record, settings=by)
    assert manifest.outcomes.total() == len(found) == 2_000
    own = engine.decide_many(POINT, [request(one) for one in some], mode=Mode.CHECK)
    for number, answer in enumerate(own):
        assert found[number]["outcome"] == answer.decision.outcome
        assert [*found[number]["codes"]] == sorted({finding.code for finding in answer.decision.findings})
    lines = {one["decision_id"]: one for one in decisions(record)}
    assert {one["decision_id"] for one in found.values()} == lines.keys()
    assert all(lines[one["decision_id"]]["input"]["content"]["sha256"] == one["sha256"] for one in found.values())
    assert verify_run(record, signer(keys)).ok


def test_requests_as_json_are_decided(engine: Engine, settings: Settings, cluster: str, tmp_path: Path) -> None:
    texts = [json.dumps(request(one)) for one in rows(20)] + [
        "{",
        json.dumps([1]),
        '{"license": "MIT", "license": "X"}',
    ]
    with connected(cluster):
        dataset = package("ray.data").from_items([{"request": text} for text in texts], override_num_blocks=1)
        admitted = admit(
            dataset, record=tmp_path / "run", settings=Settings(state=tmp_path / "k", cache=settings.cache)
        )
        found = admitted.take_all()
    outcomes = [one["outcome"] for one in found]
    assert [(one["outcome"], [*one["codes"]]) for one in found[20:]] == [("deny", ["engine.input_unreadable"])] * 3
    own = engine.decide_many(POINT, [request(one) for one in rows(20)], mode=Mode.CHECK)
    assert outcomes[:20] == [one.decision.outcome for one in own]
    assert [(one["outcome"], [*one["codes"]]) for one in found[20:]] == [("deny", ["engine.input_unreadable"])] * 3


def resident(pid: int) -> int:
    """Bytes of a process without its OPA."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.full
def test_memory_of_a_worker_is_flat(engine: Engine, cluster: str, tmp_path: Path) -> None:
    """From 10,000 to 100,000 rows: one worker, whose memory is looked at after each unit."""
    path = write_parquet(tmp_path / "a.parquet", rows(100_000), 5_000)
    seen: dict[int, int] = {}

    def on_progress(done: int, _: int) -> None:
        seen[done] = max(map(resident, workers()))

    run(engine, cluster, [path], workers=1, on_progress=on_progress)
    assert seen[20] <= 1.1 * seen[2], seen


def test_the_command_decides_a_corpus_and_verifies_its_record(command: Any, cluster: str, tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", rows(300), 150)
    (tmp_path / "columns.yaml").write_text(COLUMNS_YAML, encoding="utf-8")
    own = {name: value for name, value in os.environ.items() if name.startswith("RAY_")}
    how = ("--ray", cluster, "--columns", "columns.yaml", "--into", "run", "--workers", "2")
    done = command.check("a.parquet", *how, "--format", "json", cwd=tmp_path, env=own)
    assert done.code == 1, done.stderr
    wanted = {"records": 300, "units": 2, "reused": 0}
    assert {name: done.json[name] for name in wanted} == wanted
    verified = command("record", "verify", "--bulk", "run", cwd=tmp_path)
    assert verified.code == 0, verified.stdout
    assert "run intact: 300 records in 2 segments" in verified.stdout
    (line, *_) = (tmp_path / "run").glob("segments/*/records/decisions.000001.jsonl")
    line.write_bytes(line.read_bytes().replace(b"train", b"TRAIN", 1))
    broken = command("record", "verify", "--bulk", "run", cwd=tmp_path)
    assert broken.code == 4
    assert f"{line.relative_to(tmp_path / 'run')}:1: chain_break at byte 0" in broken.stdout


@pytest.mark.full
def test_a_wrong_cluster_token_is_refused(command: Any, cluster: str, tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", rows(10), 10)
    (tmp_path / "columns.yaml").write_text(COLUMNS_YAML, encoding="utf-8")
    (tmp_path / "token").write_text("0" * 64, encoding="ascii")
    own = {name: value for name, value in os.environ.items() if name.startswith("RAY_")}
    own["RAY_AUTH_TOKEN_PATH"] = str(tmp_path / "token")
    done = command.check(
        *("a.parquet", "--ray", cluster, "--columns", "columns.yaml", "--into", "run"), cwd=tmp_path, env=own
    )
    done.refused(f"cannot connect to Ray at `{cluster}`", "RAY_AUTH_MODE and the token")
    assert [*decisions(tmp_path / "run")] == []
