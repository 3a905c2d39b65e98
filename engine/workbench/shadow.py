"""What the candidate of `engine serve --shadow` decided otherwise, of its last recorded lines."""

from __future__ import annotations

from engine.api.messages import Response
from engine.record.reader import Filter
from engine.replay.shadowed import shadowed
from engine.workbench.preview import KINDS
from engine.workbench.visit import Visit

_LINES = 10_000
"""Shadow lines of a page."""


def page(visit: Visit) -> Response:
    """The last shadow lines, as `engine record shadow` reports them."""
    desk = visit.desk
    policy = desk.policy_or_none()  # without one, the report has no words
    found = shadowed(desk.settings.state, Filter(), policy, most=_LINES) if desk.settings.state.is_dir() else None
    replay = None if found is None else found.found
    return visit.page("shadow.html", shadowed=found, replay=replay, kinds=KINDS, most=_LINES)
