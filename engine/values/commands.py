"""policy/commands.yaml: what options of programs in commands can do, and which variables and syntax are harmless."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt, StringConstraints
from pydantic_core import InitErrorDetails

from engine.documents.files import printable
from engine.model import Model
from engine.values.fields import Checked, Items, value_error

Ability = Literal["read", "write", "redirect", "connect", "execute", "unknown"]
"""What a part of a command can do beyond what its program is known for."""

Syntax = Literal[
    "and",
    "or",
    "pipe",
    "subshell",
    "group",
    "if",
    "loop",
    "case",
    "substitution",
    "process",
    "time",
    "background",
    "function",
    "arithmetic",
    "expansion",
]
"""What may stand around a command; the last four are not harmless."""

Option = Annotated[str, StringConstraints(pattern=r"^(-#|--?[!-<>-~]+|[!-~]{1,3})$", max_length=64)]
"""An option as it is written, without its value: `-n`, `--include`; `-#` is any number such as `-20`."""

ProgramName = Annotated[str, StringConstraints(pattern=r"^[!-~]+( [!-~]+)*$", max_length=128)]


class Program(Model):
    """One program, or a subcommand of one such as `git log`. What is not listed is `unknown`."""

    operands: (
        Literal["any", "one", "subcommand", "command", "input_command", "script", "shell", "text", "input_text"] | None
    ) = Field(
        default=None,
        description="What words other than options are. `any`: names of files and the like. "
        "`one`: the same, but only one; more words are unknown. `subcommand`: the "
        "first one names a row such as `git log`. `command`: another command, which is judged too. `input_command`: "
        "the same, with more words from the input. `script`: the first one is a script, which one of `scripts` "
        "must match. `shell`: behind an option of `shell`, a text for a shell. `text`: all of them make one text for a "
        "shell. `input_text`: the same, with more words from the input. Without it, words are unknown.",
    )
    also: Items[ProgramName] = Field(default=(), description="Programs and subcommands with the same options.")
    before: Annotated[StrictInt, Field(ge=0, le=4)] = Field(
        default=0, description="Words before the other command or its text, such as the seconds of `timeout`."
    )
    variables: bool = Field(
        default=False, description="Whether words such as `CI=1` set a variable: of the other command, or of `make`."
    )
    letters: bool = Field(
        default=False, description="Whether the first word may be options without a hyphen, as in `tar xzf`."
    )
    prints: bool = Field(
        default=False, description="Whether it starts no shell if no other command follows; its input is then not code."
    )
    none: Items[Option] = Field(default=(), description="Options that can do nothing beyond what the program does.")
    needle: bool = Field(
        default=False,
        description="Whether its first word is a text to look for, which names no file and no host. It is a name if "
        "the command has an option outside of `none`, or a word that is not known.",
    )
    opens: bool = Field(
        default=False,
        description="Whether it only opens or creates the files and folders that its words name, or starts a command, "
        "from the folder in which it is called: `/dev/null`, `/dev/zero`, `/dev/urandom` and the standard streams are "
        "then none, and `..` is the folder above. State it of no program that deletes, replaces or links files.",
    )
    keeps: bool = Field(
        default=False,
        description="Whether neither it nor a later command changes a file because this one names it. It counts for "
        "rules with `only_changes`, in commands that can do nothing but read.",
    )
    unread: bool = Field(
        default=False,
        description="Whether it shows and copies nothing of the content of the files that its words name, but at most "
        "their names and sizes. It counts for rules with `only_contents`, in commands without other abilities whose "
        "output no other command gets.",
    )
    only_reads: bool = Field(
        default=False,
        description="Whether none of its options, listed or not, can do more than read and print. The files that "
        "`find` prints for `xargs` are then words of it, as those of `names` are.",
    )
    counts: bool = Field(
        default=False,
        description="Whether it shows at most sizes, numbers and times of the files that its words name, and lists no "
        "folder. With `only_reads`, `find` may give it any files, and links.",
    )
    shallow: Items[Option] = Field(
        default=(),
        description="Options of `none` with which it shows only the names that its words match, even `..`: `ls -d`.",
    )
    destination: bool = Field(
        default=False,
        description="Whether what is `before` the other command is where it connects to: a user and a host. Anything "
        "else there, such as a URL, is a word that is not known.",
    )
    links: bool = Field(
        default=False, description="Whether it can make links, after which `..` may be another folder than it seems."
    )
    nameless: bool = Field(
        default=False,
        description="Whether its words name no file that it reads or changes, but texts that it prints, or files that "
        "it only asks about. They do where another command gets what it prints, or with an option outside of `none`.",
    )
    texts: Items[Option] = Field(
        default=(), description="Options of `valued` whose value is a text, which names no file and no host: `-m`."
    )
    without_needle: Items[Option] = Field(
        default=(), description="Options that can do nothing, but with which the first word is no text to look for."
    )
    plain: Items[Option] = Field(default=(), description="Options that are `valued` and whose value names no host.")
    moves: Items[Option] = Field(
        default=(),
        description="Options of `valued` that change the folder of the command: `git -C`. Program, option and folder "
        "are then a command of their own, which a rule such as `[git, -C]` has to cover, and the other words another.",
    )
    read: Items[Option] = Field(default=(), description="Options that read files other than those that it works on.")
    write: Items[Option] = Field(default=(), description="Options that write or delete files, or data elsewhere.")
    connect: Items[Option] = Field(default=(), description="Options that change where or how it connects.")
    follow: Items[Option] = Field(
        default=(),
        description="Options that connect to other hosts as well, which an answer names: `--location`. They count as "
        "`connect`, but not where each connection of a command is decided on (`hosts_in_commands: enforced`).",
    )
    execute: Items[Option] = Field(default=(), description="Options that run a program, or code in their value.")
    valued: Items[Option] = Field(default=(), description="Options of the lists above whose value is the next word.")
    glued: Items[Option] = Field(default=(), description="Options of one letter whose value is glued to them: `-j4`.")
    blank: Items[Option] = Field(
        default=(), description="Options whose value is the next word if that is empty: `sed -i '' s/a/b/ x` of BSD."
    )
    single: bool = Field(default=False, description="Whether long options begin with one hyphen: `-name`.")
    any_words: bool = Field(
        default=False,
        description="Whether it is harmless with any words: they may then be unknown, and begin with a hyphen.",
    )
    shell: Items[Option] = Field(
        default=(),
        description="Options behind which a text for a shell follows: `bash -c`. Of those that are `valued` too, it is "
        "the value: `su -c`.",
    )
    rows_by: Items[Option] = Field(
        default=(), description="Options whose value names a row, such as `python -m pytest`."
    )
    program: Items[Option] = Field(
        default=(), description="Options of `valued` whose value is the program of the other command: `--entrypoint`."
    )
    replaces: Items[Option] = Field(
        default=(),
        description="Options of `valued` whose value stands for the input in the words of the other command.",
    )
    runs_until: Items[Option] = Field(
        default=(), description="Options that another command follows, up to `;` or `+`: `-exec`. It is judged too."
    )
    names: Items[Option] = Field(
        default=(),
        description="Options of `valued` that find files by a name or a pattern such as `*.py`. For a command behind "
        "`runs_until` that only reads, `{}` is then a file with such a name below the folders before the options, if "
        "the words have one of `unlinked` too. The name counts as no file where nothing but its place is printed, as "
        "with `nameless`.",
    )
    unlinked: Items[ProgramName] = Field(
        default=(), description="Options with the values that leave out links: `-type f`."
    )
    script_options: Items[Option] = Field(default=(), description="Options whose value is a script.")
    scripts: Items[str] = Field(
        default=(), description="Regular expressions (RE2) of scripts that can do nothing but edit and print."
    )


class Commands(Checked):
    """policy/commands.yaml: what parts of commands can do."""

    programs: Mapping[ProgramName, Program] = Field(
        description="Programs by the name under which they are called. Without a row, each option is `unknown`."
    )
    variables: Items[Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]] = Field(
        description="Variables that a command may set. Any other is `unknown`: many of them make programs run others."
    )
    syntax: Items[Syntax] = Field(description="Syntax that a text for a shell may have. Any other is `unknown`.")

    def _mistakes(self) -> Iterator[InitErrorDetails]:
        named = list(self.programs)
        for name, program in self.programs.items():
            for index, other in enumerate(program.also):
                if other in named:
                    yield value_error(
                        f"`{printable(other)}` has a row already", ("programs", name, "also", index), other
                    )
                named.append(other)
        for name, program in self.programs.items():
            for index, pattern in enumerate(program.scripts):
                if (problem := _pattern_problem(pattern)) is not None:
                    yield value_error(problem, ("programs", name, "scripts", index), pattern)


def _pattern_problem(pattern: str) -> str | None:
    """Why a pattern is refused; RE2 has fewer constructs than Python, so only those of both are admitted."""
    try:
        re.compile(pattern)
    except re.error as error:
        return f"`{printable(pattern)}` is not a regular expression: {error}"
    outside = re.sub(r"\\.|\[[^\]]*\]", "", pattern)
    while (fewer := re.sub(r"\([^()]*\)", "", outside)) != outside:
        outside = fewer
    if not (pattern.startswith("^") and pattern.endswith("$")) or "|" in outside:
        return (
            f"`{printable(pattern)}` does not match a whole script: begin with `^`, end with `$`, put `|` in brackets"
        )
    if re.search(r"\(\?[^:]|\\[1-9]", pattern):
        return (
            f"`{printable(pattern)}` has a construct that the rules cannot match: leave out look-arounds and references"
        )
    return None


def program_rows(commands: Mapping[str, Any]) -> dict[str, Any]:
    """`data.policy.program_rows`: the row of each program, also of those that are named in another one's."""
    programs = commands["programs"]
    return {name: row for program, row in programs.items() for name in (program, *row["also"])}
