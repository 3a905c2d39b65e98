"""How decisions are told: one module a format, imported when it is first asked for.

Every format is a function `render(reports, context) -> str`. The text ends with a line feed, and
equal reports give equal text. No format leaves out a finding without saying how many it left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias, cast

from engine import __version__

if TYPE_CHECKING:
    from engine.errors import Exit
    from engine.report import Report

__all__ = ["FORMATS", "Context", "Render"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a format must know besides the reports.

    `exit` is the code that the command ends with, `width` is in columns. Files below `base` are
    named relative to it where a format asks for relative names (SARIF, GitHub).
    """

    exit: Exit
    explain: bool = False
    color: bool = False
    width: int = 100
    version: str = __version__
    base: str = ""


Render: TypeAlias = Callable[[Sequence["Report"], Context], str]


class _Formats(Mapping[str, Render]):
    _names = ("text", "json", "sarif", "junit", "github")

    def __getitem__(self, name: str) -> Render:
        if name not in self._names:
            raise KeyError(name)
        return cast("Render", import_module(f"{__name__}.{name}").render)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


FORMATS: Mapping[str, Render] = _Formats()
"""The formats by the name that `--format` takes."""
