"""Rows, their columns and the units that they are planned into; a table that does not fit is refused before a run."""

from __future__ import annotations

import http.server
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from engine.documents.validation import object_in
from engine.errors import GatherError
from engine.ray import rows as rows_module
from engine.ray import units
from engine.ray.columns import read_columns
from engine.ray.packages import package
from engine.ray.rows import batches
from engine.ray.units import plan
from tests.ray.samples import COLUMNS, COLUMNS_YAML, request, row, rows, write_lines, write_parquet


def test_a_row_makes_the_request_of_its_columns() -> None:
    assert COLUMNS.request(row(1), "a:1") == request(row(1))
    assert COLUMNS.request(row(11), "a:1") == request(row(11))  # without a decision


def test_columns_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "columns.yaml"
    path.write_text(COLUMNS_YAML, encoding="utf-8")
    assert read_columns(path) == COLUMNS


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("origin: origin\n", "", "columns.yaml:1 (origin): the file does not describe columns: field required"),
        ("purpose: train", "purpose: train\nlicence: x", "(licence): the file does not describe columns: extra inputs"),
        ("sha256: sha256\n", "sha256: 3\n", "columns.yaml:3 (sha256): the file does not describe columns"),
    ],
)
def test_a_file_of_other_columns_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "columns.yaml"
    path.write_text(COLUMNS_YAML.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(GatherError) as refused:
        read_columns(path)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"origin": " "}, "the row states no origin"),
        ({"origin": None}, "the row states no origin"),
        ({"text": "another"}, "the row has another content than its hash states"),
        ({"text": None}, "the row has no content"),
    ],
)
def test_a_row_that_states_no_request_is_an_error_with_its_place(change: dict[str, Any], said: str) -> None:
    columns = COLUMNS.model_copy(update={"content": "text"})
    assert columns.request(row(1), "a.parquet:7") == request(row(1))
    error = columns.request({**row(1), **change}, "a.parquet:7")
    assert isinstance(error, GatherError)
    assert str(error) == f"a.parquet:7: {said}"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"\xef\xbb\xbf{}", "the line begins with a byte order mark"),
        ("{}".encode("utf-16"), "the line is not UTF-8"),
        (b"{", "the line is not JSON"),
    ],
)
def test_a_line_that_is_not_a_json_object_is_refused_with_the_reason(line: bytes, said: str) -> None:
    assert str(object_in(line, "line", "write one JSON object per line")) == said


def test_a_missing_label_is_for_the_policy_to_refuse() -> None:
    asked = COLUMNS.request({**row(1), "license": None}, "a:1")
    assert isinstance(asked, dict)
    assert asked["license"] == ""


def test_times_with_a_zone_are_read(tmp_path: Path) -> None:
    moment = datetime(2026, 11, 3, 10, tzinfo=UTC)
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.Table.from_pylist([{**row(1), "decided_at": moment}]), path)
    (unit,) = plan([str(path)], COLUMNS)
    (batch,) = batches(unit, COLUMNS)
    assert batch.requests == [request(row(1))]


LATE = 253_402_300_800  # 10000-01-01T00:00:00Z


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("license", pa.array([b"CC-BY-4.0", b"caf\xe9", b"MIT"]).view(pa.string())),
        ("decided_at", pa.array([0, LATE, 0], pa.timestamp("s", "UTC"))),
    ],
)
def test_a_value_that_cannot_be_read_is_an_error_of_its_row_alone(tmp_path: Path, name: str, column: Any) -> None:
    table = pa.Table.from_pylist(rows(3, first=1))
    path = tmp_path / "a.parquet"
    parquet.write_table(table.set_column(table.schema.get_field_index(name), name, column), path)
    (unit,) = plan([str(path)], COLUMNS)
    (batch,) = batches(unit, COLUMNS)
    assert [isinstance(one, dict) for one in batch.requests] == [True, False, True]
    assert str(batch.requests[1]) == f"{unit.place}:2: the row has a value that cannot be read"


def test_a_time_on_the_last_day_is_for_the_policy_to_refuse() -> None:
    last = datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))
    asked = COLUMNS.request({**row(1), "decided_at": last}, "a:1")
    assert isinstance(asked, dict)
    assert asked["decisions"][0]["decided_at"] == "after the year 9999"


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(rows(1))
    parquet.write_table(
        pa.table([*table.columns, table["license"]], [*table.column_names, "license"]), tmp_path / "a.parquet"
    )
    with pytest.raises(GatherError, match=r"a\.parquet: the column `license` is there twice"):
        plan([str(tmp_path / "a.parquet")], COLUMNS)


def test_an_unknown_time_zone_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(rows(1, first=1))
    column = pa.array([0], pa.timestamp("s", "Nowhere/Town"))
    path = tmp_path / "a.parquet"
    parquet.write_table(table.set_column(table.schema.get_field_index("decided_at"), "decided_at", column), path)
    with pytest.raises(GatherError, match=r"has the type timestamp\[.*Nowhere/Town\], which is not read"):
        plan([str(path)], COLUMNS)


def _without(name: str) -> list[dict[str, Any]]:
    return [{key: value for key, value in one.items() if key != name} for one in rows(3)]


def _with(**changes: Any) -> list[dict[str, Any]]:
    return [{**one, **changes} for one in rows(3)]


@pytest.mark.parametrize("write", [partial(write_parquet, row_group=2), write_lines])
@pytest.mark.parametrize(
    ("table", "said"),
    [(_without("sha256"), "there is no column `sha256`"), (_with(segment="x"), "the column `segment` exists")],
)
def test_a_table_without_a_column_is_refused(tmp_path: Path, write: Any, table: Any, said: str) -> None:
    path = write(tmp_path / ("a.parquet" if write is not write_lines else "a.jsonl"), table)
    with pytest.raises(GatherError) as refused:
        plan([str(path)], COLUMNS)
    assert said in str(refused.value)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [{"license": 3}, {"decided_at": datetime(2026, 11, 3)}, {"origin": ["x"]}],  # noqa: DTZ001 (without a zone)
)
def test_a_column_of_another_type_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = write_parquet(tmp_path / "a.parquet", _with(**change), 3)
    with pytest.raises(GatherError, match=r"has the type .*, which is not read"):
        plan([str(path)], COLUMNS)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing.parquet", "cannot read"),
        ("empty", "there is no corpus in"),
        ("odd.parquet", "cannot read"),
        ("", "the path of a corpus is empty"),
    ],
)
def test_a_missing_empty_or_malformed_corpus_is_refused(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd.parquet").write_bytes(b"PAR1 and more")
    with pytest.raises(GatherError, match=said):
        plan([str(tmp_path / name) if name else name], COLUMNS)


def test_a_pipe_in_a_folder_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(GatherError, match=r"a\.jsonl`: it is not a file"):
        plan([str(tmp_path)], COLUMNS)


def test_a_folder_may_have_the_name_of_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "a.parquet"
    folder.mkdir()
    part = write_parquet(folder / "part-0.parquet", rows(3), 3)
    assert [unit.path for unit in plan([str(folder)], COLUMNS)] == [part.as_uri()]


def test_the_output_folder_of_the_run_is_excluded_from_the_corpus(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", rows(3))
    (tmp_path / "run" / "rows").mkdir(parents=True)
    write_lines(tmp_path / "run" / "rows" / "b.jsonl", [{"decision_id": "1"}])
    assert [unit.path for unit in plan([str(tmp_path)], COLUMNS, tmp_path / "run")] == [path.as_uri()]


def test_suffixes_may_be_in_capitals(tmp_path: Path) -> None:
    table, text = write_parquet(tmp_path / "a.Parquet", rows(3), 3), write_lines(tmp_path / "b.JSONL", rows(1))
    assert [(unit.path, unit.part) for unit in plan([str(tmp_path)], COLUMNS)] == [
        (table.as_uri(), 0),
        (text.as_uri(), None),
    ]
    assert [unit.path for unit in plan([str(text)], COLUMNS)] == [text.as_uri()]


def test_a_file_under_several_paths_is_one(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", rows(1))
    (tmp_path / "b.jsonl").symlink_to(path)
    (tmp_path / "c").symlink_to(tmp_path)
    listed = [str(path), path.as_uri(), str(tmp_path / "b.jsonl"), str(tmp_path / "c" / "a.jsonl"), str(tmp_path)]
    assert [unit.path for unit in plan(listed, COLUMNS)] == [path.as_uri()]


def test_lines_are_planned_in_ranges_that_cover_every_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "UNIT_ROWS", 4)
    path = write_lines(tmp_path / "a.jsonl", rows(10))
    path.write_text(path.read_text(encoding="utf-8").replace("\n", "\n\n", 3).removesuffix("\n"), encoding="utf-8")
    found = plan([str(tmp_path)], COLUMNS)
    assert [(unit.first, unit.rows) for unit in found] == [(1, 4), (8, 4), (12, 2)]
    read = [batch for unit in found for batch in batches(unit, COLUMNS)]
    assert [one for batch in read for one in batch.requests] == [request(one) for one in rows(10)]
    numbers = [int(place.rpartition(":")[2]) for batch in read for place in batch.places]
    assert numbers == [1, 3, 5, 7, 8, 9, 10, 11, 12, 13]


def test_long_rows_are_read_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_parquet(tmp_path / "a.parquet", [{**one, "image": f"{one['id']:010000}"} for one in rows(100)], 100)
    monkeypatch.setattr(rows_module, "BATCH_BYTES", 250_000)
    (unit,) = plan([str(path)], COLUMNS)
    read = [len(batch.requests) for batch in batches(unit, COLUMNS)]
    assert sum(read) == 100
    assert max(read) < 30


def test_a_line_that_is_too_long_is_named(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", rows(3))
    path.write_bytes(path.read_bytes() + b"a" * 42_000_000)
    with pytest.raises(GatherError, match=r"a\.jsonl:4: a line is longer than 33554432 bytes"):
        plan([str(path)], COLUMNS)


def test_a_local_name_may_have_a_question_mark(tmp_path: Path) -> None:
    (unit,) = plan([str(write_parquet(tmp_path / "a?b.parquet", rows(2), 2))], COLUMNS)
    assert unit.file.endswith("/a?b.parquet")
    assert [one for batch in batches(unit, COLUMNS) for one in batch.requests] == [request(one) for one in rows(2)]


def test_the_name_of_a_unit_depends_on_content_policy_and_request(tmp_path: Path) -> None:
    from engine.model import Revisions

    policy = Revisions(rules="sha256:" + "a" * 64, values="sha256:" + "b" * 64)
    path = write_parquet(tmp_path / "a.parquet", rows(4), 2)
    first, second = plan([str(path)], COLUMNS)
    other = policy.model_copy(update={"values": "sha256:" + "c" * 64})
    names = {first.name(policy, "x"), second.name(policy, "x"), first.name(other, "x"), first.name(policy, "y")}
    assert len(names) == 4
    assert plan([str(path)], COLUMNS)[0].name(policy, "x") in names
    write_parquet(path, rows(5), 2)
    assert plan([str(path)], COLUMNS)[0].name(policy, "x") not in names


def test_a_corpus_in_memory_and_over_http_is_read_by_fsspec(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", rows(5), 5)
    write_lines(tmp_path / "b.jsonl", rows(3))
    memory = package("fsspec").filesystem("memory")
    for name in ("a.parquet", "b.jsonl"):
        memory.pipe_file(f"/corpus/{name}", (tmp_path / name).read_bytes())
    found = plan(["memory://corpus"], COLUMNS)
    assert [(unit.path, unit.rows) for unit in found] == [
        ("memory:///corpus/a.parquet", 5),
        ("memory:///corpus/b.jsonl", 3),
    ]
    assert [one for unit in found for batch in batches(unit, COLUMNS) for one in batch.requests] == [
        request(one) for one in [*rows(5), *rows(3)]
    ]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The address of a folder that is served over HTTP."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_file_over_http_is_read_as_it_was_planned(tmp_path: Path, served: str) -> None:
    write_parquet(tmp_path / "a.parquet", rows(5), 5)
    (unit,) = plan([f"{served}/a.parquet?signature=c4nary"], COLUMNS)
    assert [one for batch in batches(unit, COLUMNS) for one in batch.requests] == [request(one) for one in rows(5)]
    write_parquet(tmp_path / "a.parquet", rows(6), 6)
    with pytest.raises(GatherError, match="the file changed after the run was planned") as changed:
        list(batches(unit, COLUMNS))
    assert "c4nary" not in str(changed.value)


@pytest.mark.parametrize("file", ["nothing.parquet", "nothing.jsonl", "corpus", "a.jsonl"])
def test_no_error_about_an_address_has_its_credentials(tmp_path: Path, served: str, file: str) -> None:
    write_lines(tmp_path / "a.jsonl", _without("sha256"))
    address = f"{served}/{file}?signature=c4nary".replace("://", "://user:c4na@ry@")
    with pytest.raises(GatherError) as refused:
        plan([address], COLUMNS)
    assert file in str(refused.value)
    assert not {"c4na", "ry@", "c4nary"} & {*re.findall("c4nary|c4na|ry@", str(refused.value))}


def test_a_name_that_looks_like_a_secret_is_not_in_request_ids(tmp_path: Path) -> None:
    for name, place in (("plain", "/c/plain.jsonl"), ("ghp_" + "a1B2" * 9, "row")):
        (unit,) = plan([str(write_lines(tmp_path / f"{name}.jsonl", rows(1)))], COLUMNS)
        moved = replace(unit, path=f"/c/{name}.jsonl")
        assert moved.place == place
    signed = replace(unit, path="https://user:word@example.org/c.parquet?signature=x")
    assert signed.file == "https://example.org/c.parquet"
