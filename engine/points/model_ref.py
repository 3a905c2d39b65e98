"""Point `model_ref`: whether a model reference fits its harness, and what it is after a form was corrected.

In phase `form` a reference is brought in order, and a harness that publishes nothing accepts anything. In phase `run`
every part must already be right.
"""

from __future__ import annotations

from typing import Literal

from engine.facts.run_request import Label
from engine.model import Limits, Model, Word
from engine.points import GatherContext, Gathered, Point


class ReferenceLimit(Model):
    """A model, who provides it, and the connection that reaches it. What is empty is the harness's own."""

    model: str
    provider: str
    mode: str
    slug: str


class Reference(Model):
    """A reference as a person or a program states it; `slug_provider` is the provider whose connection `slug` names."""

    model: Label = ""
    provider: Label = ""
    mode: Label = ""
    slug: Label = ""
    slug_provider: Label = ""


class ModelRefRequest(Model):
    """Ask about a reference while it is edited, or before a run."""

    phase: Literal["form", "run"]
    harness: Word
    reference: Reference


class ModelRefLimits(Limits):
    """The reference that may be used."""

    harness: str
    reference: ReferenceLimit


def gather(request: ModelRefRequest, _: GatherContext) -> Gathered:
    """Nothing is looked up: what a harness offers is a value."""
    return Gathered(request, f"model reference of {request.harness}, {request.phase}")


POINT = Point("model_ref", ModelRefRequest, ModelRefRequest, ModelRefLimits, gather)
