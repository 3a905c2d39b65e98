"""The probe of the artifact folder: tries to get out of it, and shows that the tries would work otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from engine.errors import WorkError

Write = Callable[[str, Iterable[bytes], int], int]
"""Writes a file below an artifact folder: relative path, content, most bytes."""

_ATTEMPTS = {
    "parent": "../escaped",
    "parent_inside": "folder/../../escaped",
    "folder_link": "folder_link/escaped",
    "file_link": "file_link",
    "dangling_link": "dangling_link",
    "existing_file": "existing",
}
"""Ways out of the artifact folder that the probe tries; `absolute` and `too_large` are made up there."""

HELD = {
    **dict.fromkeys([*_ATTEMPTS, "absolute", "too_large"], "refused"),
    "inside": "written",
    "outside": "untouched",
    "control_folder_link": "escaped",
    "control_file_link": "escaped",
}
"""What the probe sees on a machine where the boundary holds."""


def probe(folder: Path, writer: Callable[[Path], Write]) -> dict[str, str]:
    """What each try came to in an artifact folder made below the empty `folder`. Raises OSError."""
    inside, outside = folder / "inside", folder / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "kept").write_bytes(b"kept")
    (inside / "existing").write_bytes(b"kept")
    (inside / "folder_link").symlink_to(outside)
    (inside / "file_link").symlink_to(outside / "kept")
    (inside / "dangling_link").symlink_to(outside / "escaped")
    write = writer(inside)
    attempts = {**_ATTEMPTS, "absolute": str(outside / "escaped")}
    seen = {name: _attempt(write, path, most=7) for name, path in attempts.items()}
    seen["too_large"] = _attempt(write, "large", most=6)
    seen["inside"] = _attempt(write, "new/file", most=7)
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if _is_file(path)}
    expected = {"outside/kept": b"kept", "inside/existing": b"kept", "inside/new/file": b"escaped"}
    seen["outside"] = "untouched" if files == expected else "changed"
    (inside / "folder_link" / "control").write_bytes(b"escaped")
    (inside / "file_link").write_bytes(b"escaped")
    seen["control_folder_link"] = "escaped" if (outside / "control").exists() else "held"
    seen["control_file_link"] = "escaped" if (outside / "kept").read_bytes() == b"escaped" else "held"
    return seen


def _attempt(write: Write, path: str, most: int) -> str:
    try:
        write(path, [b"escaped"], most)
    except WorkError:
        return "refused"
    return "written"


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
