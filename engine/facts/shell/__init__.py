"""Shell commands, parsed by a program of ours around mvdan.cc/sh (`main.go`), which runs nothing.

`parse` asks it; the program is built and pinned like OPA (`engine/opa/build.py`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.binaries import find_binary
from engine.errors import DecideError

SECONDS = 5.0
"""How long a parser may run; it ends itself after 2 s of CPU time or 4 s."""


@dataclass(frozen=True, slots=True)
class ShellWord:
    """A word of a command: its `value`, the text of a `pattern` of file names, or why it is `unknown`."""

    value: str | None
    pattern: bool = False
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One simple command: its words, variables and their values, redirections by operator, and the syntax around it.

    `folders` are those in which it may run, from the folder of the text; none if that is not known.
    `handed_on`: another command may get what it prints. `before` are the words of the command whose output it reads.
    """

    words: tuple[ShellWord, ...]
    variables: tuple[str, ...] = ()
    assigned: tuple[str, ...] = ()
    redirects: tuple[tuple[str, ShellWord], ...] = ()
    syntax: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    handed_on: bool = False
    before: tuple[ShellWord, ...] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """The simple commands of a text, or why there are none.

    `refused`: `control`, `size`, `nesting` or `syntax` of the text; `parser_missing`, `parser_failed` of the parser.
    """

    commands: tuple[ShellCommand, ...] = ()
    refused: str | None = None


def parse(texts: Sequence[str], home: str | None = None) -> list[Parsed]:
    """What a shell would run for each text. Never raises: one process reads all, and nothing of a failed one counts.

    `home` is what `~` and `$HOME` are in them, unless a text may set it; None if that is not known.
    """
    if not texts:
        return []
    try:
        answers = _answers(texts, home)
        if len(answers) == len(texts):
            return [_parsed(one) for one in answers]
    except DecideError:
        return [Parsed(refused="parser_missing")] * len(texts)
    except (OSError, subprocess.SubprocessError, AttributeError, LookupError, TypeError, ValueError):
        pass
    return [Parsed(refused="parser_failed")] * len(texts)


def _answers(texts: Sequence[str], home: str | None) -> list[Any]:
    """The parser's answers. The process is waited for, however it ends."""
    binary = find_binary("shell_parser")
    with binary.verified() as file:
        done = subprocess.run(
            [f"/proc/self/fd/{file}" if sys.platform == "linux" else str(binary.path)],
            pass_fds=(file,),
            input=json.dumps({"home": home or "", "texts": texts}),
            env={},
            cwd="/",
            capture_output=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=True,
        )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _parsed(answer: dict[str, Any]) -> Parsed:
    if refused := answer.get("refused"):
        return Parsed(refused=str(refused))
    found = [_command(one) for one in answer["commands"]]
    inputs = [one.get("input", 0) for one in answer["commands"]]
    return Parsed(
        tuple(
            replace(command, before=found[number - 1].words) if number else command
            for command, number in zip(found, inputs, strict=True)
        )
    )


def _command(one: dict[str, Any]) -> ShellCommand:
    redirects = tuple((redirect["op"], _word(redirect)) for redirect in one["redirects"])
    elsewhere = any(
        word.unknown == "process" or (operator == ">&" and word.value not in {"1", "2"}) for operator, word in redirects
    )
    return ShellCommand(
        words=tuple(map(_word, one["words"])),
        variables=tuple(variable["name"] for variable in one["assigns"]),
        assigned=tuple(variable["value"] for variable in one["assigns"] if variable.get("value")),
        redirects=redirects,
        syntax=tuple(one["syntax"]),
        folders=tuple(one.get("folders", ())),
        handed_on=elsewhere or not {"pipe", "substitution", "process"}.isdisjoint(one["syntax"]),
    )


def _word(one: dict[str, Any]) -> ShellWord:
    if "pattern" in one:
        return ShellWord(one["pattern"], pattern=True)
    return ShellWord(one["value"]) if "value" in one else ShellWord(None, unknown=one["unknown"])
