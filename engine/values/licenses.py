"""policy/licenses.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from engine.facts.licenses import canonical_key
from engine.model import Model
from engine.values.fields import Items, Text, Word, value_error

Verdict = Literal["admit", "review", "refuse"]


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
            yield value_error(
                f"no category `{row.category}`: use one of {known}", ("licenses", key, "category"), row.category
            )
        elif category.export == "listed" and not row.export_under:
            yield value_error(
                f"`export_under` is missing: category `{row.category}` exports only under the licenses listed there",
                ("licenses", key),
                key,
            )
        elif category.export != "listed" and "export_under" in row.model_fields_set:
            yield value_error(
                f"`export_under` has no effect: category `{row.category}` does not export `listed`, remove it",
                ("licenses", key, "export_under"),
                key,
            )


def _id_errors(text: str, path: tuple[str | int, ...]) -> Iterable[InitErrorDetails]:
    key = canonical_key(text)
    if key is None:
        yield value_error(
            f"`{text}` names no license: use one SPDX id, alone or WITH an SPDX exception, or `LicenseRef-…`",
            path,
            text,
        )
    elif key != text:
        yield value_error(f"`{text}` is never matched: SPDX spells it `{key}`", path, text)
