"""Packages that an extra of the engine brings."""

from __future__ import annotations

from engine.errors import WorkError, install_extra


def not_installed(what: str, extra: str, code: str) -> WorkError:
    """The error for packages that are missing; `what` is a subject with its verb."""
    return WorkError(f"{what} not installed", remedy=install_extra(extra), code=code)
