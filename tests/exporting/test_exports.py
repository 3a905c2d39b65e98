"""The file of an export by itself: nothing without its permit, and nothing of it is left after a failure."""

from __future__ import annotations

import errno
import gc
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from admission_adapters.files.exports import ExportFile
from engine.errors import GatherError, WorkError
from engine.model import Limits
from tests.adapters.permits import DIGEST, MISUSED, misused, sealed
from tests.expect import refused

LINES = [{"kind": "synthetic", "content": {"text": "ä"}}]


def lines(_: Any) -> Sequence[dict[str, Any]]:
    return LINES


def test_a_file_appears_once_finished_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with ExportFile(path) as file:
        assert file.add(sealed("export", Limits()), DIGEST, lines).facts == {"samples": 1}
        assert not path.exists()
        size, digest = file.finish()
        with pytest.raises(WorkError, match="is not open"):
            file.add(sealed("export", Limits()), DIGEST, lines)
    data = path.read_bytes()
    assert (json.loads(data), size, digest) == (LINES[0], len(data), hashlib.sha256(data).hexdigest())
    assert (path.stat().st_mode & 0o777, [one.name for one in tmp_path.iterdir()]) == (0o600, ["out.jsonl"])


@pytest.mark.parametrize("wrong", MISUSED)
def test_samples_are_written_under_their_own_permit_only(wrong: str, tmp_path: Path) -> None:
    with ExportFile(tmp_path / "out.jsonl") as file:
        with refused(WorkError, "engine.permit_missing"):
            file.add(misused(sealed("export", Limits()))[wrong], DIGEST, lines)
        assert file.finish()[0] == 0


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_an_unfinished_file_leaves_nothing(name: str, tmp_path: Path) -> None:
    with ExportFile(tmp_path / name):
        assert len([*tmp_path.iterdir()]) == 1
    gc.collect()  # a writer that is still open complains here
    assert not [*tmp_path.iterdir()]


def test_an_unopened_file_accepts_nothing(tmp_path: Path) -> None:
    file = ExportFile(tmp_path / "out.jsonl")
    for use in (file.finish, lambda: file.add(sealed("export", Limits()), DIGEST, lines)):
        with pytest.raises(WorkError, match="is not open"):
            use()


@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.ENOSPC, "free disk space"), (errno.EEXIST, "name a new file")], ids=["full", "there"]
)
def test_a_file_that_cannot_be_renamed_into_place_is_reported_and_removed(
    number: int, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    with ExportFile(tmp_path / "out.jsonl") as file:
        file.add(sealed("export", Limits()), DIGEST, lines)
        monkeypatch.setattr(os, "link", failing)
        with pytest.raises(WorkError) as caught:
            file.finish()
    assert caught.value.message.endswith(os.strerror(number).lower())
    assert caught.value.remedy.startswith(remedy)
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(GatherError, match="cannot be written: no such file"), ExportFile(tmp_path / "no" / "out.jsonl"):
        pass


def test_the_partial_file_of_a_killed_export_is_removed_by_the_next_one(tmp_path: Path) -> None:
    path, other = tmp_path / "out.jsonl", tmp_path / ".other.jsonl.0123456789abcdef.part"
    killed = tmp_path / ".out.jsonl.0123456789abcdef.part"
    for one in (killed, other):
        one.touch()
    with ExportFile(path):
        assert not killed.exists()
        with ExportFile(path):  # the first one is not over
            assert len([*tmp_path.glob(".out.jsonl.*.part")]) == 2
    assert [*tmp_path.iterdir()] == [other]
