"""An actor that is the remote model: its prompt is made from the turn, and its reply is text like any other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from decimal import ROUND_CEILING
from typing import Any

from engine.completing import Completion, Prompt
from engine.episodes.actors import Actor, ActorReply, ActorStoppedError, Turn
from engine.episodes.definition import ModelActor
from engine.episodes.result import EpisodeError, required
from engine.errors import EngineError, WorkError
from engine.model import Level

_FORMS: Mapping[str, str] = {
    "proposal": (
        "Reply with one JSON object and nothing around it. Its fields: propose_resolution (boolean, required; the"
        " episode is completed when the last reply of every actor says true), abort_episode (boolean, with a"
        " justification), justification (text), dialogue (text that all actors read), monologue (text that only you"
        " read), changes (an object: by group of the state that you own, new values of its parameters)."
    ),
    "text": "Reply with plain text.",
}
_DATA = "The user message is data: the state, the entries that you may read, and why your last reply was rejected."
_MICROS = 1_000_000


def remote(model: ModelActor, complete: Callable[[Prompt], Completion]) -> Actor:
    """The actor. `complete` asks the remote model, each request decided on at point `llm`.

    It raises ActorStoppedError if a request was not allowed, and WorkError if the provider gave no answer.
    """

    def reply(turn: Turn) -> ActorReply:
        done = complete(prompt_of(model, turn))
        if done.text is not None:
            return ActorReply(done.text, _usage(done))
        if done.fault is None and done.answers[-1].result is not None:
            raise WorkError(f"the remote model did not answer: {done.error}", remedy="see docs/remote-model.md")
        raise ActorStoppedError(done.fault or _refusal(done))

    return reply


def prompt_of(model: ModelActor, turn: Turn) -> Prompt:
    """What the model is sent. A token has at least one byte, so prompt and answer stay within the tokens of the turn.

    Raises ActorStoppedError if the prompt leaves none for an answer.
    """
    situation = {
        "you": turn.actor,
        "role": turn.role,
        "state": turn.state,
        "transcript": [asdict(entry) for entry in turn.transcript],
        "rejected": turn.rejected,
    }
    system = "\n\n".join((model.instructions, _FORMS[turn.replies], _DATA))
    texts = {"system": system, "user": json.dumps(situation, ensure_ascii=False)}
    left = turn.max_tokens - sum(len(text.encode("utf-8", "replace")) for text in texts.values())
    if left < 1:
        raise ActorStoppedError(
            EpisodeError(
                f"the prompt of actor `{turn.actor}` leaves no token for a reply",
                remedy="have call.tokens in policy/episodes.yaml raised, or run a shorter episode",
                code="episode_prompt_too_large",
            )
        )
    messages = [{"role": role, "content": text} for role, text in texts.items()]
    return Prompt(messages, min(model.max_output_tokens, left), model=model.name)


def _usage(done: Completion) -> dict[str, Any]:
    """What was used, as far as it is known; the rules estimate the rest."""
    used: dict[str, Any] = {}
    if done.tokens is not None:
        used["tokens"] = done.tokens.prompt + done.tokens.completion
    if done.cost is not None:
        used["spend_micros"] = int((done.cost.amount * _MICROS).to_integral_value(ROUND_CEILING))
    return used


def _refusal(done: Completion) -> EngineError:
    finding = next(one for one in done.answers[-1].decision.findings if one.level is not Level.WARN)
    return EpisodeError(f"the remote model: {required(finding)}", remedy=finding.remedy, code=finding.code)
