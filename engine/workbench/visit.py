"""One request for a page, as the function that makes the page sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.api.messages import Response
from engine.workbench import pages
from engine.workbench.access import Session
from engine.workbench.desk import Desk


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of a browser that is logged in. `name` is the part of the path that its route leaves open."""

    desk: Desk
    session: Session
    name: str
    query: Mapping[str, str]
    form: Mapping[str, str]

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page from a template; its first word is the entry of the navigation."""
        here = template.partition(".")[0].partition("_")[0]
        return pages.page(template, status, session=self.session, person=self.desk.person, here=here, **values)
