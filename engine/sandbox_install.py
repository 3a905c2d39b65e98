"""Builds what a stronger sandbox needs and this machine lacks, on request: gVisor's runsc, from its pinned module."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from adapters.sandbox import gvisor_binary
from engine.errors import WorkError
from engine.opa import build
from engine.settings import Settings


@dataclass(frozen=True, slots=True)
class Installed:
    """What was put where; `sha256` in hex, compared again before each use."""

    path: Path
    version: str
    sha256: str


def folder(settings: Settings) -> Path:
    """Where the binaries of sandboxes are kept, in the user's cache."""
    return settings.cache / "sandbox"


def install_gvisor(settings: Settings, module: Path = gvisor_binary.MODULE) -> Installed:
    """Build the runsc that `module` pins, or take it from the cache, and verify it. Tells its progress on stderr.

    The first time it fetches Go modules, and a Go toolchain where there is none of the right series; that is
    some 300 MB and a minute. Raises WorkError.
    """
    try:
        path = build.build(module, folder(settings), fetch_go=True)
        found = gvisor_binary.find(folder(settings))
    except (build.BuildError, gvisor_binary.MissingError) as error:
        remedy = "see what is said above; until it is installed, profiles that name gVisor are refused"
        raise WorkError(str(error), remedy=remedy, code="engine.sandbox_install") from error
    return Installed(path, found.version, found.sha256)
