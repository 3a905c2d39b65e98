"""What the pages work on: the record, the state and the policy of one state folder, and its person."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from engine.binaries import find_binary
from engine.errors import PolicyError, Problem
from engine.points.registry import POINTS
from engine.policy_bundle.build import PolicyBundle, build
from engine.policy_bundle.sources import PolicySources
from engine.settings import Settings
from engine.state import has_state, open_state
from engine.state.rows import Agreement
from engine.state.store import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Activated:
    """What the server on a chain of the record answered to an activation, in lines."""

    chain: int
    done: bool
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Desk:
    """The folders, and what the command line does already.

    `person` is the principal that `act` acts as; it takes an administrative act and raises EngineError where that is
    refused. `checks` looks at this machine, `verify` verifies the record, `activate` has running servers reload their
    policy, for a reason. `tests` runs the tests and cases of one's own recipe under a policy with edits, None without
    one. `releases` is the folder that has a folder for each release, `release_key` the public key (PEM) that verifies
    them; None if none was named.
    """

    settings: Settings
    person: str
    act: Callable[[dict[str, Any]], dict[str, Any]]
    checks: Callable[[], list[dict[str, Any]]]
    verify: Callable[[], dict[str, Any]]
    activate: Callable[[str | None], tuple[Activated, ...]]
    tests: Callable[[PolicyBundle], tuple[Problem, ...] | None]
    releases: Path | None = None
    release_key: Path | None = None
    saving: Lock = field(default_factory=Lock)

    def sources(self, overrides: tuple[str, ...] = (), edits: tuple[tuple[str, bytes], ...] = ()) -> PolicySources:
        """The folders of the policy; `overrides` are `KEY=VALUE`, `edits` other contents of its files by name."""
        chosen = self.settings
        return PolicySources(chosen.rego, chosen.policy, chosen.recipe, overrides, edits)

    def policy(self, overrides: tuple[str, ...] = (), edits: tuple[tuple[str, bytes], ...] = ()) -> PolicyBundle:
        """The policy as it is in its folders now, built or taken from the cache. Raises PolicyError, DecideError."""
        return build(self.sources(overrides, edits), POINTS, find_binary(), self.settings.cache)

    def policy_or_none(self) -> PolicyBundle | None:
        """The policy as it is in its folders now; None if it has problems. Raises DecideError."""
        try:
            return self.policy()
        except PolicyError:
            return None

    def agreement(self) -> Agreement:
        """What the engines of the state have agreed on. Raises StateError."""
        return self.stated(Store.agreement) or Agreement()

    def stated(self, read: Callable[[Store], T]) -> T | None:
        """What is read of the state; None before there is any. Raises StateError."""
        if not has_state(self.settings):
            return None
        with closing(open_state(self.settings)) as store:
            return read(store)
