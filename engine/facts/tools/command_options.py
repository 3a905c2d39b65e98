"""The options of a command: what it is asked to do beyond its program, and which other commands it starts.

`policy/commands.yaml` has a row for each program: which options take a value, which words are another command or a
script. What is read here is judged by rules only: an option that no row lists is a part like any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any, Literal

from engine.facts.shell import ShellWord
from engine.facts.tools.found_files import found_files

Rows = Mapping[str, Mapping[str, Any]]
"""The rows of `programs` in policy/commands.yaml, as `data.policy` has them."""

Kind = Literal["option", "variable", "word", "pattern", "script", "subcommand", "redirect", "syntax", "code"]

_CODE = frozenset(
    (
        *(".", "alias", "bind", "builtin", "command", "compgen", "complete", "coproc", "enable", "eval", "exec"),
        *("mapfile", "popd", "pushd", "readarray", "shopt", "source", "trap", "unalias"),
    )
)
"""Built-ins of shells that carry out their words, or change what later words mean."""

_SOURCE = frozenset((".", "source"))
"""Built-ins whose code is in the file that their first word names."""

STREAMS = frozenset(
    ("/dev/null", "/dev/random", "/dev/stderr", "/dev/stdin", "/dev/stdout", "/dev/urandom", "/dev/zero")
)
"""Devices that hold nothing, and what a program has open already."""

_BEFORE_STREAM = re.compile(r"\A(?:--?[A-Za-z][\w-]*=?|\w+=)(?=/)")

_READ_ON = ("script_options", "rows_by")
"""Lists of options whose value is read on."""

_LISTS = ("none", "without_needle", "read", "write", "connect", "follow", "execute", "shell", "runs_until", *_READ_ON)
"""The lists of a row that say what its options can do."""

_VALUED = ("valued", *_READ_ON)

_HANDED = ("shell", "program", "runs_until", *_READ_ON)
"""Lists of options whose value is more than a value."""

_UNKNOWN = '"$_"'
"""A word that is not known, in a text for a shell."""

_SHELLS = frozenset({"shell", "text", "command"})
"""Programs that run the commands in their words; without any, a shell that reads its input."""

_STARTS = frozenset({*_SHELLS, "input_command", "input_text", "subcommand"})
"""Programs whose words are another command."""

_NUMBER = re.compile(r"-[0-9]+")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=.*", re.DOTALL)
_DESTINATION = re.compile(r"(?:ssh://)?(?:[\w.-]+@)?(?:[\w.-]+(?::[0-9]+)?|[0-9a-f:]+|\[[0-9a-f:]+\])", re.ASCII)
"""A user and a host; programs read more than that differently, as in `https://a.example?@b.example`."""

_BELOW = re.compile(r"(?!-)(?:\./)*[\w.@+-]+(?:/[\w.@+-]+)*/?")


@dataclass(frozen=True, slots=True)
class Part:
    """Something that a rule has to permit beside the words it names.

    `program` is the row that it was read by, `index` the place of its word, `text` that of a script.
    """

    kind: Kind
    name: str
    program: str | None = None
    index: int = 0
    text: str | None = None


@dataclass(slots=True)
class Reading:
    """A command read by its row: `program` names the row, `inner` and `texts` are the commands that it starts.

    `from_input`: it is a shell that reads commands from its input.
    `subcommand` is the place of the word that names it, `stem` are the words before it without options. `plain` are the
    places of values that name no host, `nameless` those of words that name nothing: a text to look for, a stream;
    `printed` those of texts that name nothing where no other command gets them.
    `stays`: paths in its words are those of its folder. `links`: it may make links.
    """

    program: str | None = None
    subcommand: int | None = None
    stem: tuple[ShellWord, ...] = ()
    parts: list[Part] = field(default_factory=list)
    inner: list[tuple[ShellWord, ...]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    from_input: bool = False
    folder: str | None = None
    stays: bool = False
    links: bool = False
    plain: tuple[int, ...] = ()
    nameless: tuple[int, ...] = ()
    printed: tuple[int, ...] = ()


def read(words: Sequence[ShellWord], rows: Rows, before: Sequence[ShellWord] = ()) -> Reading:
    """Read a command. Never raises; a program that is called by its path has no row.

    `before` are the words of the command whose output it reads, if that is known.
    """
    return _Reader(words, rows, before).reading


def _climbs(pattern: str) -> bool:
    """Whether this pattern of a file name may be `..`, as `.*` and `.?` are for shells other than bash 5.2."""
    return pattern.startswith(".") and pattern != ".." and fnmatchcase("..", pattern)


class _Reader:
    def __init__(self, words: Sequence[ShellWord], rows: Rows, before: Sequence[ShellWord] = ()) -> None:
        self.reading, self._rows, self._words, self._before = Reading(), rows, words, before
        self._row: Mapping[str, Any] = {}
        self._operands = 0
        self._plain = False  # after `--`
        self._shell = False  # the first operand is a text for a shell
        self._unlisted: int | None = None  # the place of an option whose value may be the next word
        self._again = False  # it is read once more
        self._scripted = False
        self._behind: int | None = None  # the place after the name of a module
        self._given: list[ShellWord] = []  # the program of the other command
        self._selected: list[int] = []  # the places of values that name the files it looks for
        self._replaced = ""  # what the input stands for in its words
        program = words[0].value or "" if words else ""
        self._path = program.startswith("/") and program not in rows
        self._enter(program.rpartition("/")[2] if self._path else program)
        index = 1
        while 0 < index < len(words):
            index = self._word(index)
        if program in _CODE and program == self._name:
            self._part("code", program, 1 if program in _SOURCE else 0)
        if self._given:
            self.reading.inner.append(tuple(self._given))
        if self.reading.program == "cd" and self.reading.folder is None:
            self._part("word", "folder", 0)  # home, or where a variable leads
        if self._row.get("operands") in _SHELLS:
            none = self._operands <= self._row.get("before", 0) or any(part.name == "-s" for part in self.reading.parts)
            self.reading.from_input = none and not self.reading.texts and not self._row.get("prints")
        if self._scripted:  # a word before the option is a file
            found = self.reading.parts
            self.reading.parts = [replace(one, text=None) if one.index == self._first else one for one in found]
        self.reading.subcommand = self.reading.subcommand or self._behind
        self.reading.links = self._row.get("links", False)
        if self.reading.program and self._row.get("opens"):
            self.reading.stays = all(map(self._stays, self.reading.parts))
            values = (_BEFORE_STREAM.sub("", word.value or "") for word in words)
            self.reading.nameless += tuple(at for at, value in enumerate(values) if value in STREAMS)
        if all(one.kind != "option" or self._keeps_needle(one) for one in self.reading.parts):
            start = (self.reading.subcommand or 0) + 1
            printed = range(start, len(words)) if self._row.get("nameless") else self._selected
            self.reading.printed = tuple(at for at in printed if not words[at].pattern)
        if self._row.get("needle") and self._first and not words[self._first].pattern:
            self.reading.nameless += (self._first,) if all(map(self._keeps_needle, self.reading.parts)) else ()

    def _enter(self, program: str) -> None:
        """Take the row of a program, or of a subcommand. By a path, it may be another one: its parts have no row."""
        self._name = program
        self.reading.program = program if program in self._rows and not self._path else None
        self._row = self._rows.get(program, {})
        self._operands = 0
        self._first: int | None = None

    def _keeps_needle(self, part: Part) -> bool:
        """Whether this part leaves the first word what it seems: a text to look for."""
        row = self._rows.get(part.program or "", {})
        return part.kind == "option" and (part.name in row.get("none", ()) or row.get("any_words", False))

    def _stays(self, part: Part) -> bool:
        """Whether this part changes no folder."""
        row = self._rows.get(part.program or "", {})
        return part.kind != "option" or any(part.name in row.get(one, ()) for one in _LISTS if one != "execute")

    def _part(self, kind: Kind, name: str, index: int, text: str | None = None) -> None:
        self.reading.parts.append(Part(kind, name, self.reading.program, index, text))

    def _word(self, index: int) -> int:
        """Read the word at a place; returns the place of the next one, 0 at the end."""
        word = self._words[index]
        if self._given and self._operands == self._row.get("before", 0):
            return self._operand(word, index)
        if word.pattern and (word.value or "").startswith(("-", "+")):
            return self._option_pattern(word, index)
        if word.value is None or word.pattern:
            self._unknown(word, index)
            return self._operand(word, index)
        if word.value == "--" and not self._plain:
            self._plain = True
            return index + 1
        dashed = word.value.startswith("-") and (len(word.value) > 1 or self._listed("-"))
        if (dashed or (word.value.startswith("+") and self._listed(word.value))) and not self._plain:
            return self._option(word.value, index)
        return self._operand(word, index)

    def _unknown(self, word: ShellWord, index: int) -> None:
        if word.pattern and (self._is_code() or self._climbs(word.value or "")):
            self._part("word", "pattern", index)
        elif word.pattern:
            if (word.value or "").startswith(("*", "?", "[")):
                self._part("pattern", "pattern", index)
        elif word.unknown != "process":
            self._part("word", word.unknown, index)

    def _climbs(self, pattern: str) -> bool:
        """Whether it may get to files above the folder; the name `..` alone is none of them."""
        *folders, name = pattern.split("/")
        shallow = any(part.name in self._row.get("shallow", ()) for part in self.reading.parts)
        return any(map(_climbs, folders)) or (_climbs(name) and not shallow)

    def _option_pattern(self, word: ShellWord, index: int) -> int:
        """A pattern that is an option, as `--include=*.py`, or may become one, as `-x*`."""
        name, equals, _ = (word.value or "").partition("=")
        if equals and self._listed(name) and not self._in(name, _HANDED):
            self._part("option", name, index)
            return index + 1
        self._part("word", "option", index)
        if self._starts():
            self._without(index, index + 1)
        return self._operand(word, index)

    def _option(self, text: str, index: int) -> int:
        if _NUMBER.fullmatch(text) and not self._listed(text):
            self._part("option", "-#", index)
            return index + 1
        name, equals, value = text.partition("=")
        whole = self._listed(text) or (len(name) > len("-x") and self._listed(name))  # `-DCMAKE_BUILD_TYPE=Debug`
        if text.startswith("--") or self._row.get("single") or whole:
            self._named(name, index)
            if not self._listed(name):
                self._shortened(name, index)
                self._unlisted = self._unlisted if equals else index
            return self._valued(name, index, value if equals else None)
        for place in range(1, len(text)):
            name = f"-{text[place]}"
            self._named(name, index)
            if not self._listed(name):  # what follows may be its value
                self._unlisted = index
                if place + 1 == len(text) or not self._starts():
                    break
                self._without(index, index + 1)
            if name in self._row.get("glued", ()):
                break
            if name in self._row.get("runs_until", ()):
                return self._until(index + 1, text[place + 1 :])
            if self._in(name, _VALUED):
                return self._valued(name, index, text[place + 1 :] or None)
            self._shell = self._shell or name in self._row.get("shell", ())
        return index + 1

    def _named(self, name: str, index: int) -> None:
        """An option; with it, the command may have another row: `command -v`."""
        self._part("option", name, index)
        if f"{self._name} {name}" in self._rows and not self._path:
            self._enter(f"{self._name} {name}")

    def _option_behind(self, text: str, index: int) -> None:
        name = text.partition("=")[0]
        if self._listed(name):
            self._part("option", name, index)
        else:
            self._shortened(name, index)

    def _shortened(self, name: str, index: int) -> None:
        """The long options that a shortened one may stand for: `--del`."""
        if name.startswith("--") and name != "--":
            for full in sorted({one for names in _LISTS for one in self._row.get(names, ()) if one.startswith(name)}):
                self._part("option", full, index)

    def _listed(self, name: str) -> bool:
        return self._in(name, (*_LISTS, "valued"))

    def _in(self, name: str, lists: Sequence[str]) -> bool:
        return any(name in self._row.get(one, ()) for one in lists)

    def _valued(self, name: str, index: int, value: str | None) -> int:
        """What follows an option: its value, the words of a command, a script."""
        if name in self._row.get("runs_until", ()):
            return self._until(index + 1, value or "")
        if not self._in(name, _VALUED):
            self._shell = self._shell or name in self._row.get("shell", ())
            return index + (2 if self._is_blank(name, index + 1) else 1)
        follows = index + 1
        if value is None:
            if follows == len(self._words):
                return 0
            word = self._words[follows]
            if word.value is None or word.pattern:
                self._part("word", word.unknown or "pattern", follows)
            elif word.value.startswith("--"):  # where the option may be without a value
                self._option_behind(word.value, follows)
            value = word.value
            follows += 1
        if value is not None:
            self._handed(name, value, follows - 1)
        if name in self._row.get("script_options", ()):
            self._scripted = True
            self._part("script", "script", follows - 1, value)
        if name in self._row.get("rows_by", ()):
            self.reading.stem = (*map(ShellWord, self._name.split()), ShellWord(name), ShellWord(value))
            self.reading.subcommand, self._behind = None, follows
            self._enter(f"{self._name} {name} {value}")
        return follows

    def _is_blank(self, name: str, index: int) -> bool:
        """Whether the next word is an empty value; where it is none, the word behind it is a file, below the folder."""
        following = [word.value for word in self._words[index : index + 2]]
        blank = name in self._row.get("blank", ()) and len(following) > 1 and following[0] == ""
        return blank and not (following[1] or "/").startswith("/")

    def _handed(self, name: str, value: str, index: int) -> None:
        """The value of an option: no host, no name, a text for a shell, or the program of the other command."""
        if name in self._row.get("plain", ()):
            self.reading.plain += (index,)
        if name in self._row.get("moves", ()):
            self._folder(value, index)
        if name in self._row.get("texts", ()) and not self._words[index].pattern:
            self.reading.nameless += (index,)
        if name in self._row.get("names", ()):
            self._selected.append(index)
        if name in self._row.get("shell", ()):
            self.reading.texts.append(value)
        if name in self._row.get("replaces", ()):
            self._replaced = value
        if name in self._row.get("program", ()) and value:
            self._given = [ShellWord(value)]

    def _until(self, start: int, glued: str) -> int:
        """The words of a command up to `;` or `+`, as `find -exec` has them, and its texts for a shell with `{}`.

        The first one may be `glued` to the option: `fd -xrm`.
        """
        end = next((at for at in range(start, len(self._words)) if self._words[at].value in {";", "+"}), None)
        words = (*([ShellWord(glued)] if glued else ()), *self._words[start:end])
        found = found_files(self._words[1 : start - 1], self._row, counted=self._counts(words))
        named = tuple(one for word in words for one in (found if word.value == "{}" and found else (word,)))
        inner = tuple(
            ShellWord(None, unknown="input") if word.value is None or "{}" in word.value else word
            for word in (named if found and self._only_reads(named) else words)
        )
        placed = any("{}" in (word.value or "{}") for word in words)
        self.reading.inner.append(inner if placed else (*inner, ShellWord(None, unknown="input")))  # as `fd -x rm` does
        if words and self._rows.get(words[0].value or "", {}).get("shell"):
            values = (word.value or "" for before, word in pairwise(words) if (before.value or "").startswith("-"))
            self.reading.texts += [value.replace("{}", _UNKNOWN) for value in values if "{}" in value]
        return 0 if end is None else end + 1

    def _counts(self, words: Sequence[ShellWord]) -> bool:
        return bool(words) and self._rows.get(words[0].value or "", {}).get("counts", False)

    def _only_reads(self, words: Sequence[ShellWord]) -> bool:
        """Whether a command can do nothing but read the files that it names, perhaps by a script that is judged."""
        reading = read(words, self._rows)
        keeps = self._rows.get(reading.program or "", {}).get("keeps", False) and not reading.inner
        return keeps and all(part.kind == "script" or self._keeps_needle(part) for part in reading.parts)

    def _operand(self, word: ShellWord, index: int) -> int:
        """Read a word that is no option, as the row says what those are."""
        value = None if word.pattern else word.value
        if self._row.get("letters") and index == 1:
            for letter in word.value or "":
                self._part("option", f"-{letter}", index)
            return index + 1
        if self._row.get("variables") and value is not None and (match := _VARIABLE.fullmatch(value)):
            self._part("variable", match[1], index)
            return index + 1
        self._operands += 1
        self._first = self._first or index
        operands = self._row.get("operands")
        self._without_unlisted(index)
        if self.reading.program == "cd":
            self._folder(value, index)
        elif operands == "subcommand" and self._operands == 1:
            self._subcommand(f"{self._name} {value}", index)
        elif operands == "shell" and self._operands == 1:
            self._text(value, index)
        elif operands == "script" and self._operands == 1 and not self._scripted:
            self._part("script", "script", index, value)
        elif operands in {"command", "input_command", "text", "input_text"}:
            return self._command(index, operands)
        elif (operands is None and self.reading.program is not None) or (
            operands == "one" and (self._operands > 1 or word.pattern)
        ):
            self._part("word", "operand", index)
        return index + 1

    def _starts(self) -> bool:
        return self._row.get("operands") in _STARTS

    def _is_code(self) -> bool:
        """Whether the next operand may set a variable, or is a command or comes before it."""
        leading = self._starts() and self._operands <= self._row.get("before", 0)
        return leading or bool(self._row.get("variables"))

    def _without_unlisted(self, index: int) -> None:
        """Read the command also as if this word were the value of the option before it."""
        if self._unlisted == index - 1 and self._starts():
            self._without(index - 1, index + 1)

    def _without(self, start: int, end: int) -> None:
        """Read the command once more without these words: an option that no list has, and perhaps its value.

        Only the first of them; the next one is for that reading.
        """
        if end < len(self._words) and not self._again:
            self._again = True
            self.reading.inner.append((*self._words[:start], *self._words[end:]))

    def _folder(self, value: str | None, index: int) -> None:
        known = value is not None and self._operands <= 1 and (value.startswith("/") or _BELOW.fullmatch(value))
        if known and value is not None:
            self.reading.folder = value.removeprefix("./").rstrip("/") or "/"
        else:
            self._part("word", "folder", index)

    def _subcommand(self, program: str, index: int) -> None:
        if program not in self._rows:
            self._part("subcommand", "subcommand", index)
        self.reading.subcommand = self.reading.subcommand or index
        self._enter(program)

    def _text(self, value: str | None, index: int) -> None:
        if self._shell and value is not None:
            self.reading.texts.append(value)
            self.reading.nameless += (index,)  # what is in it counts for the commands of the text

    def _joined(self, index: int, more: str) -> int:
        """All words from here, which make one text for a shell if the first one is known, with `more` behind them."""
        for place, word in enumerate(self._words[index + 1 :], index + 1):
            if word.value is None or word.pattern:
                self._part("word", word.unknown or "pattern", place)
        if self._words[index].value is not None and not self._words[index].pattern:
            known = (_UNKNOWN if word.value is None else word.value for word in self._words[index:])
            self.reading.texts.append(" ".join(known) + more)
            self.reading.nameless += tuple(range(index, len(self._words)))
        return 0

    def _command(self, index: int, operands: str) -> int:
        """The words of another command, behind what comes before it."""
        if self._operands <= self._row.get("before", 0):
            if self._row.get("destination") and not _DESTINATION.fullmatch(self._words[index].value or ""):
                self._part("word", "destination", index)
            return index + 1
        if operands in {"text", "input_text"}:
            return self._joined(index, f" {_UNKNOWN}" if operands == "input_text" else "")
        given = (ShellWord(None, unknown="input"),)
        words = self._words[index:]
        passed = tuple(at for at, word in enumerate(words, index) if at > index and not self._fills(word))
        self.reading.nameless += passed  # what is in them counts for the other command; its program may be a value
        if operands == "input_command" and (inner := self._with_found(words)):
            self.reading.inner.append(inner)
            return 0
        more = given if operands == "input_command" else ()
        filled = [part for word in words for part in (given if self._fills(word) else (word,))]
        self.reading.inner.append((*self._given, *filled, *more))
        self._given = []
        return 0

    def _with_found(self, words: Sequence[ShellWord]) -> tuple[ShellWord, ...]:
        """These words with the files that the command before has found; none if it may print or this may do more."""
        program = self._before[0].value or "" if self._before else ""
        found = found_files(self._before[1:], self._rows.get(program, {}), counted=self._counts(words))
        plain = all(self._keeps_needle(part) for part in self.reading.parts)
        named = tuple(one for word in words for one in (found if self._fills(word) else (word,)))
        named = named if self._replaced else (*named, *found)
        exact = all(word.value == self._replaced for word in words if self._fills(word))
        reads = self._rows.get(words[0].value or "", {}).get("only_reads", False)
        return named if found and plain and exact and reads and self._only_reads(named) else ()

    def _fills(self, word: ShellWord) -> bool:
        """Whether what is read takes the place of a part of this word."""
        return self._replaced != "" and self._replaced in (word.value or "")
