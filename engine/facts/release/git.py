"""What changed in a git repository.

Git is asked without a shell, hooks, monitors or prompts, and its index is not written. Of a project, it does not read
the configuration either: that can name programs for git to run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
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
_CONFIG = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = {}\n"
_LOOKED_AT = "H "
_REPOSITORY = f"{_LOOKED_AT}160000 "
"""How git lists a file that it compares, and a repository inside of another one."""
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
    with _unconfigured(project) as ask:
        commit, time = ask("log", "-1", "--format=%H %ct").split()
        if since is None:
            listed = ask("ls-tree", "-r", "--name-only", "-z", commit)
        else:
            earlier = known_commit(project, since)
            listed = ask("diff", "--name-only", "--no-renames", "--relative", "-z", earlier, commit)
        clean = _is_clean(project, ask)
    paths = tuple(name for name in listed.split("\0") if name)
    if len(paths) > _MOST_PATHS:
        raise GatherError(f"more than {_MOST_PATHS} files changed", remedy="state a newer revision as `since`")
    readable = tuple(path.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for path in paths)
    kind = "sha1" if len(commit) == _SHA1_DIGITS else "sha256"
    return Change(commit=f"{kind}:{commit}", committed_at=int(time), clean=clean, paths=readable)


def _is_clean(project: Path, ask: Callable[..., str]) -> bool:
    """Whether nothing differs from the newest commit, in the repositories inside of it too.

    A file that git was told to overlook (`assume-unchanged`, `skip-worktree`) may differ.
    """
    if ask("status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=dirty", "--", "."):
        return False
    listed = ask("ls-files", "--stage", "-v", "-z", "--", ".").split("\0")
    staged = [(about, path) for about, _, path in (line.partition("\t") for line in listed if line)]
    if not all(about.startswith(_LOOKED_AT) for about, _ in staged):
        return False
    for inner in (project / path for about, path in staged if about.startswith(_REPOSITORY)):
        if (inner / ".git").exists():
            with _unconfigured(inner) as inside:
                if not _is_clean(inner, inside):
                    return False
    return True


@contextmanager
def _unconfigured(project: Path) -> Iterator[Callable[..., str]]:
    """`git` for the repository around a project: it reads its commits, index and files, and not its configuration."""
    options = ("--path-format=absolute", "--show-object-format", "--show-toplevel", "--git-dir", "--git-common-dir")
    found = git(project, "rev-parse", *options, "HEAD").splitlines()
    if len(found) != len(options):
        raise GatherError("a path of the repository has a line break", remedy="rename its folders")
    form, top, own, common, commit = found
    with tempfile.TemporaryDirectory(prefix="engine-git-") as folder:
        apart = Path(folder)
        (apart / "refs").mkdir()
        (apart / "info").mkdir()
        (apart / "info" / "exclude").symlink_to(Path(common, "info", "exclude"))
        (apart / "HEAD").write_text(f"{commit}\n", encoding="ascii")
        (apart / "config").write_text(_CONFIG.format(form), encoding="ascii")
        places = {"GIT_DIR": folder, "GIT_WORK_TREE": top, "GIT_INDEX_FILE": str(Path(own, "index"))}
        yield partial(git, project, places={**places, "GIT_OBJECT_DIRECTORY": str(Path(common, "objects"))})


def known_commit(folder: Path, revision: str) -> str:
    """The commit of a revision. Raises GatherError for one that git does not know."""
    try:
        return git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").strip()
    except GatherError as error:
        raise GatherError(
            f"git knows no commit `{printable(revision)}`", remedy="name one that was fetched, such as origin/main"
        ) from error


def git(
    folder: Path,
    *arguments: str,
    instead: str = "name the folder of a repository",
    places: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """What git prints. Raises GatherError; `instead` is what else to do.

    `places` are variables that name the parts of a repository; without them it is the one around the folder.
    """
    program = shutil.which("git")
    if program is None:
        raise GatherError("git is not installed", remedy=f"install git, or {instead}")
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _SET | dict(places)
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
        reason = done.stderr.decode("utf-8", "replace").strip() or f"it ended with {done.returncode}"
        raise GatherError(
            f"git cannot list what changed: {printable(reason)}",
            remedy=f"run the command in a git repository, or {instead}",
        )
    return done.stdout.decode("utf-8", "surrogateescape")
