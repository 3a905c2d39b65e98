"""A source bundle reads the same as folder, `.tar`, `.tar.gz` and `.zip`, within its limits and through no link."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import GatherError
from engine.facts.archives.archive import open_bundle
from engine.settings import ReadLimits
from tests.facilities import needs
from tests.facts.archives import FILES, FORMS, changed, empty, file, folder, piped_zip, tar_of, zip_of
from tests.lanes import examples
from tests.processes import leaks

LIMITS = ReadLimits()


@pytest.mark.parametrize("form", FORMS)
def test_every_archive_form_has_the_same_content(form: str, tmp_path: Path) -> None:
    path = FORMS[form](tmp_path)
    with open_bundle(path, LIMITS) as tree:
        assert tree.name == str(path)
        assert tree.read_document("bundle.yaml", 100) == FILES["bundle.yaml"]
        for name, data in reversed(FILES.items()):
            assert tree.hash(name) == (hashlib.sha256(data).hexdigest(), len(data))
            with tree.open(name) as first, tree.open(name) as second:
                assert (first.read(3), second.read(), first.read()) == (data[:3], data, data[3:])
        assert tree.hash("content/other.json") is None
        assert {name for name in tree.members() if not name.startswith("../")} == set(FILES)
        assert all(tree.hash(name) is not None for name in tree.members())
        assert tree.place("bundle.yaml").startswith(str(path))


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_or_oversized_member_is_reported(form: str, tmp_path: Path) -> None:
    with open_bundle(FORMS[form](tmp_path), LIMITS) as tree:
        with pytest.raises(GatherError, match="has no `other`"):
            tree.read_document("other", 100)
        with pytest.raises(GatherError, match="has no `other`"), tree.open("other"):
            pass
        with pytest.raises(GatherError, match="larger than 5 bytes"):
            tree.read_document("bundle.yaml", 5)


@pytest.mark.parametrize("form", ["folder", "tar", "tar_plain", "zip"])
def test_a_closed_tree_leaves_no_descriptor(form: str, tmp_path: Path) -> None:
    path = FORMS[form](tmp_path)
    (tmp_path / "bad").write_bytes(b"PK\3\4 and nothing more")

    def read() -> None:
        with open_bundle(path, LIMITS) as tree, tree.open("content/contacts.json") as stream:
            stream.read()
        with pytest.raises(GatherError):
            open_bundle(tmp_path / "bad", LIMITS)

    assert not leaks(read)


def test_an_exception_of_the_caller_propagates_unchanged(tmp_path: Path) -> None:
    with open_bundle(FORMS["folder"](tmp_path), LIMITS) as tree:  # noqa: SIM117
        with pytest.raises(OSError, match="disk full"), tree.open("bundle.yaml"):
            raise OSError("disk full")


def test_an_empty_folder_and_one_without_a_document(tmp_path: Path) -> None:
    with (
        open_bundle(empty(tmp_path / "empty"), LIMITS) as tree,
        pytest.raises(GatherError, match="is an empty folder"),
    ):
        tree.read_document("bundle.yaml", 100)
    with (
        open_bundle(folder(tmp_path / "other", {"readme.md": b""}), LIMITS) as tree,
        pytest.raises(GatherError, match=r"has no `bundle\.yaml`"),
    ):
        tree.read_document("bundle.yaml", 100)


def test_a_bundle_with_two_top_folders_has_no_document(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "x.zip", {"a/bundle.yaml": b"", "b/bundle.yaml": b""})
    with open_bundle(path, LIMITS) as tree, pytest.raises(GatherError, match=r"has no `bundle\.yaml`"):
        tree.read_document("bundle.yaml", 100)


def test_a_folder_follows_no_link(tmp_path: Path) -> None:
    root = folder(tmp_path / "bundle", FILES)
    folder(tmp_path / "outside", {"secret.txt": b"secret"})
    (root / "file_link").symlink_to(tmp_path / "outside" / "secret.txt")
    (root / "folder_link").symlink_to(tmp_path / "outside")
    (root / "content" / "pipe").symlink_to("/dev/null")
    assert (root / "folder_link" / "secret.txt").read_bytes() == b"secret"  # the control: it could be followed
    with open_bundle(root, LIMITS) as tree:
        for relative in ("file_link", "folder_link/secret.txt", "content/pipe", "content", "../outside/secret.txt"):
            with pytest.raises(GatherError) as refused:
                tree.hash(relative)
            assert refused.value.where is not None


def test_folder_members_are_listed_without_opening_links_or_pipes(tmp_path: Path) -> None:
    root = folder(tmp_path / "bundle", FILES)
    (root / "link").symlink_to(tmp_path)
    os.mkfifo(root / "content" / "pipe")
    with open_bundle(root, LIMITS) as tree:
        members = tree.members()
    assert {name for name, regular in members.items() if not regular} == {"link", "content/pipe"}
    assert {name for name, regular in members.items() if regular} == set(FILES)


def test_a_member_of_a_folder_has_a_plain_name(tmp_path: Path) -> None:
    root = folder(tmp_path / "bundle", {**FILES, "a\nb.txt": b""})
    with open_bundle(root, LIMITS) as tree, pytest.raises(GatherError, match="line breaks"):
        tree.members()


@needs("not_root")
def test_an_unreadable_folder_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path / "bundle", FILES)
    path.chmod(0)
    with pytest.raises(GatherError, match="may not be read"):
        open_bundle(path, LIMITS)


@pytest.mark.parametrize("form", ["folder", "tar", "tar_plain", "zip"])
def test_limits_hold_for_every_form(form: str, tmp_path: Path) -> None:
    path = FORMS[form](tmp_path)

    def read_all(limits: ReadLimits) -> None:
        with open_bundle(path, limits) as tree:
            for name in tree.members():
                tree.hash(name)

    read_all(LIMITS)
    for limits, message in (
        (replace(LIMITS, files=3), "more than 3 members"),
        (replace(LIMITS, content_bytes=999), "larger than 999 bytes"),
        (replace(LIMITS, total_bytes=1_000), "unpacks to more than 1000 bytes"),
    ):
        with pytest.raises(GatherError, match=message):
            read_all(limits)


@pytest.mark.full(after=1)
@pytest.mark.parametrize("form", ["tar", "zip"])
def test_a_bomb_stops_at_its_ratio(form: str, tmp_path: Path) -> None:
    """80 MiB of zeros in 80 KiB are refused after 64 MiB; the control is that 63 MiB may pass."""
    zeros = {"zeros.bin": bytes(80 << 20)}
    path = (tar_of if form == "tar" else zip_of)(tmp_path / "bomb", zeros)
    assert path.stat().st_size < 1 << 20
    with pytest.raises(GatherError, match="unpacks to more than 67108864 bytes"):
        open_bundle(path, LIMITS)
    honest = (tar_of if form == "tar" else zip_of)(tmp_path / "honest", {"zeros.bin": bytes(63 << 20)})
    with open_bundle(honest, LIMITS) as tree:
        assert tree.hash("zeros.bin") == (hashlib.sha256(bytes(63 << 20)).hexdigest(), 63 << 20)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("small")
    files = {"bundle.yaml": b"format: 1\n", "a/b.txt": b"some content\n" * 4}
    return {
        "zip": zip_of(path / "x.zip", files).read_bytes(),
        "pipe": piped_zip(path / "p.zip", files).read_bytes(),
        "tar": gzip.decompress(tar_of(path / "x.tgz", files).read_bytes()),
        "tar_plain": tar_of(path / "x.tar", files).read_bytes(),
    }


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    form=st.sampled_from(["zip", "pipe", "tar", "tar_plain"]),
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4),
    cut_at=st.one_of(st.none(), st.floats(0, 1)),
)
def test_a_damaged_archive_is_read_or_refused_but_never_crashes(
    form: str,
    flips: list[tuple[float, int]],
    cut_at: float | None,
    small: dict[str, bytes],
    tmp_path: Path,
) -> None:
    data = bytearray(small[form])
    for place, value in flips:
        data[int(place * len(data))] = value
    if cut_at is not None:
        del data[int(cut_at * len(data)) :]
    packed = gzip.compress(bytes(data), compresslevel=1) if form == "tar" else bytes(data)
    path = file(tmp_path / "damaged", packed)
    try:
        with open_bundle(path, LIMITS) as tree:
            for name in ("bundle.yaml", "a/b.txt"):
                if (found := tree.hash(name)) is not None:
                    with tree.open(name) as stream:
                        assert found == (hashlib.sha256(content := stream.read()).hexdigest(), len(content))
    except GatherError:
        pass


def test_a_gzip_stream_with_padding_is_read(tmp_path: Path) -> None:
    path = changed(tar_of(tmp_path / "x", FILES), lambda data: data + bytes(700))
    with open_bundle(path, LIMITS) as tree:
        assert tree.hash("bundle.yaml") is not None


def test_the_tar_stream_is_held_in_an_unnamed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = empty(tmp_path / "spool")
    monkeypatch.setattr("tempfile.tempdir", str(spool))
    with open_bundle(FORMS["tar"](tmp_path), LIMITS) as tree, tree.open("bundle.yaml") as stream:
        assert stream.read() == FILES["bundle.yaml"]
        assert list(spool.iterdir()) == []


def test_no_room_for_the_tar_stream_is_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, _: object, /) -> int:
            raise OSError(28, "no space left")

    monkeypatch.setattr("tempfile.TemporaryFile", Full)
    with (
        open_bundle(FORMS["tar"](tmp_path), LIMITS) as tree,
        pytest.raises(GatherError, match="cannot be unpacked into a temporary file"),
        tree.open("bundle.yaml"),
    ):
        pass
