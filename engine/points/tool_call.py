"""Point `tool_call`: whether an agent may call a tool with exactly these arguments, and within what limits.

Nothing of the arguments gets into the input but what rules speak about: names, destinations, paths and
commands in their one form, places of secrets, counts, a digest, and a short preview without secrets (B26, B27).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from engine.canonical import digest
from engine.facts.arguments import Look, Walked, walk
from engine.facts.found import Argument, Command, Destination, FoundPath, Place
from engine.facts.paths import Lead, canonical_folder, lead
from engine.facts.previews import preview
from engine.facts.schemas import fits, schema_valid
from engine.facts.tool_calls import Call, ToolCall, call_of
from engine.facts.tool_definitions import UnreadableDefinitionError, definition_of
from engine.files import shown
from engine.model import Caller, Digest, Limits, Line, Model, Object, Pace
from engine.points import Gathered, Input, Point, World
from engine.record.patterns import is_secret
from engine.record.redaction import is_secret_name, redact
from engine.state.store import Store

PREFIXES = 500
"""Approved prefixes that one decision can see, the newest first; a person approves a few a day."""

Name = Annotated[str, Field(max_length=128)]
Folder = Annotated[Line, AfterValidator(canonical_folder)]


class EnvironmentFacts(Model):
    """What can undo the effects of a call: a reset of its environment, a checkpoint to go back to."""

    reset: bool
    checkpoint: bool


class ToolCallRequest(Model):
    """Ask whether a call may be made. `definition` is the tool's definition as its server gave it, in any shape."""

    call: ToolCall
    policy: Name | None = None
    profile: Name | None = None
    cwd: Folder | None = None
    environment: EnvironmentFacts | None = None
    definition: Object | None = None


class Asked(Model):
    """Under which tool policy and profile the call is made, and in which working directory."""

    policy: str | None = None
    profile: str | None = None
    cwd: str | None = None


class CallFacts(Model):
    """The call as a whole. `readable`: there are arguments, in one reading; `complete`: all of them were walked.

    `touches` are absolute paths that texts of `data` may mean: they count only for rules that refuse or ask.
    `unplaced`: some texts may mean paths below a working folder, and none was named.
    `bytes` and `digest` are those of the arguments as canonical JSON, or of the text that has no reading.
    """

    tool: str
    arguments: tuple[Argument, ...]
    touches: tuple[str, ...]
    unplaced: bool
    readable: bool
    complete: bool
    bytes: int
    depth: int
    count: int
    digest: Digest
    summary: str
    summary_cut: bool


class DefinitionFacts(Model):
    """The definition that was brought along; `fits`: the arguments satisfy its schema."""

    digest: Digest
    schema_valid: bool
    fits: bool


class ToolCallInput(Input):
    """What OPA sees of a call."""

    asked: Asked
    call: CallFacts
    definition: DefinitionFacts | None = None
    environment: EnvironmentFacts | None = None
    destinations: tuple[Destination, ...]
    paths: tuple[FoundPath, ...]
    commands: tuple[Command, ...]
    secrets: tuple[Place, ...]
    unreadable: tuple[Place, ...]


class ToolCallLimits(Limits):
    """What the call may use: seconds, bytes of its result; which effects it has, and what admitted it.

    `basis` `argument_text_prefix` says that only the text of the command was compared: nothing is said
    about the program that the system would run (B10).
    """

    tool: str
    seconds: Annotated[int, Field(ge=1, le=3_600)]
    result_bytes: Annotated[int, Field(ge=0)]
    side_effects: tuple[str, ...]
    record_side_effect: Literal[True]
    rule: str
    basis: Literal["rule", "argument_text_prefix", "approval"]


def gather(request: ToolCallRequest, world: World) -> Gathered:
    """Bring the call into its one form and list everything in it that rules may speak about."""
    call = call_of(request.call)
    walked = walk(
        call.arguments or {},
        world.argument_types(call.tool),
        request.cwd,
        Look(partial(is_secret, forms=world.forms), is_secret_name, world.forms.handed, _lead(world)),
    )
    hidden = call.arguments is None and is_secret(call.data.decode("utf-8"), world.forms)
    gathered = ToolCallInput(
        point="tool_call",
        now=world.clock(),
        asked=Asked(policy=request.policy, profile=request.profile, cwd=request.cwd),
        call=_call(call, walked),
        definition=None if request.definition is None else _definition(request.definition, call),
        environment=request.environment,
        destinations=walked.destinations,
        paths=walked.paths,
        commands=walked.commands,
        secrets=(Place(id="arguments"),) if hidden else walked.secrets,
        unreadable=walked.unreadable,
    )
    approved = None if request.cwd is None or not walked.commands else _approved(request.cwd)
    return Gathered(gathered, f"call of {shown(call.tool)}", opened=call, state=approved)


def _lead(world: World) -> Callable[[str], Lead]:
    """How links are found: on this machine, and only below the folder that requests may name paths in."""
    if world.root is None:
        return lead
    below = f"{str(world.root).rstrip('/')}/"
    return lambda path: lead(path) if path.startswith(below) or f"{path}/" == below else Lead("unknown")


def _call(call: Call, walked: Walked) -> CallFacts:
    silent = call.arguments is None or walked.handed
    summary, cut = ("", True) if silent else preview(call.arguments or {}, lambda value: redact(value)[0])
    return CallFacts(
        tool=call.tool,
        arguments=walked.arguments,
        touches=walked.touches,
        unplaced=walked.unplaced,
        readable=call.arguments is not None,
        complete=call.arguments is not None and walked.complete,
        bytes=len(call.data),
        depth=walked.depth,
        count=walked.count,
        digest=digest(call.data),
        summary=summary,
        summary_cut=cut,
    )


def _definition(value: dict[str, Any], call: Call) -> DefinitionFacts:
    """The facts of a definition; one that cannot be read, or is of another tool, fits nothing."""
    try:
        definition = definition_of(value)
        found, schema = definition.digest(), definition.input_schema
    except UnreadableDefinitionError:
        return DefinitionFacts(digest=digest(repr(value).encode("utf-8", "replace")), schema_valid=False, fits=False)
    fit = definition.name == call.tool and call.arguments is not None and fits(schema, call.arguments)
    return DefinitionFacts(digest=found, schema_valid=schema_valid(schema), fits=fit)


def _approved(cwd: str) -> Callable[[Store, Caller, int], Mapping[str, list[dict[str, Any]]]]:
    """The prefixes that were approved for whoever asks, in this working directory."""

    def prefixes(store: Store, caller: Caller, _now: int) -> Mapping[str, list[dict[str, Any]]]:
        if caller.principal is None:
            return {}
        rows = store.prefixes(caller.principal, cwd, PREFIXES)
        return {
            "prefixes": [
                {
                    "id": row.id,
                    "tool": row.tool,
                    "principal": row.principal,
                    "cwd": row.cwd,
                    "words": list(row.words),
                    "approver": row.approver,
                    "expires_at": row.expires_at,
                    "revoked": row.revoked_at is not None,
                }
                for row in rows
            ]
        }

    return prefixes


POINT = Point("tool_call", ToolCallRequest, ToolCallInput, ToolCallLimits, gather, pace=Pace.SHORT)
