"""Point `episode`: whether the next event of an episode may happen, what it changes, and how the episode ends.

The events are `start`, `turn` (an actor is called), `proposal` and `text` (its reply), `concession` (the engine closes
a turn whose replies were all rejected) and `end`. A request states the whole history, so that tokens, penalties and
scores are computed from it by rules, never counted up: an event that is repeated counts once. Of a reply only facts
get into the input. Rows E02 to E05, E10 to E12, E20 to E22, E31, E32, E35, E37, C66, H16.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from engine.documents.canonical import digest
from engine.documents.strict_json import MAX_SAFE_INTEGER
from engine.facts.proposals import ChangeFacts, Name, ProblemFacts, Proposal, StateGroup, read_proposal
from engine.facts.text.hidden import is_blank
from engine.model import Caller, Digest, Limits, Model
from engine.points import FactsFromState, GatherContext, Gathered, Point, stated_in
from engine.state.rows import AgentRow

if TYPE_CHECKING:
    from engine.state.store import Store

EpisodeId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
AGENT_ID = r"^[0-9a-f]{1,64}$"
AgentId = Annotated[str, Field(pattern=AGENT_ID)]
Whole = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
Positive = Annotated[int, Field(ge=1, le=1 << 40)]
REPLY_CHARACTERS = (1 << 24) + 1
"""One more than the policy can allow bytes."""

ReplyText = Annotated[str, Field(max_length=REPLY_CHARACTERS)]


class EpisodeActor(Model):
    """An actor and its role, a row of `roles` in policy/episodes.yaml; `agent` is the id of a provisioned agent."""

    id: Name
    role: Name
    agent: AgentId | None = None


class Ceilings(Model):
    """What this episode may use; the lower of each and the one in policy/episodes.yaml applies."""

    max_episode_tokens: Positive
    max_turns: Positive
    max_steps: Positive
    max_spend_micros: Positive
    forced_concession_threshold: Positive
    retries: Annotated[int, Field(ge=0, le=1 << 40)]


class Call(Model):
    """A call of an actor. Turns are counted from 1 in the episode, attempts from 1 in the turn.

    `sent_bytes`: size of what the actor is given to read.
    """

    turn: Positive
    attempt: Positive
    actor: Name
    sent_bytes: Whole


class Attempt(Call):
    """A call that has ended, or a concession. `bytes`: size of the reply; `resolution` and `abort`: as accepted.

    `interrupted`: the engine was stopped during the call. Tokens and spend are 0 where usage did not state them.
    """

    outcome: Literal["accepted", "rejected", "conceded", "interrupted"]
    tokens_stated: bool
    tokens: Whole
    spend_stated: bool
    spend_micros: Whole
    bytes: Whole
    resolution: bool
    abort: bool


class Reply(Model):
    """What an actor returned: its text, and the usage as the provider reported it, any JSON.

    `missing`: none came before the time was over.
    """

    text: ReplyText
    usage: Any
    missing: bool


class StartEvent(Model):
    """The episode begins."""

    kind: Literal["start"]


class TurnEvent(Call):
    """An actor is to be called."""

    kind: Literal["turn"]


class ReplyEvent(Call):
    """An actor has replied."""

    kind: Literal["proposal", "text"]
    reply: Reply


class ConcessionEvent(Call):
    """The turn of an actor is to be closed without an accepted reply."""

    kind: Literal["concession"]


class EndEvent(Model):
    """The episode is to end; `review`: numbers of the transcript entries that are marked for review."""

    kind: Literal["end"]
    review: Annotated[tuple[Whole, ...], Field(strict=False, max_length=10_000)]


class Episode(Model):
    """An episode as it stands. `running`: calls in progress.

    `broken`: the record or the transcript lacks something that happened.
    """

    episode: EpisodeId
    actors: Annotated[tuple[EpisodeActor, ...], Field(strict=False, max_length=1_000)]
    state: Annotated[tuple[StateGroup, ...], Field(strict=False, max_length=1_000)]
    ceilings: Ceilings
    running: Annotated[tuple[Call, ...], Field(strict=False, max_length=1_000)]
    ended: bool
    broken: bool


class EpisodeRequest(Episode):
    """One event of an episode, and everything that happened before."""

    event: Annotated[StartEvent | TurnEvent | ReplyEvent | ConcessionEvent | EndEvent, Field(discriminator="kind")]
    history: Annotated[tuple[Attempt, ...], Field(strict=False, max_length=10_000)]


class EventFacts(Model):
    """The event; a call is stated by all but `start` and `end`."""

    kind: Literal["start", "turn", "proposal", "text", "concession", "end"]
    turn: int | None = None
    attempt: int | None = None
    actor: str | None = None
    sent_bytes: int | None = None


class PastAttempt(Attempt):
    """An attempt with the id `turn.attempt`."""

    id: str


class ReplyFacts(Model):
    """A reply without its text; `readable`: a JSON object. Stated usage is a whole number that is not negative."""

    digest: Digest
    bytes: int
    missing: bool
    readable: bool
    tokens_stated: bool
    tokens: int
    spend_stated: bool
    spend_micros: int


class ProposalFacts(Model):
    """What a proposal asks for; a field is absent if it is missing or has another type."""

    propose_resolution: bool | None = None
    abort_episode: bool | None = None
    justification_bytes: int


class CastFacts(Model):
    """An actor that is a provisioned agent; `due`: the event is a call of it."""

    id: str
    role: str
    agent: str
    due: bool


class EpisodeInput(Episode):
    """What OPA sees. `state` is there at the start; later values are in `changes`."""

    event: EventFacts
    history: tuple[PastAttempt, ...]
    reply: ReplyFacts | None = None
    proposal: ProposalFacts | None = None
    changes: tuple[ChangeFacts, ...] = ()
    problems: tuple[ProblemFacts, ...] = ()
    review: tuple[int, ...] = ()
    cast: tuple[CastFacts, ...] = ()


class CallPermit(Model):
    """One call: its most tokens, time and reply; which event its reply is, and which entries it becomes."""

    tokens: Positive
    milliseconds: Positive
    reply_bytes: Positive
    replies: Literal["proposal", "text"]
    entry: str
    aside: str


class EpisodeEnd(Model):
    """Why the episode ended, the score of each proposing actor, and the entries that a person must review."""

    reason: str
    scores: dict[str, int]
    tokens: Whole
    spend_micros: Whole
    penalties: dict[str, int]
    review: tuple[int, ...]


class EpisodeLimits(Limits):
    """What the event may do: `call` at a turn, `changes` (ids of parameters) at a proposal, `end` at the end."""

    event: str
    call: CallPermit | None
    changes: tuple[str, ...]
    resolution: bool
    abort: bool
    end: EpisodeEnd | None


def gather(request: EpisodeRequest, _: GatherContext) -> Gathered:
    """Read the reply, if there is one; the rules compute everything else from the history."""
    event = request.event
    starts, reply = event.kind == "start", event.reply if isinstance(event, ReplyEvent) else None
    proposal = read_proposal(reply.text, request.state) if reply is not None and event.kind == "proposal" else None
    call = event if isinstance(event, Call) else None
    stated = stated_in(request, Episode) | ({} if starts else {"state": ()})
    facts = EpisodeInput(
        **stated,
        event=EventFacts.model_validate(event.model_dump(exclude={"reply", "review"})),
        history=tuple(PastAttempt(id=f"{one.turn}.{one.attempt}", **dict(one)) for one in request.history),
        reply=None if reply is None else _reply(reply, proposal),
        proposal=None if proposal is None or not proposal.readable else _proposal_facts(proposal),
        changes=() if proposal is None else proposal.changes,
        problems=() if proposal is None else proposal.problems,
        review=event.review if isinstance(event, EndEvent) else (),
        cast=tuple(
            CastFacts(
                id=one.id, role=one.role, agent=one.agent, due=isinstance(event, TurnEvent) and event.actor == one.id
            )
            for one in request.actors
            if one.agent is not None
        ),
    )
    agents = tuple(one.agent for one in facts.cast)
    where = "" if call is None else f" {call.turn}.{call.attempt} of {call.actor}"
    return Gathered(
        facts,
        f"episode {request.episode}: {event.kind}{where}",
        quotas={"tokens": ""} if starts else {},
        amounts={"tokens": request.ceilings.max_episode_tokens} if starts else {},
        state=partial(_agents, agents) if agents else None,
    )


def _agents(ids: tuple[str, ...], store: Store, _: Caller) -> FactsFromState:
    """The agents that the actors name, as far as the state has them."""
    rows = [store.agent(id_) for id_ in dict.fromkeys(ids)]
    return {"agents": [agent_facts(row) for row in rows if row is not None]}


def agent_facts(row: AgentRow) -> dict[str, Any]:
    """What rules see of a provisioned agent."""
    specification = json.loads(row.specification)
    return {
        "id": row.id,
        "name": row.name,
        "role": row.role,
        "active": row.ended_at is None,
        "tools": specification["tools"],
        **specification["constraints"],
    }


def may_be_agent(caller: Caller) -> bool:
    """Whether the name of a caller has the form of an agent's id."""
    return re.fullmatch(AGENT_ID, caller.principal or "") is not None


def calling_agent(store: Store, caller: Caller) -> list[dict[str, Any]]:
    """The provisioned agent that the caller is, active or ended; none for other callers."""
    row = store.agent(caller.principal or "") if may_be_agent(caller) else None
    return [] if row is None else [agent_facts(row)]


def stated_usage(usage: Any, name: str) -> int | None:
    """A count of the reported usage; None unless it is a whole number that is not negative."""
    found = usage.get(name) if isinstance(usage, dict) else None
    return found if type(found) is int and 0 <= found <= MAX_SAFE_INTEGER else None


def _reply(reply: Reply, proposal: Proposal | None) -> ReplyFacts:
    data = reply.text.encode("utf-8")
    named = isinstance(reply.usage, dict) and "tokens" in reply.usage
    tokens = stated_usage(reply.usage, "tokens" if named else "total_tokens")  # the latter is OpenAI's
    spend = stated_usage(reply.usage, "spend_micros")
    return ReplyFacts(
        digest=digest(data),
        bytes=len(data),
        missing=reply.missing,
        readable=proposal is None or proposal.readable,
        tokens_stated=tokens is not None,
        tokens=tokens or 0,
        spend_stated=spend is not None,
        spend_micros=spend or 0,
    )


def _proposal_facts(proposal: Proposal) -> ProposalFacts:
    resolution, abort = proposal.fields.get("propose_resolution"), proposal.fields.get("abort_episode", False)
    justification = proposal.text("justification")
    return ProposalFacts(
        propose_resolution=resolution if isinstance(resolution, bool) else None,
        abort_episode=abort if isinstance(abort, bool) else None,
        justification_bytes=0 if is_blank(justification) else len(justification.strip().encode("utf-8")),
    )


POINT = Point("episode", EpisodeRequest, EpisodeInput, EpisodeLimits, gather, secret=True)
