"""policy/release.yaml: what a version must show before it is released."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictInt

from engine.model import Model
from engine.values.fields import Items, Text, Word

Prefix = Annotated[str, Field(pattern=r"^[^/].*$", max_length=500)]


class Docstrings(Model):
    """How much code must have docstrings."""

    minimum_percent: Annotated[StrictInt, Field(ge=0, le=100)] = Field(
        description="Minimum share of modules, classes and functions with a docstring, in percent, in each top folder."
    )
    left_out: Items[Prefix] = Field(description="Top folders without such a minimum.")


class Documentation(Model):
    """Which changes need a change of the documentation."""

    paths: Items[Prefix] = Field(description="Path prefixes of the documentation.")
    without: Items[Prefix] = Field(description="Path prefixes of files whose change needs no documentation.")


class Security(Model):
    """Whether a stage, or a version with a feature, needs every security test."""

    security_tests: Literal["required", "optional"] = Field(
        description="Whether every security test must have been run. One that failed refuses in any case."
    )


class Release(Model):
    """policy/release.yaml: what a version must show before it is released."""

    suites: Items[Text] = Field(description="Names of the suites that the reports must have.")
    further_suites: Items[Text] = Field(
        description="Names of suites that the reports may also have; any other suite is refused."
    )
    security_tests: Mapping[Text, Text] = Field(
        description="Category of each security test by its id; one that is not listed is refused."
    )
    stages: Mapping[Word, Security] = Field(description="Stages of a release.")
    features: Mapping[Word, Security] = Field(description="Features that a version may enable.")
    docstrings: Docstrings = Field(description="The share of code with docstrings that is required.")
    documentation: Documentation = Field(description="Which files are documentation, and which changes need none.")
