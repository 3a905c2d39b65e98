"""The exchange with a harness: each thing that it may say, in bounded lines, and that nothing else is taken for it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from admission_adapters.runner.harness import LINE_BYTES, Harness
from engine.errors import WorkError
from tests.expect import there

STARTED = {"id": "initialize", "result": {"capabilities": {}}}
DONE = {"id": "run", "result": {"outputs": {"invoke": "done"}}}


class Heard:
    """What a runner was told by the harness."""

    def __init__(self) -> None:
        self.reported: dict[str, Any] | None = None
        self.calls: list[tuple[Any, Any]] = []
        self.tools: list[Any] = []
        self.updates: list[dict[str, Any]] = []

    def started(self, reported: dict[str, Any]) -> None:
        self.reported = reported

    def advertised(self, tools: Any) -> None:
        self.tools.append(tools)

    def called(self, name: Any, arguments: Any) -> tuple[str, bool]:
        self.calls.append((name, arguments))
        return "found it", False

    def updated(self, update: dict[str, Any]) -> None:
        self.updates.append(update)


def line(message: Any) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message).encode()


def talked(*said: Any, ends: bool = True) -> tuple[Harness, Heard, list[dict[str, Any]]]:
    """An exchange with a harness that says these lines, then dies: itself, what it said, what it was sent."""
    heard, sent = Heard(), list[dict[str, Any]]()
    harness = Harness({"messages": []}, heard, ("c4nary",))
    harness.begin(lambda data: sent.append(json.loads(data)))
    harness.hear(b"".join(line(one) + b"\n" for one in said))
    if not ends:
        assert harness.over.wait(60)
    harness.end()
    return harness, heard, sent


def problem(*said: Any, ends: bool = True) -> str:
    """Why there is no result; the harness has ended the exchange itself unless it `ends`."""
    harness, _, _ = talked(*said, ends=ends)
    assert harness.result is None
    assert isinstance(harness.problem, WorkError)
    return harness.problem.message


def test_every_message_of_the_protocol_is_handled() -> None:
    call = {"id": 7, "method": "tools/call", "params": {"name": "lookup", "arguments": {"text": "ada"}}}
    harness, heard, sent = talked(
        STARTED,
        b"   ",
        {"method": "advertised", "params": {"tools": ["lookup"]}},
        {"method": "update", "params": {"at": 1}},
        {"method": "unknown", "params": {}},
        {"id": 8, "method": "unknown"},
        call,
        {"id": 9, "method": "tools/call", "params": {}},
        DONE,
        ends=False,
    )
    assert (harness.result, harness.problem) == (DONE["result"], None)
    assert (heard.reported, heard.tools, heard.updates) == (STARTED["result"], [["lookup"]], [{"at": 1}])
    assert heard.calls == [("lookup", {"text": "ada"}), (None, {})]
    assert [one["id"] for one in sent] == ["initialize", "run", 8, 7, 9]  # a notification gets no answer
    assert sent[2]["error"]["code"] == -32601
    assert sent[3]["result"] == {"content": [{"type": "text", "text": "found it"}], "isError": False}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ([{"id": "other", "result": {}}], "`initialize` was not answered first"),
        ([{"id": "initialize", "method": "update", "params": {}, "result": {}}], "`initialize` was not answered first"),
        ([STARTED, {"id": "other", "result": {}}], "`run` was not answered first"),
        ([STARTED, {"id": "run", "result": []}], "`result` is not an object"),
        ([STARTED, {"method": "tools/call", "params": {}}], "a call has no id"),
        ([STARTED, {"id": True, "method": "tools/call", "params": {}}], "a call has no id"),
        ([STARTED, {"id": 1, "method": "tools/call"}], "`params` is not an object"),
        ([STARTED, b"hello"], "a line is not a plain JSON object"),
        ([STARTED, b'{"id": "run", "id": "run"}'], "a line is not a plain JSON object"),
    ],
)
def test_a_harness_that_breaks_the_protocol_ends_the_run(said: list[Any], told: str) -> None:
    assert problem(*said, ends=False) == f"the harness broke the protocol: {told}"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"message": "no c4nary at /srv/models"}, "no [secret] at [path]"),
        ({"message": 7}, "it gave no reason"),
        ("bad", "it gave no reason"),
    ],
)
def test_harness_errors_are_sanitized(error: Any, told: str) -> None:
    assert problem(STARTED, {"id": "run", "error": error}, ends=False) == told
    assert problem({"id": "initialize", "error": error}, ends=False) == told


def padded(size: int) -> bytes:
    """A last line of exactly this many bytes."""
    return line(DONE) + b" " * (size - len(line(DONE)))


@pytest.mark.parametrize("pieces", [1, 3], ids=["at once", "in pieces"])
def test_a_line_may_have_exactly_the_longest_length_and_no_byte_more(pieces: int) -> None:
    def ended(text: bytes) -> Harness:
        harness = Harness({}, Heard())
        harness.begin(lambda _: None)
        size = len(text) // pieces + 1
        for at in range(0, len(text), size):
            harness.hear(text[at : at + size])
        assert harness.over.wait(60)
        harness.end()
        return harness

    begun = line(STARTED) + b"\n"
    assert ended(begun + padded(LINE_BYTES) + b"\n").result == DONE["result"]
    for more in (padded(LINE_BYTES + 1) + b"\n", padded(LINE_BYTES + 1)):  # the second one never ends
        found = ended(begun + more)
        assert found.result is None
        assert there(found.problem).message.endswith(f"a line is longer than {LINE_BYTES} bytes")


def test_a_line_of_maximum_length_may_arrive_before_its_newline() -> None:
    harness = Harness({}, Heard())
    harness.begin(lambda _: None)
    harness.hear(line(STARTED) + b"\n" + padded(LINE_BYTES))
    harness.hear(b"\n")
    assert harness.over.wait(60)
    harness.end()
    assert harness.result == DONE["result"]
    begun = Harness({}, Heard())
    begun.begin(lambda _: None)
    for piece in (line(STARTED) + b"\n", b"x" * LINE_BYTES, b"x"):
        begun.hear(piece)
    assert begun.over.wait(60)
    begun.end()
    assert there(begun.problem).message.endswith(f"a line is longer than {LINE_BYTES} bytes")


@pytest.mark.parametrize("said", [[], [STARTED], [STARTED, {"method": "update", "params": {}}]])
def test_a_harness_that_dies_reports_neither_result_nor_problem(said: Iterable[Any]) -> None:
    harness, _, _ = talked(*said)
    assert (harness.result, harness.problem, harness.over.is_set()) == (None, None, True)


def test_a_listener_exception_ends_the_run_and_is_reported_by_type() -> None:
    class Failing(Heard):
        def started(self, reported: dict[str, Any]) -> None:
            raise RuntimeError(f"c4nary: {reported}")

    harness = Harness({}, Failing())
    harness.begin(lambda _: None)
    harness.hear(line(STARTED) + b"\n")
    assert harness.over.wait(60)
    harness.end()
    assert there(harness.problem).message == "the exchange with the harness failed: RuntimeError"
