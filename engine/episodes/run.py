"""The path of one episode: it asks before each call of an actor and after each reply, and applies the answers.

Which actor is next and what the answers change is in `standing`; whether anything may happen, and why the episode
ends, is decided at point `episode`. Each decision is recorded before it is applied.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from admission_adapters.episodes.transcripts import TranscriptFolder
from engine.completing import Completion, Prompt
from engine.drive import Call, Steps, Work
from engine.episodes.actors import Actor, ActorReply, Entry, PendingCall, Turn, scripted
from engine.episodes.definition import ActorDefinition, EpisodeDefinition
from engine.episodes.model_actor import remote
from engine.episodes.recorded import Recorded
from engine.episodes.result import ERRORS, Episode, EpisodeError, Rejection, required
from engine.episodes.standing import Standing
from engine.errors import EngineError, GatherError, StateError
from engine.facts.proposals import read_proposal
from engine.flow import Answer, Context, Services, answer
from engine.model import Job, Mode, Outcome, Permit, Result
from engine.points.episode import REPLY_CHARACTERS, CallPermit, EpisodeLimits
from engine.points.registry import find
from engine.points.transcript import TranscriptLimits
from engine.work import Executor

_PRIVATE = "monologue"
"""The field of a proposal whose text is an entry of its own."""


def cast(
    definition: EpisodeDefinition, provided: Mapping[str, Actor], complete: Callable[[Prompt], Completion]
) -> dict[str, Actor]:
    """The actors by id: those that were passed, else scripts and models of the file. Raises GatherError if one lacks.

    `complete` asks the remote model.
    """
    actors: dict[str, Actor] = {}
    for one in definition.actors:
        found = provided.get(one.id) or (scripted(one) if one.model is None else remote(one.model, complete))
        if found is None:
            raise GatherError(
                f"actor `{one.id}` has no script and no model", remedy="write one, or pass the actor to the run"
            )
        actors[one.id] = found
    return actors


def episode_steps(
    services: Services,
    context: Context,
    folder: TranscriptFolder,
    episode: str,
    definition: EpisodeDefinition,
    actors: Mapping[str, Actor],
    known: Recorded | None,
) -> Steps[Episode]:
    """Run an episode to its end, or go on with one that the record knows. Raises no EngineError."""
    run = _Run(services, context, folder, Standing(episode, definition), actors)
    if known is not None:
        run.standing, run.transcript, run.started_by = known.standing, known.transcript, known.started_by
    try:
        yield from run.all()
    except EngineError as error:
        return run.result(error)
    return run.result(None)


class _Run:
    """One episode on its way."""

    def __init__(
        self,
        services: Services,
        context: Context,
        folder: TranscriptFolder,
        standing: Standing,
        actors: Mapping[str, Actor],
    ) -> None:
        self._services, self._folder, self._actors = services, folder, actors
        self._context = replace(context, idempotency_key=None, approval=None)
        self.standing = standing
        self.transcript: list[dict[str, Any]] = []
        self.started_by = ""

    def all(self) -> Steps[None]:
        """From the start to the end. Raises EngineError for what stops the episode before its end."""
        if not self.standing.started:
            started = yield from self._decide({"kind": "start"})
            self.started_by = started.decision.decision_id
            if not self.standing.started:
                raise _refused(started)
        while self.standing.end is None:
            yield from self._round()

    def result(self, fault: EngineError | None) -> Episode:
        """What became of the episode."""
        standing = self.standing
        return Episode(
            standing.episode,
            standing.end,
            standing.values,
            tuple(self.transcript),
            standing.turns,
            tuple(
                Rejection(one["turn"], one["attempt"], one["actor"], tuple(one["codes"])) for one in standing.rejections
            ),
            Counter(one["actor"] for one in standing.history if one["outcome"] == "conceded"),
            fault,
        )

    def _round(self) -> Steps[None]:
        """The next call, or with `parallel` those of all actors that have not replied in this round."""
        due = self.standing.due()
        calls: list[tuple[dict[str, Any], PendingCall]] = []
        for actor in due if self.standing.definition.parallel else due[:1]:
            event, answered, pending = yield from self._call(actor)
            if pending is None:
                if not calls:
                    yield from self._close(event, answered)
                break
            calls.append((event, pending))
        for event, pending in calls:
            reply: ActorReply | None = yield Work(pending.wait)
            yield from self._judge(event, reply, pending.grant)

    def _call(self, actor: ActorDefinition) -> Steps[tuple[dict[str, Any], Answer, PendingCall | None]]:
        """Ask for a call and, on an allow, begin it."""
        standing = self.standing
        number, attempt = standing.next_call(actor.id)
        self._services.gather_context.progress("turn", number, standing.definition.ceilings.max_turns)
        read = self._readable_by(actor.id)
        sent = sum(len(one.text.encode("utf-8")) for one in read) + len(json.dumps(standing.values))
        event = {"kind": "turn", "actor": actor.id, "turn": number, "attempt": attempt, "sent_bytes": sent}
        started: list[PendingCall] = []

        def call(permit: Permit, job: Job) -> Result:
            grant = permit.demand("episode", job.input_digest, EpisodeLimits).call
            if grant is None:
                return Result("not_called", {})
            state = {name: dict(values) for name, values in standing.values.items()}
            calls, codes = standing.calls(actor.id), standing.last_codes(actor.id)
            allowed = (grant.tokens, grant.milliseconds)
            turn = Turn(actor.id, actor.role, read, state, *allowed, calls, codes, grant.replies)
            started.append(PendingCall(self._actors[actor.id], turn, grant, job.stop))
            started[0].start()
            return Result("called", {"actor": actor.id, "turn": number, "attempt": attempt})

        answered = yield from self._decide(event, call)
        return event, answered, started[0] if started else None

    def _judge(self, event: Mapping[str, Any], reply: ActorReply | None, grant: CallPermit) -> Steps[None]:
        """Ask whether a reply may be applied; its texts then become entries of the transcript."""
        answered = ActorReply("") if reply is None else reply
        text = answered.text[:REPLY_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
        facts = {"text": text, "usage": _plain(answered.usage), "missing": reply is None}
        accepted = self.standing.accepted()
        yield from self._decide({**event, "kind": grant.replies, "reply": facts})
        if self.standing.accepted() > accepted:
            yield from self._append(str(event["actor"]), text, grant)

    def _close(self, event: Mapping[str, Any], answered: Answer) -> Steps[None]:
        """After a refused call: concede for an actor without retries, else end the episode."""
        kind = "concession" if [found.code for found in answered.decision.findings] == ["retries_exhausted"] else "end"
        review = [at for at, entry in enumerate(self.transcript) if entry["mark_for_review"]]
        closing = {**event, "kind": kind} if kind == "concession" else {"kind": kind, "review": review}
        history = len(self.standing.history)
        yield from self._decide(closing)
        if self.standing.end is not None:
            yield from self._settle()
        elif len(self.standing.history) == history:
            raise _refused(answered)

    def _append(self, actor: str, text: str, grant: CallPermit) -> Steps[None]:
        """Append what an actor said, and apart from it what only the actor may read."""
        own = next(one for one in self.standing.definition.actors if one.id == actor)
        utterances = [(grant.entry, text)]
        if grant.replies == "proposal":
            proposal = read_proposal(text)
            utterances = [(grant.entry, proposal.text("dialogue")), (grant.aside, proposal.text(_PRIVATE))]
        new = [
            {"actor": actor, "kind": kind, "recipient": own.recipient, "claimed_role": None, "text": words}
            for at, (kind, words) in enumerate(utterances)
            if words or at == 0
        ]
        monologues = [
            {"actor": entry["author"], "text": entry["text"]}
            for entry in self.transcript
            if entry["readers"] == [entry["author"]]
        ]
        request = {
            "episode": self.standing.episode,
            "actors": self.standing.actors(),
            "entries": new,
            "monologues": monologues,
        }
        texts = [str(entry["text"]) for entry in new]

        def append(permit: Permit, job: Job) -> Result:
            done = self._folder.append(permit, job.input_digest, texts)
            limits = permit.demand("transcript", job.input_digest, TranscriptLimits)
            self.transcript += [
                {**entry.model_dump(mode="json"), "text": words}
                for entry, words in zip(limits.entries, texts, strict=True)
            ]
            return done

        yield from self._ask("transcript", request, append)

    def _decide(self, event: Mapping[str, Any], executor: Executor | None = None) -> Steps[Answer]:
        """One decision at point `episode`, applied. Raises EngineError if the engine failed."""
        got = yield from self._ask("episode", self.standing.request(event), executor)
        self.standing.take(got.document or {}, got.decision)
        return got

    def _ask(self, point: str, request: dict[str, Any], executor: Executor | None) -> Steps[Answer]:
        got: Answer = yield from answer(find(point), request, Mode.ENFORCE, self._services, self._context, executor)
        if got.fault is not None:
            raise got.fault
        return got

    def _readable_by(self, actor: str) -> tuple[Entry, ...]:
        return tuple(
            Entry(entry["author"], entry["role"], entry["kind"], entry["text"])
            for entry in self.transcript
            if actor in entry["readers"] or isinstance(entry["readers"], str)
        )

    def _settle(self) -> Steps[None]:
        """Give back the tokens that the episode took from the quota and did not use."""
        used = {} if self.standing.end is None else {"episode/tokens": self.standing.end.tokens}
        store = yield Call(self._services.store)
        try:
            yield Call(lambda: store.settle(self.started_by, used))
        except StateError as error:  # the tokens stay counted, which allows less
            self._services.on_event("settle", {"decision_id": self.started_by, "code": error.code})


def _plain(usage: Any) -> Any:
    """Usage as JSON; None for what has no JSON form."""
    try:
        return json.loads(json.dumps(usage, allow_nan=False))
    except (ValueError, TypeError, RecursionError):
        return None


def _refused(answered: Answer) -> EngineError:
    """The error for an episode that the policy did not let start, go on or end."""
    decision = answered.decision
    if decision.outcome is Outcome.ALLOW or not decision.findings:
        return EpisodeError("the episode cannot go on", remedy="see the record", code="episode_stuck")
    first = next((one for one in decision.findings if one.code in {*ERRORS, "stopped"}), decision.findings[0])
    kind = ERRORS.get(first.code, EpisodeError)
    return kind(required(first), remedy=first.remedy, code=first.code)
