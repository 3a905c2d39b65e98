"""Walks the arguments of a tool call and lists what rules may speak about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast, get_args

from engine.facts.found import Argument, ArgumentType, Command, Destination, Form, FoundPath, Place
from engine.facts.origins import origin_facts
from engine.facts.paths import links, path_facts

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_TYPES = frozenset(get_args(ArgumentType))


@dataclass(slots=True)
class Walked:
    """Everything that was found; `complete` is false when there was more than anybody looks at."""

    arguments: tuple[Argument, ...] = ()
    destinations: tuple[Destination, ...] = ()
    paths: tuple[FoundPath, ...] = ()
    commands: tuple[Command, ...] = ()
    secrets: tuple[Place, ...] = ()
    unreadable: tuple[Place, ...] = ()
    depth: int = 1
    count: int = 0
    complete: bool = True
    places: dict[str, str] = field(default_factory=dict)


def walk(arguments: dict[str, Any], types: Mapping[str, str], cwd: str | None) -> Walked:
    """Everything in the arguments that rules may speak about."""
    walked = Walked(count=len(arguments))
    for number, (name, value) in enumerate(sorted(arguments.items())):
        plain = _NAME.fullmatch(name) is not None
        place = f"arguments/{name}" if plain else f"arguments/#{number}"
        declared = types.get(name)
        kind = cast("ArgumentType", declared) if declared in _TYPES else None
        walked.arguments += (Argument(id=place, name=name if plain else None, type=kind),)
        if kind == "url":
            origin = origin_facts(str(value))
            walked.destinations += (Destination(id=place, canonical=origin.canonical, origin=origin.origin),)
        elif kind == "path":
            path = path_facts(str(value), cwd)
            walked.paths += (
                FoundPath(
                    id=place,
                    canonical=path.canonical,
                    path=path.path,
                    below_cwd=path.below,
                    links="unknown" if path.path is None else links(path.path),
                ),
            )
        elif kind == "command":
            words = tuple(value) if isinstance(value, list) else tuple(str(value).split(" "))
            form: Form = "argv" if isinstance(value, list) else "text"
            walked.commands += (Command(id=place, canonical=True, words=words, form=form),)
    return walked
