"""Which source bundles changed since a git revision, for repositories that hold many.

git is asked without a shell, hooks, monitors or prompts, and its index is not written. When in doubt a
source bundle counts as changed: files that git does not track, or that were only touched, do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import typer

from engine.cli import options
from engine.documents.files import printable
from engine.errors import GatherError

_SECONDS = 120.0
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--literal-pathspecs", "--no-pager")
_KEPT = ("PATH", "HOME", "XDG_CONFIG_HOME")
"""What git needs of the environment; a GIT_DIR of a hook would name another repository."""
_SET = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "true"}


def changed_since(revision: str, found: list[Path], paths: list[Path], sources: options.Sources) -> list[Path]:
    """Those of the source bundles found below `paths` that changed since a revision of the repository around them.

    All of them, if the rules or values that decide them are in that repository and changed. Says on standard
    error how many are left out. Raises GatherError without git, outside of a repository, and for a revision
    that git does not know.
    """
    top = Path(_git(Path.cwd(), "rev-parse", "--show-toplevel").removesuffix("\n"))
    commit = _commit(top, revision)
    places = [_inside(path, top) for path in paths]
    settings = sources.settings()
    policy = [path.resolve() for path in (settings.policy, settings.rego, settings.recipe)]
    own = [path for path in policy if path.is_relative_to(top)]
    if own and _differing(top, commit, own):
        typer.echo(f"engine: the policy changed since {printable(revision)}; all source bundles are checked", err=True)
        return found
    touched = _differing(top, commit, places)
    around = {folder for path in touched for folder in path.parents}
    chosen = [path for path in found if _is_touched(path, _inside(path, top), touched, around)]
    typer.echo(f"engine: {len(chosen)} of {len(found)} source bundles changed since {printable(revision)}", err=True)
    return chosen


def _commit(top: Path, revision: str) -> str:
    try:
        return _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").strip()
    except GatherError as error:
        raise GatherError(
            f"git knows no commit `{printable(revision)}`", remedy="name one that was fetched, such as origin/main"
        ) from error


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


def _git(folder: Path, *arguments: str) -> str:
    program = shutil.which("git")
    if program is None:
        raise GatherError("git is not installed", remedy="install git, or leave out --changed")
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _SET
    try:
        done = subprocess.run(
            [program, *_QUIET, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise GatherError(
            f"git did not answer in {_SECONDS:.0f} seconds", remedy="repeat it, or leave out --changed"
        ) from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip() or f"it ended with {done.returncode}"
        raise GatherError(
            f"git cannot list what changed: {printable(said)}",
            remedy="run the command in a git repository, or leave out --changed",
        )
    return done.stdout.decode("utf-8", "surrogateescape")
