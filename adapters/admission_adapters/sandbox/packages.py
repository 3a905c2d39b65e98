"""Package environments: folders of Python packages that programs import in a sandbox and cannot change.

place/
├── <name>.json    the manifest: which folder, the digest of all its files, the digest of its lock file
└── <64 hex digits>/  the packages, named by that digest

An environment is built from wheels alone, whose hashes a lock file states, so nothing of a package is executed while
it is built. It is compiled ahead, as programs write no bytecode, with the paths that it has in a sandbox. The same
lock file gives the same digest on every machine with the same version of Python.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from admission_adapters.digests import digest
from admission_adapters.sandbox.bubblewrap.arguments import PACKAGES, PYTHON
from admission_adapters.sandbox.run.user import sandbox_user
from engine.errors import WorkError

SYSTEM_PLACE = Path("/var/lib/admission-engine/packages")
"""Where root keeps environments if others may not enter its cache: sandboxes run as another user."""

_LOCKED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.!+_-]*( --hash=sha256:[0-9a-f]{64})+")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_LOCK_BYTES = 1 << 20
_TEMPORARY = ("bin", "share")
"""Folders with paths of the machine that built, which no import needs."""

_NOTES = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
"""Files in the metadata of a package that say how it came to this machine."""

_NOT_IMPORTED = {"sitecustomize", "usercustomize"}
"""What an interpreter would import by itself."""

_ABOUT = (
    "import sys, json; names = sorted(getattr(sys, 'stdlib_module_names', ()));"
    " print(json.dumps([sys.implementation.cache_tag, names]))"
)
_SECONDS = 900.0
"""For one step of a build: a large environment is some hundred MB."""


@dataclass(frozen=True, slots=True)
class Packages:
    """An environment on this machine: its folder, the digests of its files and of its lock file, its modules."""

    name: str
    folder: Path
    tree: str
    lock: str
    modules: tuple[str, ...]


def place(cache: Path) -> Path:
    """The folder of all environments: in the user's cache, where sandboxes can enter that."""
    own_place = cache / "packages"
    return own_place if sandbox_user().own or _open_to_others(cache) else SYSTEM_PLACE


def build(name: str, lock: Path, folder: Path, wheels: Path | None = None) -> Packages:
    """Build an environment below `folder` from a lock file, with wheels from `wheels` or from pip's own index.

    Raises WorkError, and OSError where the folder cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise _refused("the name of an environment is not valid", "use lower-case letters, digits and underscores")
    locked = _locked(lock)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    if not sandbox_user().own and not _open_to_others(folder):
        raise _refused(
            f"sandboxes cannot enter {folder}: they run as another user",
            "set XDG_CACHE_HOME to a folder that every user may enter",
        )
    tag, standard = _interpreter()
    aside = folder / f".{name}.{secrets.token_hex(8)}"
    try:
        aside.mkdir(mode=0o755)
        _install(locked, aside, wheels)
        modules = _cleaned(aside, frozenset(standard))
        _compiled(aside)
        tree = tree_of(aside)
        _keep(aside, folder / tree.removeprefix("sha256:"))
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    made = Packages(name, folder / tree.removeprefix("sha256:"), tree, digest(locked.encode("ascii")), modules)
    manifest = {**asdict(made), "folder": made.folder.name, "python": tag}
    written = folder / f".{name}.json.{secrets.token_hex(8)}"
    written.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    written.chmod(0o644)
    written.replace(folder / f"{name}.json")
    return made


def find(name: str, folder: Path) -> Packages | None:
    """What the manifest of an environment states; None if there is none. `tree_of` shows whether it is true."""
    try:
        stated = json.loads((folder / f"{name}.json").read_bytes()) if _NAME.fullmatch(name) else None
        if (
            not isinstance(stated, dict)
            or stated["name"] != name
            or not re.fullmatch(r"[0-9a-f]{64}", stated["folder"])
        ):
            return None
        return Packages(name, folder / stated["folder"], stated["tree"], stated["lock"], tuple(stated["modules"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def found(folder: Path) -> list[Packages]:
    """All environments, by name."""
    names = sorted(path.stem for path in folder.glob("*.json"))
    return [one for name in names if (one := find(name, folder)) is not None]


def tree_of(folder: Path) -> str:
    """`sha256:…` of every path below a folder, with its mode and content. Raises OSError, WorkError for a link."""
    whole = hashlib.sha256()
    for path in _below(folder):
        status = path.lstat()
        content = ""
        if stat.S_ISREG(status.st_mode):
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        elif not stat.S_ISDIR(status.st_mode):
            raise _refused(f"`{path.name}` is neither a file nor a folder", "use packages without links")
        line = json.dumps([path.relative_to(folder).as_posix(), stat.S_IMODE(status.st_mode), content])
        whole.update(line.encode("utf-8") + b"\n")
    return f"sha256:{whole.hexdigest()}"


def identity(packages: Packages) -> list[int | str]:
    """What changes when an environment is replaced: its folder as the file system has it."""
    status = packages.folder.lstat()
    return [packages.tree, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns]


def _locked(lock: Path) -> str:
    """The requirements of a lock file, one a line and nothing else. Raises WorkError, OSError."""
    with lock.open("rb") as file:
        text = file.read(_LOCK_BYTES + 1).decode("utf-8", "replace")
    if len(text) > _LOCK_BYTES:
        raise _refused(f"the lock file is larger than {_LOCK_BYTES} bytes", "name fewer packages")
    joined = text.replace("\r\n", "\n").replace("\\\n", " ")
    lines = [" ".join(line.split(" #")[0].split()) for line in joined.split("\n") if not line.lstrip().startswith("#")]
    requirements = [line for line in lines if line]
    for line in requirements:
        if not _LOCKED.fullmatch(line):
            raise _refused(
                f"a line of the lock file is no package with its version and hashes: `{line[:80]}`",
                "write NAME==VERSION --hash=sha256:… for every package; `pip hash` and `uv pip compile` print hashes",
            )
    if not requirements:
        raise _refused("the lock file names no packages", "write NAME==VERSION --hash=sha256:… for every package")
    return "\n".join(sorted(requirements)) + "\n"


def _interpreter() -> tuple[str, Sequence[str]]:
    """The tag of its bytecode and the names of its standard library."""
    tag, standard = json.loads(_run([PYTHON, "-I", "-S", "-c", _ABOUT]))
    if not standard:
        raise _refused("the system's Python does not name its standard library", f"install 3.10 or newer as {PYTHON}")
    return tag, standard


def _install(locked: str, tree: Path, wheels: Path | None) -> None:
    if find_spec("pip") is None:
        raise _refused("pip is missing", f"install it for {sys.executable}")
    lock = tree.with_name(f"{tree.name}.txt")
    lock.write_text(locked, encoding="ascii")
    command = [sys.executable, "-m", "pip", "--python", PYTHON, "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-input", "--only-binary", ":all:", "--require-hashes", "--no-deps", "--no-compile"]
    command += ["--root-user-action", "ignore", "--target", str(tree), "--requirement", str(lock)]
    command += [] if wheels is None else ["--no-index", "--find-links", str(wheels)]
    try:
        _run(command)
    finally:
        lock.unlink()


def _cleaned(tree: Path, standard: frozenset[str]) -> tuple[str, ...]:
    """Remove what depends on the building machine; returns the importable names. Raises WorkError."""
    for name in _TEMPORARY:
        shutil.rmtree(tree / name, ignore_errors=True)
    for path in list(_below(tree)):
        if path.is_symlink() or path.suffix == ".pth":
            raise _refused(f"`{path.name}` is a link or changes the path of imports", "use packages without it")
        if path.parent.suffix == ".dist-info" and path.name in _NOTES:
            path.unlink()
    modules = {path.name.partition(".")[0] for path in tree.iterdir() if path.suffix not in {".dist-info", ".libs"}}
    if shadowed := sorted(modules & (standard | _NOT_IMPORTED)):
        raise _refused(f"`{shadowed[0]}` would shadow a module of the standard library", "leave that package out")
    return tuple(sorted(modules))


def _compiled(tree: Path) -> None:
    """Compile all of it; what is no Python of this version stays as it is."""
    command = [PYTHON, "-I", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    _run([*command, "-s", str(tree), "-p", PACKAGES, str(tree)], failed=(1,))
    for path in (tree, *_below(tree)):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)


def _keep(made: Path, final: Path) -> None:
    """Give it its name; the same environment may be there, whole or changed."""
    if final.exists():
        if tree_of(final) == f"sha256:{final.name}":
            return
        shutil.rmtree(final)
    made.rename(final)


def _below(folder: Path) -> Iterator[Path]:
    """Everything below a folder, in one order, through no link."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        yield Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path))


def _open_to_others(folder: Path) -> bool:
    """Whether every user may enter a folder and all above it; what does not exist will be made so."""
    real = folder.resolve()
    return all(path.stat().st_mode & stat.S_IXOTH for path in (real, *real.parents) if path.exists())


def _run(command: list[str], failed: tuple[int, ...] = ()) -> bytes:
    """What a program printed. `failed` are exit codes that count as success. Raises WorkError."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _refused(f"`{Path(command[0]).name}` cannot be run: {type(error).__name__}", "try again") from error
    if done.returncode not in {0, *failed}:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no output"]
        reason = next((line for line in lines if line.startswith("ERROR")), lines[-1])
        raise _refused(f"the packages cannot be installed: {reason[:300]}", "correct the lock file, and build again")
    return done.stdout


def _refused(message: str, remedy: str) -> WorkError:
    return WorkError(message, remedy=remedy, code="engine.sandboxes.packages")
