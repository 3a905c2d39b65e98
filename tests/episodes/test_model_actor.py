"""The remote model as an actor, over real TLS on loopback: its prompt, its replies, and calls that are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from engine.episodes.actors import ActorStoppedError, Entry, Turn
from engine.episodes.definition import ModelActor, definition_of
from engine.episodes.model_actor import prompt_of
from engine.errors import GatherError
from engine.settings import ReadLimits, Settings
from tests.command import decisions
from tests.episodes.scripts import episode, proposal
from tests.expect import there
from tests.llm.server import KEY, MODEL, ModelServer, World, completion, failed, model_serving, variables, world_of

INSTRUCTIONS = "You buy a bicycle for less than 105."
THOUGHT = "At least 95."


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, module_settings: Settings) -> Iterator[World]:
    with model_serving(tmp_path_factory.mktemp("authority")) as server, world_of(server, module_settings) as found:
        yield found


def asked(retries: int = 2, **model: Any) -> Any:
    """agent_a is a script, agent_b the model."""
    document = episode([proposal(resolution=True, dialogue="100?", monologue=THOUGHT)], [proposal()]).model_dump(
        mode="json"
    )
    document["actors"][1] |= {"script": None, "model": {"name": MODEL, "instructions": INSTRUCTIONS, **model}}
    document["ceilings"] |= {"max_turns": 2, "retries": retries}
    return definition_of(document, "test", ReadLimits())


def said(server: ModelServer, *texts: str) -> None:
    server.answers(*(completion(text) for text in texts))


def test_the_model_takes_its_turns(world: World) -> None:
    said(world.server, '{"propose_resolution": true, "dialogue": "Agreed."}')
    done = world.engine.episode(asked(max_output_tokens=200))
    end = there(done.end)
    assert (end.reason, end.tokens, end.spend_micros) == ("completed", 100 + 42, 10 + 53)
    assert [(one["author"], one["text"]) for one in done.transcript][-1] == ("agent_b", "Agreed.")
    (body,) = world.server.bodies()
    system, user = body["messages"]
    assert (body["model"], body["max_tokens"]) == (MODEL, 200)
    assert INSTRUCTIONS in system["content"]
    told = json.loads(user["content"])
    assert (told["you"], told["rejected"]) == ("agent_b", [])
    assert told["transcript"] == [{"author": "agent_a", "role": "Actor", "kind": "dialogue", "text": "100?"}]
    assert told["state"]["Agent_B_Concessions"] == {"price": 80}
    assert THOUGHT not in json.dumps(body)
    recorded = [one for one in decisions(world.engine.settings.state) if one["point"] == "llm"]
    assert [(one["outcome"], one["mode"]) for one in recorded] == [("allow", "enforce")]


def test_a_reply_that_is_not_one_json_object_is_rejected_and_retried(world: World) -> None:
    said(world.server, 'Sure: {"propose_resolution": true}', '{"propose_resolution": true}')
    done = world.engine.episode(asked())
    assert [one.codes for one in done.rejections] == [("proposal_not_json",)]
    assert there(done.end).reason == "completed"
    assert json.loads(world.server.bodies()[1]["messages"][1]["content"])["rejected"] == ["proposal_not_json"]


def test_a_provider_without_an_answer_is_a_missing_reply(world: World) -> None:
    world.server.answers(failed("400 Bad Request"))
    done = world.engine.episode(asked(retries=0))
    assert [one.codes for one in done.rejections] == [("reply_missing",)]
    assert (done.concessions, there(done.end).penalties["agent_b"]) == ({"agent_b": 1}, 1)


def test_a_call_that_is_not_allowed_stops_the_episode_which_goes_on_later(world: World) -> None:
    said(world.server, '{"propose_resolution": true}')
    other = world.engine.episode(asked(name="gpt-other"))
    assert (other.end, there(other.fault).code) == (None, "model_not_admitted")
    world.configured(variables(world.server) | {"AGENT_DATA_API_KEY": ""})
    stopped = world.engine.episode(asked(), episode="later")
    assert (stopped.end, there(stopped.fault).code) == (None, "model_variable_missing")
    assert "model_variable_missing (missing/AGENT_DATA_API_KEY): required: Each variable" in str(stopped.fault)
    assert world.server.requests == []
    assert stopped.rejections == ()
    world.configured(variables(world.server))
    done = world.engine.episode(asked(), episode="later")
    assert there(done.end).reason == "completed"
    assert there(done.end).penalties == {"agent_a": 0, "agent_b": 0}
    records = b"".join(path.read_bytes() for path in (world.engine.settings.state / "records").rglob("*.jsonl"))
    assert KEY.encode() not in records
    assert INSTRUCTIONS.encode() not in records


def test_prompt_and_answer_stay_within_the_tokens_of_the_turn() -> None:
    model = ModelActor(name=MODEL, instructions=INSTRUCTIONS, max_output_tokens=5_000)
    entries = (Entry("agent_a", "Actor", "dialogue", "é" * 500),)
    turn = Turn("agent_b", "Actor", entries, {}, 3_000, 1_000, 0)
    prompt = prompt_of(model, turn)
    sent = sum(len(one["content"].encode()) for one in prompt.messages)
    assert sent > 1_000
    assert prompt.max_output_tokens == 3_000 - sent
    with pytest.raises(ActorStoppedError, match="leaves no token"):
        prompt_of(model, Turn("agent_b", "Actor", entries, {}, sent, 1_000, 0))
    text = prompt_of(model, Turn("judge", "Judge", (), {}, 3_000, 1_000, 0, (), "text")).messages[0]["content"]
    assert "plain text" in text
    assert "JSON object" not in text


@pytest.mark.parametrize(
    "change",
    [
        {"name": MODEL},
        {"name": "two words", "instructions": "x"},
        {"name": MODEL, "instructions": ""},
        {"name": MODEL, "instructions": "x", "max_output_tokens": 0},
        {"name": MODEL, "instructions": "x", "key": "y"},
        "script",
    ],
)
def test_a_model_that_is_not_described_is_refused(change: Any) -> None:
    document = asked().model_dump(mode="json")
    actor = document["actors"][1]
    if change == "script":
        actor["script"] = [proposal()]
    else:
        actor["model"] = change
    with pytest.raises(GatherError):
        definition_of(document, "test", ReadLimits())
