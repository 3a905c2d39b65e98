"""Requests in the words of other systems, filled into the request that a value of the policy states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.points.registry import POINTS

if TYPE_CHECKING:
    from engine.api.app import App

Rows = Sequence[Mapping[str, Any]]
"""Rows of policy/operations.yaml, each with the point that is asked and the request to it."""


def rows_of(api: App, name: str) -> Rows:
    """The rows of this name in the policy being served; empty if no policy is served."""
    policy = api.engine.policy
    found = () if policy is None else policy.lookups.mapped.get(name, ())
    return [row for row in found if row["point"] in POINTS]


def references(template: Any) -> Iterator[str]:
    """Every `$path` in the template."""
    if isinstance(template, str):
        yield from (template,) if template.startswith("$") else ()
        return
    items = (
        template.values() if isinstance(template, Mapping) else template if isinstance(template, list | tuple) else ()
    )
    for item in items:
        yield from references(item)


def filled(template: Any, sent: Any) -> Any:
    """The template with what was sent in the place of `$path`; where there is nothing, the field is left out."""
    if isinstance(template, Mapping):
        fields = {name: filled(value, sent) for name, value in template.items()}
        return {name: value for name, value in fields.items() if value is not None}
    if isinstance(template, list | tuple):
        return [filled(item, sent) for item in template]
    if not isinstance(template, str) or not template.startswith("$"):
        return template
    for name in template[1:].split("."):
        sent = sent.get(name) if isinstance(sent, Mapping) else None
    return sent
