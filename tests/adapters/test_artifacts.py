"""The artifact folder: nothing gets out of it, nothing is replaced, and staging is whole or not at all."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from admission_adapters.files.artifacts import HELD, ArtifactDirectory, probe
from engine.errors import GatherError, WorkError
from engine.model import Digest, Limits, Model, Permit, Result, Sha256
from tests.adapters.permits import MISUSED, misused, sealed
from tests.expect import refused
from tests.processes import descriptors_left, open_under
from tests.threads import at_once

CONTENTS = {"contacts-1": b"a,b\n1,2\n", "tickets-1": b"{}\n" * 100_000, "empty-1": b""}
FOLDER = "ab" * 32
INPUT = "sha256:" + "cd" * 32


class Admitted(Model):
    id: str
    sha256: Sha256
    bytes: int


class StagingLimits(Limits):
    """The part of the limits of point `source` that staging reads."""

    bundle_digest: Digest
    records: tuple[Admitted, ...]


def limits(contents: dict[str, bytes]) -> StagingLimits:
    records = tuple(
        Admitted(id=name, sha256=hashlib.sha256(data).hexdigest(), bytes=len(data)) for name, data in contents.items()
    )
    return StagingLimits(bundle_digest=f"sha256:{FOLDER}", records=records)


def permit(granted: Limits) -> Permit:
    return sealed("source", granted, INPUT)


def opener(contents: dict[str, bytes]) -> Callable[[str], AbstractContextManager[BinaryIO]]:
    @contextmanager
    def opened(record: str) -> Iterator[BinaryIO]:
        if record not in contents:
            raise GatherError(f"the source bundle has no `{record}`", remedy="add it")
        yield io.BytesIO(contents[record])

    return opened


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def stage(root: Path, contents: dict[str, bytes], granted: dict[str, bytes] | None = None) -> dict[str, object]:
    result = ArtifactDirectory(root).stage_source(permit(limits(granted or CONTENTS)), INPUT, opener(contents))
    assert result.status == "staged"
    return result.facts


# Writing


def test_a_file_is_written_below_the_root(tmp_path: Path) -> None:
    artifacts = ArtifactDirectory(tmp_path / "made" / "artifacts")
    assert artifacts.write("a/b/c.txt", [b"one", b"", b"two"], most=6) == 6
    assert artifacts.write("a/b/d.txt", [], most=0) == 0
    assert files(tmp_path / "made") == {"artifacts/a/b/c.txt": b"onetwo", "artifacts/a/b/d.txt": b""}


@pytest.mark.parametrize(
    "path", ["", ".", "..", "../x", "a/../../x", "/etc/x", "a//b", "a/", "./a", "a\\b", "a\nb", "a\0b", ".draft-1/x"]
)
def test_a_path_that_is_not_plain_and_relative_is_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="leaves the artifact folder"):
        ArtifactDirectory(tmp_path / "root").write(path, [b"x"], most=1)
    assert files(tmp_path) == {}


def test_links_are_not_followed_and_files_not_replaced(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "kept").write_bytes(b"kept")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "kept")
    (root / "dangling").symlink_to(outside / "new")
    (root / "taken").write_bytes(b"kept")
    for path in ("folder/x", "file", "dangling", "taken", "taken/x"):
        with pytest.raises(WorkError, match="already exists, or its path passes through a link"):
            ArtifactDirectory(root).write(path, [b"x"], most=1)
    assert files(outside) == {"kept": b"kept"}
    assert (root / "taken").read_bytes() == b"kept"


def test_a_root_that_is_a_link_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_bytes(b"")
    for name in ("link", "file"):
        with pytest.raises(WorkError, match="the folder cannot be written"):
            ArtifactDirectory(tmp_path / name).write("x", [b"x"], most=1)
    assert files(tmp_path / "real") == {}


def test_the_cap_is_exact_and_nothing_stays_beyond_it(tmp_path: Path) -> None:
    artifacts = ArtifactDirectory(tmp_path)
    artifacts.write("whole", [b"abc", b"def"], most=6)
    with pytest.raises(WorkError, match="larger than 5 bytes"):
        artifacts.write("more", [b"abc", b"def"], most=5)

    def failing() -> Iterable[bytes]:
        yield b"abc"
        raise OSError(28, os.strerror(28))

    with pytest.raises(WorkError, match="no space left on device"):
        artifacts.write("failed", failing(), most=9)
    assert files(tmp_path) == {"whole": b"abcdef"}


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    ArtifactDirectory(tmp_path).write("a/b/c", [b"x"], most=1)
    stage(tmp_path, CONTENTS)
    assert open_under(tmp_path) == []


def test_running_out_of_descriptors_is_reported_as_a_write_failure(tmp_path: Path) -> None:
    stage(tmp_path, CONTENTS)
    for attempt in (
        lambda: ArtifactDirectory(tmp_path).write("folder/file", [b"x"], most=1),
        lambda: stage(tmp_path, CONTENTS),
    ):
        with descriptors_left(1), pytest.raises(WorkError, match="cannot be written: too many open files"):
            attempt()
    assert stage(tmp_path, CONTENTS)  # the control


# Proving


def test_the_boundary_is_proven_with_equal_evidence_each_time(tmp_path: Path) -> None:
    first, second = ArtifactDirectory.prove(tmp_path), ArtifactDirectory.prove(tmp_path)
    assert first == second
    assert (first.backend, first.boundary, first.kind) == ("artifact_directory", "artifact_subdir", "supervised")
    assert first.enforced is True
    assert list(tmp_path.iterdir()) == []


def plain(root: Path) -> Callable[[str, Iterable[bytes], int], int]:
    """A writer without any protection: what the probe must notice."""

    def write(relative: str, chunks: Iterable[bytes], _most: int) -> int:
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.write_bytes(b"".join(chunks))

    return write


def test_the_probe_notices_a_folder_without_protection(tmp_path: Path) -> None:
    seen = probe(tmp_path, plain)
    assert seen.keys() == HELD.keys()
    assert {name for name in seen if seen[name] != HELD[name]} == {
        *("parent", "parent_inside", "absolute", "folder_link", "file_link", "dangling_link"),
        *("existing_file", "too_large", "outside"),
    }


def test_the_probe_reports_a_writer_that_refuses_every_write(tmp_path: Path) -> None:
    def refusing(_root: Path) -> Callable[[str, Iterable[bytes], int], int]:
        def write(_relative: str, _chunks: Iterable[bytes], _most: int) -> int:
            raise WorkError("no", remedy="none")

        return write

    seen = probe(tmp_path, refusing)
    assert (seen["inside"], seen["outside"], seen["parent"]) == ("refused", "changed", "refused")


def test_a_writer_that_replaces_links_fails_the_controls(tmp_path: Path) -> None:
    def replacing(root: Path) -> Callable[[str, Iterable[bytes], int], int]:
        def write(relative: str, chunks: Iterable[bytes], _most: int) -> int:
            for path in (root / relative, (root / relative).parent):
                if path.is_symlink():
                    path.unlink()
            return plain(root)(relative, chunks, 0)

        return write

    seen = probe(tmp_path, replacing)
    assert (seen["control_folder_link"], seen["control_file_link"]) == ("held", "held")


def test_a_probe_without_a_control_enforces_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(_self: Path, _target: Path) -> None:
        raise OSError("this file system has no links")

    monkeypatch.setattr(Path, "symlink_to", no_links)
    assert ArtifactDirectory.prove(tmp_path).enforced is False
    monkeypatch.undo()
    assert ArtifactDirectory.prove(tmp_path / "missing").enforced is False


# Staging


def test_exactly_the_admitted_records_are_staged(tmp_path: Path) -> None:
    facts = stage(tmp_path / "root", {**CONTENTS, "not-admitted": b"x"})
    assert facts == {"records": 3, "bytes": sum(map(len, CONTENTS.values())), "folder": FOLDER}
    assert files(tmp_path / "root") == {f"{FOLDER}/{name}": data for name, data in CONTENTS.items()}


def test_staging_again_changes_nothing(tmp_path: Path) -> None:
    first = stage(tmp_path, CONTENTS)
    before = (tmp_path / FOLDER).stat().st_mtime_ns
    assert stage(tmp_path, {}) == first
    assert (tmp_path / FOLDER).stat().st_mtime_ns == before


@pytest.mark.parametrize("wrong", MISUSED)
def test_a_permit_is_demanded_for_this_point_and_input(wrong: str, tmp_path: Path) -> None:
    with refused(WorkError, "engine.permit_missing"):
        ArtifactDirectory(tmp_path / "root").stage_source(
            misused(permit(limits(CONTENTS)))[wrong], INPUT, opener(CONTENTS)
        )
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize(
    "granted",
    [
        Limits(),
        StagingLimits(
            bundle_digest=f"sha256:{FOLDER}", records=(*limits(CONTENTS).records, limits(CONTENTS).records[0])
        ),
        StagingLimits(
            bundle_digest=f"sha256:{FOLDER}", records=(Admitted(id="../escaped", sha256="ab" * 32, bytes=1),)
        ),
        StagingLimits.model_construct(bundle_digest="../escaped", records=()),
    ],
    ids=["other_limits", "one_id_twice", "id_that_escapes", "folder_that_escapes"],
)
def test_limits_that_cannot_be_staged_are_refused(granted: Limits, tmp_path: Path) -> None:
    with refused(WorkError, "engine.limit_unenforceable"):
        ArtifactDirectory(tmp_path / "root").stage_source(permit(granted), INPUT, opener(CONTENTS))
    assert files(tmp_path) == {}


@pytest.mark.parametrize(
    "changed",
    [
        {**CONTENTS, "tickets-1": CONTENTS["tickets-1"][:-1] + b"x"},
        {**CONTENTS, "tickets-1": CONTENTS["tickets-1"][:-1]},
        {**CONTENTS, "tickets-1": CONTENTS["tickets-1"] + b"x"},
        {name: data for name, data in CONTENTS.items() if name != "tickets-1"},
    ],
    ids=["other", "shorter", "longer", "gone"],
)
def test_content_changed_since_the_decision_is_not_staged(changed: dict[str, bytes], tmp_path: Path) -> None:
    with pytest.raises(WorkError) as refused:
        stage(tmp_path, changed)
    assert refused.value.code == "engine.bundle_changed"
    assert "`tickets-1`" in refused.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_breaks_leaves_nothing(tmp_path: Path) -> None:
    @contextmanager
    def broken(_record: str) -> Iterator[BinaryIO]:
        yield io.BytesIO(b"a")
        raise OSError(5, "input/output error")

    with pytest.raises(WorkError, match="input/output error"):
        ArtifactDirectory(tmp_path).stage_source(permit(limits({"contacts-1": b"a"})), INPUT, broken)
    assert list(tmp_path.iterdir()) == []


def put_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/null")


def put_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def put_other(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"b,a\n1,2\n")


def move_away(folder: Path) -> None:
    folder.rename(folder.parent / "elsewhere")
    folder.symlink_to(folder.parent / "elsewhere")


TAMPERED: dict[str, Callable[[Path], object]] = {
    "changed": lambda folder: put_other(folder / "contacts-1"),
    "missing": lambda folder: (folder / "contacts-1").rename(folder.parent / "contacts-1"),
    "added": lambda folder: (folder / "more").write_bytes(b""),
    "a_link": lambda folder: put_link(folder / "empty-1"),
    "a_pipe": lambda folder: put_pipe(folder / "empty-1"),
    "moved_away": move_away,
}


@pytest.mark.parametrize("tamper", TAMPERED)
def test_a_tampered_staging_folder_is_refused(tamper: str, tmp_path: Path) -> None:
    stage(tmp_path, CONTENTS)
    TAMPERED[tamper](tmp_path / FOLDER)
    with refused(WorkError, "engine.artifacts_changed"):
        stage(tmp_path, CONTENTS)


def test_a_draft_is_removed_only_if_its_process_is_dead(tmp_path: Path) -> None:
    dead, filled, foreign = f".draft-{'0' * 16}", f".draft-{'1' * 16}", ".draft-letters"  # the last one is not ours
    for name in (dead, filled, foreign):
        (tmp_path / name).mkdir()
        (tmp_path / name / "contacts-1").write_bytes(b"half")
    alive = os.open(tmp_path / filled, os.O_RDONLY)
    try:
        fcntl.flock(alive, fcntl.LOCK_EX)
        stage(tmp_path, CONTENTS)
    finally:
        os.close(alive)
    assert {path.name for path in tmp_path.iterdir()} == {FOLDER, filled, foreign}


def test_a_concurrent_writer_reuses_an_identical_folder_only(tmp_path: Path) -> None:
    def meanwhile(happens: Callable[[], object]) -> Callable[[str], AbstractContextManager[BinaryIO]]:
        @contextmanager
        def opened(record: str) -> Iterator[BinaryIO]:
            if record == "contacts-1":
                happens()
            yield io.BytesIO(CONTENTS[record])

        return opened

    def staged(root: Path, happens: Callable[[], object]) -> Result:
        granted = permit(limits(CONTENTS))
        return ArtifactDirectory(root).stage_source(granted, INPUT, meanwhile(happens))

    same, other, file = (tmp_path / name for name in ("same", "other", "file"))
    assert staged(same, lambda: stage(same, CONTENTS)).facts == stage(same, CONTENTS)
    assert files(same) == {f"{FOLDER}/{name}": data for name, data in CONTENTS.items()}
    with refused(WorkError, "engine.artifacts_changed"):
        staged(other, lambda: stage(other, {"more": b"x"}, {"more": b"x"}))
    with pytest.raises(WorkError, match="cannot be written: not a directory"):
        staged(file, lambda: (file / FOLDER).write_bytes(b""))
    for root in (same, other, file):
        assert [path.name for path in root.iterdir()] == [FOLDER]


def test_two_at_once_stage_the_same_folder(tmp_path: Path) -> None:
    ready = threading.Barrier(4)
    contents = {f"record-{index}": b"x" * index for index in range(50)}

    def run() -> dict[str, object]:
        ready.wait()
        return stage(tmp_path, contents, contents)

    facts = at_once([run] * 4)
    assert facts == [facts[0]] * 4
    assert {path.name for path in tmp_path.iterdir()} == {FOLDER}
    assert files(tmp_path / FOLDER) == contents
