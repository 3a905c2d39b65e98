"""The contract of an answer: server-sent events in every form that the standard has, and no half of one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from admission_adapters.llm_answer import ModelAnswer, Tokens, plain_answer, streamed_answer

USAGE = {"prompt_tokens": 12, "completion_tokens": 30}
KNOWN = Tokens(12, 30)


def chunk(text: str | None = None, finish: str | None = None, **more: Any) -> str:
    choices = [{"index": 0, "delta": {} if text is None else {"content": text}, "finish_reason": finish}]
    return json.dumps({"object": "chat.completion.chunk", "model": "m", "choices": choices, **more})


def events(*data: str) -> bytes:
    return "".join(f"data: {one}\n\n" for one in data).encode()


WHOLE = (chunk("a"), chunk("b", "stop"), chunk(usage=USAGE, choices=[]), "[DONE]")
READ = ModelAnswer("ab", "m", "stop", KNOWN)


def test_every_form_of_an_event_is_read() -> None:
    whole = events(*WHOLE)
    assert streamed_answer(whole) == READ
    for end in (b"\r\n", b"\r"):
        assert streamed_answer(whole.replace(b"\n", end)) == READ
    assert streamed_answer(whole.replace(b"data: ", b"data:")) == READ
    assert streamed_answer(b": ping\n\n" + whole.replace(b"data: ", b"event: x\nid: 1\nretry: 5\ndata: ")) == READ
    assert streamed_answer(whole.replace(b"data: [DONE]", b": ping\n\n\ndata: [DONE]")) == READ
    pretty = json.dumps(json.loads(WHOLE[0]), indent=1).replace("\n", "\ndata: ")  # one event in several lines
    assert streamed_answer(events(pretty, *WHOLE[1:])) == READ


def test_the_last_stated_usage_counts() -> None:
    early = (chunk("a", usage={"prompt_tokens": 12, "completion_tokens": 1}), chunk("b", usage=USAGE))
    assert streamed_answer(events(*early, chunk(finish="stop"), "[DONE]")) == READ
    assert streamed_answer(events(chunk("ab", "stop"), "[DONE]")) == ModelAnswer("ab", "m", "stop", None)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\n\n",
        events(*WHOLE)[:-1],
        events(*WHOLE) + b"data: {",
        events(*WHOLE) + b"data: [DONE]\n",
        events(*WHOLE, "[DONE]"),
        events("[DONE]", *WHOLE),
        events(*WHOLE[:-1]),
        events(chunk("a"), "[DONE]"),
        events(chunk("a", "stop"), chunk("b", "stop"), "[DONE]"),
        events("[DONE]"),
        events(*WHOLE).replace(b"data: ", b"text: "),
        events(*WHOLE).decode().encode("utf-16"),
    ],
    ids=[
        "nothing", "a line", "a blank line", "torn", "half an event behind it", "an end without its end", "two ends",
        "an end first", "no end", "no reason", "two reasons", "an end alone", "other fields", "other encoding",
    ],
)  # fmt: skip
def test_an_incomplete_or_malformed_stream_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  (whatever says so)
        streamed_answer(data)


def test_a_plain_answer_has_one_choice_of_text() -> None:
    whole: dict[str, Any] = {
        "object": "chat.completion", "model": "m", "usage": USAGE,
        "choices": [{"message": {"role": "assistant", "content": "ab"}, "finish_reason": "stop"}],
    }  # fmt: skip
    assert plain_answer(json.dumps(whole).encode()) == READ
    assert plain_answer(json.dumps(whole | {"usage": None}).encode()).tokens is None
    others: list[dict[str, Any]] = [{"choices": whole["choices"] * 2}, {"choices": []}, {"object": "other"}]
    for changes in others:
        with pytest.raises(ValueError):  # noqa: PT011
            plain_answer(json.dumps(whole | changes).encode())
