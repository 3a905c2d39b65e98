"""Sends the files in `artifacts/` out of the sandbox; runs in the launcher after all other processes are dead.

Regular files with one hard link only. Other kinds, and files beyond a limit or with unusual names, are reported
as refused and not sent. It keeps to the launcher's rules: built-in modules, the syntax of Python 3.9.
"""

from __future__ import annotations

import posix

MYPY = False
if MYPY:
    from collections.abc import Callable, Iterator

_DEPTH = 31
_PATH_BYTES = 1_000
_ENTRIES = 4096
_REFUSED = 100
_PIECE = 1 << 16
_KIND, _REGULAR, _FOLDER = 0o170000, 0o100000, 0o040000


def send(root: int, most_files: int, most_bytes: int, report: Callable[[bytes], None]) -> None:
    """Report `F <length of path> <length of file>`, path and content; `X <length> <why>` and path of a refused file.

    `M <number>` are further refused files without names, `O` means more entries than the limit,
    and then everything is refused; `Z` is the end.
    """
    refused = 0
    try:
        for path, folder, name, level in _walk(root, b"", 0, [_ENTRIES]):
            file, size, why = _opened(folder, name, level)
            if file >= 0:
                why = _excess(path, size, most_files, most_bytes)
            if not why:
                most_files -= 1
                most_bytes -= size
                report(b"F %d %d\n" % (len(path), size) + path)
                _copy(file, size, report)
            else:
                refused += 1
                if refused <= _REFUSED:
                    report(b"X %d %s\n" % (len(path[:_PATH_BYTES]), why) + path[:_PATH_BYTES])
            if file >= 0:
                posix.close(file)
        if refused > _REFUSED:
            report(b"M %d\n" % (refused - _REFUSED))
    except OverflowError:
        report(b"O\n")
    report(b"Z\n")


def _excess(path: bytes, size: int, most_files: int, most_bytes: int) -> bytes:
    """Why a file is not taken that could be; empty where it is."""
    if not _plain(path):
        return b"name"
    if most_files <= 0:
        return b"count"
    return b"size" if size > most_bytes else b""


def _walk(folder: int, above: bytes, depth: int, left: list[int]) -> Iterator[tuple[bytes, int, bytes, int]]:
    """Everything below that is no folder, sorted by name, and folders that are too deep or cannot be read."""
    names = []
    with posix.scandir(folder) as entries:
        for entry in entries:
            left[0] -= 1
            if left[0] < 0:
                raise OverflowError
            names.append(entry.name.encode("utf-8", "surrogateescape"))
    for name in sorted(names):
        inner = _folder(folder, name) if depth < _DEPTH else -1
        if inner < 0:
            yield above + name, folder, name, depth
            continue
        try:
            yield from _walk(inner, above + name + b"/", depth + 1, left)
        finally:
            posix.close(inner)


def _folder(folder: int, name: bytes) -> int:
    try:
        return posix.open(name, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW, dir_fd=folder)
    except OSError:
        return -1


def _opened(folder: int, name: bytes, depth: int) -> tuple[int, int, bytes]:
    """The descriptor and the size of a regular file with one name; -1 and why for anything else."""
    try:
        status = posix.stat(name, dir_fd=folder, follow_symlinks=False)
        if status.st_mode & _KIND == _FOLDER:
            return -1, 0, b"depth" if depth >= _DEPTH else b"access"
        if status.st_mode & _KIND != _REGULAR:
            return -1, 0, b"kind"
        if status.st_nlink != 1:
            return -1, 0, b"names"
        return posix.open(name, posix.O_RDONLY | posix.O_NOFOLLOW, dir_fd=folder), status.st_size, b""
    except OSError:
        return -1, 0, b"access"


def _plain(path: bytes) -> bool:
    try:
        return len(path) <= _PATH_BYTES and b"\\" not in path and path.decode("utf-8").isprintable()
    except UnicodeDecodeError:
        return False


def _copy(file: int, size: int, report: Callable[[bytes], None]) -> None:
    while size > 0:
        data = posix.read(file, min(size, _PIECE))
        if not data:
            raise EOFError
        size -= len(data)
        report(data)
