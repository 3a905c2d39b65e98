"""Which source bundles changed since a git revision, for repositories that hold many.

When in doubt a source bundle counts as changed: files that git does not track, or that were only touched, do.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from engine.cli import options
from engine.cli.terminal import notice
from engine.documents.files import printable
from engine.errors import GatherError
from engine.facts.release.git import git, known_commit

_git = partial(git, instead="leave out --changed")


def changed_since(revision: str, found: list[Path], paths: list[Path], sources: options.Sources) -> list[Path]:
    """Those of the source bundles found below `paths` that changed since a revision of the repository around them.

    All of them, if the rules or values that decide them are in that repository and changed. Says on standard
    error how many are left out. Raises GatherError without git, outside of a repository, and for a revision
    that git does not know.
    """
    top = Path(_git(Path.cwd(), "rev-parse", "--show-toplevel").removesuffix("\n"))
    commit = known_commit(top, revision)
    places = [_inside(path, top) for path in paths]
    settings = sources.settings()
    policy = [path.resolve() for path in (settings.policy, settings.rego, settings.recipe)]
    own = [path for path in policy if path.is_relative_to(top)]
    if own and _differing(top, commit, own):
        notice(f"the policy changed since {printable(revision)}; all source bundles are checked")
        return found
    touched = _differing(top, commit, places)
    around = {folder for path in touched for folder in path.parents}
    chosen = [path for path in found if _is_touched(path, _inside(path, top), touched, around)]
    notice(f"{len(chosen)} of {len(found)} source bundles changed since {printable(revision)}")
    return chosen


def _inside(path: Path, top: Path) -> Path:
    where = path.resolve()
    if not where.is_relative_to(top):
        raise GatherError(
            f"`{printable(str(path))}` is not in the git repository `{printable(str(top))}`",
            remedy="run the command in the repository of the source bundles",
        )
    return where


def _differing(top: Path, commit: str, below: list[Path]) -> set[Path]:
    """Files below these paths that are not as in the commit, or that git does not track."""
    names = [str(path) for path in below]
    listed = _git(top, "diff-index", "--name-only", "--no-renames", "-z", commit, "--", *names)
    listed += _git(top, "ls-files", "--others", "-z", "--", *names)
    return {top / name for name in listed.split("\0") if name}


def _is_touched(named: Path, bundle: Path, touched: set[Path], around: set[Path]) -> bool:
    """Whether a file of the source bundle is touched, or a submodule that holds it, or a link leads to it."""
    linked = os.path.normpath(named.absolute()) != str(bundle)
    return linked or bundle in around or not touched.isdisjoint((bundle, *bundle.parents))
