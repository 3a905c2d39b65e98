"""The record of a bulk run: segments that appear as a whole, and a manifest that names each exactly once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.documents.canonical import canonical
from engine.errors import RecordError
from engine.model import Revisions
from engine.record.bulk import MANIFEST, AdmittedRows, RunRecord, Unit, name_of, signer, verify_run
from engine.record.checkpoint import signed_statement
from tests.record.samples import TIME, decision

POLICY = Revisions(rules="sha256:" + "a" * 64, values="sha256:" + "b" * 64)
NAMES = [name_of(number) for number in range(3)]


def write(run: RunRecord, name: str, count: int, first: int = 0) -> bool:
    rows = run.folder / "rows" / f"{name}.jsonl"
    rows.write_bytes(b"{}\n")
    admitted = AdmittedRows(
        file=f"rows/{name}.jsonl",
        rows=1,
        sha256="ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356",
    )
    with run.draft(name) as draft:
        draft.log.append_many([(decision(number), ()) for number in range(first, first + count)])
        unit = Unit(
            unit=name,
            source="a.parquet (row group 0, rows 1 to 3)",
            point="license",
            policy=POLICY,
            records=count,
            outcomes={"deny": count},
            codes={"license_unknown": count},
            admitted=admitted,
        )
        return draft.publish(unit)


@pytest.fixture
def run(tmp_path: Path) -> RunRecord:
    """A run of three units, joined."""
    record = RunRecord(tmp_path / "run")
    record.prepare()
    for number, name in enumerate(NAMES):
        assert write(record, name, 3, number * 3)
    record.join(dict.fromkeys(NAMES, 3), signer(tmp_path / "state", new=True), TIME)
    return record


def test_a_whole_run_verifies(run: RunRecord, tmp_path: Path) -> None:
    found = verify_run(run.folder, signer(tmp_path / "state"))
    assert (found.breaks, found.segments, found.records) == ((), 3, 9)
    assert found.manifest is not None
    assert found.manifest.outcomes == {"deny": 9}
    assert found.size == sum(path.stat().st_size for path in run.folder.glob("segments/*/records/decisions.*"))


def test_a_unit_that_two_workers_decide_is_recorded_once(run: RunRecord) -> None:
    before = run.find(NAMES[0])
    assert not write(run, NAMES[0], 3, 100)
    assert run.find(NAMES[0]) == before
    assert sorted(path.name for path in (run.folder / "segments").iterdir()) == sorted(NAMES)


def test_a_draft_that_fails_leaves_nothing(run: RunRecord) -> None:
    def fail() -> None:
        with run.draft("f" * 64) as draft:
            draft.log.append(decision(1))
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fail()
    assert sorted(path.name for path in (run.folder / "segments").iterdir()) == sorted(NAMES)


def _edit_line(run: Path) -> None:
    path = run / "segments" / NAMES[1] / "records" / "decisions.000001.jsonl"
    path.write_bytes(path.read_bytes().replace(b"license_unknown", b"license_accepts", 1))


def _cut_line(run: Path) -> None:
    path = run / "segments" / NAMES[1] / "records" / "decisions.000001.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def _other_segment(run: Path) -> None:
    """Another whole chain under the name of a unit."""
    shutil.rmtree(run / "segments" / NAMES[1])
    write(RunRecord(run), NAMES[1], 3, 50)


def _remove(run: Path) -> None:
    shutil.rmtree(run / "segments" / NAMES[1])


def _add(run: Path) -> None:
    write(RunRecord(run), "f" * 64, 1)


def _change_rows(run: Path) -> None:
    (run / "rows" / f"{NAMES[1]}.jsonl").write_bytes(b"[]\n")


def _remove_rows(run: Path) -> None:
    (run / "rows" / f"{NAMES[1]}.jsonl").unlink()


def _change_counts(run: Path) -> None:
    path = run / "segments" / NAMES[1] / "unit.json"
    path.write_bytes(path.read_bytes().replace(b'"deny":3', b'"allow":3'))


def _unsigned(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(run: Path) -> None:
        stated = json.loads((run / MANIFEST).read_bytes())
        change(stated)
        (run / MANIFEST).write_bytes(canonical(stated))

    return edit


def _signed(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """As the owner of the key could do it."""

    def edit(run: Path) -> None:
        stated = json.loads((run / MANIFEST).read_bytes())
        change(stated)
        fields = {name: value for name, value in stated.items() if name not in {"time", "key", "mac"}}
        (run / MANIFEST).write_bytes(signed_statement(fields, signer(run.parent / "state"), TIME))

    return edit


def _no_manifest(run: Path) -> None:
    (run / MANIFEST).unlink()


_CHANGED = f"segments/{NAMES[1]}"
_LINES = f"{_CHANGED}/records/decisions.000001.jsonl"
_ROWS = f"rows/{NAMES[1]}.jsonl"
EDITS: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "line changed": (_edit_line, _LINES, "chain_break"),
    "line cut": (_cut_line, _LINES, "before_checkpoint"),
    "another segment": (_other_segment, f"{_CHANGED}/unit.json", "checkpoint_mismatch"),
    "segment removed": (_remove, _CHANGED, "missing_segment"),
    "segment added": (_add, f"segments/{'f' * 64}", "unknown_segment"),
    "rows changed": (_change_rows, _ROWS, "checkpoint_mismatch"),
    "rows removed": (_remove_rows, _ROWS, "missing_segment"),
    "counts changed": (_change_counts, f"{_CHANGED}/unit.json", "checkpoint_mismatch"),
    "unit missing": (_unsigned(lambda stated: stated["segments"].pop()), MANIFEST, "bad_signature"),
    "unit twice": (
        _unsigned(lambda stated: stated["segments"].append(stated["segments"][0])),
        MANIFEST,
        "bad_signature",
    ),
    "unit changed": (_unsigned(lambda stated: stated["segments"][0].update(head="0" * 64)), MANIFEST, "bad_signature"),
    "signed, unit twice": (
        _signed(lambda stated: stated["segments"].append(stated["segments"][-1])),
        MANIFEST,
        "bad_signature",
    ),
    "signed, unit missing": (
        _signed(lambda stated: stated["segments"].pop()),
        f"segments/{max(NAMES)}",
        "unknown_segment",
    ),
    "signed, unit changed": (
        _signed(lambda stated: stated["segments"][0].update(head="0" * 64)),
        f"segments/{min(NAMES)}/unit.json",
        "checkpoint_mismatch",
    ),
    "no manifest": (_no_manifest, MANIFEST, "manifest_missing"),
}


@pytest.mark.parametrize("name", EDITS)
def test_every_change_is_found_in_its_place(run: RunRecord, tmp_path: Path, name: str) -> None:
    edit, file, kind = EDITS[name]
    edit(run.folder)
    found = verify_run(run.folder, signer(tmp_path / "state"))
    assert (found.breaks[0].file, found.breaks[0].kind.value) == (file, kind), found.breaks


def test_another_state_has_not_signed_it(run: RunRecord, tmp_path: Path) -> None:
    found = verify_run(run.folder, signer(tmp_path / "other", new=True))
    assert [broken.kind.value for broken in found.breaks] == ["bad_signature"]


def test_a_unit_that_nobody_recorded_is_refused_at_the_join(run: RunRecord, tmp_path: Path) -> None:
    planned = dict.fromkeys([*NAMES, "f" * 64], 3)
    with pytest.raises(RecordError, match="no worker recorded this unit"):
        run.join(planned, signer(tmp_path / "state"), TIME)


def test_another_number_of_rows_is_refused_at_the_join(run: RunRecord, tmp_path: Path) -> None:
    planned = {**dict.fromkeys(NAMES, 3), NAMES[0]: 4}
    with pytest.raises(RecordError, match="the unit has 4 rows, and 3 decisions are recorded"):
        run.join(planned, signer(tmp_path / "state"), TIME)


def test_a_damaged_unit_is_moved_aside_and_not_whole(run: RunRecord) -> None:
    _edit_line(run.folder)
    assert run.whole(NAMES[0]) is not None
    assert run.whole(NAMES[1]) is None
    assert {path.name.partition(".")[0] for path in (run.folder / "left").iterdir()} == {NAMES[1]}


def test_a_segment_of_no_unit_is_kept_aside_at_the_join(run: RunRecord, tmp_path: Path) -> None:
    by = signer(tmp_path / "state")
    run.join(dict.fromkeys(NAMES[:2], 3), by, TIME)
    assert verify_run(run.folder, by).ok
    assert {path.name.partition(".")[0] for path in (run.folder / "left").iterdir()} == {NAMES[2]}


def test_two_runs_do_not_share_a_folder(run: RunRecord) -> None:
    with run.alone(), pytest.raises(RecordError, match="another run uses this folder"), RunRecord(run.folder).alone():
        pass
