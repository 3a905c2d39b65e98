"""METADATA blocks as closed models: the words of a requirement, and nothing that means nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from engine.documents.files import load
from engine.errors import GatherError, Location, Problem
from engine.model import Model
from engine.policy_bundle.explain import validated
from engine.policy_bundle.syntax import Note
from engine.settings import ReadLimits

Text = Annotated[str, Field(min_length=1, max_length=1000)]
_CODE = r"(engine\.)?[a-z][a-z0-9_]*(:[a-z][a-z0-9_]*)?|[A-Z][A-Z0-9_]*_MESSAGE|[A-Z][A-Za-z]*Error"
Code = Annotated[str, Field(pattern=rf"^({_CODE})$")]
Word = Annotated[str, Field(pattern=r"^[a-z][a-z_ ]*$")]
Dotted = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$")]
_FIELD = r"\{[a-z0-9_.]+\}"
_PART = rf"[a-zA-Z0-9_-]+|{_FIELD}|\{{[a-z0-9_.]+{_FIELD}[a-z0-9_.]*\}}"
Row = Annotated[str, Field(pattern=rf"^[a-z][a-z0-9_]*(\.({_PART}))*$")]
"""Values that a rule reads: `licenses.licenses.{license.alternatives}`, braces name a field of the item.

Braces around braces name a value of the policy:
`licenses.categories.{licenses.licenses.{license.alternatives}.category}`.
"""

_PARTS = re.compile(r"[^.{}]+|\{(?:[^{}]|\{[^{}]*\})*\}")

REMEDIES = {
    "title": "write the sentence that must hold, such as `The license of every record is one we admit`",
    "description": "write why it must hold and where its values are",
    "custom": "write `custom.code` and `custom.remedy`",
    "custom.code": "give the requirement a code in lower case, such as `license_incompatible`",
    "custom.remedy": "write what the reader of the finding should do",
    "custom.each": "write the list as a plain path below input, such as `bundle.records`",
    "custom.empty": "write `empty: allowed`, or leave it out",
    "custom.reads": "write dotted paths below policy/, such as `licenses.licenses.{license.alternatives}`",
    "custom.field": "write the dotted path of a fact, such as `sha256`",
    "custom.facts": "write dotted paths of facts by their names, such as `{stated: sha256, computed: content.sha256}`",
    "custom.proof": "write in a sentence why no missing fact can make it hold",
    "custom.standing": "write confirm or warn, which policy/levels.yaml may then set without end date, or leave it out",
    "custom.fixed": "write `fixed: true`, or leave it out",
    "custom.waivable": "write `waivable: false`, or leave it out",
    "custom.level": "remove it: levels are values and are in policy/levels.yaml",
}


class Labels(Model):
    """What a requirement answers for: acceptance rows, OWASP risks, controls; several by comma.

    `threat` names those of docs/threat-model.md that it meets: ACE, DoS, injection.
    """

    row: Text | None = None
    owasp: Text | None = None
    control: Text | None = None
    threat: Annotated[str, Field(pattern=r"^(ACE|DoS|injection)(, (ACE|DoS|injection))*$")] | None = None


class _Proof(Model):
    proof: Annotated[str, Field(pattern=r"\S+\s+\S+\s+\S+")] | None = None


class _RequirementCustom(_Proof):
    code: Code
    remedy: Text
    each: Dotted | None = None
    empty: Literal["allowed", "required"] | None = None
    after: tuple[Code, ...] = ()
    reads: tuple[Row, ...] = ()
    field: Dotted | None = None
    facts: Mapping[Word, Dotted] = {}
    standing: Literal["confirm", "warn"] | None = None
    fixed: Literal[True] | None = None
    waivable: Literal[False] | None = None


class _SetCustom(Model):
    standing: Literal["confirm", "warn"] | None = None
    code: Code | None = None
    remedy: Text | None = None


class RequirementNote(Model):
    """METADATA of a requirement."""

    title: Text
    description: Text
    custom: _RequirementCustom
    labels: Labels = Labels()


class PackageNote(Model):
    """METADATA of a package."""

    title: Text | None = None
    description: Text | None = None


class HelperNote(PackageNote):
    """METADATA of a helper, of a shared function, or of limits: words, and a proof where one is due."""

    custom: _Proof = _Proof()


class SetNote(PackageNote):
    """METADATA of an added `deny` or `violation` set."""

    custom: _SetCustom = _SetCustom()
    labels: Labels = Labels()


NoteT = TypeVar("NoteT", bound=Model)


def read(note: Note, kind: type[NoteT], file: str, found: list[Problem]) -> NoteT | None:
    """The block as its model, or None with the reasons added to `found`."""
    try:
        document = load(note.text.encode("utf-8"), file, ReadLimits())
    except GatherError as error:
        line = note.line if error.where is None or error.where.line is None else error.where.line + note.line - 1
        found.append(Problem(Location(file, line), f"METADATA {error.message}", error.remedy))
        return None
    if not isinstance(document.value, dict):
        found.append(Problem(Location(file, note.line), "METADATA is not a mapping", "write `# title: …` and so on"))
        return None
    return validated(kind, document, found, first_line=note.line, remedies=REMEDIES)


def parts(row: str) -> list[str]:
    """The parts of a row of values: keys, and fields in their braces."""
    return _PARTS.findall(row)
