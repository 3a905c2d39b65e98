"""Policy-as-code admission engine: one question, `may this happen, and within what limits?`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["AsyncEngine", "Caller", "Context", "Engine", "Settings", "Via", "__version__"]

_HOMES = {
    "AsyncEngine": "engine.engine",
    "Caller": "engine.model",
    "Context": "engine.flow",
    "Engine": "engine.engine",
    "Settings": "engine.settings",
    "Via": "engine.model",
}

if TYPE_CHECKING:
    from engine.engine import AsyncEngine, Engine
    from engine.flow import Context
    from engine.model import Caller, Via
    from engine.settings import Settings


def __getattr__(name: str) -> Any:
    """Import what is named first, so that `engine --help` does not wait for it."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(name)
