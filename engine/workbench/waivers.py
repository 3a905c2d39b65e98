"""Waivers: what each one is for, who stands for it, when it ends, what it let through, or why it does nothing."""

from __future__ import annotations

import time

from engine.api.messages import Response
from engine.coverage.waivers import WaiversUsed, waiver_rows, waivers_used
from engine.workbench.visit import Visit


def listed(visit: Visit) -> Response:
    """The waivers of the policy, as `engine policy waivers` lists them, and what may be waived."""
    policy, state = visit.desk.policy(), visit.desk.settings.state
    used = waivers_used(state, None, lambda _: None) if state.is_dir() else WaiversUsed()
    rows = waiver_rows(policy, used, int(time.time()))
    return visit.page(
        "waivers.html",
        rows=rows,
        places=[policy.places.get(("waivers", "waivers", row["point"], row["code"], row["id"])) for row in rows],
        unreadable=used.unreadable,
        waivable=policy.data["waivers"]["waivable"],
        days_max=policy.data["waivers"]["days_max"],
    )
