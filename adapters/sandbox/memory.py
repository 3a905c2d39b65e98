"""Files in memory: how a sandbox is handed what it may read, so that nothing of it is ever on a disk."""

from __future__ import annotations

import fcntl
import os
from contextlib import ExitStack

_ALL_SEALS = 0xF


def memory_file(stack: ExitStack) -> int:
    """A file in memory that can be sealed; closed with the stack."""
    file = os.memfd_create("sandbox", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    stack.callback(os.close, file)
    return file


def fill(file: int, data: bytes) -> None:
    """Put the data into a file in memory, leave its offset at 0, and let nobody change it any more."""
    written = 0
    while written < len(data):
        written += os.pwrite(file, data[written:], written)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, _ALL_SEALS)
