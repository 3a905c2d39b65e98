"""Package environments: built from wheels that a lock file names, the same everywhere, and read-only in a sandbox."""

from __future__ import annotations

import hashlib
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from admission_adapters.sandbox import packages
from admission_adapters.sandbox.model import Status
from admission_adapters.sandbox.packages import Packages
from admission_adapters.sandbox.run.user import sandbox_user
from engine.errors import WorkError
from engine.sandboxes.packages import PackageEnvironments
from tests.adapters.sandbox.programs import program, ran
from tests.command import Command
from tests.facilities import needs

pytestmark = needs("bubblewrap")

_CODE = {"tinycalc.py": "def double(n):\n    return 2 * n\n", "tinydata/__init__.py": "NAME = 'tiny'\n"}


def wheel(folder: Path, files: Mapping[str, str], name: str = "tiny") -> str:
    """A wheel in the folder, and its line of a lock file."""
    about = f"{name}-1.0.dist-info"
    every = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in every.items():
            archive.writestr(member, text)
        archive.writestr(f"{about}/RECORD", "".join(f"{member},,\n" for member in (*every, f"{about}/RECORD")))
    return f"{name}==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@dataclass(frozen=True, slots=True)
class Shop:
    """Where wheels are and environments are built."""

    wheels: Path
    place: Path

    def build(self, locked: str, name: str = "tiny") -> Packages:
        lock = self.wheels / "lock.txt"
        lock.write_text(locked, encoding="utf-8")
        return packages.build(name, lock, self.place, self.wheels)


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    outside = None if sandbox_user().own else "/var/tmp"  # noqa: S108  (sandboxes of root are another user's)
    with tempfile.TemporaryDirectory(prefix="packages-", dir=outside) as folder:
        Path(folder).chmod(0o755)
        wheels = Path(folder, "wheels")
        wheels.mkdir()
        yield Shop(wheels, Path(folder, "admission-engine", "packages"))


@pytest.fixture(scope="module")
def tiny(shop: Shop) -> Packages:
    return shop.build("# two modules\n" + wheel(shop.wheels, _CODE))


def test_a_program_can_import_but_not_modify_packages(tiny: Packages) -> None:
    code = """
import os, subprocess, sys, tinycalc, tinydata
print(tinycalc.double(21), tinydata.NAME, tinycalc.__cached__.startswith("/packages/__pycache__"))
for act in (lambda: open("/packages/x", "w"), lambda: os.chmod("/packages/tinycalc.py", 0o777),
            lambda: os.unlink("/packages/tinycalc.py")):
    try:
        act()
    except OSError as error:
        print(error.errno)
print(subprocess.run([sys.executable, "-c", "import tinycalc"]).returncode)
"""
    done = ran(code, packages=str(tiny.folder))
    assert (done.status, done.stdout) == (Status.OK, b"42 tiny True\n30\n30\n30\n0\n"), done
    assert ran("import tinycalc").status is Status.RUNTIME_ERROR


def test_a_built_environment_has_its_modules_and_no_installer_files(tiny: Packages, shop: Shop) -> None:
    assert tiny.modules == ("tinycalc", "tinydata")
    assert tiny.folder == shop.place / tiny.tree.removeprefix("sha256:")
    assert packages.find("tiny", shop.place) == tiny
    assert packages.found(shop.place) == [tiny]
    names = {path.relative_to(tiny.folder).as_posix() for path in tiny.folder.rglob("*")}
    assert not {name for name in names if name.endswith(("RECORD", "INSTALLER", "REQUESTED"))}
    assert any(name.startswith("__pycache__/tinycalc.") for name in names)
    for path in (tiny.folder, *tiny.folder.rglob("*")):
        assert not path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        assert path.stat().st_mode & stat.S_IROTH
    assert not [path for path in shop.place.iterdir() if path.name.startswith(".")]


@pytest.mark.full
def test_the_same_lock_file_gives_the_same_digest(tiny: Packages, shop: Shop) -> None:
    lock = shop.wheels / "lock.txt"
    elsewhere = shop.place.parent / "elsewhere"
    again = packages.build("other", lock, elsewhere, shop.wheels)
    assert (again.tree, again.lock) == (tiny.tree, tiny.lock)
    shutil.rmtree(elsewhere)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "names no packages"),
        ("# nothing\n", "names no packages"),
        ("tiny==1.0\n", "no package with its version and hashes"),
        ("tiny>=1.0 --hash=sha256:" + "0" * 64 + "\n", "no package with its version and hashes"),
        ("--no-binary :all:\n", "no package with its version and hashes"),
        ("-e .\n", "no package with its version and hashes"),
        ("tiny @ file:///x --hash=sha256:" + "0" * 64 + "\n", "no package with its version and hashes"),
        pytest.param("tiny==1.0 --hash=sha256:" + "0" * 64 + "\n", "cannot be installed", marks=pytest.mark.full),
    ],
)
def test_a_lock_file_of_anything_else_is_refused(shop: Shop, tiny: Packages, line: str, message: str) -> None:
    with pytest.raises(WorkError, match=message):
        shop.build(line, "other")
    assert packages.found(shop.place) == [tiny]


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"json.py": ""}, "would shadow a module of the standard library"),
        ({"late.pth": "import os\n"}, "changes the path of imports"),
        ({"resource.cpython-311-x86_64-linux-gnu.so": ""}, "would shadow a module of the standard library"),
        ({"asyncio/__init__.py": ""}, "would shadow a module of the standard library"),
        ({"sitecustomize.py": ""}, "would shadow a module of the standard library"),
    ],
)
def test_packages_that_change_what_is_imported_are_refused(
    shop: Shop, files: dict[str, str], message: str, tiny: Packages
) -> None:
    with pytest.raises(WorkError, match=message):
        shop.build(wheel(shop.wheels, files, "odd"), "odd")
    assert packages.found(shop.place) == [tiny]


def test_every_change_of_the_tree_changes_its_digest(tiny: Packages, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(tiny.folder, tmp_path / "copy"))
    assert packages.tree_of(copy) == tiny.tree
    file = copy / "tinycalc.py"
    for change in (
        lambda: file.write_text("def double(n):\n    return 3 * n\n", encoding="utf-8"),
        lambda: file.chmod(0o755),
        lambda: file.rename(copy / "other.py"),
        (copy / "empty").mkdir,
    ):
        before = packages.tree_of(copy)
        change()
        assert packages.tree_of(copy) != before
    (copy / "link").symlink_to("/etc")
    with pytest.raises(WorkError, match="neither a file nor a folder"):
        packages.tree_of(copy)


def test_a_replaced_or_day_old_environment_is_hashed_again(tiny: Packages, tmp_path: Path) -> None:
    place = Path(shutil.copytree(tiny.folder.parent, tmp_path / "packages"))
    now = [1_790_000_000]

    def found() -> Packages | None:
        return PackageEnvironments(tmp_path / "state", lambda: place, lambda: now[0]).find("tiny")

    first = found()
    assert first is not None
    assert first.tree == tiny.tree
    folder = place / tiny.folder.name
    (folder / "tinycalc.py").write_text("", encoding="utf-8")
    assert found() == first  # it was read today
    now[0] += 86_401
    second = found()
    assert second is not None
    assert second.tree == packages.tree_of(folder) != tiny.tree
    now[0] -= 86_401
    folder.rename(place / "aside")
    assert found() is None
    shutil.copytree(place / "aside", folder)
    third = found()
    assert third is not None
    assert third.tree != tiny.tree


@pytest.mark.full
def test_the_command_builds_and_lists(command: Command, shop: Shop, tmp_path: Path) -> None:
    line = wheel(shop.wheels, _CODE)
    (tmp_path / "lock.txt").write_text(line, encoding="utf-8")
    environment = {"XDG_CACHE_HOME": str(shop.place.parent.parent)}
    words = ("sandbox", "env", "build", "made", "--lock", tmp_path / "lock.txt", "--wheels", shop.wheels)
    done = command(*words, env=environment)
    assert done.code == 0, done.stderr
    row = done.stdout.splitlines()[-1]
    assert row.startswith('  made: {tree: "sha256:')
    assert row.endswith("profile: analysis}")
    listed = command("sandbox", "env", "list", env=environment).stdout
    assert "made  sha256:" in listed
    assert "tinycalc, tinydata" in listed
    rows = command("sandbox", "env", "list", "--format", "json", env=environment).json["environments"]
    assert {row["name"]: row["modules"] for row in rows}["made"] == ["tinycalc", "tinydata"]
    refused = command("sandbox", "env", "build", "Made", "--lock", tmp_path / "lock.txt", env=environment)
    assert refused.code != 0
    assert "the name of an environment is not valid" in refused.stderr


def test_a_waiting_sandbox_has_its_packages_from_the_start(tiny: Packages) -> None:
    from admission_adapters.sandbox.run.pool import Pooled
    from tests.adapters.sandbox.programs import BOUNDS

    with Pooled(2) as pool:
        with_them = program("import tinycalc\nprint(tinycalc.double(2))", packages=str(tiny.folder))
        assert pool.prepare(with_them, BOUNDS) > 0
        assert pool.run(with_them, BOUNDS).stdout == b"4\n"
        assert pool.run(program("import tinycalc"), BOUNDS).status is Status.RUNTIME_ERROR
