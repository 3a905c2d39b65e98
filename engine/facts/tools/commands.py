"""Facts about commands: the simple commands that a text or a list of words would run, and what is in each.

A text is parsed as a shell reads it (`engine.facts.shell`). A list of words is one command; unless its tool runs no
shell, it counts also as the text that its words make, because many tools join them. Nothing is known of the program
that the system then runs (B10).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from posixpath import normpath
from typing import Any

from engine.facts.shell import Parsed, ShellCommand, ShellWord, parse
from engine.facts.tools.command_options import STREAMS, Part, Reading, Rows, read
from engine.secrets.stand_ins import is_default, stands_in

LONGEST = 64 << 10
"""Bytes of a command; the parser reads no more."""

MOST_WORDS = 16
"""Words that rules can compare; prefixes are shorter."""

MOST_COMMANDS = 256
"""Simple commands of one command."""

MOST_READ = 64 << 10
"""Words of one command, those of commands inside of others once more."""

MOST_FOLDERS = 16
"""Folders that the commands of one text may change to."""

ROUNDS = 4
"""Commands inside of commands: `bash -c 'timeout 5 bash -c …'`; what is deeper is refused."""

Text = tuple[int, str, Sequence[str], tuple[str, ...], bool]
"""A text for a shell: the number of the one around it, itself, the documents that its commands read as input, the
folders in which the shell may be called, none if that is not known, and whether its output may be passed on."""

_SPECIAL = re.compile(r"[;&|<>$`\n*?\[{]")
"""What makes more of a list of words than these words, once it is a text for a shell."""

_PROGRAM = re.compile(r"(?!-)(?:/|(?:\./)+)?[A-Za-z0-9_.+@:\[-]+(?:/[A-Za-z0-9_.+@-]+)*")
_OPERATOR = re.compile(r"[;&|<>$`]")
_OPTION = re.compile(r"\A-[A-Za-z]+(?=[/~.\\])")
_VALUE = re.compile(r"\A(?:-[A-Za-z]|[+^%~!:]+|\w+:)(?=\w[\w-]*[.:@])")
_LETTERS = re.compile(r"\A-([A-Za-z]{1,32})")
_HELPER = re.compile(r"\A[A-Za-z0-9+-]+::")
"""How git names the program that connects: `ext::sh -c x`."""

_ASSIGNED = re.compile(r"(?:\w+=\S*\s+)*")
_LIST = re.compile(r"[=,]")
_RUN = re.compile(r"(?!-)[\w./~+@-]+")
_BRACES = re.compile(r"[=,(){}\[\]]")
_QUOTES = re.compile(r"[\"'\\]")
_BORDER = re.compile(r"[=,:;@(){}\[\]\"'+\s]+")
_ROUTE = re.compile(r"(?:\A|(?<=/))(?:\(\.*[\w-]+\)|\[{1,2}\.*[\w-]+\]{1,2})(?=/|\Z)")
"""A name in a path by which frameworks serve pages, such as `[id]` and `(auth)`: what follows begins no path."""

_KEPT = str.maketrans("()[]", "\0\1\2\3")  # no command has these
_SHOWN = str.maketrans("\0\1\2\3", "()[]")
_PIECE = re.compile(r"[^\s;&|<>()'\"`$]+")
_HANDED = re.compile(
    r"(?i)(?:^|\s)--?(?:[a-z0-9]+[-_])*"
    r"(?:pass|password|passwd|passphrase|secret|token|api[-_]?key|secret[-_]?key|access[-_]?key)\s+(?!-)(?=\S)"
    r"|(?:^|\s)\w*(?P<name>password|passwd|passphrase|secret|token|api_?key)=(?=\S)"
)
_NOT_HANDED = re.compile(
    r"(?i)(?P<quote>[\"']?)(?:\$\(|`|(?:|\$\w+|\$\{\w+\}|(?P<word>[a-z][\w-]*))(?P=quote)(?=[\s;&|)]|\Z))"
)
"""The value of a secret that a command does not show: empty, a variable, what a command prints, or a placeholder."""
_HERE = re.compile(r"\A(?:\./+)+|\A\.\Z")
_URL = re.compile(r"(?P<host>https://[a-z0-9.-]+(?::[0-9]+)?)(?:(?P<path>/[^#]*)(?:#[\w./%=&-]*)?)?")
_MODES = {">": "write", ">>": "write", ">|": "write", "&>": "write", "&>>": "write", "<>": "write", "<": "read"}


@dataclass(frozen=True, slots=True)
class Redirection:
    """A file that a command gets by `<` or `>`; `value` only where its name is known."""

    write: bool
    value: str | None


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """One simple command. `words` are those that rules compare: the known ones before the first that is not known.

    `short` are the words without options before a subcommand or module, as in `git --no-pager push`, if there are any.
    `rest` are all words but the program as texts, `patterns` those of them that are patterns of file names, `assigned`
    the values of variables, `parts` what else a rule has to permit, `folders` those that a `cd` of the same text names,
    `places` those from which its words may be paths, from the working folder; none if that is not known for certain.
    `plain` are the positions of values that name no host, `nameless` those of words that name nothing. `refused` says
    why a command could not be read; it then has no words.
    """

    words: tuple[str, ...] | None = None
    short: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    assigned: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    redirects: tuple[Redirection, ...] = ()
    folders: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    links: bool = False
    plain: tuple[int, ...] = ()
    nameless: tuple[int, ...] = ()
    refused: str | None = None

    @property
    def canonical(self) -> bool:
        """Whether its program is known."""
        return self.words is not None


def commands(
    texts: Sequence[str | Sequence[Any]], rows: Rows, *, joined: Sequence[bool], home: str | None = None
) -> list[list[CommandFacts]]:
    """The simple commands of each text or list of words, in order; at least one fact each. Never raises.

    `rows` say what the options of programs mean. `joined`: whether a list may become a text for a shell. `home` is the
    home folder of the user who runs them; what they hand to other shells may have another one.
    """
    found: list[list[CommandFacts]] = [[] for _ in texts]
    waiting: list[Text] = []
    for number, (text, may_join) in enumerate(zip(texts, joined, strict=True)):
        if isinstance(text, str):
            waiting.append((number, text, (), ("",), False))
            continue
        words = [word for word in text if isinstance(word, str)]
        line = " ".join(words)
        if not words or len(words) != len(text) or not _readable(line):
            found[number].append(CommandFacts(rest=_pieces(line), refused="words"))
            continue
        waiting += _listed(found[number], number, [ShellCommand(tuple(map(ShellWord, words)), folders=("",))], rows)
        if may_join and _SPECIAL.search(line):
            waiting.append((number, line, (), ("",), False))
    for _ in range(ROUNDS):
        waiting, home = list(_round(found, waiting, rows, home)), None
    for number, text, *_ in waiting:
        found[number].append(CommandFacts(rest=_pieces(text), refused="nesting"))
    return [_in_folders(one) for one in found]


def _in_folders(found: list[CommandFacts]) -> list[CommandFacts]:
    """Every command may run in each folder that its text changes to, whatever their order.

    None has a certain place beside a command that may make links.
    """
    folders: tuple[str, ...] = ()
    for facts in found:
        for folder in facts.folders:
            below = () if folder.startswith("/") else (f"{one}/{folder}" for one in folders)
            folders = tuple(dict.fromkeys((*folders, *below, folder)))
            if len(folders) > MOST_FOLDERS:  # with each further one, they may be twice as many
                return [CommandFacts(rest=each.rest, refused="folders") for each in found]
    links = any(facts.links for facts in found)
    return [replace(facts, folders=folders, places=() if links else facts.places) for facts in found]


def _round(found: list[list[CommandFacts]], waiting: list[Text], rows: Rows, home: str | None) -> Iterator[Text]:
    """List what is in these texts; what they hand to other shells is for the next round."""
    readable = [text for _, text, *_ in waiting if _readable(text)]
    answers = iter(parse(readable, home))
    for number, text, documents, folders, handed_on in waiting:
        parsed = next(answers) if _readable(text) else Parsed(refused="control")
        if parsed.refused is not None or not parsed.commands:
            found[number].append(CommandFacts(rest=_pieces(text), refused=parsed.refused or "empty"))
        else:
            listed = [
                replace(one, folders=_joined(folders, one.folders), handed_on=one.handed_on or handed_on)
                for one in parsed.commands
            ]
            yield from _listed(found[number], number, listed, rows, documents)


def _joined(outer: Sequence[str], inner: Sequence[str]) -> tuple[str, ...]:
    """The folders of a text, seen from where the text is; none if there are too many."""
    found = {
        one if one.startswith("/") or not base else f"{base}/{one}" if one else base for base in outer for one in inner
    }
    return tuple(sorted(found)) if len(found) <= MOST_FOLDERS else ()


def _listed(
    facts: list[CommandFacts],
    number: int,
    listed: Sequence[ShellCommand],
    rows: Rows,
    outer: Sequence[str] = (),
) -> list[Text]:
    """Add the facts of commands, and of those that they start; the texts that they hand to a shell are returned.

    `outer` is the input of the command around them, which they read unless they have one of their own.
    """
    texts: list[Text] = []
    size = 0
    waiting = [(command, _documents(command) or outer) for command in listed]
    while waiting:
        command, documents = waiting.pop(0)
        if moved := _moved(command, rows):
            waiting[:0] = [(one, documents) for one in moved]
            continue
        size += len(command.words)
        if len(facts) == MOST_COMMANDS or (facts and size > MOST_READ):
            facts[-1] = CommandFacts(refused="size")
            break
        reading = read(command.words, rows, command.before)
        facts.append(_facts(command, reading))
        operands = rows.get(reading.program or "", {}).get("operands")
        beside = command.folders if operands == "command" and reading.stays else ()
        on = command.handed_on
        waiting[:0] = [(ShellCommand(words, folders=beside, handed_on=on), documents) for words in reading.inner]
        own = command.folders if operands == "shell" else ()
        texts += [(number, text, documents, own, on) for text in reading.texts]
        texts += [(number, text, (), (), on) for text in documents if reading.from_input]
    return texts


def _moved(command: ShellCommand, rows: Rows) -> tuple[ShellCommand, ...]:
    """A command with an option that changes its folder, as two: `git -C a`, and `git log` there; none for any other.

    The shell opens files of redirections before that.
    """
    words = command.words
    row = rows.get(words[0].value or "", {})
    at = next((at for at, word in enumerate(words[1:], 1) if word.value not in row.get("none", ())), len(words))
    if at + 2 >= len(words) or words[at].value not in row.get("moves", ()) or words[at].pattern:
        return ()
    if words[at + 1].value is None or words[at + 1].pattern:
        return ()
    moves = replace(command, words=(words[0], *words[at : at + 2]), before=())
    folder = read(moves.words, rows).folder
    there = replace(
        command,
        words=(*words[:at], *words[at + 2 :]),
        redirects=(),
        folders=() if folder is None else _joined(command.folders, (folder,)),
    )
    return moves, there


def _documents(command: ShellCommand) -> list[str]:
    """What a command and those that it starts read as input, if the text has it."""
    return [word.value for operator, word in command.redirects if operator.startswith("<<") and word.value is not None]


def _facts(command: ShellCommand, reading: Reading) -> CommandFacts:
    texts = [word.value or "" for word in command.words]
    known = _known(command.words)
    stem = reading.stem or command.words[:1]
    short = () if reading.subcommand is None else _known((*stem, *command.words[reading.subcommand :]))
    parts = [Part("variable", name) for name in command.variables]
    parts += [Part("syntax", name) for name in dict.fromkeys(command.syntax)]
    redirects = []
    for operator, word in command.redirects:
        one = _redirection(operator, word)
        if one is not None:
            redirects.append(one)
            if one.write:
                parts.append(Part("redirect", "write"))
            if word.value is None or word.pattern:
                parts.append(Part("word", "redirect"))
    return CommandFacts(
        words=known if known and _is_program(known[0]) else None,
        short=() if short == known else short,
        rest=tuple(texts[1:]),
        assigned=command.assigned,
        patterns=tuple(word.value for word in command.words[1:] if word.pattern and word.value is not None),
        parts=(*reading.parts, *parts),
        redirects=tuple(redirects),
        folders=() if reading.folder is None else _changed(command.folders, reading.folder),
        places=command.folders if reading.stays else (),
        links=reading.links,
        plain=reading.plain,
        nameless=reading.nameless if command.handed_on else (*reading.nameless, *reading.printed),
        refused=None if known and _is_program(known[0]) else "program",
    )


def _changed(folders: Sequence[str], to: str) -> tuple[str, ...]:
    """The folders that `cd` may change to, without the `..` at their start where that is certain."""
    if not to.startswith(".."):
        return (to,)
    return tuple(map(normpath, _joined(folders, (to,)))) or (to,)


def _known(words: Sequence[ShellWord]) -> tuple[str, ...]:
    """The values of the words before the first that is not known, as many as rules compare."""
    values = [None if word.pattern else word.value for word in words[:MOST_WORDS]]
    return tuple(value for value in takewhile(lambda value: value is not None, values) if value is not None)


def _redirection(operator: str, word: ShellWord) -> Redirection | None:
    """The file of a redirection; None for a document, another descriptor, a process, or a stream."""
    if operator.startswith("<<") or word.unknown == "process" or word.value in STREAMS:
        return None
    if operator in {">&", "<&"}:
        if word.value is not None and re.fullmatch(r"-|[0-9]{1,3}-?", word.value):
            return None
        return Redirection(write=True, value=None if word.pattern else word.value)
    return Redirection(write=_MODES.get(operator) != "read", value=None if word.pattern else word.value)


def _readable(text: str) -> bool:
    """Whether a text has no characters that people do not see, and is not too long."""
    return text.replace("\n", " ").replace("\t", " ").isprintable() and len(text.encode("utf-8", "replace")) <= LONGEST


def is_remote(word: str) -> bool:
    """Whether a word names a command for another program, or a program that connects: a host in it is meant as one."""
    return " " in word or _HELPER.match(word) is not None


def is_prefix(words: Sequence[str]) -> bool:
    """Whether words can be the first ones of a command as rules and approvals name it; no shell reads more in them."""
    plain = all(word.isprintable() and _OPERATOR.search(word) is None for word in words)
    return 1 <= len(words) <= MOST_WORDS and all(words) and plain and _is_program(words[0])


def hands_secret(text: str) -> bool:
    """Whether a command passes a secret in an option or variable with a telling name: `--password x`."""
    for found in _HANDED.finditer(text):
        value = _NOT_HANDED.match(text, found.end())
        word = None if value is None else value["word"]
        known = word is None or stands_in(word) or is_default(text, found.start("name"), word)
        if value is None or not known:
            return True
    return False


def parts(word: str) -> tuple[str, ...]:
    """What one word of a command may name: itself, what is set by it (`--file=…`), what follows an option (`-I…`).

    A name with a dot also after a sign or one colon: `+a.example`, `tcp:a.example`.
    """
    found = (word, word.partition("=")[2], _OPTION.sub("", word), _VALUE.sub("", word))
    mapped = pieces(word) if word.count(":") > 1 and "://" not in word else ()
    return tuple(dict.fromkeys(part for part in (*found, *mapped) if part))


def pieces(word: str) -> tuple[str, ...]:
    """Where a path may begin inside a word: after `@`, `=`, a comma, a colon, a quote or option letters."""
    kept = _ROUTE.sub(lambda name: name[0].translate(_KEPT), word)
    found = [part.translate(_SHOWN) for part in _BORDER.split(kept) if part]
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

    A word with spaces that begins with the name or path of a program is a command for it, not a host. It may be code,
    where the number in `f(0, x)` is no address.
    """
    if any(character.isspace() for character in word):
        words = _ASSIGNED.sub("", _HELPER.sub("", _QUOTES.sub("", word)).lstrip(" (){}!"), count=1).split()
        inner = words if words and _RUN.fullmatch(words[0]) else ()
        found = (part for word in inner for part in host_pieces(word) if "(" not in word[1:] or not part.isdecimal())
        return tuple(dict.fromkeys(found))
    plain = _QUOTES.sub("", word)
    listed = (_BRACES if plain == word else _LIST).split(plain)  # braces around quotes are those of JSON
    return tuple(dict.fromkeys(part for part in (*parts(plain), *listed) if part))


def _is_program(word: str) -> bool:
    if word == ".":  # `source`
        return True
    return _PROGRAM.fullmatch(word) is not None and not {"", ".", ".."}.intersection(below(word).lstrip("/").split("/"))


def url_of(word: str) -> str:
    """A URL as the program that gets it requests it: with a slash after the host, without a fragment."""
    match = _URL.fullmatch(word)
    return word if match is None else f"{match['host']}{match['path'] or '/'}"


def below(word: str) -> str:
    """A path below the working folder without the `./` at its start; the folder itself is the empty text."""
    return _HERE.sub("", word)


def _pieces(text: str) -> tuple[str, ...]:
    """What a text that has no words may still name: hosts and paths between its operators."""
    return tuple(_PIECE.findall(text))
