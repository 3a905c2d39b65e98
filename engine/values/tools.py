"""policy/tools.yaml: tools, and the policies that grant them, with all checks of the values.

Rules read them through an index by tool: `engine.values.tool_lookup`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt, StringConstraints
from pydantic_core import InitErrorDetails

from engine.documents.files import printable
from engine.facts.tools.argument_facts import COVERED, ArgumentType
from engine.facts.tools.commands import MOST_WORDS, is_prefix
from engine.model import Digest, Model, ToolName
from engine.values.commands import Ability, Option
from engine.values.conditions import Conditions, problems
from engine.values.fields import Checked, Items, Positive, SideEffect, Text, Word, unknown, value_error
from engine.values.hosts import PROBLEM, host_form

Selector = Annotated[
    str, StringConstraints(pattern=r"^(\*|group:[a-z][a-z0-9_]*|[A-Za-z0-9_.-]{1,128}\*?)$", max_length=129)
]
"""The name of a tool, `group:name`, `*` for every tool, or a name prefix that ends with `*`."""


class Tool(Model):
    """One tool. A tool without an entry is hidden and refused everywhere."""

    title: Text = Field(description="Purpose of the tool, in words that an approver understands.")
    side_effects: Annotated[Items[SideEffect], Field(min_length=1)] = Field(
        description="Side effects of a call. `destructive` needs a `reversal`; `execute` runs commands."
    )
    reversal: Items[Literal["environment_reset", "checkpoint_restore", "held_checkpoint"]] = Field(
        description="Ways to undo destructive effects. The environment of the call must offer one of them: the first "
        "two are stated by the caller; `held_checkpoint` is a checkpoint that the engine itself holds."
    )
    arguments: Mapping[Annotated[str, StringConstraints(min_length=1, max_length=128)], ArgumentType] = Field(
        description="Every argument with its type; a call with any other argument is refused. `text` is searched "
        "for secrets only, and so are `value` and SQL, which allow rules have to cover by `where`. `data` is searched "
        "for URLs, hosts, paths, commands and secrets. An argument of any other type must be exactly that."
    )
    reads: Items[Literal["untrusted", "private"]] = Field(
        default=(),
        description="What a call reads: text that anyone may have written, or data that not everyone may see. "
        "Deleting a word admits MORE.",
    )
    sends: Items[Literal["outward"]] = Field(
        default=(), description="Whether a call can send data out. Deleting the word admits MORE."
    )
    hosts_in_commands: Literal["judged", "enforced"] = Field(
        default="judged",
        description="Which hosts in commands allow rules have to cover. `judged`: each word that may be a host, by "
        "its text only. `enforced`: none, because the tool runs in the engine's sandbox, where every connection is "
        "decided on; needs `curated`.",
    )
    secrets: bool = Field(description="Whether arguments may contain passwords, tokens or keys.")
    paths_on: Literal["this_machine", "elsewhere"] = Field(
        description="Machine that paths refer to. On `this_machine` they are looked up: a path through a link is "
        "refused, and a word of a command also counts as the target of a link."
    )
    environments: Items[Word] = Field(description="Environments in which the tool may be registered.")
    curated: Items[Digest] = Field(description="Digests of the implementations that may be registered.")
    definition: Literal["none", "any"] | Digest = Field(
        description="Digest of the only definition with which the tool may be listed and called. `any`: a "
        "definition is required, and arguments must match it. `none`: no definition is required or "
        "read."
    )


class CommandRule(Model):
    """Commands that begin with these words, and what they can do or which options they have beyond."""

    words: Annotated[Items[str], Field(min_length=1)] = Field(description="First words, such as [git, push].")
    can: Items[Ability] | None = Field(
        default=None,
        description="In allow rules: what options, redirections and words behind these may do. Without it, nothing.",
    )
    options: Annotated[Items[Option], Field(min_length=1)] | None = Field(
        default=None,
        description="In deny and confirm rules: only commands with one of these options, or with words or options that "
        "may be one.",
    )


class Rule(Model):
    """One rule of a ruleset. A condition that is left out covers nothing."""

    id: Word = Field(description="Name of the rule; decisions and records show it as `<ruleset>/<id>`.")
    tools: Annotated[Items[Selector], Field(min_length=1)] = Field(
        description="Tools that the rule applies to: names, `group:name`, `*`, or a name prefix that ends with `*`."
    )
    hosts: Literal["any"] | Annotated[Items[str], Field(min_length=1)] | None = Field(
        default=None,
        description="Hosts that it covers, such as docs.example.com, *.example.com, https://api.example.com:8443/v1/ "
        "or 10.0.0.0/8, or `any`: in an allow rule any public host by https.",
    )
    paths: Literal["any"] | Annotated[Items[str], Field(min_length=1)] | None = Field(
        default=None,
        description="Absolute files, folders with a trailing `/`, or patterns such as `**/*.key` that it covers; "
        "`{cwd}/` is the working folder of the call. Or `any`.",
    )
    commands: Literal["any"] | Annotated[Items[Items[str] | CommandRule], Field(min_length=1)] | None = Field(
        default=None,
        description="Commands that it covers, by their first words, such as [git, status]; or a mapping with `words`, "
        "and what they can do beyond. [./] covers the programs below the working folder: `./x`, `bin/x`. Or `any`.",
    )
    can: Items[Ability] | None = Field(
        default=None, description="In allow rules: the `can` of each of its `commands` without one of its own."
    )
    only_changes: bool = Field(
        default=False,
        description="In deny and confirm rules: its `paths` do not count in commands that only read or name them, "
        "those of programs with `keeps` in policy/commands.yaml.",
    )
    only_contents: bool = Field(
        default=False,
        description="In deny and confirm rules: its `paths` do not count in commands that show and copy nothing of the "
        "content of files, those of programs with `unread` in policy/commands.yaml.",
    )
    where: Annotated[Mapping[str, Conditions], Field(min_length=1)] | None = Field(
        default=None,
        description="Conditions on arguments by their names, or `any`. An allow rule has to cover every argument of "
        "type `value` and of SQL; another rule matches unless one of its conditions is shown not to hold.",
    )


class Ruleset(Model):
    """Rules in three sections; deny is tried first, then confirm, then allow; the first match decides."""

    deny: Items[Rule] = Field(
        description="Rules that refuse: without conditions, every call of the tool; with conditions, a call with "
        "any covered host, path or command."
    )
    confirm: Items[Rule] = Field(description="Rules that require a person's approval. They match like `deny` rules.")
    allow: Items[Rule] = Field(
        description="Rules that allow a call if they cover all of its hosts, paths and commands."
    )


class Policy(Model):
    """A tool policy that calls may name."""

    base: Literal["deny_all", "confirm_all", "deny_all_visible"] = Field(
        description="Decision if no rule matches. `deny_all`: hidden and denied. `confirm_all`: visible, and a "
        "person must approve. `deny_all_visible`: visible and denied."
    )
    rulesets: Items[Word] = Field(description="Rulesets of the policy, in order.")
    principals: Literal["any"] | Items[Text] = Field(description="Principals that may use the policy, or `any`.")


class WordsWithoutHosts(Model):
    """Command prefixes after which words that look like hosts are not hosts."""

    all: Items[Items[str]] = Field(description="Command prefixes after which no word is a host.")
    plain: Items[Items[str]] = Field(
        description="Command prefixes after which no word is a host, unless it contains a colon, an `@` or a space."
    )
    next: Items[Items[str]] = Field(
        description="Command prefixes after which the next word is not a host; later words are judged as usual."
    )


class Arguments(Model):
    """Limits of the arguments of one call."""

    bytes: Positive = Field(
        description="Maximum size of all arguments as JSON, in bytes. Larger arguments are refused."
    )
    depth: Positive = Field(
        description="Maximum nesting of lists and mappings, JSON inside text included. Deeper arguments are refused."
    )
    values: Positive = Field(description="Maximum number of values, counted at every level. More are refused.")


class ToolLimits(Model):
    """Limits of one call."""

    seconds: Annotated[StrictInt, Field(ge=1, le=3_600)] = Field(description="Timeout of a call, in seconds.")
    result_bytes: Positive = Field(
        description="Maximum size of a result, in bytes. A larger result is cut and marked as truncated."
    )
    prompt_bytes: Positive = Field(
        description="Maximum size of all results in one prompt, in bytes. Older results are removed from the prompt "
        "beyond it."
    )
    arguments: Arguments = Field(description="Maximum size of the arguments of a call.")


Row = tuple[str | int, ...]
GROUP = "group:"
LONGEST, PARTS, MOST_STARS = 1_024, 32, 8
"""Characters, parts and stars of a path in a rule; rules look at no more folders of a path."""

CWD, FOLDER = "{cwd}", "{cwd}/"
"""The working folder of a call, and the prefix of a path below it."""

BELOW = "./"
"""The word of a command rule for the programs that are called by a path below the working folder."""

_PATH = re.compile(r"[ -~]+")  # letter case is compared, so ASCII only
_WORD = re.compile(r"[!-~]+")


class Tools(Checked):
    """policy/tools.yaml: what an agent may see and call."""

    tools: Mapping[ToolName, Tool] = Field(description="Tools by name. A tool without a row is hidden and refused.")
    groups: Mapping[Word, Annotated[Items[Selector], Field(min_length=1)]] = Field(
        description="Names for several tools. A group may contain groups."
    )
    profiles: Mapping[Word, Items[Selector]] = Field(
        description="Tools that each kind of agent may use, within what the policy of the call grants. An empty "
        "list grants none."
    )
    rulesets: Mapping[Word, Ruleset] = Field(description="Rulesets by the name under which policies include them.")
    policies: Mapping[Word, Policy] = Field(
        description="Tool policies that calls may name. Any other name is decided as `deny_all`."
    )
    flows: Items[Items[Literal["untrusted", "private", "outward"]]] = Field(
        description="What one run may touch together, by `reads` and `sends` of its tools, without a person. The call "
        "after which a run has touched more waits for approval."
    )
    words_without_hosts: WordsWithoutHosts = Field(
        description="Command prefixes after which words that look like hosts are not hosts. All other words count "
        "as both."
    )
    plain_sql_functions: Items[str] = Field(description="Functions of SQL, in lower case, that no rule has to name.")
    limits: ToolLimits = Field(description="Limits of each call.")

    def _mistakes(self) -> Iterator[InitErrorDetails]:
        lists: list[tuple[Row, Sequence[str]]] = [(("groups", name), held) for name, held in self.groups.items()]
        lists += [(("profiles", name), held) for name, held in self.profiles.items()]
        lists += [((*path, "tools"), rule.tools) for path, rule in rules(self)]
        for path, selectors in lists:
            yield from _unknown_tools(self, path, selectors)
        yield from _cycles(self)
        for name, tool in self.tools.items():
            if tool.hosts_in_commands == "enforced" and not tool.curated:
                message = "needs `curated`: only a reviewed implementation is known to run in the sandbox"
                yield value_error(message, ("tools", name, "hosts_in_commands"), "enforced")
        for name, policy in self.policies.items():
            for index, ruleset in enumerate(policy.rulesets):
                yield from unknown("ruleset", ruleset, self.rulesets, ("policies", name, "rulesets", index))
        yield from _doubled(self)
        for path, rule in rules(self):
            yield from _conditions(path, rule)
            yield from _changes(path, rule)
            yield from _where(self, path, rule)
        for which, beginnings in self.words_without_hosts:
            for index, words in enumerate(beginnings):
                if (problem := _command_problem(words)) is not None:
                    yield value_error(problem, ("words_without_hosts", which, index), words)


def stated_commands(rule: Mapping[str, Any]) -> Any:
    """The `commands` of a rule as JSON, each with the `can` of the rule unless it states its own."""
    commands, can = rule["commands"], rule.get("can")
    if can is None or commands == "any":
        return commands
    return [{"can": can, **one} if isinstance(one, dict) else {"words": one, "can": can} for one in commands]


def rules(tools: Tools) -> Iterator[tuple[Row, Rule]]:
    """Every rule with its path."""
    for name, ruleset in tools.rulesets.items():
        for section in type(ruleset).model_fields:
            for index, rule in enumerate(getattr(ruleset, section)):
                yield ("rulesets", name, section, index), rule


def _unknown_tools(tools: Tools, path: Row, selectors: Sequence[str]) -> Iterator[InitErrorDetails]:
    for index, selector in enumerate(selectors):
        if selector.startswith(GROUP):
            yield from unknown("group", selector.removeprefix(GROUP), tools.groups, (*path, index))
        elif not selector.endswith("*"):
            yield from unknown("tool", selector, tools.tools, (*path, index))


def selected_tools(selector: str, tools: Iterable[str], groups: Mapping[str, Sequence[str]]) -> set[str]:
    """The tools that a selector means; groups may contain groups, and themselves by mistake."""
    stated = _reached(selector, groups)
    beginnings = tuple(one.removesuffix("*") for one in stated if one.endswith("*"))
    return {name for name in tools if name in stated or name.startswith(beginnings)}


def _reached(selector: str, groups: Mapping[str, Sequence[str]]) -> set[str]:
    """A selector and all those of the groups that it names, at any depth."""
    found: set[str] = set()
    waiting = [selector]
    while waiting:
        if (one := waiting.pop()) not in found:
            found.add(one)
            waiting += groups.get(one.removeprefix(GROUP), ()) if one.startswith(GROUP) else ()
    return found


def _cycles(tools: Tools) -> Iterator[InitErrorDetails]:
    for name, held in tools.groups.items():
        for index, selector in enumerate(held):
            if f"{GROUP}{name}" in _reached(selector, tools.groups):
                message = f"group `{name}` contains itself through `{selector}`: remove it from one of them"
                yield value_error(message, ("groups", name, index), selector)


def _doubled(tools: Tools) -> Iterator[InitErrorDetails]:
    seen: set[tuple[str | int, str]] = set()
    for path, rule in rules(tools):
        if (path[1], rule.id) in seen:
            yield value_error(f"`{rule.id}` is already the id of another rule in this ruleset", (*path, "id"), rule.id)
        seen.add((path[1], rule.id))


def _changes(path: Row, rule: Rule) -> Iterator[InitErrorDetails]:
    for name in ("only_changes", "only_contents"):
        if getattr(rule, name) and (path[2] == "allow" or rule.paths is None):
            message = f"use `{name}` in deny and confirm rules with `paths` only"
            yield value_error(message, (*path, name), rule.id)


def _conditions(path: Row, rule: Rule) -> Iterator[InitErrorDetails]:
    if path[2] != "allow" and [rule.hosts, rule.paths, rule.commands].count(None) == 1:
        message = (
            "use one of `hosts`, `paths` and `commands`, all three, or none: with two, removing one would admit more"
        )
        yield value_error(message, path, rule.id)
    if rule.can is not None and (path[2] != "allow" or not isinstance(rule.commands, tuple)):
        yield value_error("use `can` in allow rules with a list of `commands` only", (*path, "can"), rule.can)
    for index, one in enumerate(rule.commands if isinstance(rule.commands, tuple) else ()):
        if isinstance(one, CommandRule) and (one.can if path[2] != "allow" else one.options) is not None:
            message = "use `can` in allow rules only, and `options` in deny and confirm rules only"
            yield value_error(message, (*path, "commands", index), one.words)
    if path[2] != "allow" and isinstance(rule.paths, tuple) and CWD in rule.paths:
        yield value_error(f"write `{FOLDER}`: it covers the folder itself too", (*path, "paths"), CWD)
    for condition, problem in _PROBLEMS.items():
        if isinstance(covered := getattr(rule, condition), tuple):
            for index, one in enumerate(covered):
                if (fault := problem(one)) is not None:
                    yield value_error(fault, (*path, condition, index), one)


def _where(tools: Tools, path: Row, rule: Rule) -> Iterator[InitErrorDetails]:
    named = {tool for selector in rule.tools for tool in selected_tools(selector, tools.tools, tools.groups)}
    for argument, stated in (rule.where or {}).items():
        at = (*path, "where", argument)
        types = {tool: tools.tools[tool].arguments.get(argument) for tool in sorted(named)}
        without = [tool for tool, kind in types.items() if kind is None]
        if without:
            yield value_error(f"the tool `{without[0]}` has no argument `{printable(argument)}`", at, argument)
            continue
        found = {tool: kind for tool, kind in types.items() if kind is not None}
        yield from (value_error(one, at, argument) for one in _where_problems(stated, found, allow=path[2] == "allow"))


def _where_problems(stated: Conditions, types: Mapping[str, ArgumentType], *, allow: bool) -> Iterator[str]:
    fit = COVERED if allow else ("text", "data", *COVERED)
    for kind in sorted({kind for kind in types.values() if kind not in fit}):
        yield f"an argument of type `{kind}` has no conditions here: {_INSTEAD.get(kind, _DECLARE)}"
    if stated == "any" and not allow:
        yield "`any` is for allow rules: leave the argument out"
    yield from problems(stated, types, allow=allow)


_DECLARE = "declare it as `value`, so that every allow rule has to cover it"
_INSTEAD = {kind: f"use `{kind}s`" for kind in ("host", "path", "command")} | {
    "url": "use `hosts`",
    "argv": "use `commands`",
}


def _host_problem(host: str) -> str | None:
    return None if host_form(host) is not None else f"`{printable(host)}` is not a host: {PROBLEM}"


def _path_problem(path: str) -> str | None:
    if path == CWD:
        return None
    rest = path.removeprefix(FOLDER)
    rooted = rest != path or path.startswith(("/", "**/"))
    segments = (rest if rest != path or path.startswith("**/") else path[1:]).split("/")
    plain = len(path) <= LONGEST and _PATH.fullmatch(path) is not None and not set(rest) & set("\\%~{}?[]")
    stars = all("**" not in segment or segment == "**" for segment in segments) and path.count("*") <= MOST_STARS
    fine = all(segments[:-1]) and len(segments) <= PARTS and not {".", ".."} & set(segments) and segments[-1] != "**"
    if rooted and plain and fine and stars and not ("*" in path and path.endswith("/")):
        return None
    return (
        f"`{printable(path)}` is not an absolute path in canonical form: start with `/` or `{FOLDER}`, end folders "
        f"with `/`, at most {PARTS} parts, none empty, `.` or `..`, no `\\`, `%`, `~`, braces or letters beyond ASCII; "
        "a folder covers everything in it, and in the name of a file `*` is any characters, `**` any folders: "
        f"`**/*.key`, `{FOLDER}docs/*.md`; there is no `?` and no `[a]`"
    )


def _command_problem(rule: Sequence[str] | CommandRule) -> str | None:
    words = rule.words if isinstance(rule, CommandRule) else rule
    plain = all(_WORD.fullmatch(word) for word in words) and "*" not in words
    if tuple(words) == (BELOW,) or (plain and is_prefix(words)):
        return None
    return (
        f"a command is 1 to {MOST_WORDS} words without blanks and without `;`, `&`, `|`, `<`, `>`, `$` or backticks, "
        f"such as [git, status], or [{BELOW}] for programs below the working folder; it covers all longer commands, so "
        "`*` is not needed"
    )


_PROBLEMS: dict[str, Callable[[Any], str | None]] = {
    "hosts": _host_problem,
    "paths": _path_problem,
    "commands": _command_problem,
}
