"""Policy-as-code admission engine: one question, `may this happen, and within what limits?`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.version import __version__

__all__ = ["AsyncEngine", "Caller", "CodeRun", "Context", "Engine", "Rejection", "Settings", "Via", "__version__"]

_HOMES = {
    "AsyncEngine": "engine.engine",
    "Caller": "engine.model",
    "CodeRun": "engine.code.result",
    "Context": "engine.flow",
    "Engine": "engine.engine",
    "Rejection": "engine.code.repair",
    "Settings": "engine.settings",
    "Via": "engine.model",
}

if TYPE_CHECKING:
    from engine.code.repair import Rejection
    from engine.code.result import CodeRun
    from engine.engine import AsyncEngine, Engine
    from engine.flow import Context
    from engine.model import Caller, Via
    from engine.settings import Settings


def __getattr__(name: str) -> Any:
    """Import what is named first, so that `engine --help` does not wait for it."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(name)
