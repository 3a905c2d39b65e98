"""Folders that are filled aside and then renamed, so that all of a folder appears or nothing."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from admission_adapters.files.new_files import FOLDER, create, existing, names_in, opened

DRAFT = ".draft-"
"""Prefix of files and folders that are being filled; no digest begins like this."""

_DRAFT_NAME = re.compile(re.escape(DRAFT) + r"[0-9a-f]{16}")
"""Exactly the names that we make: the folder around them may be anyone's."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A folder that is being filled: its name in the folder `root`, and its descriptor."""

    root: int
    name: str
    folder: int
    _files: dict[str, list[str]] = field(default_factory=lambda: {".": []})

    def create(
        self, name: str, chunks: Iterable[bytes | bytearray], most: int, *, mode: int = 0o400, within: str = "."
    ) -> tuple[int, str]:
        """`new_files.create`, in this folder or its folder `within`; it is durable once the folder appears."""
        if within not in self._files:
            os.mkdir(within, 0o700, dir_fd=self.folder)
            self._files[within] = []
        with opened(within, self.folder) as folder:
            written = create(folder, name, chunks, most, sync=False, mode=mode)
        self._files[within].append(name)
        return written

    def appear(self, name: str) -> None:
        """Give the folder its name, durably. Raises OSError, and then nothing has that name that had not before."""
        for within, files in reversed(self._files.items()):
            with opened(within, self.folder) as folder:
                for file_name in files:  # not before: the first sync carries most of the rest
                    with existing(folder, file_name) as file:
                        os.fsync(file.fileno())
                os.fsync(folder)
        os.rename(self.name, name, src_dir_fd=self.root, dst_dir_fd=self.root)
        os.fsync(self.root)


@contextmanager
def draft_folder(root: int) -> Iterator[Draft]:
    """A new folder in the folder `root`, locked while it is filled, removed at the end unless it has appeared.

    First removes what killed processes left there.
    """
    fcntl.flock(root, fcntl.LOCK_EX)
    try:
        _sweep(root)
        name = DRAFT + secrets.token_hex(8)
        os.mkdir(name, 0o700, dir_fd=root)
        folder = os.open(name, FOLDER, dir_fd=root)
        fcntl.flock(folder, fcntl.LOCK_EX)
    finally:
        fcntl.flock(root, fcntl.LOCK_UN)
    try:
        yield Draft(root, name, folder)
    finally:
        if name in names_in(root):
            shutil.rmtree(name, dir_fd=root)
        os.close(folder)


def _sweep(root: int) -> None:
    """Remove partly filled folders of killed processes: their locks are free."""
    for name in names_in(root):
        if _DRAFT_NAME.fullmatch(name):
            # What raises is in use by another process, or not one of ours: it does no harm.
            with suppress(OSError), opened(name, root) as folder:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(name, dir_fd=root)
