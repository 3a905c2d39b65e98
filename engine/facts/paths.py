"""Facts about paths: the absolute lexical form, or nothing if the path is ambiguous.

Nothing is repaired: `..`, `.`, `//`, a backslash, an escape or an unsafe character leaves no path at all,
because the program that opens the file may read it differently from the rule that compares it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import unicodedata
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from engine.facts.text.disguises import undisguised
from engine.facts.tools.argument_facts import Links

LONGEST = 4_096
"""Bytes of a path (PATH_MAX of Linux)."""

LONGEST_PART = 255
"""Bytes of one part of a path (NAME_MAX of Linux)."""

_NOTHING_THERE = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG))
_GLOB = re.compile(r"[*?]")
BRACKETS = re.compile(r"\[[^/]*")
_ESCAPED = re.compile(r"%(?:2[eEfF]|5[cC]|25|00)")
_EXPANDED = re.compile(r"\A\$[A-Z_]|`|\$[({]")
"""What a shell, or a program that expands variables as one, would replace."""

_NOTHING = re.compile(r"/(?:\.?/)+")
_DRIVE = re.compile(r"[A-Za-z]:")
_LIKE_A_PATH = re.compile(
    r"\A\s*(?:/(?!9j/[A-Za-z0-9+/]+={0,2}\Z)|\\|~(?:[/\\A-Za-z]|\Z)|\.{1,2}[/\\]|[A-Za-z]:[/\\])"
    r"|(?:\A|[\s/\\])\.\.(?:[/\\]|\s*\Z)"
    r"|%(?:25){0,3}(?:2[fF]|5[cC]|2[eE]%(?:25){0,3}2[eE])"
)


@dataclass(frozen=True, slots=True)
class PathFacts:
    """A path as it is compared; `below` is the part after the working directory and its slash."""

    canonical: bool
    path: str | None = None
    below: str | None = None


_REFUSED = PathFacts(canonical=False)


def path_facts(text: str, cwd: str | None) -> PathFacts:
    """The absolute form of a path, against `cwd` when it is relative. Never raises.

    A slash at the end means a folder, and stays. Without `cwd` a relative path has no facts.
    """
    if not _plain(text) or _DRIVE.match(text) or (not text.startswith("/") and cwd is None):
        return _REFUSED
    base = "" if cwd is None else cwd.rstrip("/") + "/"
    path = text if text.startswith("/") else base + text
    parts = path.removesuffix("/").split("/")[1:]
    if path != "/" and any(part in {"", ".", ".."} or len(part.encode()) > LONGEST_PART for part in parts):
        return _REFUSED
    if len(path.encode()) > LONGEST:
        return _REFUSED
    return PathFacts(canonical=True, path=path, below=path[len(base) :] if base and path.startswith(base) else None)


def looks_like_path(text: str) -> bool:
    """Whether a text that is not declared as a path begins like one, or has `..` or an escaped separator.

    A JPEG in base64 begins with `/9j/`.
    `notes.txt` and `docs/notes.txt` look like any other text: they stay below the working directory.
    """
    return _LIKE_A_PATH.search(text) is not None


def canonical_folder(text: str) -> str:
    """An absolute folder in its only spelling, without a slash at the end. Raises ValueError."""
    facts = path_facts(text, None)
    if not facts.canonical or (text.endswith("/") and text != "/"):
        raise ValueError("write an absolute path, such as /work, without `.`, `..`, `//` and a slash at the end")
    return text


@dataclass(frozen=True, slots=True)
class Lead:
    """Whether a path passes a symbolic link, and the path with the first one replaced where that can be read.

    `kept`: only the owner of the system can change this link, and it leads to the same place for every process.
    """

    links: Links
    path: str | None = None
    kept: bool = False


def lead(path: str) -> Lead:
    """Where a canonical path leads on this machine, now, over its first link. Never raises.

    No link is followed. What is not there cannot be a link, and nothing below it can.
    """
    place, parts, above = "", path.strip("/").split("/"), [os.lstat("/")]
    for index, part in enumerate(parts, 1):
        folder, place = place, f"{place}/{part}"
        try:
            found = os.lstat(place)
            if stat.S_ISLNK(found.st_mode):
                kept = all(map(_is_kept, above)) and found.st_dev == above[0].st_dev  # `/proc/self` is another for each
                return Lead("linked", _replaced(folder, str(Path(place).readlink()), parts[index:]), kept)
            above.append(found)
        except (FileNotFoundError, NotADirectoryError):
            return Lead("none")
        except (OSError, ValueError):
            return Lead("unknown")
    return Lead("none")


def _is_kept(folder: os.stat_result) -> bool:
    return folder.st_uid == 0 and not folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def links_met(pattern: str, most: int) -> tuple[list[str] | None, int]:
    """The paths through links that an absolute pattern of file names may match, and how many names were looked up.

    The paths are None if more than `most` names would have to be looked up, or if a folder cannot be listed. The caller
    has to know that no link comes before the first star. A shell may match fewer: here, brackets match any text, and a
    star matches hidden names too. Never raises.
    """
    text = BRACKETS.sub("*", pattern)
    start = _GLOB.split(text, maxsplit=1)[0].rpartition("/")[0]
    parts = text[len(start) + 1 :].split("/")
    folders, seen, found = [start], 0, list[str]()
    for index, part in enumerate(parts, 1):
        rest = "/".join(("", *parts[index:]))
        inside: list[str] = []
        for folder in folders:
            names = _names(folder, most - seen) if _GLOB.search(part) else [part]
            seen += 0 if names is None else len(names)
            if names is None or seen > most:
                return None, seen
            inside += [f"{folder}/{name}" for name in names if name == part or fnmatchcase(name, part)]
        links = [path for path in inside if os.path.islink(path)]  # noqa: PTH114 (never raises)
        found += [path if _GLOB.search(rest) else path + rest for path in sorted(links)]
        folders = inside
    return found, seen


def _names(folder: str, most: int) -> list[str] | None:
    """The names in a folder, at most one too many; None if it may not be listed."""
    try:
        with os.scandir(folder or "/") as entries:
            return [entry.name for entry in islice(entries, most + 1)]
    except OSError as error:
        return [] if error.errno in _NOTHING_THERE else None
    except ValueError:
        return None


def _replaced(folder: str, target: str, rest: list[str]) -> str | None:
    """The path through a link; None if `..` after a name could lead elsewhere."""
    base = [] if target.startswith("/") else folder.split("/")[1:]
    steps = [step for step in target.split("/") if step not in {"", "."}]
    while steps[:1] == [".."]:
        del steps[0], base[-1:]
    return None if ".." in steps else "/" + "/".join((*base, *steps, *rest))


def collapsed(text: str) -> str:
    """A path without redundant slashes and `.` parts."""
    return _NOTHING.sub("/", text).removeprefix("./").removesuffix("/.")


def _plain(text: str) -> bool:
    """Whether every reader of this text opens the same file."""
    if not text or text != text.strip() or text.startswith("~") or "\\" in text:
        return False
    if _ESCAPED.search(text) is not None or _EXPANDED.search(text) is not None:
        return False
    # Not printable are also half surrogates, format characters and every space but the usual one.
    if not text.isprintable() or not unicodedata.is_normalized("NFC", text):
        return False
    visible = text if text.isascii() else undisguised(text)  # where no character only looks like a slash or dot
    return visible.count("/") == text.count("/") and (visible is text or not {".", ".."} & set(visible.split("/")))
