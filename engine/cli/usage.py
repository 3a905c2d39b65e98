"""Help and usage errors of commands: full sentences, no Python types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from engine.documents.files import printable
from engine.facts.text.nearest import did_you_mean, nearest

_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false"}
_ALIKE = 0.75
"""Share of equal characters from which an option is suggested; the library's 0.6 suggests others."""
_EXTRA = "Got unexpected extra argument(s) ("


class Group(TyperGroup):
    """Lists its commands with the whole first sentence of each."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  (the library calls it so)
        """Write the list of commands."""
        rows = [(name, one.get_short_help_str(limit=1_000)) for name, one in self.commands.items() if not one.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def finished(command: Any, common: Sequence[Any]) -> Any:
    """The command with the common options at each command below it, and a word for every kind of value."""
    for below in getattr(command, "commands", {}).values():
        finished(below, common)
    if not hasattr(command, "commands"):
        command.params.extend(common)
    for parameter in command.params:
        if parameter.metavar is None and not getattr(parameter, "is_flag", False):
            parameter.metavar = _kind(parameter)
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = _no_type
        if parameter.type_descriptor.is_path or (parameter.metavar or "").startswith(("DIR", "FILE", "PATH")):
            parameter.process_value = partial(_not_empty, parameter, parameter.process_value)
    return command


def _not_empty(parameter: Any, process: Any, ctx: Any, value: Any) -> Any:
    """The value of a path. An empty one, as of a variable that is not set, would be the working folder."""
    empty = value == "" or (isinstance(value, list | tuple) and "" in value)
    if empty and value != parameter.default:
        raise typer.BadParameter("the name is empty; write . for the working folder", ctx=ctx, param=parameter)
    return process(ctx, value)


def _no_type(ctx: Any) -> None:
    """Arguments are described by their name alone."""


def _kind(parameter: Any) -> str:
    described = parameter.type_descriptor
    if described.choices is not None:
        return "|".join(map(str, described.choices))
    return "N" if parameter.bare_type() in _KINDS else "PATH" if described.is_path else "TEXT"


def print_usage_error(error: Any) -> None:
    """Print what is wrong with a call, in plain words."""
    if getattr(error, "possibilities", None):
        if near := get_close_matches(error.option_name, error.possibilities, cutoff=_ALIKE):
            error.message += f"; did you mean {' or '.join(sorted(near))}?"
        error.possibilities = None
    if isinstance(error, typer.BadParameter):
        error.message = _plain(error)
    if error.message.startswith(_EXTRA):
        error.message = _extra(error.message.removeprefix(_EXTRA).removesuffix(")"), error.ctx)
    error.show()


def _extra(given: str, ctx: Any) -> str:
    """The message of arguments that a command does not take."""
    paths = [one.opts[-1] for one in ctx.command.params if one.type_descriptor.is_path and one.opts[-1].startswith("-")]
    named = f"; name the option that it is for: {', '.join(paths)}" if paths and Path(given).exists() else ""
    return f"unexpected argument `{given}`{named}"


def _plain(error: typer.BadParameter) -> str:
    """The message of a value that does not fit, without the words of the library that found it."""
    from pydantic import ValidationError

    if not isinstance(error.__cause__, ValidationError):
        path = error.message.removeprefix("dir ")
        return error.message if path == error.message else f"folder {path}"
    found = error.__cause__.errors(include_url=False)[0]
    value, context = printable(str(found["input"]), 80), found.get("ctx", {})
    described: Any = getattr(error.param, "type_descriptor", None)
    if described is not None and described.choices is not None:
        return not_one_of(value, map(str, described.choices))
    if found["type"] in {"greater_than_equal", "less_than_equal"}:
        bound = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
        return f"`{value}` must be {bound}"
    kind = found["type"].partition("_")[0]
    return f"`{value}` is not {_KINDS[kind]}" if kind in _KINDS else found["msg"].removeprefix("Value error, ")


def not_one_of(value: str, known: Iterable[str]) -> str:
    """The message of a word that is none of those which are known."""
    names = list(known)
    near = nearest(value, names, {})
    question = f"{did_you_mean(near)} " if near else ""
    return f"{question}`{printable(value, 80)}` is not one of {', '.join(names)}"
