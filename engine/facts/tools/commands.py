"""Facts about commands: the words that a program would get, or none if a shell could read more into them.

Text is compared here, and arrays of text; which program the system then runs is not known (B10). So a command has
words only if a shell would do nothing but split it: no operator, substitution, redirection, pattern,
assignment, comment, line break or quote inside a word. The same applies to arrays, because many tools join them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LONGEST = 128 << 10
"""Characters of a command (MAX_ARG_STRLEN of Linux)."""

MOST_WORDS = 16
"""Words that rules can compare; prefixes are shorter."""

_TOKEN = re.compile(
    r"'(?P<single>[^']*)'"
    r'|"(?P<double>[^"$`\\!]*)"'
    r"|(?P<plain>(?:[A-Za-z0-9_@%+:,./-]|[^\x00-\x7f])(?:[A-Za-z0-9_@%+:,./^=~#-]|[^\x00-\x7f])*)"
)
_SPACES = re.compile(" +")
_PROGRAM = re.compile(r"(?!-)/?[A-Za-z0-9_.+@-]+(?:/[A-Za-z0-9_.+@-]+)*")
_OPERATOR = re.compile(r"[;&|<>$`]")
_OPTION = re.compile(r"\A-[A-Za-z]+(?=[/~.\\])")
_VALUE = re.compile(r"\A(?:-[A-Za-z]|[+^%~!:]+|\w+:)(?=\w[\w-]*[.:@])")
_LETTERS = re.compile(r"\A-([A-Za-z]{1,32})")
_ASSIGNED = re.compile(r"(?:\w+=\S*\s+)*")
_LIST = re.compile(r"[=,]")
_RUN = re.compile(r"(?!-)[\w./~+@-]+")
_BRACES = re.compile(r"[=,(){}\[\]]")
_QUOTES = re.compile(r"[\"'\\]")
_BORDER = re.compile(r"[=,:;@(){}\[\]\"'+\s]+")
_PIECE = re.compile(r"[^\s;&|<>()'\"`$]+")
_HANDED = re.compile(
    r"(?i)(?:^|\s)--?(?:[a-z0-9]+[-_])*"
    r"(?:pass|password|passwd|passphrase|secret|token|api[-_]?key|secret[-_]?key|access[-_]?key)\s+[^\s-]\S*"
    r"|(?:^|\s)\w*(?:password|passwd|passphrase|secret|token|api_?key)=\S+"
)


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """The first words of a command as they will be compared; `rest` are all words but the program."""

    canonical: bool
    words: tuple[str, ...] | None = None
    rest: tuple[str, ...] = ()


def argv_facts(words: Sequence[Any]) -> CommandFacts:
    """The facts of a command that is a list of words. Never raises."""
    texts = tuple(word for word in words if isinstance(word, str))
    fine = len(texts) == len(words) and sum(map(len, texts)) <= LONGEST
    harmless = fine and all(word.isprintable() and _OPERATOR.search(word) is None for word in texts)
    return _facts(texts) if harmless else CommandFacts(canonical=False, rest=_pieces(" ".join(texts)))


def text_facts(text: str) -> CommandFacts:
    """The facts of a command that is one text. Never raises."""
    words = _words(text) if len(text) <= LONGEST and text.isprintable() else None
    return CommandFacts(canonical=False, rest=_pieces(text)) if words is None else _facts(words)


def hands_secret(text: str) -> bool:
    """Whether a command passes a secret in an option or variable with a telling name: `--password x`."""
    return _HANDED.search(text) is not None


def parts(word: str) -> tuple[str, ...]:
    """What one word of a command may name: itself, what is set by it (`--file=…`), what follows an option (`-I…`).

    A name with a dot also after a sign or one colon: `+a.example`, `tcp:a.example`.
    """
    found = (word, word.partition("=")[2], _OPTION.sub("", word), _VALUE.sub("", word))
    mapped = pieces(word) if word.count(":") > 1 and "://" not in word else ()
    return tuple(dict.fromkeys(part for part in (*found, *mapped) if part))


def pieces(word: str) -> tuple[str, ...]:
    """Where a path may begin inside a word: after `@`, `=`, a comma, a colon, a quote or option letters."""
    found = [part for part in _BORDER.split(word) if part]
    return tuple(dict.fromkeys((*found, *(_OPTION.sub("", part) for part in found))))


def path_pieces(word: str) -> tuple[str, ...]:
    """The parts of a word that may be a path: the whole word, its parts, and what follows option letters (`-vofile`).

    Each also without quotes and backslashes, which a shell removes.
    """
    letters = _LETTERS.match(word)
    glued = () if letters is None else (word[length:] for length in range(2, len(letters[0]) + 1))
    found = dict.fromkeys((word, *parts(word), *pieces(word), *pieces(_QUOTES.sub("", word)), *glued))
    return tuple(dict.fromkeys(part for word in found for part in (word, _QUOTES.sub("", word)) if part))


def host_pieces(word: str) -> tuple[str, ...]:
    """The parts of a word that may be a host: the whole word, its parts, and pieces between commas and braces.

    A word with spaces that begins with the name or path of a program is a command for it, not a host.
    """
    if any(character.isspace() for character in word):
        words = _ASSIGNED.sub("", _QUOTES.sub("", word).lstrip(" (){}!"), count=1).split()
        inner = words if words and _RUN.fullmatch(words[0]) else ()
        return tuple(dict.fromkeys(part for word in inner for part in host_pieces(word)))
    plain = _QUOTES.sub("", word)
    listed = (_BRACES if plain == word else _LIST).split(plain)  # braces around quotes are those of JSON
    return tuple(dict.fromkeys(part for part in (*parts(plain), *listed) if part))


def _facts(words: tuple[str, ...]) -> CommandFacts:
    if not words or not _is_program(words[0]):
        return CommandFacts(canonical=False, rest=_pieces(" ".join(words)))
    return CommandFacts(canonical=True, words=words[:MOST_WORDS], rest=words[1:])


def _words(text: str) -> tuple[str, ...] | None:
    """The words of a text that a shell would only split; None for any other."""
    words: list[str] = []
    position = 0
    while (token := _TOKEN.match(text, position)) is not None:
        if not words and token["plain"] is None:
            return None
        words.append(next(part for part in (token["plain"], token["single"], token["double"]) if part is not None))
        position = token.end()
        if position == len(text):
            return tuple(words)
        if (space := _SPACES.match(text, position)) is None:
            return None
        position = space.end()
    return None


def _is_program(word: str) -> bool:
    return _PROGRAM.fullmatch(word) is not None and not {".", ".."}.intersection(word.split("/"))


def _pieces(text: str) -> tuple[str, ...]:
    """What a text that has no words may still name: hosts and paths between its operators."""
    return tuple(_PIECE.findall(text))
