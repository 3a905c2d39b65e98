"""A worker without Ray: what it records and writes, and what it does when its OPA dies."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from engine.binaries import find_binary
from engine.engine import Engine
from engine.errors import EngineError
from engine.flow import Context
from engine.model import Mode
from engine.points.registry import POINTS
from engine.policy_bundle.build import build
from engine.policy_bundle.release_folder import STATEMENT, Statement
from engine.policy_bundle.sources import PolicySources
from engine.ray import rows as rows_module
from engine.ray.columns import POINT
from engine.ray.corpus import demand_stateless
from engine.ray.policy import SentPolicy
from engine.ray.units import Unit, plan
from engine.ray.worker import CorpusWorker, Job, WorkerFault, fault_in
from engine.record.bulk import RunRecord
from engine.settings import Settings
from engine.state import open_store
from tests.expect import there
from tests.policy_bundle.releases import Keys, released
from tests.ray.samples import COLUMNS, NOW, decisions, request, rows, write_lines, write_parquet
from tests.state.samples import activate, release


@pytest.fixture(scope="module")
def served(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings) as engine:
        yield engine


@pytest.fixture
def job(served: Engine, tmp_path: Path) -> Job:
    RunRecord(tmp_path / "run").prepare()
    policy = SentPolicy.of(served)
    return Job(str(tmp_path / "run"), POINT, COLUMNS, policy, Context(), NOW)


@pytest.fixture
def worker(job: Job) -> Iterator[CorpusWorker]:
    one = CorpusWorker(job)
    yield one
    one.close()


def ask(worker: CorpusWorker, units: dict[str, Unit]) -> None:
    for name, unit in units.items():
        worker({"name": [name], "unit": [json.dumps(asdict(unit))]})


def planned(worker: CorpusWorker, *paths: Path) -> dict[str, Unit]:
    return {unit.name(worker.job.policy.revisions, ""): unit for unit in plan([*map(str, paths)], COLUMNS)}


def test_a_unit_is_decided_as_one_engine_decides_it(worker: CorpusWorker, settings: Settings, tmp_path: Path) -> None:
    some = rows(300)
    units = planned(worker, write_parquet(tmp_path / "a.parquet", some, 120))
    assert [unit.rows for unit in units.values()] == [120, 120, 60]
    ask(worker, units)
    place = next(iter(units.values())).place
    with Engine(settings, now=lambda: datetime.fromtimestamp(NOW, UTC)) as engine:
        own = engine.decide_many(POINT, [request(one) for one in some], mode=Mode.CHECK)
    wanted = [(one.decision.input_digest, one.decision.outcome.value) for one in own]
    found = [(one["input_digest"], one["outcome"]) for name in units for one in _lines(tmp_path / "run", name)]
    assert found == wanted
    assert {outcome for _, outcome in found} == {"allow", "deny"}
    assert [one["request_id"] for name in units for one in _lines(tmp_path / "run", name)] == [
        f"{place}:{number}" for number in range(1, 301)
    ]


def _lines(run: Path, name: str) -> list[dict[str, Any]]:
    text = (run / "segments" / name / "records" / "decisions.000001.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_admitted_rows_name_their_decision(worker: CorpusWorker, tmp_path: Path) -> None:
    units = planned(worker, write_parquet(tmp_path / "a.parquet", rows(100), 100))
    ((name, unit),) = units.items()
    ask(worker, units)
    allowed = {
        one["decision_id"]: one["request_id"] for one in decisions(tmp_path / "run") if one["outcome"] == "allow"
    }
    written = parquet.read_table(tmp_path / "run" / "rows" / f"{name}.parquet").to_pylist()
    assert {one["decision_id"]: f"{unit.place}:{one['id'] + 1}" for one in written} == allowed
    assert {(one["policy_rules"], one["policy_values"], one["segment"]) for one in written} == {
        (worker.job.policy.revisions.rules, worker.job.policy.revisions.values, name)
    }
    assert [one["text"] for one in written] == [f"row {one['id']}" for one in written]


def test_admitted_rows_are_one_row_group(worker: CorpusWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "BATCH", 20)
    units = planned(worker, write_parquet(tmp_path / "a.parquet", rows(60), 60))
    ask(worker, units)
    written = parquet.ParquetFile(tmp_path / "run" / "rows" / f"{next(iter(units))}.parquet")
    assert (written.num_row_groups, written.metadata.num_rows) == (1, sum(1 for _ in _allowed(tmp_path / "run")))


def _allowed(run: Path) -> Iterator[str]:
    return (one["decision_id"] for one in decisions(run) if one["outcome"] == "allow")


@pytest.mark.parametrize("type_", [pa.string_view(), pa.list_(pa.string_view()), pa.dictionary(pa.int8(), pa.string())])
def test_admitted_rows_keep_their_types(worker: CorpusWorker, tmp_path: Path, type_: pa.DataType) -> None:
    table = pa.Table.from_pylist(rows(10))
    tags = pa.array([["a"] if pa.types.is_list(type_) else "a"] * 10, type_)
    parquet.write_table(table.append_column("tag", tags), tmp_path / "a.parquet")
    units = planned(worker, tmp_path / "a.parquet")
    ask(worker, units)
    written = parquet.ParquetFile(tmp_path / "run" / "rows" / f"{next(iter(units))}.parquet").read()
    assert written.schema.field("tag").type == type_
    assert sorted(written["decision_id"].to_pylist()) == sorted(_allowed(tmp_path / "run"))


def test_a_broken_line_is_a_recorded_deny_with_file_and_line(worker: CorpusWorker, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", rows(20), broken=(3, 20))
    units = planned(worker, path)
    ((name, unit),) = units.items()
    ask(worker, units)
    lines = _lines(tmp_path / "run", name)
    assert len(lines) == 20
    broken = [(one["request_id"], one["outcome"], one["findings"][0]["code"]) for one in lines if one["input"] is None]
    assert broken == [(f"{unit.place}:{n}", "deny", "engine.input_unreadable") for n in (3, 20)]
    stated = json.loads((tmp_path / "run" / "segments" / name / "unit.json").read_bytes())
    first = f"{unit.place}:3: the line is not JSON; write one JSON object per line"
    assert stated["first"]["engine.input_unreadable"] == first
    assert stated["first"]["license_incompatible"].startswith(f"{unit.place}:8: required: The license is compatible ")
    written = (tmp_path / "run" / "rows" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["decision_id"] for line in written} == {
        one["decision_id"] for one in lines if one["outcome"] == "allow"
    }


def test_a_unit_that_is_whole_is_not_decided_again(
    worker: CorpusWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = planned(worker, write_parquet(tmp_path / "a.parquet", rows(50), 25))
    ask(worker, units)
    before = [*decisions(tmp_path / "run")]
    monkeypatch.setattr(worker._engine, "decide_many", None)
    ask(worker, units)
    assert [*decisions(tmp_path / "run")] == before


def test_an_unrecorded_decision_is_not_returned(
    worker: CorpusWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that decisions are written to goes away while a batch is decided."""
    ask_many = worker._engine.decide_many

    def losing(*arguments: Any) -> Any:
        (lines,) = (tmp_path / "run" / "segments").glob(".*/records/decisions.000001.jsonl")
        lines.unlink()
        return ask_many(*arguments)

    monkeypatch.setattr(worker._engine, "decide_many", losing)
    units = planned(worker, write_parquet(tmp_path / "a.parquet", rows(50), 50))
    with pytest.raises(WorkerFault, match="the record cannot be written"):
        ask(worker, units)
    assert [*(tmp_path / "run" / "segments").iterdir(), *(tmp_path / "run" / "rows").iterdir()] == []


def kill_opa(worker: CorpusWorker) -> None:
    opa: Any = worker._engine.opa
    os.kill(opa.pid, signal.SIGKILL)


@pytest.mark.own_opa
def test_an_opa_that_dies_in_a_unit_loses_nothing(
    worker: CorpusWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its OPA is killed while the second batch of the unit is on its way."""
    asked: list[int] = []
    ask_many = worker._engine.decide_many

    def dying(*arguments: Any) -> Any:
        asked.append(len(arguments[1]))
        if len(asked) == 2:
            kill_opa(worker)
        return ask_many(*arguments)

    monkeypatch.setattr(worker._engine, "decide_many", dying)
    units = planned(worker, write_parquet(tmp_path / "a.parquet", rows(2_500), 2_500))
    ask(worker, units)
    assert asked == [1_024, 1_024, 1_024, 1_024, 452]  # two of the lost attempt, three of the one that counts
    found = [*decisions(tmp_path / "run")]
    assert len(found) == len({one["request_id"] for one in found}) == 2_500
    assert not {finding["code"] for one in found for finding in one["findings"] if "unavailable" in finding["code"]}


@pytest.mark.own_opa
def test_an_input_that_ends_opa_is_a_recorded_deny(
    worker: CorpusWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPA is killed whenever row 700 is asked about; the last attempt asks 128 rows at a time."""
    some = rows(1_500)
    some[700]["license"] = "0BSD"  # no other row is an equal case, whose answer would do
    ask_many = worker._engine.decide_many

    def dying(*arguments: Any) -> Any:
        if any(one["sha256"] == some[700]["sha256"] for one in arguments[1]):
            kill_opa(worker)
        return ask_many(*arguments)

    monkeypatch.setattr(worker._engine, "decide_many", dying)
    units = planned(worker, write_parquet(tmp_path / "a.parquet", some, 1_500))
    ask(worker, units)
    ((_, unit),) = units.items()
    found = [*decisions(tmp_path / "run")]
    lost = {one["request_id"] for one in found if [each["code"] for each in one["findings"]] == ["policy_unavailable"]}
    assert len(found) == 1_500
    assert lost <= {f"{unit.place}:{number}" for number in range(641, 769)}
    assert f"{unit.place}:701" in lost


def test_a_policy_that_was_changed_on_the_way_is_refused(job: Job) -> None:
    changed = replace(job.policy, packed=job.policy.packed + b"0")
    with pytest.raises(WorkerFault, match="the policy of this worker is not the one that was sent: its digest differs"):
        CorpusWorker(replace(job, policy=changed))


def test_another_policy_with_a_true_digest_is_refused(job: Job) -> None:
    other = job.policy.revisions.model_copy(update={"values": "sha256:" + "0" * 64})
    with pytest.raises(WorkerFault, match="not the one that was sent") as refused:
        CorpusWorker(replace(job, policy=replace(job.policy, revisions=other)))
    error = there(fault_in(f"ray said: {refused.value}\n"))
    assert (error.code, int(error.exit)) == ("policy_stale", 4)


def test_a_file_that_changed_since_it_was_planned_is_refused(worker: CorpusWorker, tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", rows(10), 10)
    units = planned(worker, path)
    write_parquet(path, rows(11), 11)
    with pytest.raises(WorkerFault, match="the file changed after the run was planned"):
        ask(worker, units)
    assert [*decisions(tmp_path / "run")] == []


def test_a_worker_verifies_the_release_that_was_agreed_on(settings: Settings, cache: Path, tmp_path: Path) -> None:
    """It gets the signed files that the driver has verified, and the key; a run ends once another one is active."""
    keys = Keys.make(tmp_path / "keys")
    sources = PolicySources(settings.rego, settings.policy, settings.recipe)
    folder = released(build(sources, POINTS, find_binary(), cache), tmp_path / "releases" / "r1", keys)
    stated = Statement.model_validate_json((folder / STATEMENT).read_bytes())
    own = replace(settings, releases=folder.parent, release_key=keys.public)
    with closing(open_store(settings.state)) as store:
        activate(store, release(1, name=stated.name, digest=stated.digest))
    RunRecord(tmp_path / "run").prepare()
    with Engine(own, follow=False) as engine:
        demand_stateless(engine, POINT, Context())
        policy = SentPolicy.of(engine)
        assert policy.key is not None
        job = Job(str(tmp_path / "run"), POINT, COLUMNS, policy, Context(), NOW)
        with closing(CorpusWorker(job)) as worker:
            units = planned(worker, write_lines(tmp_path / "rows.jsonl", rows(3)))
            ask(worker, units)
        assert [len(_lines(tmp_path / "run", name)) for name in units] == [3]
        activate(engine.store(), release(2))
        with pytest.raises(EngineError, match="agreed on another release"):
            demand_stateless(engine, POINT, Context())
