"""The facts found in the arguments of a tool call, each with its position.

An `id` is a way such as `arguments/options/url`, never content: what is no plain name is a number there.
What is not canonical has no parts that a rule could compare.
"""

from __future__ import annotations

from typing import Literal

from engine.facts.tools.command_options import Kind
from engine.model import Model

ArgumentType = Literal[
    "text", "value", "data", "url", "host", "path", "command", "argv", "sql_postgres", "sql_mysql", "sql_sqlite"
]
"""How an argument is read. `data` is walked for everything; `text`, `value` and SQL only for secrets.

`argv` is a list of words that the tool runs without a shell; `command` is a text for one, or a list that may become
one.
"""

COVERED = ("value", "sql_postgres", "sql_mysql", "sql_sqlite")
"""The types whose values an allow rule has to cover by conditions."""

Links = Literal["none", "linked", "followed", "unknown"]
"""Whether a path passes a symbolic link; `unknown`: it could not be examined.

`followed`: it is outside of the working folder, only the owner of the system can change it, and the path that it leads
to counts too.
"""

Form = Literal["argv", "text"]
"""A command as a list of words, or as one text."""


class Argument(Model):
    """One argument by its name; `type` is present only if the policy declares one."""

    id: str
    name: str | None = None
    type: ArgumentType | None = None


class CommandWord(Model):
    """A word that may be a host: its position in the command with this id, where the program is 0.

    `label`: as a host, it is a single label, which no rule can name. `remote`: it has a user or a colon, or is
    in a word with spaces, which is a command for another program.
    """

    command: str
    index: int
    label: bool
    remote: bool


class Destination(Model):
    """Where a call would lead; `origin` only when it is canonical, `word` when it may be something else than a host.

    `path` is the path of a URL; only if it has one reading. `command` is the id of the command that it was found in,
    `place` that of its word there.
    """

    id: str
    canonical: bool
    origin: str | None = None
    path: str | None = None
    command: str | None = None
    place: int | None = None
    word: CommandWord | None = None


class FoundPath(Model):
    """A file or folder in its absolute lexical form; `below_cwd` only when it is in the working directory.

    `command` is the id of the command that it was found in, `place` that of its word there.
    """

    id: str
    command: str | None = None
    place: int | None = None
    canonical: bool
    path: str | None = None
    below_cwd: str | None = None
    links: Links = "unknown"


class Command(Model):
    """A simple command: its first known words, the program among them; none, and `refused`, when it cannot be read.

    `short` are the words without the options before a subcommand, if it has any there: for deny and confirm rules.

    `touches` are the absolute paths that its words would be, its program among them. Most are none, so they count
    only for deny and confirm rules. `links`: whether these paths were examined; the targets of links are among them.
    `patterns` are absolute patterns of file names, with `**` for brackets and what follows. `parts` counts its parts.
    """

    id: str
    canonical: bool
    words: tuple[str, ...] | None = None
    short: tuple[str, ...]
    touches: tuple[str, ...]
    patterns: tuple[str, ...]
    links: Literal["none", "unknown"]
    form: Form
    parts: int
    refused: str | None = None


class CommandPart(Model):
    """What a rule has to permit of a command beside the words it names.

    `kind`: an option, a variable that is set, a word or pattern whose value is not known, a script, an unlisted
    subcommand, a redirection into a file, syntax around the command, code that it carries out. `program` is the row of
    policy/commands.yaml that it was read by, `index` the place of its word, `text` a script without secrets.
    """

    id: str
    command: str
    kind: Kind
    name: str | None = None
    program: str | None = None
    index: int
    text: str | None = None
