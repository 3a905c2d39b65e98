"""Files of values and of one's own rules: which can be edited here, what they contain, and how an edit is saved.

An edit is saved as it was typed, so comments and order stay. It replaces the file as a whole or not at all, and only
the content that the editor was shown.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlencode

from engine.documents.canonical import digest
from engine.documents.files import opened_folder, printable
from engine.errors import reason_of
from engine.policy_bundle.sources import VALUES, snapshot
from engine.settings import Settings
from engine.values import DOCUMENTS
from engine.workbench.desk import Desk
from engine.workbench.pages import PageError

NEW = "none"
"""Stands for the digest of a file that does not exist yet."""

_PACKAGE = Path(__file__).parents[1]


class FileError(PageError):
    """The file cannot be edited here, or the edit cannot be saved."""

    code = "engine.workbench_file"
    status = 422


class ConflictError(FileError):
    """The file is not the one that the editor was shown."""

    code = "engine.workbench_conflict"
    status = 409


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A file of values or rules by the name that the policy gives it, such as `policy/licenses.yaml`.

    `data` is None for a file that does not exist yet: values to lay over the shipped ones. `locked` says why it cannot
    be edited here. `aside` is the folder for a partial file, which no build reads.
    """

    name: str
    path: Path
    data: bytes | None
    aside: Path
    locked: str | None = None

    @property
    def digest(self) -> str:
        """The digest of its content."""
        return NEW if self.data is None else digest(self.data)

    @property
    def text(self) -> str:
        """Its content, to be edited. Raises FileError."""
        text = decoded(self.data or b"")
        if self.locked is not None:
            raise FileError(f"`{self.name}` cannot be edited here: {self.locked}", remedy="edit it in an editor")
        return text


def form_address(name: str, path: tuple[str, ...] = ()) -> str | None:
    """The address of the form of a place in a file of values; None for a file without a schema."""
    if PurePosixPath(name).stem not in DOCUMENTS or _is_rules(name):
        return None
    return "/form?" + urlencode({"file": name, "path": json.dumps(path, ensure_ascii=False)})


def decoded(data: bytes) -> str:
    """Text that a form gives back as it was. Raises FileError for any other."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError("the file is not UTF-8", remedy="edit it in an editor") from error
    if "\r" in text or "\0" in text or text.startswith("\ufeff"):
        raise FileError(
            "the file has carriage returns, NULs or a byte order mark, which a form would change",
            remedy="convert it to plain UTF-8 with newlines",
        )
    return text


def values_files(desk: Desk) -> dict[str, PolicyFile]:
    """Every file of values, and those that a policy of one's own may add. Raises PolicyError."""
    sources, settings = desk.sources(), desk.settings
    found = dict(snapshot(sources).values)
    own = f"bundles/{sources.recipe_name}/{VALUES}"
    names = [*found]
    if settings.recipe != Settings().recipe:
        names += sorted({f"{own}/{name}.yaml" for name in DOCUMENTS} - found.keys())
    return {
        name: PolicyFile(name, path, found.get(name), path.parent.parent, _locked(settings, name, path))
        for name, path in ((name, sources.path(name)) for name in names)
    }


def rules_files(desk: Desk) -> dict[str, PolicyFile]:
    """Every file of the organization's own rules, with their tests and inventory. Raises PolicyError."""
    sources, settings = desk.sources(), desk.settings
    own = f"bundles/{sources.recipe_name}/"
    if settings.recipe == Settings().recipe:
        return {}
    found = {name: data for name, data in snapshot(sources).rules.items() if name.startswith(own) and _is_rules(name)}
    return {
        name: PolicyFile(name, path, data, settings.recipe, _locked(settings, name, path))
        for name, data, path in ((name, data, sources.path(name)) for name, data in sorted(found.items()))
    }


def _is_rules(name: str) -> bool:
    return name.endswith((".rego", "/inventory.yaml"))


def _locked(settings: Settings, name: str, path: Path) -> str | None:
    shipped = settings.policy == Settings().policy
    if path.is_relative_to(_PACKAGE):
        return "it belongs to the installed package; start a folder of your own with `engine policy init`"
    if shipped and name.startswith("policy/") and settings.recipe != Settings().recipe:
        return "your policy folder is laid over it; edit the file of this name in its folder values/"
    if path.is_symlink():
        return "it is a link"
    return None


def found(desk: Desk, name: str) -> PolicyFile:
    """The file of this name. Raises FileError, PolicyError."""
    file = values_files(desk).get(name) or rules_files(desk).get(name)
    if file is None:
        raise FileError(f"the policy has no file `{printable(name)}`", remedy="choose one from the list of values")
    return file


def save(desk: Desk, name: str, before: str, data: bytes) -> None:
    """Replace the content of a file that still has the digest `before`. Raises FileError; then nothing has changed."""
    with desk.saving:
        file = found(desk, name)
        folder = file.path.parent
        try:
            folder.mkdir(exist_ok=True)
            with opened_folder(folder, alone=True):  # between two workbenches, one saves at a time
                _replace(file, before, data)
        except OSError as error:
            reason = reason_of(error)
            raise FileError(
                f"`{printable(str(file.path))}` was not saved: {reason}",
                remedy="the file is as it was; make room, or let this user write to the folder, and save again",
            ) from error


def _replace(file: PolicyFile, before: str, data: bytes) -> None:
    """The partial file is beside the folders of files: in them, every build would refuse a file that nothing reads."""
    mode = stat.S_IMODE(file.path.stat().st_mode) if file.data is not None else 0o644
    handle, partial = tempfile.mkstemp(prefix=f".{file.path.name}.", suffix=".partial", dir=file.aside)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fchmod(handle, mode)
            os.fsync(handle)
        now = file.path.read_bytes() if os.path.lexists(file.path) else None
        if (NEW if now is None else digest(now)) != before:
            raise ConflictError(
                f"`{file.name}` has changed since you opened it; nothing was saved",
                remedy="open it again and repeat your edit; your text is in the preview",
            )
        Path(partial).rename(file.path)
    finally:
        with suppress(FileNotFoundError):
            Path(partial).unlink()
    with opened_folder(file.path.parent) as folder:
        os.fsync(folder)
