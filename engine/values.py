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


DOCUMENTS: Mapping[str, type[Model]] = {
    "levels": Levels,
    "licenses": Licenses,
    "networks": Networks,
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
