"""Carries the requests of a program in /work/relay to the engine and the answers back; runs in the launcher beside it.

A request is a file `<name>.request`, its answer `<name>.response`. One request at a time, so that no program fills
the engine's memory. It keeps to the launcher's rules: built-in modules, the syntax of Python 3.9.
"""

from __future__ import annotations

import posix
import time

MYPY = False
if MYPY:
    from collections.abc import Callable
    from typing import Any

_FOLDER = "/work/relay"
_REQUEST, _RESPONSE = ".request", ".response"
_NAME_LENGTH = 32
_REQUEST_BYTES = 1 << 18
_LOOK_SECONDS = 0.01
_KIND, _REGULAR = 0o170000, 0o100000


def carry(child: int, go: int, report: Callable[[bytes], None]) -> tuple[int, Any]:
    """Report `R <name> <length>` and the content of each request, until the program has ended: its status and usage.

    Answers come as lines `<name> <content>`. Raises OSError where one cannot be written, which ends the sandbox.
    """
    folder = posix.open(_FOLDER, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW)
    posix.set_blocking(go, False)
    answers, waiting = b"", b""
    while True:
        ended, status, usage = posix.wait4(child, posix.WNOHANG)
        if ended:
            return status, usage
        if waiting:
            answers += _read(go)
            line, end, rest = answers.partition(b"\n")
            if end:
                _write(folder, waiting, line[len(waiting) + 1 :])
                answers, waiting = rest, b""
        else:
            waiting, content = _next(folder)
            if waiting:
                report(b"R %s %d\n" % (waiting, len(content)) + content)
        time.sleep(_LOOK_SECONDS)


def _next(folder: int) -> tuple[bytes, bytes]:
    """The name and content of a request, which is removed; an empty name if there is none."""
    for entry in posix.listdir(folder):
        name = entry[: -len(_REQUEST)]
        if not entry.endswith(_REQUEST) or not name.isascii() or not name.isalnum() or len(name) > _NAME_LENGTH:
            continue
        try:
            file = posix.open(entry, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK, dir_fd=folder)
        except OSError:
            continue
        regular = posix.fstat(file).st_mode & _KIND == _REGULAR
        content = posix.read(file, _REQUEST_BYTES + 1) if regular else b""
        posix.close(file)
        if regular:
            posix.unlink(entry, dir_fd=folder)
            return name.encode(), content if len(content) <= _REQUEST_BYTES else b""
    return b"", b""


def _read(go: int) -> bytes:
    try:
        return posix.read(go, 1 << 16)
    except BlockingIOError:
        return b""


def _write(folder: int, name: bytes, content: bytes) -> None:
    """Complete or not at all: a reader must never see half of an answer."""
    text = name.decode()
    file = posix.open(text, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW, 0o400, dir_fd=folder)
    while content:
        content = content[posix.write(file, content) :]
    posix.close(file)
    posix.rename(text, text + _RESPONSE, src_dir_fd=folder, dst_dir_fd=folder)
