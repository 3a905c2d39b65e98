"""An edit that was previewed and is not yet saved."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from engine.errors import Problem
from engine.policy_bundle.difference import PolicyDifference
from engine.replay.run import Replay


@dataclass(frozen=True, slots=True)
class Draft:
    """`data` replaces the content of `file`, whose digest was `before`; `lines` are those that differ.

    `differs` is None if the policy in the folders has problems, `replay` if nothing is recorded. `tests` are the
    problems of the tests and cases of one's own recipe; None without one.
    """

    file: str
    before: str
    data: bytes
    lines: tuple[str, ...]
    differs: PolicyDifference | None
    replay: Replay | None
    tests: tuple[Problem, ...] | None
    key: str = field(default_factory=lambda: secrets.token_hex(8))
