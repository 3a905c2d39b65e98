"""A replay as a document for programs; texts, pages and releases are made from it."""

from __future__ import annotations

from typing import Any

from engine.model import Revisions
from engine.replay.comparing import Change
from engine.replay.run import UNCHANGED, UNDECIDED, Group, Replay

_MOST_SUBJECTS, _MOST_VALUES, _MOST_EXAMPLES = 20, 20, 10


def replay_document(found: Replay, name: str | None, revisions: Revisions) -> dict[str, Any]:
    """Everything that a replay found; the candidate has this name, which is None where its policy is not at hand."""
    kinds = [UNCHANGED, *(change.value for change in Change), UNDECIDED]
    groups = sorted(
        found.groups.values(), key=lambda one: (list(Change).index(one.change), -one.decisions, one.point, one.code)
    )
    return {
        "policy": {"name": name, **revisions.model_dump()},
        "record": {
            "decisions": found.decisions,
            "first": found.first,
            "last": found.last,
            "unreadable_lines": [str(place) for place in found.unreadable],
        },
        "changed": found.changed,
        "counts": {kind: found.count(kind) for kind in kinds},
        "points": [
            {"point": point, **{kind: counted[kind] for kind in kinds}}
            for point, counted in sorted(found.points.items())
        ],
        "changes": [_group(one) for one in groups],
        "not_decided": [
            {"point": point, "reason": reason, "decisions": count}
            for (point, reason), count in sorted(found.undecided.items())
        ],
        "not_counted": [
            {"point": point, "budget": budget, "decisions": count}
            for (point, budget), count in sorted(found.uncounted.items())
        ],
    }


def _group(one: Group) -> dict[str, Any]:
    return {
        "change": one.change.value,
        "point": one.point,
        "code": one.code,
        "before": one.before,
        "after": one.after,
        "decisions": one.decisions,
        "required": None if one.words is None else one.words.title,
        "fix": None if one.words is None else one.words.remedy,
        "rule": None if one.where is None else str(one.where),
        "values": [
            {"path": row.path, "value": row.value, "where": None if row.where is None else str(row.where)}
            for row in list(one.values.values())[:_MOST_VALUES]
        ],
        "subjects": [
            {"subject": subject, "times": times} for subject, times in one.subjects.most_common(_MOST_SUBJECTS)
        ],
        "more_subjects": max(len(one.subjects) - _MOST_SUBJECTS, 0),
        "examples": one.examples[:_MOST_EXAMPLES],
    }
