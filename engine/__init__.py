"""Policy-as-code admission engine: one question, `may this happen, and within what limits?`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Engine", "Settings", "__version__"]

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.settings import Settings


def __getattr__(name: str) -> Any:
    """Import the engine when it is first named, so that `engine --help` does not wait for it."""
    if name == "Engine":
        from engine.engine import Engine

        return Engine
    if name == "Settings":
        from engine.settings import Settings

        return Settings
    raise AttributeError(name)
