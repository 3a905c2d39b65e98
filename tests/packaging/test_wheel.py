"""What ships: a wheel made from the source archive, in an empty environment, with every source removed."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from engine.opa import build
from engine.version import __version__

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
_ENVIRONMENT = dict(os.environ)  # before a fixture moves the cache: OPA was built by the set-up
# Other tests may be writing below these while the checkout is copied.
_NOT_SOURCES = (
    ".git",
    ".venv*",
    "_bundled",
    "__pycache__",
    ".*_cache",
    ".coverage*",
    ".hypothesis",
    "tests",
    "fixtures",
)
_GOOD = "offline_fixture"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkout, source archive, wheel: each from the one before, which is removed."""
    folder = tmp_path_factory.mktemp("wheel")
    checkout = folder / "checkout"
    shutil.copytree(ROOT, checkout, symlinks=True, ignore=shutil.ignore_patterns(*_NOT_SOURCES))
    _build("sdist", checkout, folder)
    shutil.rmtree(checkout)
    (archive,) = folder.glob("*.tar.gz")
    (folder / "unpacked").mkdir()
    _run(["tar", "-xzf", str(archive)], folder / "unpacked")
    (sources,) = (folder / "unpacked").iterdir()
    _build("wheel", sources, folder)
    shutil.rmtree(sources)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="session")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`engine` of the wheel in an environment that holds nothing else but the packages it depends on."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    install = ["install", "--quiet", "--no-index", "--no-deps", "--no-compile", str(wheel)]
    _run([sys.executable, "-m", "pip", "--python", str(python), *install], folder)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    # A folder named in a .pth is searched, but its own .pth files, such as ours, are not followed.
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder / "bin" / "engine"


@pytest.mark.full
def test_wheel_holds_what_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        files = {info.filename: info for info in archive.infolist()}
        note = json.loads(archive.read("engine/_bundled/opa.json"))
    carried = {f"engine/_bundled/{path.relative_to(ROOT)}" for path in _sources("policy", "rego", "bundles")}

    assert wheel.name.split("-", 2)[2].startswith("py3-none-")
    assert note["version"] == build.read_pin(build.HERE).version.removeprefix("v")
    assert stat.S_IMODE(files["engine/_bundled/opa"].external_attr >> 16) & 0o111
    assert {name for name in files if name.startswith("engine/_bundled/")} == {
        *(f"engine/_bundled/{name}" for module in build.BUNDLED for name in build.read_pin(module).files),
        *carried,
    }
    assert {f"engine/workbench/{name}" for name in ("static/workbench.js", "templates/base.html")} <= files.keys()
    assert {name.split("/")[0] for name in files if ".dist-info" not in name} == {"engine", "admission_adapters"}


# covers: C33.1
def test_wheel_requires_python_3_11(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode().splitlines()

    assert "Requires-Python: >=3.11" in metadata
    assert "License-Expression: Apache-2.0" in metadata


def test_installed_package_uses_only_its_own_files(command: Path, tmp_path: Path) -> None:
    code = "import engine.settings as s; print(s.Settings().rego, s.Settings().policy, s.Settings().recipe, sep='\\n')"
    folders = _run([str(command.with_name("python")), "-c", code], tmp_path).stdout.split()

    assert [folder for folder in folders if not Path(folder).is_relative_to(command.parent.parent)] == []


def test_the_parts_of_an_installation_are_listed(command: Path, wheel: Path, tmp_path: Path) -> None:
    listed = json.loads(_run([str(command), "sbom"], tmp_path).stdout)
    with zipfile.ZipFile(wheel) as archive:
        inside = [name for name in archive.namelist() if ".dist-info/sboms/" in name and name.endswith(".cdx.json")]
        modules = [part for name in inside for part in json.loads(archive.read(name))["components"]]
        bundled = [name for name in archive.namelist() if name.endswith(".notices.txt")]
        notices = "\n".join(archive.read(name).decode() for name in bundled)

    found = {part["purl"] for part in listed["components"]}
    assert listed["metadata"]["component"]["purl"] == f"pkg:pypi/admission-engine@{__version__}"
    assert {re.sub("@.*", "", purl) for purl in found} >= {"pkg:pypi/pydantic", "pkg:pypi/requests"}
    assert {module["purl"] for module in modules} <= found
    assert len(inside) == len(bundled) == len(build.BUNDLED)
    assert all(f"\n{module['name']} {module['version']}: " in notices for module in modules)


def test_the_installed_doctor_command_runs(command: Path, tmp_path: Path) -> None:
    answer = json.loads(_run([str(command), "doctor", "--format", "json"], tmp_path).stdout)

    assert str(command.parent.parent) in json.dumps(answer)


@pytest.mark.full
def test_the_installed_check_command_decides(command: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "fixtures" / "source_bundles" / _GOOD, tmp_path / _GOOD)
    done = _run([str(command), "check", _GOOD, "--now", "2026-11-21T00:00:00Z"], tmp_path)

    assert "allow" in done.stdout


def test_a_new_policy_passes_its_cases(command: Path, tmp_path: Path) -> None:
    _run([str(command), "policy", "init", "my-policy"], tmp_path)
    done = _run([str(command), "policy", "test", "--policy", "my-policy"], tmp_path)

    assert done.stdout.splitlines()[-1] == "2 cases passed"


def _build(target: str, sources: Path, folder: Path) -> None:
    _run([sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)], sources)


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run in `folder` with a state of its own; fails with what the command said."""
    environment = {**_ENVIRONMENT, "ENGINE_STATE_DIR": str(folder / "state"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done


def _sources(*folders: str) -> list[Path]:
    found = (path for folder in folders for path in (ROOT / folder).rglob("*"))
    return [path for path in found if path.is_file() and not path.name.endswith(".tar.gz")]
