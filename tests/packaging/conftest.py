"""A Go toolchain that answers as Go does and takes no time: what is tested is what surrounds the compiler."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.opa import build

_GO = """#!/bin/sh
echo "$1" >>'{log}'
case "$1" in
env) echo '{version}' ;;
list) printf 'std\\t\\t{folder}\\n\\nexample.org/nails\\tv0.1.0\\t{folder}\\n' ;;
build)
  env | sort >'{log}.env'
  if [ -e '{log}.broken' ]; then echo 'main.go:3: undefined: x' >&2; exit 1; fi
  while [ "$1" != -o ]; do shift; done
  printf 'made by {version}' >"$2"
  chmod +x "$2"
  ;;
esac
"""


@dataclass(frozen=True)
class Workshop:
    """A module that pins a tool, a cache of its own, and what Go was asked for."""

    module: Path
    out: Path
    cache: Path
    go: Path
    log: Path

    def install_go(self, version: str) -> None:
        self.go.write_text(_GO.format(log=self.log, version=version, folder=self.module), encoding="utf-8")
        self.go.chmod(0o755)

    def remove_go(self) -> None:
        self.go.unlink()

    def break_compiler(self) -> None:
        Path(f"{self.log}.broken").touch()

    def compiled(self) -> int:
        return self.log.read_text(encoding="utf-8").split().count("build") if self.log.exists() else 0

    def environment(self) -> dict[str, str]:
        """What Go was given at the last compilation."""
        lines = Path(f"{self.log}.env").read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def entry(self) -> Path:
        """The one cached build."""
        (entry,) = (path for path in self.cache.iterdir() if path.is_dir())
        return entry

    def build(self) -> Path:
        return build.build(self.module, self.out)


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    bin_folder, cache, module = tmp_path / "bin", tmp_path / "cache", tmp_path / "module"
    bin_folder.mkdir()
    module.mkdir()
    (module / "go.mod").write_text(
        "module here\n\ngo 1.26.0\n\ntool example.org/tools/hammer\n\nrequire (\n"
        "\texample.org/nails v0.1.0 // indirect\n\texample.org/tools v1.2.3 // indirect\n)\n",
        encoding="utf-8",
    )
    (module / "LICENSE.md").write_text("Take it.\n", encoding="utf-8")
    (module / "go.sum").write_text("example.org/tools v1.2.3 h1:x=\n", encoding="utf-8")
    for name in ("chmod", "env", "sort"):  # all that the script needs; a Go of the machine is out of sight
        (bin_folder / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(bin_folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    # The environment's own folder stands in for a cache that cannot be written: not in a test.
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    made = Workshop(
        module, tmp_path / "out", cache / "admission-engine" / "tools", bin_folder / "go", tmp_path / "asked"
    )
    made.install_go("go1.26.8")
    return made
