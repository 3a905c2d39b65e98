"""policy/tools.yaml: the tools there are, and which of them may be seen and called, by whom, on what.

What the rules read of it is looked up by tool, not searched: `engine.values.tool_lookup`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictInt, StringConstraints, ValidationError, model_validator

from engine.model import Digest, Model
from engine.values.fields import Items, Text, Word
from engine.values.tool_checks import errors

ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]

Selector = Annotated[
    str, StringConstraints(pattern=r"^(\*|group:[a-z][a-z0-9_]*|[A-Za-z0-9_.-]{1,128}\*?)$", max_length=129)
]
"""The name of a tool, `group:name`, `*` for every tool, or the beginning of names with one `*` at its end."""

ArgumentType = Literal["text", "data", "url", "host", "path", "command"]
Positive = Annotated[StrictInt, Field(ge=1, le=1 << 31)]


class Tool(Model):
    """One tool. A tool without an entry is hidden and refused everywhere."""

    title: Text = Field(description="What it does, in words that a person who is asked to approve understands.")
    side_effects: Annotated[
        Items[Literal["none", "read", "write", "network", "execute", "destructive"]], Field(min_length=1)
    ] = Field(
        description="What calling it may do to the world; `destructive` needs a way back, `execute` runs commands."
    )
    reversal: Items[Literal["environment_reset", "checkpoint_restore"]] = Field(
        description="What can undo its destructive effects, where the environment of the call offers it."
    )
    arguments: Mapping[Annotated[str, StringConstraints(min_length=1, max_length=128)], ArgumentType] = Field(
        description="Every argument and how it is read; a call with an argument that is not here is refused. `text`: "
        "only secrets are looked for. `data`: URLs, hosts, paths, commands and secrets are. The others: exactly that."
    )
    secrets: bool = Field(description="Whether arguments may hold what looks like a password, token or key.")
    paths_on: Literal["this_machine", "elsewhere"] = Field(
        description="Where its paths lead. On `this_machine` they are looked at: a path over a link is refused, and a "
        "word of a command counts as what a link leads to too."
    )
    environments: Items[Word] = Field(description="The environments in which it may be registered.")
    curated: Items[Digest] = Field(description="Digests of the implementations that may be registered.")
    definition: Literal["none", "any"] | Digest = Field(
        description="The digest of the only definition it may be listed and called with. `any`: some definition has to "
        "be brought, and arguments have to fit it. `none`: none is asked for, and none is looked at."
    )


class Rule(Model):
    """One rule of a ruleset. A condition that is left out covers nothing."""

    id: Word = Field(description="Its name; decisions and records say `<ruleset>/<id>`.")
    tools: Annotated[Items[Selector], Field(min_length=1)] = Field(
        description="The tools it speaks of: names, `group:name`, `*`, or the beginning of names with `*` at its end."
    )
    hosts: Literal["any"] | Annotated[Items[str], Field(min_length=1)] | None = Field(
        default=None, description="Exact origins that it covers, such as https://docs.example.com, or `any`."
    )
    paths: Literal["any"] | Annotated[Items[str], Field(min_length=1)] | None = Field(
        default=None,
        description="Absolute files, or folders with `/` at their end, that it covers; `{cwd}/` begins one below the "
        "working folder of the call. Or `any`.",
    )
    commands: Literal["any"] | Annotated[Items[Items[str]], Field(min_length=1)] | None = Field(
        default=None, description="The first words of commands that it covers, such as [git, status], or `any`."
    )


class Ruleset(Model):
    """Rules in three sections; deny is asked first, then confirm, then allow, and the first match decides."""

    deny: Items[Rule] = Field(
        description="Refused: the tool by its name alone, or a call with some host, path or command that is covered."
    )
    confirm: Items[Rule] = Field(description="Asks a person; matches as `deny` does.")
    allow: Items[Rule] = Field(description="Allowed, when every host, path and command of the call is covered.")


class Policy(Model):
    """A tool policy that calls may name."""

    base: Literal["deny_all", "confirm_all", "deny_all_visible"] = Field(
        description="What holds where no rule matches. `deny_all`: hidden and denied. `confirm_all`: shown, and a "
        "person is asked. `deny_all_visible`: shown and denied."
    )
    rulesets: Items[Word] = Field(description="The rulesets laid over it, in this order.")
    principals: Literal["any"] | Items[Text] = Field(description="Who may ask under it: names of principals, or `any`.")


class WordsWithoutHosts(Model):
    """Beginnings of commands of which words that may be a host or something else are no hosts."""

    all: Items[Items[str]] = Field(description="None of the words that follow is a host.")
    plain: Items[Items[str]] = Field(
        description="None that follow is one unless it has a colon or an `@`, or stands in a word with blanks."
    )
    next: Items[Items[str]] = Field(description="The word that follows is none; the ones behind it may be hosts.")


class Arguments(Model):
    """How large the arguments of one call may be."""

    bytes: Positive = Field(description="Bytes of all arguments as JSON.")
    depth: Positive = Field(description="Levels of lists and mappings, JSON inside texts included.")
    values: Positive = Field(description="Values, counted at every level.")


class ToolLimits(Model):
    """What one call may use."""

    seconds: Annotated[StrictInt, Field(ge=1, le=3_600)] = Field(description="How long a call may run.")
    result_bytes: Positive = Field(description="Bytes of a result; more is cut and marked as truncated.")
    prompt_bytes: Positive = Field(
        description="Bytes of all results in one prompt; older ones are pruned from its view."
    )
    arguments: Arguments = Field(description="How large its arguments may be.")


class Tools(Model):
    """policy/tools.yaml: what an agent may see and call."""

    tools: Mapping[ToolName, Tool] = Field(description="Every tool by its name. No row: hidden and refused.")
    groups: Mapping[Word, Annotated[Items[Selector], Field(min_length=1)]] = Field(
        description="Names for several tools; a group may hold groups."
    )
    profiles: Mapping[Word, Items[Selector]] = Field(
        description="What an agent with this profile may see and call, of what its policy grants. Empty: nothing."
    )
    rulesets: Mapping[Word, Ruleset] = Field(description="Rules by the name under which policies use them.")
    policies: Mapping[Word, Policy] = Field(description="The tool policies that calls may name. No row: deny_all.")
    words_without_hosts: WordsWithoutHosts = Field(
        description="Commands whose words are no hosts where they might be. All other words count as both."
    )
    limits: ToolLimits = Field(description="Ceilings for every call.")

    @model_validator(mode="after")
    def _names_and_values_fit(self) -> Tools:
        if found := list(errors(self)):
            raise ValidationError.from_exception_data("Tools", found)
        return self
