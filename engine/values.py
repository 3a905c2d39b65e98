"""The values in `policy/`: one closed model a document, `DOCUMENTS` names them all.

A value widens only by its presence: a document, row or list entry that is missing admits nothing.
Field descriptions become the JSON Schemas that editors show. Errors name the path of the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import Field, StrictInt, StringConstraints, ValidationError, model_validator
from pydantic.types import Strict
from pydantic_core import InitErrorDetails, PydanticCustomError

from engine.facts.licenses import canonical_key
from engine.model import Model

T = TypeVar("T")

Items = Annotated[tuple[T, ...], Strict(strict=False)]
"""A YAML list; frozen like everything else."""

Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
"""A name of ours: lower case, digits, underscores."""

Text = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Verdict = Literal["admit", "review", "refuse"]
Purpose = Literal["train", "eval", "tool", "environment"]


class Category(Model):
    """What the licenses of one kind allow for each use; the stricter of row and category wins."""

    title: Text = Field(description="What these licenses have in common, for people.")
    train: Verdict = Field(description="Training a model on the material.")
    eval: Verdict = Field(description="Measuring a model or agent with the material, inside the organization.")
    tool: Verdict = Field(description="Making the material a part of a tool that agents call.")
    environment: Verdict = Field(description="Building an environment from the material that agents act in.")
    export: Literal["admit", "review", "refuse", "listed"] = Field(
        description="Giving the result to others. `listed`: only under the licenses in the row's `export_under`."
    )


class License(Model):
    """The decision on one license."""

    category: Word = Field(description="The kind of license: a name under `categories`.")
    decision: Verdict = Field(description="The organization's decision on this license, whatever the use.")
    export_under: Items[str] = Field(
        default=(),
        description="SPDX ids under which a result may be given to others; where the category exports `listed`.",
    )
    note: Text | None = Field(default=None, description="Why, or what to keep in mind, for people.")


class Licenses(Model):
    """policy/licenses.yaml: which licenses are admitted, for which use, and for which export."""

    categories: Mapping[Word, Category] = Field(description="Kinds of licenses and what each allows.")
    licenses: Mapping[str, License] = Field(
        description="Decisions by SPDX id, `LicenseRef-…`, or `<id> WITH <exception>`. No row: not admitted."
    )

    @model_validator(mode="after")
    def _rows_fit(self) -> Licenses:
        errors = [error for key, row in self.licenses.items() for error in self._row_errors(key, row)]
        if errors:
            raise ValidationError.from_exception_data("Licenses", errors)
        return self

    def _row_errors(self, key: str, row: License) -> Iterable[InitErrorDetails]:
        yield from _id_errors(key, ("licenses", key))
        for index, name in enumerate(row.export_under):
            yield from _id_errors(name, ("licenses", key, "export_under", index))
        category = self.categories.get(row.category)
        if category is None:
            known = ", ".join(f"`{name}`" for name in self.categories)
            yield _error(
                f"no category `{row.category}`: use one of {known}", ("licenses", key, "category"), row.category
            )
        elif category.export == "listed" and not row.export_under:
            yield _error(
                f"`export_under` is missing: category `{row.category}` exports only under the licenses listed there",
                ("licenses", key),
                key,
            )
        elif category.export != "listed" and "export_under" in row.model_fields_set:
            yield _error(
                f"`export_under` has no effect: category `{row.category}` does not export `listed`, remove it",
                ("licenses", key, "export_under"),
                key,
            )


class Levels(Model):
    """policy/levels.yaml: what a finding does to the outcome; a code without a row denies."""

    levels: Mapping[Word, Mapping[Word, Literal["deny", "confirm", "warn"]]] = Field(
        description="By decision point, then by code. `confirm`: a person must approve; `warn`: only told."
    )


class Sandbox(Model):
    """policy/sandbox.yaml: the sandbox that a source bundle must at least ask for."""

    generated_code: Items[Literal["disabled", "sandboxed"]] = Field(
        description="What a source bundle may say about running generated code."
    )
    filesystem: Mapping[Word, Items[Literal["kernel", "supervised", "bounded"]]] = Field(
        description="File system boundaries that are admitted, and who must be shown to hold each on this machine."
    )
    redaction: Literal[True] = Field(description="Secret redaction; it cannot be switched off.")
    network: Items[Word] = Field(description="Networks that the sandbox of a source bundle may have.")


class Sources(Model):
    """policy/sources.yaml: what a source bundle and its records may be."""

    purposes: Items[Purpose] = Field(description="Uses for which source bundles are admitted.")
    kinds: Items[Literal["fixture", "external", "synthetic", "transformed"]] = Field(
        description="Kinds of records that are admitted."
    )
    retention_bases: Items[Word] = Field(description="Grounds on which a record may be kept.")


class Networks(Model):
    """policy/networks.yaml: how an address on the network must look."""

    schemes: Items[Word] = Field(description="URL schemes from which material may come.")
    ports: Items[Annotated[StrictInt, Field(ge=1, le=65535)]] = Field(description="Ports that may be asked.")


class Callers(Model):
    """policy/callers.yaml: who may ask for decisions, and about which points."""

    unscoped: Items[Literal["process", "loopback", "shared_token", "control"]] = Field(
        description="Ways of asking that need no list of points. A scoped token always carries its own."
    )
    certificates: Mapping[str, Items[Word]] = Field(
        description="Decision points by subject of a client certificate, such as `CN=pipeline,O=Example`."
    )


class Ceiling(Model):
    """How many enforced allows there may be in one window."""

    limit: Annotated[StrictInt, Field(ge=0)] = Field(description="How many may be allowed.")
    window_seconds: Annotated[StrictInt, Field(ge=0)] = Field(
        description="The count begins again after so many seconds, counted from 1970; 0: never."
    )


class Budget(Model):
    """The ceilings of one decision point; a point with one of the three missing allows nothing."""

    principal: Literal["unlimited"] | Ceiling = Field(description="For each principal alone.")
    run: Literal["unlimited"] | Ceiling = Field(description="For each run alone.")
    all: Literal["unlimited"] | Ceiling = Field(description="For all callers together.")


class Budgets(Model):
    """policy/budgets.yaml: how often something may be allowed."""

    budgets: Mapping[Word, Budget] = Field(description="By decision point; a point without a row allows nothing.")


class Approvals(Model):
    """policy/approvals.yaml: how long a person has to approve, and the approval holds."""

    valid_seconds: Annotated[StrictInt, Field(ge=1, le=2_678_400)] = Field(
        description="Seconds from the request for approval to the moment after which it no longer counts."
    )


class Profile(Model):
    """What a way of running the engine may and must do."""

    payload_detail: bool = Field(description="Whether logs may hold whole payloads; only in a controlled environment.")
    retention_days_min: Annotated[StrictInt, Field(ge=0)] = Field(description="Days that a record must be kept.")
    static_capabilities: bool = Field(description="Whether capabilities that were not probed may be relied on.")


class Operations(Model):
    """policy/operations.yaml: how the engine itself is run."""

    profile: Word = Field(description="The profile in force: a name under `profiles`.")
    profiles: Mapping[Word, Profile] = Field(description="The profiles there are.")

    @model_validator(mode="after")
    def _profile_exists(self) -> Operations:
        if self.profile not in self.profiles:
            known = ", ".join(f"`{name}`" for name in self.profiles)
            error = _error(f"no profile `{self.profile}`: use one of {known}", ("profile",), self.profile)
            raise ValidationError.from_exception_data("Operations", [error])
        return self


Held = Items[Literal["kernel", "supervised", "bounded"]]
"""Who may hold a boundary."""

Origin = Annotated[str, StringConstraints(pattern=r"^https?://[a-z0-9.:\[\]-]+$", max_length=300)]
"""Scheme and host, and the port where it is not the usual one; no path."""


class Backend(Model):
    """A place where runs take place."""

    host: Literal["runner", "remote"] = Field(
        description="`runner`: on the machine of the runner itself, which has no network control of one run alone."
    )


class Harness(Model):
    """An agent program that runs are made with."""

    custom_tools: Literal["native", "mcp"] = Field(description="How the tools of a run get to it.")


class ProvenBoundary(Model):
    """What has to be shown before a declared boundary counts."""

    boundary: Word = Field(description="The boundary as a backend's proof names it.")
    held_by: Held = Field(description="Who may hold it.")


class ToolKind(Model):
    """Tools whose calls all go the same way."""

    runs_on: Literal["runner", "sandbox", "client"] = Field(description="Where calls of these tools are carried out.")


class Listeners(Model):
    """Where a listener may be bound, and what has to guard it."""

    addresses: Items[Literal["loopback", "unspecified", "private", "shared", "link_local", "name", "global"]] = Field(
        description="Addresses that may be bound at all, by who can reach them; `name` is any host name."
    )
    unguarded: Items[Literal["loopback"]] = Field(description="Addresses that may be bound without any guard.")
    guards: Items[Literal["shared_token", "tokens", "mutual_tls"]] = Field(
        description="What counts as a guard of the other addresses."
    )


class RunnerUri(Model):
    """Which runners may be used."""

    default: Annotated[str, StringConstraints(pattern=r"^https?://[^?#@\s]+$", max_length=2_048)] = Field(
        description="The address of the runner that is used when no other one is asked for."
    )
    allowlist: Items[Origin] = Field(description="Origins of the runners that may be asked for.")


class Runners(Model):
    """policy/runners.yaml: where agent runs may take place, with what, and how runners are reached."""

    backends: Mapping[Word, Backend] = Field(description="Places where runs may take place. No row: refused.")
    default_backend: Word = Field(description="The backend of a run that names none.")
    harnesses: Mapping[Word, Harness] = Field(description="Harnesses that runs may be made with. No row: refused.")
    tool_delivery: Items[Literal["native", "mcp"]] = Field(
        description="Ways by which the runner can get custom tools to a harness."
    )
    mcp_transports: Items[Literal["stdio", "http"]] = Field(description="Transports of MCP servers that may be used.")
    tools: Mapping[Literal["gateway", "callback", "client"], ToolKind] = Field(
        description="Kinds of custom tools that may be used. No row: refused. Code tools cannot have one."
    )
    enforcements: Items[Literal["strict", "best_effort"]] = Field(
        description="How boundaries may be declared to be held. Neither word stands in for a proof."
    )
    runner_host_tools: Items[Literal["best_effort", "undeclared"]] = Field(
        description="Enforcement under which a run on a remote backend may have tools on the runner's own machine."
    )
    permission_policies: Items[Word] = Field(description="Ways of permitting tool calls that a run may ask for.")
    default_permission_policy: Word = Field(description="The way of a run that states none; it may carry no tools.")
    boundaries: Mapping[Literal["network", "filesystem"], ProvenBoundary] = Field(
        description="What has to be shown of a backend before a run may declare the boundary."
    )
    endpoints: Items[Origin] = Field(description="Origins that a runner may post to during a run, with its tokens.")
    uri: RunnerUri = Field(description="Addresses of runners.")
    listeners: Listeners = Field(description="Listeners of a runner.")


DOCUMENTS: Mapping[str, type[Model]] = {
    "approvals": Approvals,
    "budgets": Budgets,
    "callers": Callers,
    "levels": Levels,
    "licenses": Licenses,
    "networks": Networks,
    "operations": Operations,
    "runners": Runners,
    "sandbox": Sandbox,
    "sources": Sources,
}
"""The documents of `policy/` by file name; `policy/<name>.yaml` is `data.policy.<name>` in Rego."""


def _id_errors(text: str, path: tuple[str | int, ...]) -> Iterable[InitErrorDetails]:
    key = canonical_key(text)
    if key is None:
        yield _error(
            f"`{text}` names no license: use one SPDX id, alone or WITH an SPDX exception, or `LicenseRef-…`",
            path,
            text,
        )
    elif key != text:
        yield _error(f"`{text}` is never matched: SPDX spells it `{key}`", path, text)


def _error(message: str, path: tuple[str | int, ...], value: object) -> InitErrorDetails:
    # Braces would be read as placeholders by pydantic.
    error = PydanticCustomError("policy_value", "{message}", {"message": message})
    return InitErrorDetails(type=error, loc=path, input=value)
