"""What a policy has otherwise than another one, and would have decided otherwise, as documents for programs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.cli import options
    from engine.policy_bundle.build import PolicyBundle
    from engine.policy_bundle.difference import PolicyDifference
    from engine.policy_bundle.release_folder import Contents


def difference_document(found: PolicyDifference) -> dict[str, Any]:
    """A difference for programs."""

    def listed(rows: Any) -> list[dict[str, Any]]:
        return [{**asdict(one), "where": None if one.where is None else str(one.where)} for one in rows]

    return {
        "values": listed(found.values),
        "levels": listed(found.levels),
        "waivers": listed(found.waivers),
        "requirements": listed(found.requirements),
        "rules": [{"kind": kind, "file": name} for kind, name in found.rules],
    }


def changes(
    folder: Path | None, before: Contents | None, after: PolicyBundle, replay: dict[str, Any] | None
) -> dict[str, Any]:
    """What goes into a release about its changes: against the release before, and against recorded decisions."""
    from engine.policy_bundle.difference import difference
    from engine.policy_bundle.release import policy_of

    if folder is None or before is None:
        return {"after": None, "difference": None, "replay": replay}
    statement = before.statement
    told = difference_document(difference(policy_of(folder, before), after))
    return {"after": {"sequence": statement.sequence, "digest": statement.digest}, "difference": told, "replay": replay}


def replayed(state: Path, policy: PolicyBundle, sources: options.Sources) -> dict[str, Any]:
    """The summary of a replay of the record by this policy. Exits with 4 for a record that is broken."""
    from engine.cli.record.commands import require_intact
    from engine.cli.record.replayed import replay_document
    from engine.cli.waiting import Waiting
    from engine.record.reader import Filter
    from engine.replay.candidate import opened
    from engine.replay.run import replay
    from engine.secrets.patterns import know

    require_intact(state)
    know(policy.lookups.forms)
    with opened(policy, sources.settings().opa) as candidate, Waiting() as waiting:
        found = replay(state, Filter(), candidate, None, lambda done, _: waiting.tell(f"decisions replayed: {done:,}"))
    document = replay_document(found, policy)
    return {name: document[name] for name in ("record", "changed", "counts", "points", "not_decided")}
