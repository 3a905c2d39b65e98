"""Builds gVisor's runsc from its pinned module, on request."""

from __future__ import annotations

from pathlib import Path

from admission_adapters.sandbox.gvisor import binary as gvisor_binary
from engine.errors import WorkError
from engine.opa import build
from engine.settings import Settings


def folder(settings: Settings) -> Path:
    """The folder of sandbox binaries, in the user's cache."""
    return settings.cache / "sandbox"


def install_gvisor(settings: Settings) -> gvisor_binary.Runsc:
    """Build the pinned runsc, or take it from the cache, and verify it. Prints its progress on stderr.

    The first time, it downloads Go modules, and a Go toolchain if none of the right series exists: about
    300 MB and a minute. Raises WorkError.
    """
    try:
        build.build_all([gvisor_binary.MODULE], folder(settings))
        return gvisor_binary.find(folder(settings))
    except (build.BuildError, gvisor_binary.MissingError) as error:
        remedy = "see the output above; until it is installed, profiles that name gVisor are refused"
        raise WorkError(str(error), remedy=remedy, code="engine.sandboxes.install") from error
