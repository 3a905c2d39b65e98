"""The packages of the extra `ray`, imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from engine.errors import GatherError, install_extra


def package(name: str) -> Any:
    """One of them. Raises GatherError if the extra is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise GatherError(
            f"the package `{name.partition('.')[0]}` is not installed", remedy=install_extra("ray")
        ) from error
