"""A call is the same call in every shape, and argument text has one reading or none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from engine.documents.canonical import canonical
from engine.documents.strict_json import LEVELS, AmbiguousJsonError, NotJsonError, read_strict
from engine.facts.tools.calls import Call, ToolCall, call_of

ADAPTER: TypeAdapter[Any] = TypeAdapter(ToolCall)
ARGUMENTS = {"path": "notes.txt", "deep": [{"a": 1.5}]}


def shapes(name: str, arguments: Any) -> dict[str, dict[str, Any]]:
    text = json.dumps(arguments, indent=1)
    return {
        "own": {"name": name, "arguments": arguments},
        "openai": {"id": "1", "type": "function", "function": {"name": name, "arguments": text}},
        "responses": {"type": "function_call", "call_id": "2", "name": name, "arguments": text, "status": "completed"},
        "anthropic": {"type": "tool_use", "id": "3", "name": name, "input": arguments},
        "mcp": {
            "jsonrpc": "2.0",
            "id": 4,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments, "_meta": {"progressToken": 1}},
        },
        "langchain": {"name": name, "args": arguments, "id": "5", "type": "tool_call"},
        "langchain_untyped": {"name": name, "args": arguments, "id": None},
        "gemini": {"functionCall": {"name": name, "args": arguments, "id": "6"}},
        "bedrock": {"toolUse": {"toolUseId": "7", "name": name, "input": arguments}},
    }


def read(call: Any) -> Call:
    return call_of(ADAPTER.validate_json(json.dumps(call)))


@pytest.mark.parametrize("shape", shapes("f", {}))
def test_a_call_is_the_same_in_every_shape(shape: str) -> None:
    assert read(shapes("files_read", ARGUMENTS)[shape]) == Call("files_read", ARGUMENTS, canonical(ARGUMENTS))


@pytest.mark.parametrize(
    "call",
    [
        {"type": "function", "function": {"name": "f", "arguments": ""}},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": ""},
        {"function": {"name": "f", "arguments": {}}},
        {"functionCall": {"name": "f", "args": None}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "f", "arguments": None}},
    ],
)
def test_a_call_may_have_no_arguments(call: Any) -> None:
    assert read(call) == Call("f", {}, b"{}")


def test_ollama_and_the_python_sdk_of_gemini_write_calls_so() -> None:
    ollama = {"function": {"index": 0, "name": "files_read", "arguments": ARGUMENTS}}
    part = {"id": None, "name": "files_read", "args": ARGUMENTS, "partial_args": None, "will_continue": None}
    gemini = {"text": None, "function_call": part, "function_response": None}
    for call in (ollama, gemini):
        found = read(call)
        assert (found.tool, found.arguments) == ("files_read", ARGUMENTS)


def test_only_mcp_and_gemini_may_leave_arguments_out() -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "f"}}
    assert read(call) == read({"functionCall": {"name": "f"}}) == Call("f", {}, b"{}")
    for bare in ({"name": "f"}, {"name": "f", "type": "tool_call"}, {"toolUse": {"toolUseId": "1", "name": "f"}}):
        with pytest.raises(ValidationError):
            read(bare)


@pytest.mark.parametrize(
    "call",
    [
        None,
        "f",
        [],
        {},
        {"name": "", "arguments": {}},
        {"name": "x" * 129, "arguments": {}},
        {"name": "f", "arguments": "{}"},
        {"name": "f", "arguments": []},
        {"name": "f", "arguments": None},
        {"name": "f", "arguments": {}, "extra": 1},
        {"name": "f", "arguments": {}, "input": {}},
        {"name": "f", "arguments": {}, "function": {"name": "g", "arguments": "{}"}},
        {"name": "f", "arguments": {}, "method": "tools/call"},
        {"type": "function", "function": {"name": "f", "arguments": None}},
        {"type": "function", "function": {"name": "f", "arguments": "{}"}, "name": "g"},
        {"functionCall": {"name": "f", "args": {}, "partialArgs": [{"jsonPath": "$.a"}]}},
        {"functionCall": {"name": "f", "args": {}, "arguments": None}},
        {"type": "function_call", "name": "f", "arguments": "{}"},
        {"type": "tool_use", "id": "1", "name": "f", "arguments": {}},
        {"type": "tool_result", "id": "1", "name": "f", "input": {}},
        {"type": 1, "name": "f", "arguments": {}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"name": "f"}},
        {"jsonrpc": "1.0", "id": 1, "method": "tools/call", "params": {"name": "f"}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "f"}, "name": "g"},
        {"name": "f", "args": "{}", "type": "tool_call"},
        {"name": "f", "args": {}, "arguments": {}},
        {"name": "f", "args": {}, "input": {}, "type": "tool_use", "id": "1"},
        {"functionCall": {"name": "f", "args": {}, "arguments": {}}},
        {"functionCall": {"name": "f", "partialArgs": [{"jsonPath": "$.a", "stringValue": "b"}]}},
        {"functionCall": {"name": "f"}, "toolUse": {"toolUseId": "1", "name": "g", "input": {}}},
        {"functionCall": {"name": "f"}, "function": {"name": "g", "arguments": "{}"}},
        {"functionCall": {"name": "f"}, "function_call": {"name": "g"}},
        {"functionCall": {"name": "f", "partial_args": [{"jsonPath": "$.a", "stringValue": "b"}]}},
        {"toolUse": {"toolUseId": "1", "name": "f", "input": {}}, "tool_use": {"name": "g", "input": {}}},
        {"name": "f", "args": {}, "toolName": "g"},
        {"name": "f", "args": {}, "parameters": {"a": 1}},
        {"toolUse": {"toolUseId": "1", "name": "f", "input": []}},
        {"toolUse": {"toolUseId": "1", "name": "f", "input": {}}, "name": "g"},
    ],
)
def test_a_malformed_or_mixed_call_shape_is_refused(call: Any) -> None:
    with pytest.raises(ValidationError):
        read(call)


@pytest.mark.parametrize(
    "text",
    [" ", "x", "[]", '"{}"', "null", "{} {}", "{'a': 1}", '{"a": 1,}', '{"a": 1, "a": 1}', '{"x": {"a": 1, "a": 2}}',
     '{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', '{"a": "\\ud800"}', '{"a": ' + "9" * 5_000 + "}",
     '{"a": ' + "[" * 1_000 + "]" * 1_000 + "}", "\ufeff{}", '{"a": 01}', "{", '{"a":\x00 1}', "/**/{}"],
)  # fmt: skip
def test_text_without_one_reading_is_a_fact(text: str) -> None:
    call = read({"type": "function", "function": {"name": "f", "arguments": text}})
    assert call == Call("f", None, text.encode("utf-8"))


def test_arguments_without_a_json_form_are_absent() -> None:
    call = ADAPTER.validate_python({"name": "f", "arguments": {"a": float("nan")}})
    assert call_of(call) == Call("f", None, b"")


def test_nesting_levels_are_counted_outside_strings() -> None:
    assert read_strict('["' + "[" * 500 + '\\"' + "{" * 500 + '\\\\"]')
    assert read_strict("[" * LEVELS + "]" * LEVELS)
    assert len(read_strict("[" + "[]," * 500 + "[]]")) == 501
    with pytest.raises(AmbiguousJsonError):
        read_strict("[" * (LEVELS + 1) + "]" * (LEVELS + 1))
    with pytest.raises(AmbiguousJsonError):
        read_strict("[" * 1_000_000)


@given(st.text(max_size=40) | st.text(alphabet='{}[]":,\\u0dNa1e9- ', max_size=40))
def test_reading_gives_a_value_with_json_or_says_why_not(text: str) -> None:
    try:
        value = read_strict(text)
    except (NotJsonError, AmbiguousJsonError):
        return
    assert json.loads(canonical(value)) == value


@pytest.mark.parametrize("shape", ["openai", "mcp"])
def test_a_block_has_at_most_64_fields(shape: str) -> None:
    call = shapes("f", {})[shape]
    more = {f"vendor_{number}": None for number in range(64 - len(call))}
    assert read(call | more).added == tuple(sorted(more))
    with pytest.raises(ValidationError, match="at most 64 fields"):
        read(call | more | {"one_more": None})
