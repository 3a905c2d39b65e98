"""`engine check --ray` before anything of Ray is started: wrong calls, and corpora that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Command
from tests.processes import own_port
from tests.ray.samples import COLUMNS_YAML, rows, write_parquet


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "columns.yaml").write_text(COLUMNS_YAML, encoding="utf-8")
    write_parquet(tmp_path / "a.parquet", rows(3), 3)
    return tmp_path


OPTIONS = ("--ray", "local", "--columns", "columns.yaml", "--into", "run")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--ray", "local", "--into", "run"), "--columns: a corpus needs it"),
        (("--ray", "local", "--columns", "columns.yaml"), "--into: a corpus needs it"),
        (("--into", "run"), "--into: it needs --ray"),
        (("--workers", "2"), "--workers: it needs --ray"),
        ((*OPTIONS, "--format", "sarif"), "a corpus is reported as text or json"),
        ((*OPTIONS, "--changed", "HEAD"), "it excludes --digest, --changed and --output"),
    ],
    ids=["no columns", "no folder", "folder alone", "workers alone", "format", "changed"],
)
def test_contradictory_options_are_refused(
    command: Command, corpus: Path, arguments: tuple[str, ...], said: str
) -> None:
    command.check("a.parquet", *arguments, cwd=corpus).refused(said)


def test_a_table_without_a_column_is_refused_before_anything_starts(command: Command, corpus: Path) -> None:
    table = [{key: value for key, value in one.items() if key != "origin"} for one in rows(3)]
    write_parquet(corpus / "a.parquet", table, 3)
    (corpus / "run").mkdir()
    (corpus / "run" / "manifest.json").write_text("{}", encoding="utf-8")
    done = command.check("a.parquet", *OPTIONS, cwd=corpus)
    assert (corpus / "run" / "manifest.json").exists()  # that of an earlier run
    done.refused("a.parquet: there is no column `origin`; the columns are id, text, license", "file of --columns")
    assert not list((corpus / "run" / "segments").iterdir())


def test_a_run_of_another_state_does_not_verify(command: Command, corpus: Path) -> None:
    (corpus / "run").mkdir()
    command("record", "verify", "--bulk", "run", cwd=corpus).refused("state folder")
    command("record", "verify", "--bulk", "run", "--against", "columns.yaml", cwd=corpus).refused("--against")


def test_an_address_where_nothing_listens_is_refused_at_once(command: Command, corpus: Path) -> None:
    with own_port() as port:
        done = command.check("a.parquet", "--ray", address := f"127.0.0.1:{port}", *OPTIONS[2:], cwd=corpus)
    done.refused(f"cannot connect to Ray at `{address}`: connection refused", "RAY_AUTH_MODE")
