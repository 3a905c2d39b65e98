"""Which source bundles the paths of a command mean."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from engine.errors import GatherError, Location
from engine.files import shown

DOCUMENT = "bundle.yaml"
ARCHIVES = (".tar.gz", ".tgz", ".zip")


def discover(paths: list[Path]) -> list[Path]:
    """Every source bundle named, and every one below a folder that is none itself; links are not followed.

    A path that is not there, or cannot be looked at, is passed on: the engine answers for it. Raises
    GatherError for a folder without any source bundle, or with a part that cannot be listed.
    """
    found: list[Path] = []
    for path in paths:
        if not _is_folder_of_bundles(path):
            found.append(path)
            continue
        below = _below(path)
        if not below:
            raise GatherError(
                f"there is no source bundle in `{shown(str(path))}`", remedy=f"name a folder that has a {DOCUMENT}"
            )
        found += below
    return found


def _is_folder_of_bundles(path: Path) -> bool:
    try:
        return path.is_dir() and not os.path.lexists(path / DOCUMENT)
    except (OSError, ValueError):
        return False


def _below(folder: Path) -> list[Path]:
    found = []
    for root, folders, files in os.walk(folder, onerror=_refuse):
        for link in (Path(root) / name for name in folders if (Path(root) / name).is_symlink()):
            if os.path.lexists(link / DOCUMENT):
                typer.echo(
                    f"engine: `{shown(str(link))}` is a link and is not followed; name it on the command line", err=True
                )
        if DOCUMENT in files or DOCUMENT in folders:
            folders.clear()
            found.append(Path(root))
            continue
        if mistyped := sorted(name for name in files if _looks_like_one(name)):
            raise GatherError(
                f"`{shown(mistyped[0])}` looks like a misspelt bundle document",
                remedy=f"name it {DOCUMENT}",
                where=Location(shown(root)),
            )
        found += [Path(root) / name for name in files if name.endswith(ARCHIVES)]
    return sorted(found)


def _looks_like_one(name: str) -> bool:
    return name.lower() in {DOCUMENT, "bundle.yml", "bundle.json"}


def _refuse(error: OSError) -> None:
    raise GatherError(
        "this folder cannot be listed, so source bundles in it would be missed",
        remedy="check its permissions, or name the source bundles one by one",
        where=Location(shown(str(error.filename))),
    ) from error
