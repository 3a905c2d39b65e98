"""The record of a bulk run: segments that appear as a whole, and a manifest that names each exactly once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.cli.record.verification import run_text
from engine.documents.canonical import canonical
from engine.errors import RecordError
from engine.model import Revisions
from engine.record.bulk import MANIFEST, AdmittedRows, RunRecord, Unit, name_of, signer, verify_run
from engine.record.checkpoint import signed_statement
from tests.record.samples import TIME, decision, open_log

POLICY = Revisions(rules="sha256:" + "a" * 64, values="sha256:" + "b" * 64)
NAMES = [name_of(number) for number in range(3)]


def write(run: RunRecord, name: str, count: int, first: int = 0, **changes: Any) -> bool:
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
            first={},
            admitted=admitted,
        )
        return draft.publish(unit.model_copy(update=changes))


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


def _empty(run: Path) -> None:
    """Nothing of a segment but its unit."""
    _remove(run)
    other, folder = run / "segments" / NAMES[0] / "unit.json", run / "segments" / NAMES[1]
    folder.mkdir()
    stated = json.loads(other.read_bytes())
    (folder / "unit.json").write_bytes(canonical({**stated, "unit": NAMES[1], "records": 0}))


def _no_unit(run: Path) -> None:
    (run / "segments" / NAMES[1] / "unit.json").unlink()


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
    "signed, another point": (
        _signed(lambda stated: stated.update(point="source")),
        MANIFEST,
        "bad_signature",
    ),
    "signed, another policy": (
        _signed(lambda stated: stated["policy"].update(rules="sha256:" + "f" * 64)),
        MANIFEST,
        "bad_signature",
    ),
    "segment emptied": (_empty, f"{_CHANGED}/installation.json", "installation_missing"),
    "unit removed": (_no_unit, f"{_CHANGED}/unit.json", "bad_keys"),
    "no manifest": (_no_manifest, MANIFEST, "manifest_missing"),
}


@pytest.mark.parametrize("name", EDITS)
def test_every_change_is_found_in_its_place(run: RunRecord, tmp_path: Path, name: str) -> None:
    edit, file, kind = EDITS[name]
    edit(run.folder)
    found = verify_run(run.folder, signer(tmp_path / "state"))
    assert (found.breaks[0].file, found.breaks[0].kind.value) == (file, kind), found.breaks


def test_a_run_that_was_interrupted_is_run_again(run: RunRecord, tmp_path: Path) -> None:
    _no_manifest(run.folder)
    text = run_text(verify_run(run.folder, signer(tmp_path / "state")))
    assert "run the same command again" in text
    assert "state folder" not in text


def test_another_state_has_not_signed_it(run: RunRecord, tmp_path: Path) -> None:
    found = verify_run(run.folder, signer(tmp_path / "other", new=True))
    assert [broken.kind.value for broken in found.breaks] == ["bad_signature"]
    assert "name the state folder of the run with --state" in run_text(found)


def test_an_unrecorded_unit_is_refused_at_the_join(run: RunRecord, tmp_path: Path) -> None:
    planned = dict.fromkeys([*NAMES, "f" * 64], 3)
    with pytest.raises(RecordError, match="no worker recorded this unit"):
        run.join(planned, signer(tmp_path / "state"), TIME)


def test_another_number_of_rows_is_refused_at_the_join(run: RunRecord, tmp_path: Path) -> None:
    planned = {**dict.fromkeys(NAMES, 3), NAMES[0]: 4}
    with pytest.raises(RecordError, match="the unit has 4 rows, and 3 decisions are recorded"):
        run.join(planned, signer(tmp_path / "state"), TIME)


def test_changed_rows_are_refused_at_the_join(run: RunRecord, tmp_path: Path) -> None:
    _change_rows(run.folder)
    with pytest.raises(RecordError, match="checkpoint_mismatch"):
        run.join(dict.fromkeys(NAMES, 3), signer(tmp_path / "state"), TIME)


def test_units_of_several_policies_are_refused_at_the_join(run: RunRecord, tmp_path: Path) -> None:
    other = Revisions(rules=POLICY.rules, values="sha256:" + "f" * 64)
    assert write(run, "f" * 64, 1, policy=other)
    with pytest.raises(RecordError, match="the run was decided by several policies"):
        run.join({**dict.fromkeys(NAMES, 3), "f" * 64: 1}, signer(tmp_path / "state"), TIME)


def test_a_run_without_units_is_refused_at_the_join(run: RunRecord, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="the run has no rows"):
        run.join({}, signer(tmp_path / "state"), TIME)


def test_a_unit_without_admitted_rows_is_whole(run: RunRecord, tmp_path: Path) -> None:
    by = signer(tmp_path / "state")
    assert write(run, "f" * 64, 1, admitted=None)
    (run.folder / "rows" / f"{'f' * 64}.jsonl").unlink()
    assert run.whole("f" * 64) is not None
    run.join({**dict.fromkeys(NAMES, 3), "f" * 64: 1}, by, TIME)
    found = verify_run(run.folder, by)
    assert (found.breaks, found.records) == ((), 10)


def test_rows_of_no_unit_are_found(run: RunRecord, tmp_path: Path) -> None:
    (run.folder / "rows" / f"{'f' * 64}.jsonl").write_bytes(b"{}\n")
    (broken,) = verify_run(run.folder, signer(tmp_path / "state")).breaks
    assert (broken.file, broken.kind.value) == (f"rows/{'f' * 64}.jsonl", "unknown_segment")


def test_only_a_unit_with_its_decisions_and_rows_under_its_name_is_whole(run: RunRecord) -> None:
    assert run.whole("f" * 64) is None
    (run.folder / "segments" / NAMES[0]).rename(run.folder / "segments" / ("f" * 64))
    _change_rows(run.folder)
    path = run.folder / "segments" / NAMES[2] / "unit.json"
    path.write_bytes(path.read_bytes().replace(b'"records":3', b'"records":4'))
    for name in ("f" * 64, *NAMES[1:]):
        assert run.whole(name) is None
        assert not (run.folder / "segments" / name).exists()
    assert {path.name[:64] for path in (run.folder / "left").iterdir()} == {"f" * 64, *NAMES[1:]}


def test_a_run_is_joined_while_an_engine_uses_the_state(run: RunRecord, tmp_path: Path) -> None:
    with open_log(tmp_path / "state"):
        by = signer(tmp_path / "state", new=True)
        run.join(dict.fromkeys(NAMES, 3), by, TIME)
    assert verify_run(run.folder, by).ok


def test_a_state_without_a_record_has_signed_no_run(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="this state folder has signed no run"):
        signer(tmp_path / "state")
    assert not (tmp_path / "state").exists()


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
