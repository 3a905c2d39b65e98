"""Where an episode stands: its history, the calls in progress and the values of its state.

`take` and `apply` take over one decision, just made or read from the record; nothing else changes it. So an episode
that is read back from its record stands where it stood.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from engine.decide import Verdict
from engine.episodes.definition import ActorDefinition, EpisodeDefinition
from engine.episodes.result import Ended
from engine.facts.proposals import Scalar
from engine.model import ENGINE_CODES, RESERVED_CODES, Decision

_ALLOW = "allow"
_NOT_DECIDED = RESERVED_CODES | {"stopped"}


class Standing:
    """One episode so far."""

    def __init__(self, episode: str, definition: EpisodeDefinition) -> None:
        self.episode = episode
        self.definition = definition
        self.values: dict[str, dict[str, Scalar]] = {
            name: dict(group.values) for name, group in definition.state.items()
        }
        self.history: list[dict[str, Any]] = []
        self.running: list[dict[str, Any]] = []
        self.rejections: list[dict[str, Any]] = []
        self.started = False
        self.end: Ended | None = None
        self.broken = False
        self._round = 1

    def request(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """A request at point `episode`."""
        return {
            "episode": self.episode,
            "event": dict(event),
            "actors": self.actors(),
            "state": [
                {"id": name, "owner": group.owner, "values": self.values[name]}
                for name, group in self.definition.state.items()
            ],
            "ceilings": dict(self.definition.ceilings),
            "history": self.history,
            "running": self.running,
            "ended": self.end is not None,
            "broken": self.broken,
        }

    def actors(self) -> list[dict[str, str]]:
        """The actors as requests state them."""
        return [
            {"id": actor.id, "role": actor.role, **({} if actor.agent is None else {"agent": actor.agent})}
            for actor in self.definition.actors
        ]

    @property
    def turns(self) -> int:
        """How many turns have had a reply or a concession."""
        return len({one["turn"] for one in self.history})

    def due(self) -> list[ActorDefinition]:
        """The actors that still have to reply in the current round, in their order."""
        while not (due := self._lagging()):
            self._round += 1
        return due

    def next_call(self, actor: str) -> tuple[int, int]:
        """Turn and attempt of the next call of an actor; both count from 1."""
        turns = self._turns(actor)
        if turns and turns[-1] not in self._closed():
            return turns[-1], sum(one["turn"] == turns[-1] for one in self.history) + 1
        return max((one["turn"] for one in [*self.history, *self.running]), default=0) + 1, 1

    def calls(self, actor: str) -> int:
        """How often an actor has replied."""
        return sum(one["actor"] == actor and one["outcome"] in {"accepted", "rejected"} for one in self.history)

    def accepted(self) -> int:
        """How many replies were accepted."""
        return sum(one["outcome"] == "accepted" for one in self.history)

    def last_codes(self, actor: str) -> tuple[str, ...]:
        """The codes of an actor's last reply, if it was rejected."""
        own = [one for one in self.history if one["actor"] == actor]
        rejected = [one for one in self.rejections if one["actor"] == actor]
        return tuple(rejected[-1]["codes"]) if own and own[-1]["outcome"] == "rejected" else ()

    def take(self, document: Mapping[str, Any], decided: Decision | Verdict) -> None:
        """Take over one decision that was just made on this input."""
        limits = None if decided.limits is None else decided.limits.model_dump(mode="json")
        self.apply(document, decided.outcome.value, limits, [finding.code for finding in decided.findings])

    def apply(
        self, document: Mapping[str, Any], outcome: str, limits: Mapping[str, Any] | None, codes: Sequence[str]
    ) -> None:
        """Take over one decision, with its limits as JSON.

        A refused event changes nothing, but for a reply, which is then rejected.
        """
        event = document["event"]
        kind, allowed = event["kind"], outcome == _ALLOW and limits is not None
        if any(code.startswith(ENGINE_CODES) or code in _NOT_DECIDED for code in codes):
            return  # the engine failed, or a person stopped the episode: no fault of the actor
        if kind == "start":
            self.started = self.started or allowed
        elif kind == "turn" and allowed:
            self.running.append(_call(event, event["sent_bytes"]))
        elif kind in {"proposal", "text"}:
            self._reply(document, limits if allowed else None, codes)
        elif kind == "concession" and allowed:
            self._close(_call(event, 0), "conceded", {"tokens_stated": True, "spend_stated": True})
        elif kind == "end" and allowed and limits is not None:
            self.end = Ended.of(limits["end"])

    def interrupt(self) -> None:
        """Calls in progress have ended without a reply: the engine was stopped."""
        for call in self.running:
            self._close(call, "interrupted", {})
        self.running = []

    def _reply(self, document: Mapping[str, Any], limits: Mapping[str, Any] | None, codes: Sequence[str]) -> None:
        event = document["event"]
        own = [call for call in self.running if _numbers(call) == _numbers(event)]
        if not own:
            return  # a reply to no call changes nothing
        self.running.remove(own[0])
        if limits is None:
            self._close(own[0], "rejected", document["reply"])
            self.rejections.append({**_call(event, 0), "codes": sorted(set(codes))})
            return
        for change in document["changes"]:
            if change["id"] in limits["changes"]:
                self.values[change["group"]][change["parameter"]] = change["value"]
        resolved = {"resolution": limits["resolution"], "abort": limits["abort"]}
        self._close(own[0], "accepted", document["reply"], **resolved)

    def _close(self, call: Mapping[str, Any], outcome: str, reply: Mapping[str, Any], **resolved: bool) -> None:
        facts = {name: reply.get(name, 0) for name in ("tokens", "spend_micros", "bytes")}
        stated = {name: reply.get(name, False) for name in ("tokens_stated", "spend_stated")}
        rest = {"resolution": False, "abort": False} | resolved
        self.history.append({**call, "outcome": outcome, **facts, **stated, **rest})

    def _lagging(self) -> list[ActorDefinition]:
        """The actors that have not closed all the turns that they have up to the current round."""
        closed, done = self._closed(), Counter[str]()
        for actor, turn in {(one["actor"], one["turn"]) for one in self.history}:
            done[actor] += turn in closed
        return [actor for actor in self.definition.actors if done[actor.id] < _turns_by(actor, self._round)]

    def _turns(self, actor: str) -> list[int]:
        return sorted({one["turn"] for one in [*self.history, *self.running] if one["actor"] == actor})

    def _closed(self) -> set[int]:
        return {one["turn"] for one in self.history if one["outcome"] in {"accepted", "conceded"}}


def _call(event: Mapping[str, Any], sent: int) -> dict[str, Any]:
    return {name: event[name] for name in ("turn", "attempt", "actor")} | {"sent_bytes": sent}


def _numbers(call: Mapping[str, Any]) -> tuple[Any, ...]:
    return call["turn"], call["attempt"], call["actor"]


def _turns_by(actor: ActorDefinition, number: int) -> int:
    """How many turns an actor has up to a round."""
    return number if actor.rounds is None else sum(one <= number for one in set(actor.rounds))
