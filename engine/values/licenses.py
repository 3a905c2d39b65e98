"""policy/licenses.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import Field
from pydantic_core import InitErrorDetails

from engine.facts.licenses import alias_key, canonical_key
from engine.model import Model
from engine.values.fields import Checked, Items, Text, Word, unknown, value_error

Verdict = Literal["admit", "review", "refuse"]


class Category(Model):
    """Decisions on one kind of licenses for each use; the stricter of row and category wins."""

    title: Text = Field(description="Short name for people.")
    train: Verdict = Field(description="Decision on training a model with the material.")
    eval: Verdict = Field(
        description="Decision on evaluating a model or agent with the material, inside the organization."
    )
    tool: Verdict = Field(description="Decision on making the material part of a tool that agents call.")
    environment: Verdict = Field(description="Decision on building an environment for agents from the material.")
    export: Literal["admit", "review", "refuse", "listed"] = Field(
        description="Decision on sharing results with others. `listed`: only under the licenses in the row's "
        "`export_under`."
    )


class License(Model):
    """The decision on one license."""

    category: Word = Field(description="Category of the license: a name under `categories`.")
    decision: Verdict = Field(
        description="Decision on this license for every use. The stricter of this and the category's decision applies."
    )
    export_under: Items[str] = Field(
        default=(),
        description="SPDX ids of licenses under which results may be shared. Only for categories that export `listed`.",
    )
    note: Text | None = Field(default=None, description="Reason or remark, for people.")


class Licenses(Checked):
    """policy/licenses.yaml: which licenses are admitted, for which use, and for which export."""

    categories: Mapping[Word, Category] = Field(description="Categories of licenses, with the decision on each use.")
    licenses: Mapping[str, License] = Field(
        description="Decisions by SPDX id, `LicenseRef-…`, or `<id> WITH <exception>`. A license without a row is "
        "refused."
    )

    aliases: Mapping[str, str] = Field(
        description="Other spellings of SPDX ids: in lower case, URLs without `https://` and trailing slash."
    )

    def _mistakes(self) -> Iterable[InitErrorDetails]:
        rows = [error for key, row in self.licenses.items() for error in self._row_errors(key, row)]
        return rows + [error for name, key in self.aliases.items() for error in _alias_errors(name, key)]

    def _row_errors(self, key: str, row: License) -> Iterable[InitErrorDetails]:
        yield from _id_errors(key, ("licenses", key))
        for index, name in enumerate(row.export_under):
            yield from _id_errors(name, ("licenses", key, "export_under", index))
        category = self.categories.get(row.category)
        if category is None:
            yield from unknown("category", row.category, self.categories, ("licenses", key, "category"))
        elif category.export == "listed" and not row.export_under:
            yield value_error(
                f"`export_under` is missing or empty: category `{row.category}` exports only under the licenses listed "
                "there",
                ("licenses", key),
                key,
            )
        elif category.export != "listed" and "export_under" in row.model_fields_set:
            yield value_error(
                f"`export_under` has no effect: category `{row.category}` does not export `listed`, remove it",
                ("licenses", key, "export_under"),
                key,
            )


def _alias_errors(name: str, key: str) -> Iterable[InitErrorDetails]:
    yield from _id_errors(key, ("aliases", name))
    if name != alias_key(name) or not name:
        yield value_error(f"`{name}` is never matched: write it as `{alias_key(name)}`", ("aliases", name), name)
    elif canonical_key(name) is not None:
        yield value_error(f"`{name}` is an SPDX id itself: remove the alias", ("aliases", name), name)


def _id_errors(text: str, path: tuple[str | int, ...]) -> Iterable[InitErrorDetails]:
    key = canonical_key(text)
    if key is None:
        yield value_error(
            f"`{text}` is not a license: use one SPDX id, alone or WITH an SPDX exception, or `LicenseRef-…`",
            path,
            text,
        )
    elif key != text:
        yield value_error(f"`{text}` is never matched: SPDX spells it `{key}`", path, text)
