"""Walks the arguments of a tool call, at any depth and under any key, and lists everything that rules can match.

The declared type of an argument determines how everything below it is read:

    text, value, sql_…         searched for secrets only
    url, host, path            the value is read as exactly that; anything else is not canonical, a list or object too
    command, argv              every value is read as exactly that; anything else is not canonical
    data, or no type           searched for everything: URLs and hosts, paths, commands, JSON inside strings, keys

Values of other types are still searched for URLs, where a URL is possible.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from posixpath import normpath
from typing import Any, cast, get_args

from engine.documents.strict_json import MAX_SAFE_INTEGER, AmbiguousJsonError, NotJsonError, read_strict
from engine.facts.net.destinations import destinations, url_destinations, urls, whole_host, without_urls
from engine.facts.net.hosts import PROGRAM_ENDINGS, WordHost, host_origin, word_host
from engine.facts.net.urls import OriginFacts
from engine.facts.paths import BRACKETS, LONGEST, Lead, collapsed, links_met, looks_like_path, path_facts
from engine.facts.text.disguises import undisguised
from engine.facts.tools.argument_facts import (
    COVERED,
    Argument,
    ArgumentType,
    Command,
    CommandPart,
    CommandWord,
    Destination,
    Form,
    FoundPath,
)
from engine.facts.tools.command_options import Rows
from engine.facts.tools.command_text import is_command
from engine.facts.tools.commands import (
    CommandFacts,
    below,
    commands,
    hands_secret,
    host_pieces,
    is_remote,
    parts,
    path_pieces,
    pieces,
    url_of,
)
from engine.model import Named
from engine.secrets.forms import SecretForms
from engine.secrets.patterns import find_credentials, is_secret
from engine.secrets.redaction import is_secret_name

LEVELS = 64
"""Nested objects and lists that are walked, JSON inside strings included; calls of real tools have fewer than 10."""

VALUES = 10_000
"""Maximum number of values, without keys; walking that many takes less than a second."""

CHARACTERS = 1 << 20
"""Maximum number of characters of all strings and keys together; reading more takes too long for a caller."""

FACTS = 1_000
"""Most facts of all kinds; no policy covers more."""

NAMES = 50_000
"""Most names of files that are looked up for the patterns of one call."""

ARGUMENTS = 256
"""Arguments by name; tools declare fewer than 50."""

WRAPPINGS = 3
"""JSON inside a string inside JSON: so often, and not once more."""

MOST_LINKS = 40
"""Links on one path, as in Linux (`MAXSYMLINKS`)."""

_LONGEST_PLACE = 200
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_NO_READING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\$[({]|`")
"""Control characters, text that runs backwards, and what a shell would carry out."""

_BLANK = f"{string.whitespace}\ufeff\u200b\xa0\u2028\u2029"
_JSON_BEGINS = frozenset(("{", "[", '"', " ", "\t", "\r", "\n"))
_STOPS = ".,;:!?>"
_QUOTE = re.compile("[\"']")
_PATTERN = re.compile(r"[*?\[{]")
_WIDE = re.compile(r"\*\*|\{|/\.+[*?\[]")
"""What makes of a pattern more than the files of one folder: rules compare others as if they were names."""

_DEPTHS = ("/", "/*/", "/*/*/")
"""What `/**/` stands for; a rule about names of one depth covers one of these."""

_HIDDEN_TOO = re.compile(r"(?i)dotglob|globignore|glob_?dots")
"""What makes the patterns of a shell match hidden files."""

_LEADING = re.compile(r"(?<![^/])[*?]")
_ODD = re.compile(r"[{}\\\]!^,]")
"""Characters that mean something else to a reader of patterns."""

_ESCAPED = re.compile(r"\\(?!\\)")
"""How `\\n`, `\\w+` and other words begin that are no path in a command: a shell, or a regular expression, drops it."""

_ELSEWHERE = re.compile(r"\{(?:.*,)?(?:[/~]|\.\.[,}/])")
"""How a part of a pattern begins that may lead to another folder: `{/etc,src}/*`."""

_UP = re.compile(r"(?:\A|(?<==))(?:\.\./)*\.\.(?=/|\Z)")
"""How a path from a folder above begins, in a word or as the value of an option."""

_LONGEST_NAME = 64
_HERE = re.compile(r"\A\./(?=[^/])")
"""What says of a relative path only that it is one."""

_TYPES = frozenset(get_args(ArgumentType))
_SECRETS_ONLY = frozenset(("text", *COVERED))
_ONE_TEXT = frozenset(("url", "host", "path"))


@dataclass(slots=True)
class Walked:
    """Everything that was found; `complete` is false if there was more than the limits allow.

    `touches` are the absolute paths that words of texts of `data` would be: for deny and confirm rules. `unplaced`:
    some would be paths below an unknown working folder, or are secrets that are not shown. `handed`: a
    command passes a secret, so none of its words may be shown.
    """

    arguments: list[Argument] = field(default_factory=list)
    destinations: list[Destination] = field(default_factory=list)
    paths: list[FoundPath] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    command_parts: list[CommandPart] = field(default_factory=list)
    touches: dict[str, None] = field(default_factory=dict)
    secrets: list[Named] = field(default_factory=list)
    unreadable: list[Named] = field(default_factory=list)
    depth: int = 1
    count: int = 0
    complete: bool = True
    handed: bool = False
    unplaced: bool = False


def walk(
    arguments: Mapping[str, Any],
    types: Mapping[str, str],
    cwd: str | None,
    forms: SecretForms,
    lead: Callable[[str], Lead],
    rows: Rows,
    home: str | None = None,
) -> Walked:
    """Everything in the arguments that rules can match, in the order of their names. Never raises.

    `lead` finds links; `rows` say how the options of commands are read; `home` is `~` in commands.
    """
    walking = _Walk(cwd, forms, lead, rows, home)
    walking.top(arguments, types)
    walking.read_commands()
    return walking


@dataclass(frozen=True, slots=True)
class _At:
    """The position of a value: its id, its key, its level, and the number of enclosing JSON strings."""

    place: str
    name: str
    level: int
    wrapped: int = 0

    def below(self, step: str, name: str | None = None) -> _At:
        """The place of something inside; the outer id where that would be too long to read."""
        long = len(self.place) + len(step) >= _LONGEST_PLACE
        place = self.place if long else f"{self.place}/{step}"
        return _At(place, self.name if name is None else name, self.level + 1, self.wrapped)


def _absolute(folder: str, cwd: str) -> str:
    return folder if folder.startswith("/") else f"{cwd}/{folder}"


class _Walk(Walked):
    """One pass over the arguments of one call."""

    def __init__(
        self, cwd: str | None, forms: SecretForms, lead: Callable[[str], Lead], rows: Rows, home: str | None
    ) -> None:
        super().__init__()
        self._cwd, self._forms, self._find_lead, self._rows, self._home = cwd, forms, lead, rows, home
        self._waiting: list[tuple[str | list[Any], ArgumentType, _At]] = []
        self._in_command: str | None = None
        self._above: list[list[str] | None] = []  # the folders that a command may be in, by their names from the root
        self._hidden_too = False  # patterns match hidden files
        self._place: int | None = None
        self._ids: dict[str, int] = {}
        self._in_secret = False
        self._searched = "", False  # the last text, and whether it has a secret
        self._characters = 0
        self._leads: dict[str, Lead] = {}
        self._looked_up = 0  # names, for patterns

    def top(self, arguments: Mapping[str, Any], types: Mapping[str, str]) -> None:
        """Walk every argument by its declared type."""
        root = _At("arguments", "", 1)
        for number, name in enumerate(sorted(arguments)):
            if number == ARGUMENTS or not self._room(name, 1):
                self.complete = False
                return
            kind = cast("ArgumentType", types[name]) if types.get(name) in _TYPES else None
            plain = self._is_plain(name)
            at = root.below(name if plain else f"#{number}", name)
            self.arguments.append(Argument(id=at.place, name=name if plain else None, type=kind))
            self._named(name, arguments[name], kind or "data", at)

    def _named(self, name: str, value: Any, kind: ArgumentType, at: _At) -> None:
        """A value and its key, which is read as data: an address is one also where a name is expected."""
        if not self._is_plain(name):
            self._text(name, "text" if kind in _SECRETS_ONLY else "data", _At(at.place, "", at.level, WRAPPINGS))
        self._value(value, kind, at)

    def _is_plain(self, name: str) -> bool:
        return _NAME.fullmatch(name) is not None and not self._holds_secret(name)

    def _value(self, value: Any, kind: ArgumentType, at: _At) -> None:
        if not self._room(value, at.level):
            return
        self.count += 1
        if value and isinstance(value, dict | list) and kind in _ONE_TEXT:
            self._scalar(value, kind, at)
            kind = "data"  # what is in it counts for rules that refuse
        if isinstance(value, str):
            self._text(value, kind, at)
        elif isinstance(value, list) and (value or kind in {"command", "argv"}):
            self._list(value, kind, at)
        elif isinstance(value, dict) and value:
            for number, name in enumerate(sorted(value)):
                if not self._room(name, at.level):
                    break
                self._named(name, value[name], kind, at.below(name if self._is_plain(name) else f"#{number}", name))
        else:
            self._scalar(value, kind, at)

    def _room(self, value: Any, level: int) -> bool:
        """Whether one more value may be looked at; when it may not, nothing after it is either."""
        if isinstance(value, dict | list):
            self.depth = max(self.depth, level)
        if isinstance(value, str):
            self._characters += len(value)
        found = len(self.destinations) + len(self.paths) + len(self.commands) + len(self.unreadable) + len(self.secrets)
        found += len(self.command_parts) + len(self._waiting)
        few = found + len(self.touches) < FACTS and len(self._leads) < VALUES
        room = level <= LEVELS and self.count < VALUES and self._characters <= CHARACTERS and few
        self.complete = self.complete and room
        return self.complete

    def _list(self, items: list[Any], kind: ArgumentType, at: _At) -> None:
        if kind not in {"command", "argv"} or any(isinstance(item, dict | list) for item in items):
            before = self._in_secret
            if len(items) > 1 and all(isinstance(item, str) for item in items):  # one that only several of them make
                self._in_secret = self._secret(" ".join(items), at) or before
            for number, item in enumerate(items):
                self._value(item, kind, at.below(str(number)))
                if not self.complete:
                    return
            self._in_secret = before
            if kind == "data" and all(isinstance(item, str) for item in items) and is_command(" ".join(items)):
                self._waiting.append((items, kind, at))
            return
        words = [item for item in items if isinstance(item, str)]
        self.count += len(items)
        text = " ".join(words)
        if self._room(text, at.level):
            self._secret(text, at)
            self._waiting.append((items, kind, at))

    def _scalar(self, value: Any, kind: ArgumentType, at: _At) -> None:
        """A number, truth value, null or a container: never the declared type, and unambiguous only within bounds."""
        if kind in {"url", "host"}:
            self._found([OriginFacts(canonical=False)], at)
        elif kind == "path":
            self._path("", at)
        elif kind in {"command", "argv"}:
            self._command(CommandFacts(refused="words"), "text", at, hidden=False)
        elif isinstance(value, int | float) and not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            self._unreadable(at)
        if isinstance(value, int | float) and not isinstance(value, bool) and is_secret_name(at.name):
            self.secrets.append(Named(id=self._id("secrets", at)))

    def _text(self, text: str, kind: ArgumentType, at: _At) -> None:
        self._secret(text, at)
        if kind == "data":
            self._data(text, at)
        elif kind == "url":
            self._found(url_destinations(text), at)
        elif kind == "host":
            self._found([host_origin(text)], at)
        elif kind == "path":
            self._path("" if _ELSEWHERE.search(text) else text, at)
            self._found(urls(text), at)
        elif kind == "command":
            self._waiting.append((text, kind, at))
        elif kind == "argv":
            self._command(CommandFacts(rest=(text,), refused="words"), "text", at, hidden=False)

    def _data(self, text: str, at: _At) -> None:
        if self._json(text, at):
            return
        if _NO_READING.search(text) is not None:
            self._unreadable(at)
        self._found(destinations(text), at)
        self._undeclared_path(text, at)
        self._mentioned(text, at)
        if text.strip(_BLANK)[:1] in {"{", "["}:
            self._almost_json(text, at)

    def _almost_json(self, text: str, at: _At) -> None:
        """Hosts and paths in the quotes of a text that a lenient reader accepts as JSON: lines, commas, a BOM."""
        for piece in dict.fromkeys(_QUOTE.split(text)[1:]):
            if not self._room(None, at.level):
                return
            known = urls(piece)
            self._found([destination for destination in destinations(piece) if destination not in known], at)
            self._undeclared_path(piece, at)

    def _mentioned(self, text: str, at: _At) -> None:
        """The commands on the lines of a text, and the paths that its words would be."""
        for line in text.splitlines():
            if not self._room(None, at.level):
                return
            if " " in line.strip() and is_command(line.strip()):
                self._waiting.append((line.strip(), "data", at))
        plain = without_urls(text).strip()
        words = [word for word in plain.split() if "/" in word]
        whole_word: tuple[str, ...] = ()
        if self._holds_secret(text):
            words = [word for word in words if not self._withheld(word, at)]
        elif "/" in plain or (plain.split() == [plain] and not self._in_secret):
            whole_word = (plain,)
        found = dict.fromkeys((*whole_word, *(piece.rstrip(_STOPS) for word in words for piece in pieces(word))))
        self._touched(found, self.touches, at)
        relative = (collapsed(path) for path in found if not path.startswith("/"))
        self.unplaced = self.unplaced or (self._cwd is None and any(path_facts(path, "/").below for path in relative))

    def _withheld(self, word: str, at: _At) -> bool:
        """Whether a word is a secret, whose paths must not be shown: it counts as any path that it may be."""
        secret = self._holds_secret(word)
        self.unplaced = self.unplaced or secret
        if secret and any(looks_like_path(piece) for piece in pieces(word)):
            self._path("", at)
        return secret

    def _undeclared_path(self, text: str, at: _At) -> None:
        """An undeclared path; one that is visible only without its disguise is not canonical."""
        if looks_like_path(text) and looks_like_path(without_urls(text)):
            self._path(text, at)
            return
        plain = undisguised(text)
        if plain != text and looks_like_path(plain) and looks_like_path(without_urls(plain)):
            self._path("", at)

    def _json(self, text: str, at: _At) -> bool:
        """Whether a string is JSON, whose values were walked, or looks like it and has no one reading."""
        if text[:1] not in _JSON_BEGINS or text.lstrip(" \t\r\n")[:1] not in {"{", "[", '"'}:
            return False
        try:
            value = read_strict(text)
        except NotJsonError:
            return False
        except AmbiguousJsonError:
            self._unreadable(at)
            return True
        if at.wrapped == WRAPPINGS:
            self._unreadable(at)
        else:
            self._value(value, "data", _At(at.place, at.name, at.level + 1, at.wrapped + 1))
        return True

    def _secret(self, text: str, at: _At) -> bool:
        found = bool(text) and (is_secret_name(at.name) or self._holds_secret(text))
        if found:
            start = min((start for start, _ in find_credentials(text, self._forms)), default=0)
            line = text.count("\n", 0, start) + 1
            place = f"{at.place}:{line}" if "\n" in text else at.place
            self.secrets.append(Named(id=self._id("secrets", replace(at, place=place))))
        return found

    def _holds_secret(self, text: str) -> bool:
        if text is not self._searched[0]:
            self._searched = text, is_secret(text, self._forms)
        return self._searched[1]

    def _unreadable(self, at: _At) -> None:
        self.unreadable.append(Named(id=self._id("unreadable", at)))

    def _found(self, origins: list[OriginFacts], at: _At, word: CommandWord | None = None) -> None:
        for facts in origins:
            if not self._room(None, at.level):
                return
            name = self._id("destinations", at)
            self.destinations.append(
                Destination(
                    id=name,
                    canonical=facts.canonical,
                    origin=facts.origin,
                    path=facts.path,
                    command=self._in_command,
                    place=self._place,
                    word=word,
                )
            )

    def _path(self, text: str, at: _At, links: int = 0) -> None:
        """List a path, and what a link on it leads to if it counts as `followed`; `links` were followed before."""
        here = text in {".", "./"} and self._cwd is not None
        facts = path_facts(cast("str", self._cwd) if here else _HERE.sub("", text), self._cwd)
        name, path = self._id("paths", at), facts.path
        found = Lead("unknown") if path is None else self._lead(path)
        target = found.path if found.kept and facts.below is None and links < MOST_LINKS else None
        self.paths.append(
            FoundPath(
                id=name,
                command=self._in_command,
                place=self._place,
                canonical=facts.canonical,
                path=path,
                below_cwd=facts.below,
                links=found.links if target is None else "followed",
            )
        )
        if target is not None and all(target != listed.path for listed in self.paths):
            self._path(target, at, links + 1)

    def _lead(self, path: str) -> Lead:
        if path not in self._leads:
            self._leads[path] = self._find_lead(path)
        return self._leads[path]

    def read_commands(self) -> None:
        """List the simple commands of all texts and lists that are commands; they are parsed together."""
        texts = [value for value, *_ in self._waiting]
        joined = [kind != "argv" for _, kind, _ in self._waiting]
        listed = commands(texts, self._rows, joined=joined, home=self._home)
        for (value, _, at), found in zip(self._waiting, listed, strict=True):
            text = value if isinstance(value, str) else " ".join(word for word in value if isinstance(word, str))
            handed = hands_secret(text) or self._forms.handed(text)
            self._hidden_too = _HIDDEN_TOO.search(text) is not None
            if handed:
                self.handed = True
                self.secrets.append(Named(id=self._id("secrets", at)))
            hidden = handed or self._holds_secret(text)
            for facts in found:
                if not self._room(None, at.level):
                    return
                visible = replace(facts, words=None, refused="secret") if handed else facts
                form: Form = "text" if isinstance(value, str) else "argv"
                self._command(visible, form, at, hidden=hidden)

    def _command(self, facts: CommandFacts, form: Form, at: _At, *, hidden: bool) -> None:
        touches: dict[str, None] = {}
        name = self._in_command = self._id("commands", at)
        above = any(_UP.search(word) for word in facts.rest)
        self._above = [self._names(place) for place in facts.places] if above else []
        folders = tuple(self._lexical(folder) for folder in facts.folders)
        self._touched((word for word in (facts.words or ())[:1] if "/" in word), touches, None, folders)
        assigned = () if hidden else facts.assigned
        self._touched((piece for value in assigned for piece in path_pieces(value)), touches, at, folders)
        looked = facts.canonical and (self._cwd is not None or not facts.rest)
        if looked and self._cwd is not None:
            looked = self._followed(self._cwd, touches, at)
        for index, word in ((place, one) for place, told in enumerate(facts.rest, 1) for one in self._resolved(told)):
            if not self._room(None, at.level):
                break
            self.count += 1
            plain, self._place = below(word), index
            if index in facts.nameless and not hidden:
                self._found([url for url in urls(plain, PROGRAM_ENDINGS) if url.canonical], at)
                continue
            self._word(plain, name, index, at, host=index not in facts.plain)
            if facts.canonical and not hidden:
                paths = path_pieces(without_urls(plain, PROGRAM_ENDINGS))
                looked = self._touched(paths, touches, at, folders) and looked
            elif facts.canonical and "/" in word and not self._holds_secret(word):
                looked = self._touched((plain,), touches, at, folders) and looked
            else:
                looked = False  # no word of a secret is shown
        self._place = None
        looked = self._met(facts, touches, at) and looked
        for redirect in facts.redirects:
            if redirect.value is not None:
                self._path(below(redirect.value) or "./", at)
                looked = self._touched((below(redirect.value),), touches, at, folders) and looked
        if facts.canonical:
            nameless = {*facts.plain, *facts.nameless}
            named = {index: word for index, word in enumerate(facts.rest, 1) if index not in nameless}
            self._words(named, name, at, hidden=hidden)
        self._parts(facts, name, at, hidden=hidden)
        found = Command(
            id=name,
            canonical=facts.canonical,
            words=facts.words,
            short=facts.short if facts.canonical else (),
            form=form,
            touches=tuple(touches),
            patterns=tuple(self._patterns(facts)),
            links="none" if looked else "unknown",
            parts=len(facts.parts),
            refused=facts.refused,
        )
        self.commands.append(found)
        self._in_command = None

    def _parts(self, facts: CommandFacts, command: str, at: _At, *, hidden: bool) -> None:
        for part in facts.parts:
            readable = not hidden and len(part.name) <= _LONGEST_NAME and part.name.isprintable()
            self.command_parts.append(
                CommandPart(
                    id=self._id("parts", at),
                    command=command,
                    kind=part.kind,
                    name=part.name if readable else None,
                    program=part.program,
                    index=part.index,
                    text=None if hidden else part.text,
                )
            )

    def _patterns(self, facts: CommandFacts) -> Iterable[str]:
        """The patterns of a command as rules compare them."""
        for pattern in (one for told in facts.patterns for one in self._resolved(told)):
            plain = _ODD.sub("?", BRACKETS.sub("*", pattern))
            yield from self._placed(_LEADING.sub("**", plain) if self._hidden_too else plain, facts.folders)

    def _placed(self, pattern: str, folders: tuple[str, ...]) -> Iterable[str]:
        """A pattern as absolute ones; without a working folder, only one that begins with `/`."""
        cwd = self._cwd
        bases = [] if cwd is None else [cwd, *(_absolute(self._lexical(folder), cwd) for folder in folders)]
        plain = collapsed(below(pattern))
        return [plain] if plain.startswith("/") else [f"{base.rstrip('/')}/{plain}" for base in bases]

    def _met(self, facts: CommandFacts, touches: dict[str, None], at: _At) -> bool:
        """What the links lead to that patterns may become; whether that could be looked at."""
        looked = True
        resolved = (one for told in facts.patterns for one in self._resolved(told)) if facts.canonical else ()
        for pattern in resolved:
            for one in self._placed(pattern, facts.folders):
                if self._lead(_PATTERN.split(one, maxsplit=1)[0].rpartition("/")[0]).links != "none":
                    continue  # as a word, it was followed so far
                found, count = links_met(one, NAMES - self._looked_up)
                self._looked_up += count
                looked = looked and found is not None
                for path in found or ():
                    looked = self._followed(path, touches, at) and looked
        return looked

    def _names(self, place: str) -> list[str] | None:
        """The names of the folders from the root to the one that a command is in; None if links may lead elsewhere."""
        if self._cwd is None:
            return None
        place = _absolute(place, self._cwd)
        start = self._cwd.rstrip("/") if f"{place}/".startswith(f"{self._cwd}/") else ""
        names = start.split("/")[1:]
        if start and self._lead(start).links != "none":
            return None
        for name in place.removeprefix(start).split("/"):
            if name == "..":
                del names[-1:]
            elif name not in {"", "."}:
                names.append(name)
                if self._lead("/" + "/".join(names)).links != "none":
                    return None
        return names

    def _lexical(self, folder: str) -> str:
        """A folder of a command, as a whole path where it begins above the working folder."""
        return normpath(f"{self._cwd}/{folder}") if self._cwd and folder.startswith("..") else folder

    def _resolved(self, word: str) -> list[str]:
        """A word with `..` at its start, as it is from each folder that its command may be in, if all are certain."""
        if not self._above or None in self._above or _UP.search(word) is None:
            return [word]
        return [_UP.sub(partial(self._up, names or []), word) for names in self._above]

    def _up(self, names: list[str], match: re.Match[str]) -> str:
        """The folder that `..` in a word is, relative where it is below the working folder."""
        path = "".join(f"/{name}" for name in names[: max(0, len(names) - match[0].count(".."))])
        if path == self._cwd:
            return "."
        return path.removeprefix(f"{self._cwd}/") or ("/" if match.end() == len(match.string) else "")

    def _word(self, word: str, command: str, index: int, at: _At, *, host: bool) -> None:
        """The hosts in a word that may be one, its URLs, and the paths that show in one of its parts, each once."""
        found = tuple(url_of(below(part)) for part in parts(word))
        for part in found:
            if not self._room(None, at.level):
                return
            if host and (found_host := whole_host(part, PROGRAM_ENDINGS)) is not None:
                remote = not {"@", ":", " "}.isdisjoint(word)
                self._found([found_host], at, CommandWord(command=command, index=index, label=False, remote=remote))
            self._found(urls(part, PROGRAM_ENDINGS), at)
        for part in dict.fromkeys((*found, *map(below, pieces(without_urls(word, PROGRAM_ENDINGS))))):
            if not self._room(None, at.level):
                return
            escaped = _ESCAPED.match(part) is not None
            visible = undisguised(part).replace("\\", "") if escaped else part
            if looks_like_path(visible) and (escaped or (_PATTERN.search(part) and "://" not in part)):
                for one in dict.fromkeys(part.replace("/**/", depth) for depth in _DEPTHS):
                    self._path("" if escaped or _WIDE.search(one) else BRACKETS.sub("*", one), at)
            elif not escaped:
                self._undeclared_path(part, at)

    def _words(self, words: Mapping[int, str], command: str, at: _At, *, hidden: bool) -> None:
        """The hosts that words may be, each once at its last place; of those that no rule can state, the last."""
        found: dict[tuple[str | None, bool, bool], tuple[int, WordHost]] = {}
        for index, word in words.items():
            named = frozenset(parts(word))
            for piece in host_pieces(without_urls(word, PROGRAM_ENDINGS)):
                known = piece in named and whole_host(piece, PROGRAM_ENDINGS) is not None  # `_word` has listed it
                if (host := word_host(piece)) is not None and not known:
                    host = replace(host, remote=host.remote or is_remote(word))
                    found[(host.facts.origin, host.label, host.remote)] = (index, host)
        for self._place, host in found.values():
            facts = OriginFacts(canonical=False) if hidden else host.facts
            place = CommandWord(command=command, index=self._place, label=host.label, remote=host.remote)
            self._found([facts], at, place)
        self._place = None

    def _touched(
        self, words: Iterable[str], touches: dict[str, None], at: _At | None, folders: tuple[str, ...] = ()
    ) -> bool:
        """What words may name, and what these paths lead to; whether that could be looked at.

        Words that are no whole path count in each of the folders too.
        """
        looked = True
        words = list(words)
        inside = [f"{folder}/{word}" for word in words if word[:1] != "/" for folder in folders]
        for word in (*words, *inside):
            if word.startswith("-") or len(word) > LONGEST:
                continue
            facts = path_facts(collapsed(word), self._cwd)
            if facts.path is not None and facts.path not in touches:
                touches[facts.path] = None
                self._characters += len(facts.path)
                looked = self._followed(facts.path, touches, at) and looked
            if not self._room(None, 1):
                break
        return looked

    def _followed(self, path: str, touches: dict[str, None], at: _At | None) -> bool:
        """The targets of an undeclared path, link by link; whether they could be examined.

        Outside of the working folder it counts like a declared one, at a place `at`; inside it does not count.
        """
        for _ in range(MOST_LINKS):
            found = self._lead(path)
            if found.links != "linked":
                return found.links == "none"
            if found.path is None or not path_facts(found.path, None).canonical:
                break
            path = found.path
            touches[path] = None
            below = self._cwd is not None and f"{path}/".startswith(f"{self._cwd.rstrip('/')}/")
            if not below:
                if at is not None and all(path != listed.path for listed in self.paths):
                    self._path(path, at)
                return True
        if at is not None:
            self._path("", at)
        return True

    def _id(self, kind: str, at: _At) -> str:
        """The place, with a number appended if the same was found there before."""
        key = f"{kind} {at.place}"
        self._ids[key] = self._ids.get(key, 0) + 1
        return at.place if self._ids[key] == 1 else f"{at.place}#{self._ids[key]}"
