"""Law 1: no fact that is missing or of another type widens a decision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from engine.cases.run import CaseFile, Runner
from engine.documents.files import load
from engine.facts.archives.source_bundle import DOCUMENT
from engine.facts.code.boundaries import BOUND_NAMES
from engine.model import Mode
from engine.settings import ReadLimits
from tests.conftest import BUNDLES, case_id
from tests.lanes import examples, first_of, lane
from tests.laws.asking import (
    NARROWED,
    ON_BUNDLES,
    PROPOSED,
    RANK,
    codes,
    context,
    document,
    facts,
    mutated,
    outcomes,
    payload,
    read_for,
    shape,
    taken,
)
from tests.laws.mutations import DROPPED, Path_, generic, get, paths, with_value

STATED_ANSWERS = {
    "export_license": "null says that nothing will be exported",
    "url": "null says that the material has no address",
    "retrieved_at": "may be absent, and asked of external material only",
    "kind": "absent says offline fixture (A05)",
}
"""Fields of a source bundle whose absence or null is an answer and not a missing fact."""


FIELDS = {
    path[-1]
    for path in paths(
        json.loads(
            json.dumps(load((BUNDLES / "external_contacts" / DOCUMENT).read_bytes(), DOCUMENT, ReadLimits()).value)
        )
    )
}
"""Every field that format 1 knows."""


FIRST = first_of(NARROWED, lambda file: file.case.point)


NONE = {
    *("stop.name", "stops.[].principal", "stops.[].tool", "values.[].items.[].folded"),
    *("reference.mode", "reference.model", "reference.provider", "reference.slug"),
}
"""Facts whose empty text is a statement: a stop of everything has no name, a caller may have no principal, a request
may be about no tool, nothing is left of a text of blanks, and a reference leaves a part to the harness."""


# covers: H12.1-2
@pytest.mark.parametrize("file", lane(NARROWED, codes), ids=case_id)
def test_1_no_fact_missing_or_of_another_type_widens(file: CaseFile, runner: Runner, *, full: bool) -> None:
    """The fast lane takes away what the refusing rules read, and at one case of each point everything."""
    engine, original, outcome = taken(runner, file)
    read = {*original} if full or file in FIRST else read_for(file, runner).facts
    asked = [
        (path, value, mutant)
        for path, value, mutant in mutated(file, original, full=full)
        if path[0] in read - {"point"} and not (value == "" and generic(path) in NONE)
    ]
    assert asked
    for (path, value, _), got in zip(asked, outcomes(engine, [m for *_, m in asked]), strict=True):
        assert RANK[got] <= RANK[outcome], f"{path} as {value!r}"


# covers: A09.1
@pytest.mark.parametrize("file", lane(ON_BUNDLES, codes), ids=case_id)
def test_1_no_field_of_a_source_bundle_missing_or_of_another_type_widens(
    file: CaseFile, runner: Runner, tmp_path: Path, *, full: bool
) -> None:
    engine, _, outcome = taken(runner, file)
    bundle, original = document(file, tmp_path / "bundle")
    read = []
    for path, value, mutant in mutated(file, original, full=full):
        found = facts(engine, bundle, mutant)
        if found is not None:
            read.append((path, value, found))
    for (path, value, found), got in zip(read, outcomes(engine, [f for *_, f in read]), strict=True):
        if found["errors"]:
            assert got == "deny", f"{path} as {value!r}"
        elif value is DROPPED or value is None:
            if path[-1] not in FIELDS:
                continue  # the unknown field that was wrong is gone
            assert path[-1] in STATED_ANSWERS, f"{path} as {value!r} is a legal document"
            assert path[-1] != "kind" or RANK[got] <= RANK[outcome], f"{path} as {value!r}"
        else:
            assert RANK[got] <= RANK[outcome], f"{path} as {value!r}"


UNDECLARED = {
    "adapter": {"__import__('os')", "contacts_delete", "handler"},
    "adapter_envelope": {"approval", "code", "handler", "tool", "verifier"},
    "runner_request": {
        *("agent", "sandbox", "backend", "sandbox_permission", "sandboxPermission", "network", "filesystem"),
        *("tools", "code", "mcp_servers", "mcpServers", "command", "uri", "tool_callback"),
        *("harness", "harness_kwargs", "secrets", "env", "trace", "authorization"),
        *("model", "provider", "mode", "slug"),
    },
    "runner_uri": {"override", "inherited"},
    "tool_result": {"error_mode", "message", "details", "looked_at", "header"},
    "media": {"bytes"},
    "code_action": {"contract"},
    "code_output": {"artifacts"},
    "subagent": {"child_conversation_id", "limit_turns", "timeout_seconds"},
    "mcp": {"command", "definitions", "env", "url", "relay", "backend"},
    "model_ref": {"reference", "mode", "model", "provider", "slug"},
    "sandbox": {"backend", "command", "shell", "egress", "files", "tighten", *BOUND_NAMES},
    "code_execution": {
        *("profile", "task", "attempt", "tighten", "packages", "contract", "files"),
        *BOUND_NAMES,
    },
    "transcript": {"actor"},
    "administration": {"name"},
    "episode": {"agent"},
    "memory": {"id"},
    "llm": {"model"},
    "network_response": {"media_type"},
}
"""Fields of requests whose absence, null or blank asks for less, or for the default, and is an answer.

A stop without a name may be one of everything, and an actor that names no agent is a script. A boundary that is not
declared is none to enforce (D59), a tool that is not carried needs no permission, a secret that is not carried need
not be sealed (D32), and an address that is cleared is the default (D43). A run without a harness gets the default
(D52), one without a model that of its harness, and one without a provider any that the harness lists. A mode that is
not stated is the safe one, and what an
error does not say is not shown (B30). Media of a size that nobody declared is held to the limit while it is
fetched (B40). A request without a number of turns or a time gets those of the policy (B19, B25),
and a request to start a subagent names none. A request without a lower limit of a sandbox gets that of its profile,
a caller that names no backend relies on none, and without a command or a text none may run. A caller that asks for no
egress gets none. Without packages, files and a contract a
program has none. Code runs in the profile of its language
unless another one is named, and a caller that names no task has tried nothing before (C63). What the policy sees
of each is a fact, and the law on facts holds but for `NONE`.
A manifest or an envelope may leave out what its format does not
have, a manifest a tool that it only half describes, and null says that an envelope has no approval, code or tool.
An entry of a transcript without an actor is text from outside. A part of a model reference that is left out is the
harness's own, also in a run. Without a relay no server is started, and without a backend a run takes place on the
default one. A read of memory without an id is one of what the caller itself has written. A question that names no
model gets that of the policy, and what is fetched without a type that point `media` admitted is held to the types of
material.
"""


_ANSWERS: dict[str, tuple[Path_, Any]] = {
    "adapter": (("manifest", "capabilities"), []),
    "adapter_envelope": (("envelope", "content"), ""),
    "memory": (("entry", "text"), ""),
    "network": (("position",), DROPPED),
    "tool_call": (("call", "arguments"), ""),
    "tool_result": (("result", "text"), ""),
    "transcript": (("entries", 0, "text"), ""),
}
"""A field of other points, and the change to it that is an answer."""


def answered(point: str, path: Path_, value: Any) -> bool:
    """Whether a change to an action or its hints is one that the rows name an answer.

    Hints that are no object, and a number or list that cannot be read, are none, and what is not hinted is the
    default (C02, C05, C07, C08); no hint of the network asks for none (C77), but every other value of it must not
    widen. An empty payload is an object, and without the field that no action has the action has none.
    A manifest may state that there are no capabilities; a result, an entry of a transcript and what is remembered may
    be an empty text; a call with an empty text has no arguments; and a fetch without a position asks for the first
    address.
    """
    if point not in PROPOSED:
        own, answer = _ANSWERS.get(point, ((), None))
        return path == own and (value is answer or bool(value == answer))
    match path:
        case ("policy_hints",) | ("policy_hints", "max_code_chars" | "exec_timeout_seconds" | "allowed_languages"):
            return True
        case ("policy_hints", "network_access") | ("action", "environment"):
            return value is DROPPED
        case ("action", "input_payload"):
            return bool(value == {})
    return False


# covers: H12.1-2
@pytest.mark.parametrize("file", lane([file for file in NARROWED if file.case.bundle is None], shape), ids=case_id)
def test_1_no_field_of_a_request_missing_or_of_another_type_widens(
    file: CaseFile, runner: Runner, *, full: bool
) -> None:
    engine, _, outcome = taken(runner, file)
    asked = []
    for path, value, mutant in mutated(file, file.case.request, full=full):
        if value is None and path[-1] in STATED_ANSWERS | {"digest": ""}:
            continue
        if value in (DROPPED, None, "") and path[-1] in UNDECLARED.get(file.case.point, ()):
            continue
        if payload(file.case.point, path, itself=value in ([], {})) or answered(file.case.point, path, value):
            continue
        asked.append((path, value, mutant))
    answers = engine.decide_many(file.case.point, [m for *_, m in asked], context(file), Mode.CHECK)
    for (path, value, _), got in zip(asked, answers, strict=True):
        assert RANK[got.decision.outcome] <= RANK[outcome], f"{path} as {value!r}"


@hypothesis_settings(max_examples=examples(150))
@given(data=st.data())
def test_1_no_combination_widens(data: st.DataObject, runner: Runner) -> None:
    file = data.draw(st.sampled_from(NARROWED))
    engine, original, outcome = taken(runner, file)
    mutant: Any = original
    for _ in range(data.draw(st.integers(2, 5))):
        if not (fields := [path for path in paths(mutant) if path != ("point",)]):
            break
        path = data.draw(st.sampled_from(fields))
        present = get(mutant, path)
        wrong = [value for value in (DROPPED, None, True, 0, "", [], {}) if type(value) is not type(present)]
        mutant = with_value(mutant, path, data.draw(st.sampled_from(wrong)))
    assert RANK[outcomes(engine, [mutant])[0]] <= RANK[outcome]
