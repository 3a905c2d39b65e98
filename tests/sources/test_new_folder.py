"""The folder of what was fetched by itself: exactly the content of each permit, and all of the folder or nothing."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from admission_adapters.files.new_folder import NewFolder
from engine.errors import WorkError
from engine.model import Limits, Sha256
from tests.adapters.permits import DIGEST, MISUSED, misused, sealed
from tests.expect import refused

DATA = b"[1]"
POINT = "network_response"


class Content(Limits):
    """The part of the limits of a response that the folder reads."""

    id: str
    sha256: Sha256
    bytes: int


GRANT = Content(id="a", sha256=hashlib.sha256(DATA).hexdigest(), bytes=len(DATA))


def keep(folder: NewFolder, data: bytes = DATA, name: str = "a.json") -> dict[str, Any]:
    return folder.keep(sealed(POINT, GRANT), DIGEST, bytearray(data), name).facts


def test_the_content_of_a_permit_is_kept_and_appears_with_its_document(tmp_path: Path) -> None:
    into = tmp_path / "new" / "into"
    with NewFolder(into, "content") as folder:
        assert keep(folder) == {"bytes": 3, "sha256": GRANT.sha256}
        keep(folder, name="b.json")
        assert not into.exists()
        folder.finish("bundle.yaml", "id: ä\n")
    assert {path.relative_to(into).as_posix() for path in into.rglob("*")} == {
        "content", "content/a.json", "content/b.json", "bundle.yaml",
    }  # fmt: skip
    assert (into / "content" / "a.json").read_bytes() == DATA
    assert [path.name for path in into.parent.iterdir()] == ["into"]


@pytest.mark.parametrize("wrong", MISUSED)
def test_content_is_kept_under_its_own_permit_only(wrong: str, tmp_path: Path) -> None:
    with NewFolder(tmp_path / "into", "content") as folder, refused(WorkError, "engine.permit_missing"):
        folder.keep(misused(sealed(POINT, GRANT))[wrong], DIGEST, bytearray(DATA), "a.json")
    assert not list(tmp_path.iterdir())


def test_a_permit_without_content_stores_none(tmp_path: Path) -> None:
    with NewFolder(tmp_path / "into", "content") as folder, refused(WorkError, "engine.limit_unenforceable"):
        folder.keep(sealed(POINT, Limits()), DIGEST, bytearray(DATA), "a.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("data", [b"[2]", b"[1", b"[1] ", b""])
def test_other_content_than_that_of_the_permit_is_refused(data: bytes, tmp_path: Path) -> None:
    with NewFolder(tmp_path / "into", "content") as folder, pytest.raises(WorkError):
        keep(folder, data)
    assert not list(tmp_path.iterdir())


def _file(path: Path) -> None:
    path.write_bytes(b"mine")


def _folder(path: Path) -> None:
    (path / "mine").mkdir(parents=True)


@pytest.mark.parametrize("make", [_file, _folder])
def test_a_concurrently_created_target_is_left_alone(make: Callable[[Path], None], tmp_path: Path) -> None:
    with NewFolder(tmp_path / "into", "content") as folder:
        keep(folder)
        make(tmp_path / "into")
        with pytest.raises(WorkError) as caught:
            folder.finish("bundle.yaml", "id: a\n")
    assert "name a new folder as `into`" in caught.value.remedy
    assert [path.name for path in tmp_path.iterdir()] == ["into"]
    assert not (tmp_path / "into" / "bundle.yaml").exists()


def test_a_full_disk_is_reported_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with NewFolder(tmp_path / "into", "content") as folder:
        keep(folder)
        with monkeypatch.context() as patched:
            patched.setattr(os, "rename", full)
            with pytest.raises(WorkError) as caught:
                folder.finish("bundle.yaml", "id: a\n")
    assert caught.value.message.endswith("no space left on device")
    assert caught.value.remedy.startswith("free disk space")
    assert not list(tmp_path.iterdir())
