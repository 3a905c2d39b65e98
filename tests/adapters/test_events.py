"""The parts of a runner's answer: events as they come, one result at the end, and no token of the gate in either."""

from __future__ import annotations

import json
from typing import Any

import pytest

from admission_adapters.runner.answer import RunnerError
from admission_adapters.runner.events import EventLines

TOKEN = "c4nary-token"  # noqa: S105  (of a test)
RESULT = b'{"ok": true, "outputs": {}}'


def read(*chunks: bytes, token: str = "") -> tuple[list[dict[str, Any]], Any]:
    """The events, and the result."""
    seen: list[dict[str, Any]] = []
    lines = EventLines(seen.append, ("c4nary-secret",), token)
    for chunk in chunks:
        lines.feed(chunk)
    return seen, json.loads(lines.result())


def test_json_lines_and_server_sent_events_are_parsed_as_events() -> None:
    wanted = ([{"at": 1}, {"at": 2}], {"ok": True, "outputs": {}})
    assert read(b'{"at": 1}\n{"at"', b": 2}\r\n", RESULT) == wanted
    assert read(b': hello\nid: 1\nretry: 5\ndata: {"at": 1}\n\ndata:{"at":\ndata: 2}\n\ndata: ' + RESULT) == wanted
    named = read(b'event: step\ndata: {"at": 1}\n\ndata: {"at": 2}\n\n', RESULT)[0]
    assert named == [{"type": "step", "at": 1}, {"at": 2}]
    assert read(b'{"error": "no c4nary-secret at /srv/x"}\n', RESULT)[0] == [{"error": "no [secret] at [path]"}]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b'{"at": 1}\n', "it ended without a result"),
        (b"", "it ended without a result"),
        (RESULT + b"\n" + RESULT + b"\n", "it goes on after its result"),
        (RESULT + b'\n{"at": 1}\n', "it goes on after its result"),
        (b"hello\n", "a part of it is no event"),
        (b"data: [1]\n\n", "a part of it is not a plain JSON object"),
        (b'{"a": 1, "a": 2}\n', "a part of it is not a plain JSON object"),
        (b'{"ok": "yes"}\n', "it ended without a result"),
        (b'{"at": "c4nary-token"}\n' + RESULT, "it contains the token of this gate"),
        (b'{"ok": true, "outputs": "c4nary-token"}\n', "it contains the token of this gate"),
    ],
)
def test_an_answer_that_is_not_events_and_one_result_is_refused(answer: bytes, told: str) -> None:
    with pytest.raises(RunnerError) as caught:
        read(answer, token=TOKEN)
    assert caught.value.message == f"the runner's answer cannot be passed on: {told}"


def test_a_token_like_value_passes_if_no_token_was_sent() -> None:
    assert read(b'{"at": "c4nary-token"}\n', RESULT)[0] == [{"at": "c4nary-token"}]
