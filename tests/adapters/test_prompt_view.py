"""Pruning: old outputs of tools leave the prompt, and never the history."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from admission_adapters.tools.prompt_view import PromptView, prompt_view


def openai(text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "c", "content": text}


def responses(text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": "c", "output": text}


def anthropic(text: str) -> dict[str, Any]:
    blocks = [{"type": "text", "text": "x" * 500}, {"type": "tool_result", "tool_use_id": "c", "content": text}]
    return {"role": "user", "content": blocks}


# covers: B29.1-2
@pytest.mark.parametrize("shape", [openai, responses, anthropic])
def test_old_outputs_leave_the_view_and_stay_in_the_history(shape: Any) -> None:
    history = [{"role": "user", "content": "y" * 1000}, *(shape(letter * 100) for letter in "abcd"), "noise", 7]
    before = deepcopy(history)
    view = prompt_view(history, 200)
    assert history == before
    shown = json.dumps(view.messages)
    assert [letter * 100 in shown for letter in "abcd"] == [False, False, True, True]
    assert shown.count("[output of 100 bytes left out of the prompt]") == view.left_out == 2
    assert (len(view.messages), view.fits) == (len(history), True)
    assert view.bytes == 200
    assert "y" * 1000 in shown  # what no tool gave is not counted and stays


# covers: B29
def test_within_the_limit_nothing_is_left_out() -> None:
    history = [openai("a" * 100), openai("b" * 100)]
    view = prompt_view(history, 200)
    assert (view.messages, view.left_out, view.bytes, view.fits) == (history, 0, 200, True)
    assert prompt_view(history, 199).left_out == 1


def test_the_newest_output_is_kept_even_if_the_view_does_not_fit() -> None:
    view = prompt_view([openai("a" * 100), openai("é" * 100)], 150)
    assert view.messages[1]["content"] == "é" * 100
    assert (view.left_out, view.fits, view.bytes) == (1, False, 200)


def test_the_view_shares_nothing_with_the_history() -> None:
    history: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "x"}]}]
    view = prompt_view(history, 10)
    view.messages[0]["content"][0]["text"] = "changed"
    assert history[0]["content"][0]["text"] == "x"


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool"},
        {"role": "user", "content": "x" * 500},
        {"type": "function_call_output"},
        {"type": "function_call", "output": "x" * 500},
        {"role": "user", "content": [{"type": "tool_result"}]},
        {"role": "user", "content": [{"type": "text", "content": "x" * 500}]},
        {"role": "user", "content": [["x" * 500]]},
    ],
)
def test_messages_without_tool_output_are_neither_counted_nor_pruned(message: dict[str, Any]) -> None:
    history = [message, openai("a"), openai("b")]
    assert prompt_view(history, 2) == PromptView(history, 0, 2, fits=True)
    assert prompt_view(history, 1).left_out == 1  # the control: outputs are counted


# covers: B29.1
@pytest.mark.parametrize(
    ("size", "mark"),
    [
        (1, ""),
        (9, ""),
        (10, "[left out]"),
        (42, "[left out]"),
        (43, "[output of 43 bytes left out of the prompt]"),
    ],
)
def test_a_short_output_is_left_out_too_and_no_mark_is_longer(size: int, mark: str) -> None:
    history = [openai("a" * size)] * 50 + [openai("b" * 20)]
    view = prompt_view(history, 20)
    assert view == PromptView([openai(mark)] * 50 + [openai("b" * 20)], 50, 20, fits=True)


def test_an_output_in_pieces_is_measured_as_json() -> None:
    pieces = [{"type": "text", "text": "a" * 100}]
    view = prompt_view([{"role": "tool", "content": pieces}, openai("b")], 50)
    assert (view.left_out, view.fits) == (1, True)
    assert prompt_view([], 0).messages == []
