"""The facts of a tool call: one input for every shape, and nothing of the arguments but what rules speak about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.model import Caller, Via
from engine.points import GatherContext
from engine.points.tool_call import PREFIXES, ToolCallInput, ToolCallRequest, gather
from engine.policy_bundle.lookups import Lookups
from engine.state.rows import PrefixRow
from tests.conftest import FORMS
from tests.expect import of, there
from tests.facts.test_tool_calls import shapes

TYPES = {"path": "path", "url": "url", "command": "command", "note": "text", "body": "data"}


class _OfEveryTool(dict[str, dict[str, str]]):
    def get(self, *_: Any) -> Any:
        return TYPES


LOOKUPS = Lookups(argument_types=_OfEveryTool(), programs={"git": {"operands": "subcommand"}}, forms=FORMS)
WORLD = GatherContext(clock=lambda: 7, boundaries=lambda: (), lookups=LOOKUPS)
ARGUMENTS = {
    "path": "notes.txt",
    "url": "https://docs.example.com/a?b=c",
    "command": ["git", "status"],
    "note": "see https://evil.org/",
    "body": {"to": ["http://127.0.0.1:8080/x"], "inner": '{"p": "/etc/passwd"}', "password": "hunter2"},
}
TOKEN = "ghp_" + "a1B2" * 9


def facts(call: Any, context: GatherContext = WORLD, **rest: Any) -> ToolCallInput:
    request = ToolCallRequest.model_validate_json(json.dumps({"call": call, **rest}))
    return of(ToolCallInput, gather(request, context).input)


# covers: B07 B10 B26 B27
@pytest.mark.parametrize(
    "arguments", [ARGUMENTS, {}, {"body": "x" * 5_000}, {"body": {"n": 2**60}}, {"command": "a;b"}]
)
def test_every_shape_gives_the_same_input(arguments: dict[str, Any]) -> None:
    rest: dict[str, Any] = {
        "policy": "assistant",
        "profile": "coding",
        "cwd": "/work",
        "environment": {"reset": True, "checkpoint": False},
    }
    found = {facts(call, **rest).model_dump_json() for call in shapes("files_read", arguments).values()}
    assert len(found) == 1


def test_a_call_has_its_complete_expected_input() -> None:
    found = facts(shapes("files_read", ARGUMENTS)["own"], policy="assistant", cwd="/nowhere").model_dump(
        exclude_none=True
    )
    call = found.pop("call")
    assert found == {
        "context": {"policy": "assistant", "cwd": "/nowhere"},
        "destinations": (
            {"id": "arguments/body/to/0", "canonical": True, "origin": "http://127.0.0.1:8080", "path": "/x"},
            {"id": "arguments/url", "canonical": True, "origin": "https://docs.example.com", "path": "/a"},
            {
                "id": "arguments/command",
                "canonical": False,
                "command": "arguments/command",
                "place": 1,
                "word": {"command": "arguments/command", "index": 1, "label": True, "remote": False},
            },
        ),
        "paths": (
            {"id": "arguments/body/inner/p", "canonical": True, "path": "/etc/passwd", "links": "none"},
            {
                "id": "arguments/path",
                "canonical": True,
                "path": "/nowhere/notes.txt",
                "below_cwd": "notes.txt",
                "links": "none",
            },
        ),
        "misfits": (),
        "values": (),
        "commands": (
            {
                "id": "arguments/command",
                "canonical": True,
                "words": ("git", "status"),
                "short": (),
                "touches": ("/nowhere/status",),
                "patterns": (),
                "links": "none",
                "form": "argv",
                "parts": 1,
            },
        ),
        "command_parts": (
            {
                "id": "arguments/command",
                "command": "arguments/command",
                "kind": "subcommand",
                "name": "subcommand",
                "program": "git",
                "index": 1,
            },
        ),
        "secrets": ({"id": "arguments/body/password"},),
        "unreadable": (),
        "adds": (),
    }
    assert call["tool"] == "files_read"
    assert (call["readable"], call["complete"], call["depth"], call["count"]) == (True, True, 4, 14)
    assert [one["id"] for one in call["arguments"]] == [f"arguments/{name}" for name in sorted(ARGUMENTS)]
    assert "hunter2" not in call["summary"]


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}', "[" * 1_000, " ", "[]", "not json"])
def test_unreadable_arguments_are_reported_as_a_fact(text: str) -> None:
    found = facts({"type": "function", "function": {"name": "f", "arguments": text}})
    assert (found.call.readable, found.call.complete, found.call.summary) == (False, False, "")
    assert found.call.bytes == len(text)


def test_a_secret_in_arguments_without_a_reading_is_seen() -> None:
    found = facts({"type": "function", "function": {"name": "f", "arguments": f'{{"a": "{TOKEN}", "a": 1}}'}})
    assert [one.id for one in found.secrets] == ["arguments"]
    assert TOKEN not in found.model_dump_json()


# covers: B26
@pytest.mark.parametrize(
    "command",
    [
        ["mysql", "--password", "hunter2"],
        "mysql --password hunter2",
        "curl -u bob:hunter2 https://api.example.com/x",
        "PGPASSWORD=hunter2 psql",
        "mysql --password hunter2; ls",
        ["tool", "--api-key", "hunter2/a"],
    ],
)
def test_a_secret_that_a_command_hands_on_is_nowhere_in_the_input(command: Any) -> None:
    found = facts({"name": "f", "arguments": {"command": command}}, cwd="/work")
    assert found.secrets
    assert not found.commands[0].canonical
    assert "hunter2" not in found.model_dump_json()


# covers: B26 B27
def test_no_secret_and_no_long_argument_gets_into_the_input() -> None:
    arguments = {
        "body": {TOKEN: TOKEN, "x": [TOKEN]},
        TOKEN: "x",
        "note": f"{'long ' * 1_000}{TOKEN}",
        "command": ["login", "a"],
    }
    text = facts(shapes("f", arguments)["own"]).model_dump_json()
    assert TOKEN not in text
    assert len(text) < 2_500


@pytest.mark.full
def test_arguments_of_ten_megabytes_are_not_walked() -> None:
    found = facts({"name": "f", "arguments": {"body": ["x" * 100_000] * 100}})
    assert (found.call.readable, found.call.complete, found.call.summary_cut) == (True, False, True)
    assert found.call.bytes > 10_000_000


@pytest.mark.parametrize("cwd", ["", "work", "/work/", "/work/../x", "//", "/work\n", "~"])
def test_a_non_canonical_working_directory_is_refused(cwd: str) -> None:
    with pytest.raises(ValueError, match="cwd"):
        facts({"name": "f", "arguments": {}}, cwd=cwd)


def test_links_are_looked_for_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    call = {"name": "f", "arguments": {"path": f"{tmp_path}/link/passwd"}}
    assert facts(call).paths[0].links == "linked"
    inside = GatherContext(WORLD.clock, WORLD.boundaries, lookups=LOOKUPS, root=tmp_path)
    assert facts(call, inside).paths[0].links == "linked"
    outside = GatherContext(WORLD.clock, WORLD.boundaries, lookups=LOOKUPS, root=tmp_path / "other")
    assert facts(call, outside).paths[0].links == "unknown"


KEY = "AKIAIOSFODNN7EXAMPLF"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


@pytest.mark.parametrize(
    ("definition", "valid", "misfits"),
    [
        ({"name": "f", "input_schema": SCHEMA}, True, []),
        ({"type": "function", "function": {"name": "f", "parameters": SCHEMA}}, True, []),
        ({"name": "f", "inputSchema": {**SCHEMA, "required": ["other"]}}, True, ["arguments/other"]),
        ({"name": "f", "inputSchema": {**SCHEMA, "required": ["two words", "\u00e9", KEY]}}, True, ["arguments"]),
        ({"name": "f", "inputSchema": {**SCHEMA, "minProperties": 2}}, True, ["arguments"]),
        ({"name": "g", "inputSchema": SCHEMA}, True, ["arguments"]),
        ({"name": "f"}, False, ["arguments"]),
        ({"name": "f", "inputSchema": {"type": "objekt"}}, False, ["arguments"]),
        ({"name": "f", "inputSchema": {"$ref": "https://evil.org/"}}, False, ["arguments"]),
        ({"name": 5}, False, ["arguments"]),
        ({}, False, ["arguments"]),
    ],
)
def test_a_definition_is_checked_for_validity_and_fit(
    definition: dict[str, Any],
    valid: bool,  # noqa: FBT001
    misfits: list[str],
) -> None:
    found = facts({"name": "f", "arguments": {"path": "a"}}, definition=definition)
    assert (there(found.definition).schema_valid, [one.id for one in found.misfits]) == (valid, misfits)
    unread = facts({"type": "function", "function": {"name": "f", "arguments": "x"}}, definition=definition)
    assert [one.id for one in unread.misfits] == ["arguments"]


def test_nothing_is_unfit_without_a_definition() -> None:
    assert facts({"name": "f", "arguments": {"path": "a"}}).misfits == ()


class Rows:
    """A store that knows what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def prefixes(self, principal: str | None, cwd: str | None, limit: int) -> tuple[PrefixRow, ...]:
        self.asked.append((principal, cwd, limit))
        return (
            PrefixRow("alice", "/work", "shell", ("git",), "bob", 1, 9, "1"),
            PrefixRow("alice", "/work", "shell", ("ls",), "bob", 1, 9, "2", revoked_at=5),
        )


def state(call: Any, caller: Caller, **rest: Any) -> tuple[Any, list[Any]]:
    gathered = gather(ToolCallRequest.model_validate_json(json.dumps({"call": call, **rest})), WORLD)
    rows = Rows()
    return None if gathered.state is None else gathered.state(rows, caller), rows.asked  # type: ignore[arg-type]


# covers: B09
def test_approved_prefixes_are_those_of_the_caller_in_this_folder() -> None:
    call = {"name": "shell", "arguments": {"command": "git status"}}
    known, asked = state(call, Caller(via=Via.PROCESS, principal="alice"), cwd="/work")
    assert asked == [("alice", "/work", PREFIXES)]
    assert known["prefixes"][0] == {
        "id": "1",
        "tool": "shell",
        "principal": "alice",
        "cwd": "/work",
        "words": ["git"],
        "approver": "bob",
        "expires_at": 9,
        "revoked": False,
    }
    assert known["prefixes"][1]["revoked"]


# covers: B09
def test_prefixes_are_queried_only_with_principal_folder_and_command() -> None:
    alice, nobody = Caller(via=Via.PROCESS, principal="alice"), Caller(via=Via.PROCESS)
    call = {"name": "shell", "arguments": {"command": "git status"}}
    nothing: Any = ({"agents": []}, [])
    assert state(call, nobody, cwd="/work") == nothing
    assert state(call, alice) == nothing
    assert state({"name": "shell", "arguments": {"path": "a"}}, alice, cwd="/work") == nothing
