"""Source bundles in every form, made for the tests: good ones, and the means to spoil them."""

from __future__ import annotations

import gzip
import io
import os
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

FILES = {
    "bundle.yaml": b"format: 1\n",
    "content/contacts.json": b'[{"name": "Ada Example"}]' * 40,
    "content/größe.csv": "länge;breite\n1;2\n".encode(),
    "content/empty.txt": b"",
}


def folder(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def member(name: str, data: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> Path:
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz", format=form) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return path


def tar_of(path: Path, files: dict[str, bytes]) -> Path:
    return tar(path, *(member(name, data) for name, data in files.items()))


def zip_of(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


class Unseekable(io.RawIOBase):
    """What an archiver sees that writes into a pipe, so that sizes follow the data."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = path.open("wb")

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        return self._file.write(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def piped_zip(path: Path, files: dict[str, bytes]) -> Path:
    with Unseekable(path) as pipe, zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def large_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            with archive.open(name, "w", force_zip64=True) as stream:
                stream.write(data)
    return path


def with_zip64_end(data: bytes, start: int | None = None) -> bytes:
    """The zip with a second, large end record, as very large archives have; the small one points to it."""
    at = len(data) - 22
    _, _, _, here, count, size, first, _ = struct.unpack("<4s4H2LH", data[at:])
    end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, here, count, size, first if start is None else start)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, at, 1)
    small = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return data[:at] + end + locator + small


BELOW_TOP = {f"contacts-2026-11/{name}": data for name, data in FILES.items()}

FORMS: dict[str, Callable[[Path], Path]] = {
    "folder": lambda path: folder(path / "contacts", FILES),
    "tar": lambda path: tar_of(path / "contacts.tar.gz", FILES),
    "tar_plain": lambda path: tar_of(path / "contacts.tar", FILES),
    "tar_with_dots": lambda path: tar_of(path / "c.tgz", {f"./{name}": data for name, data in FILES.items()}),
    "tar_below_a_folder": lambda path: tar_of(path / "c.tgz", BELOW_TOP),
    "tar_of_gnu": lambda path: tar(path / "c.tgz", *(member(*item) for item in FILES.items()), form=tarfile.GNU_FORMAT),
    "zip": lambda path: zip_of(path / "contacts.zip", FILES),
    "zip_stored": lambda path: zip_of(path / "contacts.zip", FILES, zipfile.ZIP_STORED),
    "zip_below_a_folder": lambda path: zip_of(path / "contacts.zip", BELOW_TOP),
    "zip_by_macos": lambda path: zip_of(path / "c.zip", {**BELOW_TOP, "__MACOSX/c/._bundle.yaml": b"x"}),
    "zip_from_a_pipe": lambda path: piped_zip(path / "contacts.zip", FILES),
    "zip_with_large_fields": lambda path: large_zip(path / "contacts.zip", FILES),
    "zip_with_large_end": lambda path: changed(zip_of(path / "contacts.zip", FILES), with_zip64_end),
    "name_says_nothing": lambda path: tar_of(path / "upload-7", FILES),
}


def empty(path: Path) -> Path:
    path.mkdir()
    return path


def file(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def cut(path: Path, share: float) -> Path:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    return path


def ungzipped(path: Path, change: Callable[[bytes], bytes]) -> Path:
    """A tar.gz whose tar was changed after it was made."""
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()))))
    return path


def changed(path: Path, change: Callable[[bytes], bytes]) -> Path:
    path.write_bytes(change(path.read_bytes()))
    return path


def zip_members(path: Path, *members: tuple[zipfile.ZipInfo | str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, data in members:
            archive.writestr(info, data)
    return path


def zip_link(path: Path) -> Path:
    info = zipfile.ZipInfo("content/link")
    info.create_system, info.external_attr = 3, 0o120777 << 16
    return zip_members(path, (info, b"/etc/passwd"))


def central(data: bytes, offset: int, value: bytes) -> bytes:
    """The zip with bytes of its first central directory entry replaced."""
    at = data.index(b"PK\1\2") + offset
    return data[:at] + value + data[at + len(value) :]


def local(data: bytes, offset: int, value: bytes) -> bytes:
    at = data.index(b"PK\3\4") + offset
    return data[:at] + value + data[at + len(value) :]


def overlapping_zip(path: Path) -> Path:
    """Two entries of the central directory that name the same data, as in a bomb without nesting."""
    data = zip_of(path, {"a.txt": b"a" * 50}).read_bytes()
    start, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
    entry = data[start:end]
    record = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2, 2, 2 * len(entry), start, 0)
    return file(path, data[:start] + 2 * entry + record)


def pax_sparse(path: Path) -> Path:
    info, data = member("content/sparse.bin", b"1\n0\n5\n" + bytes(506) + b"12345")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "99999999"}
    return tar(path, (info, data))


def pax(path: Path, comment: str) -> Path:
    info, data = member("a.txt", b"a")
    info.pax_headers = {"comment": comment}
    return tar(path, (info, data))


def header(path: Path, fields: dict[int, bytes], *before: bytes) -> Path:
    """A tar with one file, whose header has these bytes at these places, and a checksum that fits."""
    return file(path, gzip.compress(b"".join(before) + block("0", "a.txt", b"", fields) + bytes(1024)))


def block(kind: str, name: str, data: bytes, fields: dict[int, bytes] | None = None) -> bytes:
    """A member of a tar as its bytes."""
    info, _ = member(name, data, type=kind.encode())
    raw = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    for at, value in (fields or {}).items():
        raw[at : at + len(value)] = value
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw) + data + bytes(-len(data) % 512)


def zip_extra(path: Path, *fields: tuple[int, bytes]) -> Path:
    """A zip with one file with these extra fields."""
    info = zipfile.ZipInfo("a.txt")
    info.extra = b"".join(struct.pack("<HH", kind, len(content)) + content for kind, content in fields)
    return zip_members(path, (info, b"1"))


def two_names(path: Path) -> Path:
    return zip_members(path, ("a.txt", b"1"), ("./a.txt", b"2"))


GZIP_HEADER_ONLY = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"
