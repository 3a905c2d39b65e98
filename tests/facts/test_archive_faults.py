"""Archives that are unsafe, damaged or ambiguous are refused, each with a message of its own."""

from __future__ import annotations

import gzip
import struct
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import GatherError
from engine.facts.archives.archive import open_bundle
from engine.settings import ReadLimits
from tests.facts.archives import (
    FILES,
    GZIP_HEADER_ONLY,
    block,
    central,
    changed,
    cut,
    fifo,
    file,
    header,
    local,
    member,
    overlapping_zip,
    pax,
    pax_sparse,
    tar,
    tar_of,
    two_names,
    ungzipped,
    with_zip64_end,
    zip_extra,
    zip_link,
    zip_of,
)

LIMITS = ReadLimits()


def spoiled(fields: dict[int, bytes], *before: bytes) -> Callable[[Path], Path]:
    return lambda path: header(path / "x", fields, *before)


FAULTS: dict[str, tuple[Callable[[Path], Path], str]] = {
    # paths
    "missing": (lambda path: path / "nothing", "is not there"),
    "empty_file": (lambda path: file(path / "x.zip", b""), "is an empty file"),
    "bundle_yaml_itself": (lambda path: file(path / "bundle.yaml", b"format: 1\n"), "by itself"),
    "plain_text": (lambda path: file(path / "x.tar.gz", b"hello"), "neither a folder nor a `.tar`"),
    "plain_tar": (lambda path: file(path / "x.tar", bytes(10_240)), "neither a folder nor a `.tar`"),
    "pipe": (lambda path: fifo(path / "x"), "neither a folder nor a file"),
    "nul_in_the_path": (lambda path: path / "a\0b", "cannot be opened"),
    # tar
    "gzip_of_text": (lambda path: file(path / "x", gzip.compress(b"hello" * 500)), "not a tar archive"),
    "gzip_header_only": (lambda path: file(path / "x", GZIP_HEADER_ONLY), "cut short"),
    "gzip_damaged": (lambda path: file(path / "x", GZIP_HEADER_ONLY + b"\xff" * 50), "is damaged"),
    "tar_cut": (lambda path: cut(tar_of(path / "x", FILES), 0.7), "cut short"),
    "tar_without_end": (lambda path: ungzipped(tar_of(path / "x", FILES), lambda data: data[:1024]), "end mark"),
    "tar_ends_in_content": (
        lambda path: ungzipped(tar_of(path / "x", {"a": b"a" * 900}), lambda data: data[:1000]),
        "middle of a member",
    ),
    "tar_damaged_header": (
        lambda path: ungzipped(tar_of(path / "x", {"a": b"", "b": b""}), lambda data: data.replace(b"b\0", b"c\0", 1)),
        "damaged header",
    ),
    "tar_hidden_after_its_end": (
        lambda path: ungzipped(tar_of(path / "x", FILES), lambda data: data + b"x" * 512),
        "more data after the end of the tar",
    ),
    "gzip_hidden_after_its_end": (
        lambda path: changed(tar_of(path / "x", FILES), lambda data: data + gzip.compress(b"x")),
        "more data after its gzip",
    ),
    "tar_parent": (lambda path: tar_of(path / "x", {"../evil": b""}), "outside the archive"),
    "tar_parent_inside": (lambda path: tar_of(path / "x", {"a/../../evil": b""}), "outside the archive"),
    "tar_absolute": (lambda path: tar_of(path / "x", {"/etc/passwd": b""}), "absolute name"),
    "tar_backslash": (lambda path: tar_of(path / "x", {"a\\b": b""}), "absolute name, or one with"),
    "tar_newline": (lambda path: tar_of(path / "x", {"a\n::error::b": b""}), r"`a\?::error::b` has a name with line"),
    "tar_turned_around": (lambda path: tar_of(path / "x", {"a\u202egnp.exe": b""}), "control or invisible"),
    "tar_not_utf8": (lambda path: header(path / "x", {0: b"gr\xf6\xdfe"}), "not UTF-8"),
    "tar_empty_part": (lambda path: tar_of(path / "x", {"a//b": b""}), "empty part"),
    "tar_long_name": (lambda path: tar_of(path / "x", {"a/" * 600 + "b": b""}), "more than 1024 characters"),
    "tar_twice": (lambda path: tar(path / "x", member("a", b"1"), member("a", b"2")), "occurs twice"),
    "tar_twice_with_dot": (lambda path: tar(path / "x", member("a", b"1"), member("./a", b"2")), "occurs twice"),
    "tar_file_and_folder": (lambda path: tar(path / "x", member("a", b"1"), member("a/b", b"2")), "occurs twice"),
    "tar_folder_and_file": (lambda path: tar(path / "x", member("a/b", b"1"), member("a", b"2")), "occurs twice"),
    "tar_symlink": (lambda path: tar(path / "x", member("a", type=tarfile.SYMTYPE, linkname="/etc")), "is a link"),
    "tar_hard_link": (lambda path: tar(path / "x", member("a", type=tarfile.LNKTYPE, linkname="b")), "is a link"),
    "tar_device": (lambda path: tar(path / "x", member("a", type=tarfile.CHRTYPE)), "is a link, a device"),
    "tar_pipe": (lambda path: tar(path / "x", member("a", type=tarfile.FIFOTYPE)), "is a link, a device"),
    "tar_unknown_kind": (lambda path: tar(path / "x", member("a", type=b"Z")), "another special kind"),
    "tar_sparse": (lambda path: pax_sparse(path / "x"), "sparse"),
    "tar_prefix_of_gnu": (spoiled({257: b"ustar  \0", 345: b"b"}), "two ways that disagree"),
    "tar_size_with_a_sign": (spoiled({124: b"+0"}), "two ways that disagree"),
    "tar_file_named_as_a_folder": (
        spoiled({0: b"a/\0", 156: b"\0"}, block("L", "x", b"b\0")),
        "two ways that disagree",
    ),
    "tar_two_long_names": (spoiled({}, block("L", "x", b"b\0"), block("L", "x", b"c\0")), "two ways that disagree"),
    "tar_two_extended_headers": (
        spoiled({}, block("x", "x", b"12 comment=\n"), block("x", "x", b"9 path=b\n")),
        "two ways that disagree",
    ),
    "tar_long_name_and_path": (
        spoiled({}, block("L", "x", b"b\0"), block("x", "x", b"9 path=b\n")),
        "two ways that disagree",
    ),
    "tar_path_for_all": (spoiled({}, block("g", "x", b"9 path=b\n")), "two ways that disagree"),
    "tar_path_with_a_zero": (spoiled({}, block("x", "x", b"12 path=b\0c\n")), "two ways that disagree"),
    "tar_size_in_two_ways": (spoiled({}, block("x", "x", b"9 size=1\n")), "two ways that disagree"),
    **{
        f"tar_record_{number}": (spoiled({}, block("x", "x", record)), "damaged header")
        for number, record in enumerate(
            (
                b"+9 path=b\n",
                b"09 path=b\n",
                b"8 path=b\n",
                b"9 path=b\n\n",
                b"7 path=\n9 path=b\n9 path=c\n",
                b"0 a=\n",
            )
        )
    },
    "tar_other_magic": (spoiled({257: b"ustar 00"}), "damaged header"),
    "tar_long_size": (spoiled({}, block("x", "x", b"19 size=8589934592\n")), "in the middle of a member"),
    "tar_long_header": (lambda path: pax(path / "x", "c" * 200_000), "bytes of headers"),
    # zip
    "zip_cut": (lambda path: cut(zip_of(path / "x", FILES), 0.7), "cut short"),
    "zip_start_only": (lambda path: file(path / "x", b"PK\3\4"), "cut short"),
    "zip_parent": (lambda path: zip_of(path / "x", {"../evil": b""}), "outside the archive"),
    "zip_absolute": (lambda path: zip_of(path / "x", {"/evil": b""}), "absolute name"),
    "zip_backslash": (lambda path: zip_of(path / "x", {"a\\b": b""}), "absolute name, or one with"),
    "zip_newline": (lambda path: zip_of(path / "x", {"a\nb": b""}), "line breaks"),
    "zip_unmarked_name": (
        lambda path: changed(
            zip_of(path / "x", {"größe": b""}), lambda data: central(local(data, 6, b"\0\0"), 8, b"\0\0")
        ),
        "not marked as UTF-8",
    ),
    "zip_twice": (lambda path: two_names(path / "x"), "occurs twice"),
    "zip_link": (lambda path: zip_link(path / "x"), "is a link"),
    "zip_other_name_for_some": (lambda path: zip_extra(path / "x", (0x7075, b"\1" + bytes(4) + b"b.txt")), "two ways"),
    "zip_two_large_sizes": (lambda path: zip_extra(path / "x", (1, bytes(16)), (1, bytes(16))), "two ways"),
    "zip_link_for_some": (lambda path: zip_extra(path / "x", (0x756E, bytes(4) + b"\xff\xa1" + bytes(8))), "is a link"),
    "zip_name_with_a_drive": (lambda path: zip_of(path / "x", {"c:a": b""}), "absolute name"),
    "zip_dot": (lambda path: zip_of(path / "x", {"a/.": b""}), "both a file and a folder"),
    "zip_encrypted": (lambda path: changed(zip_of(path / "x", FILES), lambda data: central(data, 8, b"\1\0")), "encr"),
    "zip_other_method": (lambda path: zip_of(path / "x", FILES, zipfile.ZIP_BZIP2), "not supported"),
    "zip_other_name_inside": (
        lambda path: changed(zip_of(path / "x", {"a.txt": b"1"}), lambda data: local(data, 30, b"b.txt")),
        "two ways that disagree",
    ),
    "zip_other_size_inside": (
        lambda path: changed(zip_of(path / "x", {"a.txt": b"1"}), lambda data: local(data, 22, b"\x09")),
        "two ways that disagree",
    ),
    "zip_lying_about_size": (
        lambda path: changed(
            zip_of(path / "x", {"a.txt": b"a" * 5000}),
            lambda data: central(local(data, 22, b"\x09\0"), 24, b"\x09\0"),
        ),
        "a size or checksum other",
    ),
    "zip_wrong_checksum": (
        lambda path: changed(
            zip_of(path / "x", {"a.txt": b"a"}), lambda data: central(local(data, 14, b"\x09\x09"), 16, b"\x09\x09")
        ),
        "a size or checksum other",
    ),
    "zip_overlapping": (lambda path: overlapping_zip(path / "x"), "overlaps another"),
    "zip_hidden_before": (
        lambda path: changed(zip_of(path / "x", FILES), lambda data: b"PK\3\4" + data),
        "data around its central directory",
    ),
    "zip_hidden_after": (lambda path: changed(zip_of(path / "x", FILES), lambda data: data + b"x"), "no end record"),
    "zip_two_ends": (
        lambda path: changed(zip_of(path / "x", FILES), lambda data: data[:-2] + b"\x16\0" + data[-22:]),
        "or several",
    ),
    "zip_large_end_elsewhere": (
        lambda path: changed(zip_of(path / "x", FILES), lambda data: with_zip64_end(data, start=1)),
        "around its central directory",
    ),
    "zip_large_end_of_another_length": (
        lambda path: changed(
            zip_of(path / "x", FILES), lambda data: with_zip64_end(data).replace(b"PK\6\6\x2c", b"PK\6\6\x2d")
        ),
        "inconsistent end record",
    ),
    "zip_two_ends_that_disagree": (
        lambda path: changed(
            zip_of(path / "x", FILES), lambda data: with_zip64_end(data)[:-14] + b"\1\0\1\0" + data[-10:]
        ),
        "around its central directory",
    ),
    "zip_wrong_count": (
        lambda path: changed(
            zip_of(path / "x", FILES), lambda data: data[:-14] + struct.pack("<2H", 3, 3) + data[-10:]
        ),
        "length differs",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_unsafe_archive_is_refused_with_a_message(fault: str, tmp_path: Path) -> None:
    make, message = FAULTS[fault]
    path = make(tmp_path)
    with pytest.raises(GatherError, match=message) as refused:
        open_bundle(path, LIMITS)
    assert refused.value.where is not None
    assert refused.value.remedy
    assert str(refused.value).isprintable()


def test_deflate_that_never_ends_is_refused(tmp_path: Path) -> None:
    """A member whose deflate stream stops early, its sizes and checksum stated as if it had not."""
    whole = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = whole.compress(b"abc" * 10) + whole.flush(zlib.Z_SYNC_FLUSH)
    crc = zlib.crc32(b"abc" * 10)
    body = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 33, crc, len(packed), 30, 1, 0) + b"a" + packed
    entry = struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 8, 0, 33, crc, len(packed), 30, 1, 0, 0, 0, 0, 0, 0)
    entry += b"a"
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(entry), len(body), 0)
    with pytest.raises(GatherError, match="cut short"):
        open_bundle(file(tmp_path / "x.zip", body + entry + end), LIMITS)


def test_long_digit_runs_in_headers_are_accepted(tmp_path: Path) -> None:
    names = {"1" * 90: b"", f"{'2' * 40}/{'a' * 100}": b""}
    assert open_bundle(tar_of(tmp_path / "named", names), LIMITS).members().keys() == names.keys()
    assert open_bundle(pax(tmp_path / "commented", "1" * 40), LIMITS).members() == {"a.txt": True}


@pytest.mark.parametrize("form", ["tar", "zip"])
def test_implicit_folders_count_toward_the_limit(form: str, tmp_path: Path) -> None:
    """Each name of a member costs a text for each of its folders."""
    files = {f"{number}/{'a/' * 9}x": b"" for number in range(10)}
    path = (tar_of if form == "tar" else zip_of)(tmp_path / "x", files)
    assert len(open_bundle(path, replace(LIMITS, files=100)).members()) == 10
    with pytest.raises(GatherError, match="more than 99 folders"):
        open_bundle(path, replace(LIMITS, files=99))


def test_extra_fields_of_a_zip_are_read_in_linear_time(tmp_path: Path) -> None:
    spent = {}
    for size in (16_000, 64_000):
        info = zipfile.ZipInfo("a.txt")
        info.extra = struct.pack("<HH", 0x7777, 0) * (size // 4)
        with zipfile.ZipFile(tmp_path / f"{size}.zip", "w") as archive:
            archive.writestr(info, b"")
        rounds = []
        for _ in range(5):
            started = time.process_time()
            open_bundle(tmp_path / f"{size}.zip", LIMITS).close()
            rounds.append(time.process_time() - started)
        spent[size] = min(rounds)
    assert spent[64_000] < 8 * spent[16_000], spent
