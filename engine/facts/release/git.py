"""What changed in a git repository.

Git is asked without a shell, hooks, monitors or prompts, and its index is not written.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Annotated

from pydantic import Field

from engine.documents.files import printable
from engine.errors import GatherError
from engine.model import Model

_SECONDS = 120.0
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--literal-pathspecs", "--no-pager")
_KEPT = ("PATH", "HOME", "XDG_CONFIG_HOME")
"""What git needs of the environment; a GIT_DIR of a hook would name another repository."""
_SET = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "true"}
_MOST_PATHS = 50_000
_SHA1_DIGITS = 40


class Change(Model):
    """The newest commit of a repository, and the paths that changed since another one.

    `commit` is `sha1:` or `sha256:` and its hash. `clean`: no file differs from it, and none is there that git neither
    tracks nor ignores.
    """

    commit: str
    committed_at: int
    clean: bool
    paths: Annotated[tuple[str, ...], Field(strict=False)]


def change_of(project: Path, since: str | None) -> Change:
    """What the newest commit of a project changed since a revision; without one, everything. Raises GatherError."""
    commit, time = git(project, "log", "-1", "--format=%H %ct").split()
    if since is None:
        listed = git(project, "ls-tree", "-r", "--name-only", "-z", commit)
    else:
        listed = git(
            project, "diff", "--name-only", "--no-renames", "--relative", "-z", known_commit(project, since), commit
        )
    paths = tuple(name for name in listed.split("\0") if name)
    if len(paths) > _MOST_PATHS:
        raise GatherError(f"more than {_MOST_PATHS} files changed", remedy="state a newer revision as `since`")
    dirty = git(project, "status", "--porcelain", "-z", "--untracked-files=normal", "--", ".")
    shown = tuple(path.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for path in paths)
    kind = "sha1" if len(commit) == _SHA1_DIGITS else "sha256"
    return Change(commit=f"{kind}:{commit}", committed_at=int(time), clean=not dirty, paths=shown)


def known_commit(folder: Path, revision: str) -> str:
    """The commit of a revision. Raises GatherError for one that git does not know."""
    try:
        return git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").strip()
    except GatherError as error:
        raise GatherError(
            f"git knows no commit `{printable(revision)}`", remedy="name one that was fetched, such as origin/main"
        ) from error


def git(folder: Path, *arguments: str, instead: str = "name the folder of a repository") -> str:
    """What git prints. Raises GatherError; `instead` is what else to do."""
    program = shutil.which("git")
    if program is None:
        raise GatherError("git is not installed", remedy=f"install git, or {instead}")
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
        raise GatherError(f"git did not answer in {_SECONDS:.0f} seconds", remedy=f"repeat it, or {instead}") from error
    except OSError as error:
        raise GatherError(f"`{printable(str(folder))}` is not a folder", remedy=instead) from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip() or f"it ended with {done.returncode}"
        raise GatherError(
            f"git cannot list what changed: {printable(said)}",
            remedy=f"run the command in a git repository, or {instead}",
        )
    return done.stdout.decode("utf-8", "surrogateescape")
