"""The part of a history for the next prompt: old tool outputs are omitted from the prompt, not from the history.

Outputs are messages of the role `tool` (OpenAI), `function_call_output` (Responses), and `tool_result`
blocks (Anthropic). Row B29.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PromptView:
    """A copy of a history for one prompt. `left_out` counts the omitted outputs, `bytes` the size of the others.

    `fits` is false if the newest output alone exceeds the limit: it always stays.
    """

    messages: list[Any]
    left_out: int
    bytes: int
    fits: bool


def prompt_view(history: Sequence[Any], most: int) -> PromptView:
    """The history with at most `most` bytes of tool outputs: the newest stay, older ones become a mark.

    A mark is not counted, and never longer than its output: a very short one becomes an empty text.

    `most` is `prompt_bytes` in the metadata of the last ToolResult. Nothing in the view is shared with
    the history, which stays unchanged.
    """
    messages = deepcopy(list(history))
    outputs = list(_outputs(messages))
    sizes = [_size(holder[key]) for holder, key in outputs]
    total, left_out = sum(sizes), 0
    for (holder, key), size in zip(outputs[:-1], sizes, strict=False):
        if total <= most:
            break
        marks = (f"[output of {size} bytes left out of the prompt]", "[left out]", "")
        holder[key] = next(mark for mark in marks if len(mark) <= size)  # so that the prompt never grows
        total, left_out = total - size, left_out + 1
    return PromptView(messages, left_out, total, total <= most)


def _outputs(messages: list[Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """The position of each output, oldest first."""
    for message in messages:
        if not isinstance(message, dict):
            continue
        if message.get("role") == "tool" and "content" in message:
            yield message, "content"
        elif message.get("type") == "function_call_output" and "output" in message:
            yield message, "output"
        elif isinstance(blocks := message.get("content"), list):
            for block in blocks:
                if isinstance(block, dict) and block.get("type") == "tool_result" and "content" in block:
                    yield block, "content"


def _size(content: Any) -> int:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
    return len(text.encode("utf-8", "surrogatepass"))
