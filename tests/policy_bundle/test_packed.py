"""Archives from elsewhere: read as they were packed, or refused with the reason."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import GatherError
from engine.opa.packed import MANIFEST, PACKED_BYTES, SIGNATURES, UNPACKED_BYTES, pack, revision, sealed, unpacked
from tests.policy_bundle.releases import gzipped, tar
from tests.policy_bundle.trees import policy

FILES = {".manifest": b"{}", "admission/a.rego": b"package a\n", "admission/b/c.rego": b"", "x": bytes(2000)}


def member(name: str, kind: bytes = tarfile.REGTYPE, **more: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode, info.type = 0o644, kind
    for field, value in more.items():
        setattr(info, field, value)
    return info


def test_a_packed_archive_is_read_back() -> None:
    assert unpacked(pack(FILES), "x") == FILES
    assert pack(FILES) == pack(dict(reversed(FILES.items())))


def test_the_archives_of_a_build_are_read_back(tmp_path: Path) -> None:
    built = policy(tmp_path)
    for archive in (built.rules.path, built.values.path):
        files = unpacked(archive.read_bytes(), "x")
        assert files
        assert unpacked(pack(files), "x") == files


def test_a_revision_is_the_digest_of_all_but_signatures_and_is_stated() -> None:
    files = {name: data for name, data in FILES.items() if name != MANIFEST}
    manifest, stated = sealed(files, {"roots": ["admission"]})
    whole = {**files, MANIFEST: manifest}
    assert revision({**whole, SIGNATURES: b"{}"}, "x") == stated
    for changed in ({"x": b""}, {"y": b""}, {MANIFEST: manifest.replace(b"admission", b"policy")}):
        with pytest.raises(GatherError, match="not the digest of its content"):
            revision({**whole, **changed}, "x")
    for odd in (b"", b"[]", b"{}"):
        with pytest.raises(GatherError, match="not from this engine"):
            revision({**files, MANIFEST: odd}, "x")


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        pytest.param(member("a", tarfile.SYMTYPE, linkname="/etc/passwd"), "not a regular file", id="symbolic_link"),
        pytest.param(member("a", tarfile.LNKTYPE, linkname="b"), "not a regular file", id="hard_link"),
        pytest.param(member("a", tarfile.CHRTYPE, devmajor=1, devminor=3), "not a regular file", id="character_device"),
        pytest.param(member("a", tarfile.BLKTYPE), "not a regular file", id="block_device"),
        pytest.param(member("a", tarfile.FIFOTYPE), "not a regular file", id="pipe"),
        pytest.param(member("a", tarfile.DIRTYPE), "not a regular file", id="folder"),
        pytest.param(member("a", tarfile.CONTTYPE), "not a regular file", id="contiguous"),
        pytest.param(member("/a"), "outside the archive", id="absolute"),
        pytest.param(member("../a"), "outside the archive", id="parent"),
        pytest.param(member("b/../../a"), "outside the archive", id="parent_inside"),
        pytest.param(member("./a"), "outside the archive", id="dot"),
        pytest.param(member("b//a"), "outside the archive", id="empty_part"),
        pytest.param(member("b\\a"), "outside the archive", id="backslash"),
        pytest.param(member(".manifest"), "twice", id="twice"),
        pytest.param(member("a", mtime=1), "not packed by this engine", id="time"),
        pytest.param(member("a", uid=1), "not packed by this engine", id="owner"),
        pytest.param(member("a", mode=0o755), "not packed by this engine", id="mode"),
        pytest.param(member("a", uname="root"), "not packed by this engine", id="owner_name"),
    ],
)
def test_unsupported_members_are_refused(odd: tarfile.TarInfo, reason: str) -> None:
    good = (member(".manifest"), b"{}")
    assert unpacked(gzipped(tar([good, (member("a"), b"")])), "x.tar.gz")
    with pytest.raises(GatherError, match=reason) as caught:
        unpacked(gzipped(tar([good, (odd, b"")])), "x.tar.gz")
    assert str(caught.value).startswith("x.tar.gz: ")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "truncated", id="nothing"),
        pytest.param(b"hello", "not gzip", id="text"),
        pytest.param(gzipped(b"hello" * 200), "not a tar|not packed by this engine", id="no_tar"),
        pytest.param(gzipped(b""), "not packed by this engine|not a tar", id="empty_tar"),
        pytest.param(pack(FILES) + b"x", "more data", id="data_after"),
        pytest.param(pack(FILES) + pack({}), "more data", id="archive_after"),
        pytest.param(
            gzipped(tar([(member("b"), b""), (member("a"), b"")])), "not packed by this engine", id="unsorted"
        ),
        pytest.param(
            gzipped(tar([(member("a" * 200), b"")], tarfile.GNU_FORMAT)),
            "not packed by this engine|not a tar",
            id="gnu_long_name",
        ),
        pytest.param(
            gzipped(tar([(member("a", pax_headers={"comment": "hi"}), b"")], tarfile.PAX_FORMAT)),
            "not packed by this engine",
            id="extended_header",
        ),
        pytest.param(gzipped(tar([(member("a"), b"x")])[:-512]), "not packed by this engine", id="short_padding"),
        pytest.param(gzipped(bytes(UNPACKED_BYTES + 1)), f"more than {UNPACKED_BYTES}", id="bomb"),
    ],
)
def test_damaged_archives_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(GatherError, match=reason):
        unpacked(data, "x.tar.gz")


def test_the_size_limit_alone_would_accept_a_decompression_bomb() -> None:
    """The control: size alone would let it in."""
    assert len(gzipped(bytes(UNPACKED_BYTES + 1))) < PACKED_BYTES


def test_a_negative_size_is_refused() -> None:
    """Or tarfile would look for the next header further back, for ever."""
    block = bytearray(tar([(member("a"), b"")]))
    block[124:136] = b"\xff" * 8 + (-512).to_bytes(4, "big", signed=True)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block[:512])
    with pytest.raises(GatherError, match="not a tar archive"):
        unpacked(gzipped(bytes(block)), "x")


@pytest.mark.parametrize("cut", range(1, 60))
def test_every_truncation_is_refused(cut: int) -> None:
    data = pack(FILES)
    with pytest.raises(GatherError):
        unpacked(data[: len(data) * cut // 60], "x")


@given(st.data())
def test_every_changed_byte_is_detected(data: st.DataObject) -> None:
    """A flipped bit of the tar is refused, or is the content of a file, and then seen."""
    block = bytearray(gzip.decompress(pack(FILES)))
    at = data.draw(st.integers(0, len(block) - 1))
    block[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        files = unpacked(gzipped(bytes(block)), "x")
    except GatherError:
        return
    assert files != FILES
