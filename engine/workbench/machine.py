"""This machine and the record: what `engine doctor` and `engine record verify` report."""

from __future__ import annotations

from engine.api.messages import Response
from engine.workbench.visit import Visit


def page(visit: Visit) -> Response:
    """The checks of this machine."""
    return visit.page("machine.html", checks=visit.desk.checks(), verified=None)


def verified(visit: Visit) -> Response:
    """The same, with the record verified; nothing is written."""
    return visit.page("machine.html", checks=visit.desk.checks(), verified=visit.desk.verify())
