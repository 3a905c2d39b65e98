"""Objects at a store as fsspec knows it: listed whole, read back as one file, and named by plain URLs only."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.errors import GatherError, RecordError
from engine.record.objects import ObjectStore, Part

fsspec = pytest.importorskip("fsspec", reason="the extra `ray` is not installed")
memory = pytest.importorskip("fsspec.implementations.memory")


@pytest.fixture(params=["file", "bucket", "marked"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectStore]:
    """An empty store of each kind; `marked` lists each folder in itself, as buckets with markers of folders do."""

    class Bucket(memory.MemoryFileSystem):  # type: ignore[misc,name-defined]
        protocol = "bucket"

    class Marked(memory.MemoryFileSystem):  # type: ignore[misc,name-defined]
        protocol = "marked"

        def ls(self, path: str, detail: bool = True, **how: Any) -> Any:  # noqa: FBT001, FBT002  (as the package has it)
            found = super().ls(path, detail=detail, **how)
            folder = {"name": f"{self._strip_protocol(path)}/", "size": 0, "type": "directory"}
            return [folder, *found] if detail and self.isdir(path) else found

    fsspec.register_implementation("bucket", Bucket, clobber=True)
    fsspec.register_implementation("marked", Marked, clobber=True)
    yield ObjectStore(f"{request.param}://{tmp_path}/store")
    fs, root = fsspec.core.url_to_fs(f"{request.param}://{tmp_path}/store")
    if fs.exists(root):
        fs.rm(root, recursive=True)


def put(store: ObjectStore, **objects: bytes) -> None:
    for name, data in objects.items():
        store.put(name.replace("__", "/"), io.BytesIO(data), len(data))


def test_every_object_is_listed_once_with_its_bytes(store: ObjectStore) -> None:
    assert store.sizes() == {}
    put(store, one=b"1", a__two=b"22", a__b__three=b"333", ab=b"")
    assert list(store.sizes().items()) == [("a/b/three", 3), ("a/two", 2), ("ab", 0), ("one", 1)]
    assert store.sizes("a/") == {"a/b/three": 3, "a/two": 2}
    assert store.sizes("none/") == {}


@pytest.mark.parametrize("size", [0, 5, 6, 7])
def test_only_the_requested_number_of_bytes_is_written_and_read(store: ObjectStore, size: int) -> None:
    store.put("one", io.BytesIO(b"123456"), size)
    assert store.read("one", 100) == b"123456"[:size]
    assert store.read("one", 2) == b"123456"[: min(2, size)]


def test_parts_are_read_as_one_file_that_ends_where_an_object_is_shorter(store: ObjectStore) -> None:
    put(store, one=b"abcdef", two=b"ghi", three=b"jkl")
    with store.open([Part("one", 4), Part("two", 3), Part("three", 2)]) as file:
        assert file.read() == b"abcdghijk"
        for start in range(11):
            file.seek(start)
            assert file.read(3) == b"abcdghijk"[start : start + 3]
        assert file.seek(-2, os.SEEK_END) == 7
        assert file.read() == b"jk"
    with store.open([Part("one", 4), Part("two", 5), Part("three", 2)]) as file:
        assert file.read() == b"abcdghi"
    with store.open([]) as file:
        assert file.read() == b""


def test_an_object_that_is_replaced_has_the_new_content_and_leaves_no_other(store: ObjectStore) -> None:
    for data in (b"old and longer", b"new"):
        store.replace("a/one", data)
        assert store.sizes() == {"a/one": len(data)}
        assert store.read("a/one", 100) == data
    store.remove("a/one")
    assert store.sizes() == {}
    with pytest.raises(RecordError, match="cannot be used: FileNotFoundError"):
        store.read("a/one", 100)


@pytest.mark.parametrize("name", ["what?", "me@home", "50%", "a b", "memory"])
@pytest.mark.parametrize("scheme", ["file://", ""])
@pytest.mark.parametrize("relative", [False, True])
def test_a_folder_may_have_any_plain_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, name: str, *, relative: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    put(ObjectStore(f"{scheme}{name}" if relative else f"{scheme}{tmp_path}/{name}"), one=b"1")
    assert (tmp_path / name / "one").read_bytes() == b"1"


def test_the_host_of_a_store_is_part_of_its_url() -> None:
    one, other = (ObjectStore(f"webhdfs://{host}:9870/records/a") for host in ("one", "other"))
    assert (one.url, other.url) == ("webhdfs://one:9870/records/a", "webhdfs://other:9870/records/a")


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/a?b",
        "s3://me@bucket/a",
        "s3://me:secret@bucket/a",
        "zip::file:///a",
        "file::memory://a",
    ],
)
def test_a_url_with_more_than_a_place_is_refused(url: str) -> None:
    with pytest.raises(GatherError, match="has credentials, a query or several protocols"):
        ObjectStore(url)


@pytest.mark.parametrize("url", ["", "  ", "/", "file:", "file://", "file:///", "s3://", "s3:///"])
def test_a_url_that_names_no_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GatherError, match="names no folder and no bucket"):
        ObjectStore(url)


@pytest.mark.parametrize("url", ["memory://records", "memory://", "memory:"])
def test_a_store_that_ends_with_its_process_is_refused(url: str) -> None:
    with pytest.raises(GatherError, match="keeps nothing"):
        ObjectStore(url)
