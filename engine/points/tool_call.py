"""Point `tool_call`: whether an agent may call a tool with exactly these arguments, and within what limits.

Of the arguments, the input contains only what rules refer to: names, destinations, paths and
commands in canonical form, positions of secrets, counts, a digest, and a short preview without secrets (B26, B27).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from engine.documents.canonical import canonical, digest
from engine.documents.files import printable
from engine.facts.paths import Lead, canonical_folder, lead
from engine.facts.text.content import steering_in
from engine.facts.tools.argument_facts import Argument, Command, CommandPart, Destination, FoundPath
from engine.facts.tools.arguments import Walked, walk
from engine.facts.tools.calls import Call, ToolCall, call_of
from engine.facts.tools.definitions import UnreadableDefinitionError, definition_of
from engine.facts.tools.schemas import misfits, schema_valid
from engine.facts.tools.values import ArgumentValue, argument_values
from engine.model import Caller, Count, Digest, HeldEnvironment, Limits, Line, Model, Named, Object, Pace
from engine.points import FactsFromState, GatherContext, Gathered, Point
from engine.points.episode import calling_agent, may_be_agent
from engine.points.tool_visibility import Name, ToolScope
from engine.secrets.patterns import is_secret
from engine.secrets.redaction import redact

if TYPE_CHECKING:
    from engine.state.store import Store

PREFIXES = 500
"""Approved prefixes that one decision can see, the newest first; a person approves a few a day."""

PREVIEW_BYTES = 256
"""Bytes of a preview: enough to recognize a call, too few to be its arguments."""

_ITEMS = 32
"""Items of an object or list that can show in so few bytes."""

_LEVELS = 8
"""Levels that can show."""

_MARK = "[redacted:"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

Folder = Annotated[Line, AfterValidator(canonical_folder)]


class EnvironmentFacts(Model):
    """What can undo the effects of a call: a reset of its environment, or a checkpoint to restore."""

    reset: bool
    checkpoint: bool


class HeldName(Model):
    """The id of an environment that this engine holds open; what can be undone there, the engine knows itself."""

    held: Name


def _form(stated: Any) -> str:
    """Which of both was meant."""
    return "known" if isinstance(stated, HeldName) or (isinstance(stated, Mapping) and "held" in stated) else "stated"


CallEnvironment = Annotated[
    Annotated[EnvironmentFacts, Tag("stated")] | Annotated[HeldName, Tag("known")], Discriminator(_form)
]


class ToolCallRequest(Model):
    """Ask whether a call may be made. `definition` is the tool's definition as its server gave it, in any shape.

    `home` is the home folder of the user who runs commands: `~` and `$HOME` in them.
    """

    call: ToolCall
    policy: Name | None = None
    profile: Name | None = None
    cwd: Folder | None = None
    home: Folder | None = None
    environment: CallEnvironment | None = None
    definition: Object | None = None


class CallScope(ToolScope):
    """Under which tool policy and profile the call is made, and in which working directory."""

    cwd: str | None = None


class CallFacts(Model):
    """The call as a whole. `readable`: there are arguments, in one reading; `complete`: all of them were walked.

    `touches` are absolute paths that texts of `data` may mean: they count only for rules that refuse or ask.
    `unplaced`: some texts may mean paths below a working folder, and none was named.
    `bytes` and `digest` are those of the arguments as canonical JSON, or of the text that has no reading. `added` are
    the names of fields that a vendor added to the call.
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
    added: tuple[str, ...]


class DefinitionFacts(Model):
    """The definition in the request; `hidden` and `instructions` count what it has of both: a model reads it."""

    digest: Digest
    schema_valid: bool
    hidden: int
    instructions: int


class ToolCallInput(Model):
    """What OPA sees of a call. `environment` is what its caller states, `held` what the engine found out itself.

    `values` are those of the arguments that rules of policy/tools.yaml have conditions on, and no others.
    `secrets` and `unreadable` say where such values are, never what they are. `misfits` are the arguments that do not
    fit the definition. `adds` lists what the run touches with this call. `flows` lists what it touched before, and is
    filled from the engine's state.
    """

    context: CallScope
    call: CallFacts
    definition: DefinitionFacts | None = None
    misfits: tuple[Named, ...]
    environment: EnvironmentFacts | None = None
    held: HeldEnvironment | None = None
    destinations: tuple[Destination, ...]
    paths: tuple[FoundPath, ...]
    commands: tuple[Command, ...]
    command_parts: tuple[CommandPart, ...]
    values: tuple[ArgumentValue, ...]
    secrets: tuple[Named, ...]
    unreadable: tuple[Named, ...]
    adds: tuple[str, ...]


class ToolCallLimits(Limits):
    """Limits of the call: seconds and result bytes; its side effects, and the rule that admitted it.

    `basis` `argument_text_prefix` means that only the text of the command was compared, which guarantees
    nothing about the program that the system would run (B10); `level`, that policy/levels.yaml lowers what no rule
    allows.
    """

    tool: str
    seconds: Annotated[int, Field(ge=1, le=3_600)]
    result_bytes: Count
    side_effects: tuple[str, ...]
    record_side_effect: Literal[True]
    rule: str
    basis: Literal["rule", "argument_text_prefix", "approval", "level"]


def gather(request: ToolCallRequest, context: GatherContext) -> Gathered:
    """Bring the call into canonical form and list everything in it that rules may refer to."""
    call = call_of(request.call)
    walked = walk(
        call.arguments or {},
        context.lookups.argument_types.get(call.tool, {}),
        request.cwd,
        context.lookups.forms,
        _lead(context),
        context.lookups.programs,
        request.home,
    )
    definition, unfit = _definition(request.definition, call, context)
    stated = request.environment
    touches = context.lookups.touches.get(call.tool, ())
    hidden = call.arguments is None and is_secret(call.data.decode("utf-8"), context.lookups.forms)
    gathered = ToolCallInput(
        context=CallScope(policy=request.policy, profile=request.profile, cwd=request.cwd),
        call=_call(call, walked),
        definition=definition,
        misfits=unfit,
        environment=stated if isinstance(stated, EnvironmentFacts) else None,
        held=context.held(stated.held, None) if isinstance(stated, HeldName) else None,
        destinations=tuple(walked.destinations),
        paths=tuple(walked.paths),
        commands=tuple(walked.commands),
        command_parts=tuple(walked.command_parts),
        values=argument_values(
            call.arguments or {}, context.lookups.ruled_arguments.get(call.tool, {}), context.lookups.forms
        ),
        secrets=(Named(id="arguments"),) if hidden else tuple(walked.secrets),
        unreadable=tuple(walked.unreadable),
        adds=touches,
    )
    folder = request.cwd if walked.commands else None
    return Gathered(
        gathered,
        f"call of {printable(call.tool)}",
        opened=call,
        state=partial(_known, folder),
        asks_state=lambda caller: folder is not None or may_be_agent(caller),
        tool=call.tool,
        touches=touches,
    )


def _lead(context: GatherContext) -> Callable[[str], Lead]:
    """How links are found: on this machine, and only below the folder that requests may name paths in."""
    if context.root is None:
        return lead
    below = f"{str(context.root.absolute()).rstrip('/')}/"
    return lambda path: lead(path) if path.startswith(below) or f"{path}/" == below else Lead("unknown")


def _call(call: Call, walked: Walked) -> CallFacts:
    silent = call.arguments is None or walked.handed
    summary, cut = ("", True) if silent else preview(call.arguments or {}, lambda value: redact(value)[0])
    return CallFacts(
        tool=call.tool,
        arguments=tuple(walked.arguments),
        touches=tuple(walked.touches),
        unplaced=walked.unplaced,
        readable=call.arguments is not None,
        complete=call.arguments is not None and walked.complete,
        bytes=len(call.data),
        depth=walked.depth,
        count=walked.count,
        digest=digest(call.data),
        summary=summary,
        summary_cut=cut,
        added=tuple(name if _NAME.fullmatch(name) else "?" for name in call.added[:_ITEMS]),
    )


def preview(arguments: Mapping[str, Any], clean: Callable[[Any], Any]) -> tuple[str, bool]:
    """The start of the arguments as JSON, and whether it was cut.

    `clean` removes secrets from a JSON value. It sees whole strings, because half a secret is not recognized.
    """
    text, cut = "", len(arguments) > _ITEMS
    for name in sorted(arguments)[:_ITEMS]:
        if len(text) > PREVIEW_BYTES:
            cut = True
            break
        head, shortened = _head(arguments[name], _LEVELS)
        cut = cut or shortened
        text += ("," if text else "{") + canonical(clean({name: head})).decode("utf-8")[1:-1]
    text = text or "{"
    data = text.encode("utf-8") + (b"" if cut else b"}")
    if len(data) <= PREVIEW_BYTES:
        return data.decode("utf-8"), cut
    return _whole_marks(data[:PREVIEW_BYTES].decode("utf-8", "ignore")), True


def _head(value: Any, levels: int) -> tuple[Any, bool]:
    """A value without what lies beyond the first items and levels, and whether something does."""
    if not isinstance(value, dict | list):
        return value, False
    if levels == 0:
        return None, True
    first = sorted(value.items())[:_ITEMS] if isinstance(value, dict) else list(enumerate(value[:_ITEMS]))
    heads = [(key, *_head(item, levels - 1)) for key, item in first]
    cut = len(value) > _ITEMS or any(shortened for *_, shortened in heads)
    return ({key: head for key, head, _ in heads} if isinstance(value, dict) else [head for _, head, _ in heads]), cut


def _whole_marks(text: str) -> str:
    """The text without the piece of a redaction mark that it may end in."""
    start = text.rfind("[")
    end = text[start:] if start >= 0 else ""
    return text[:start] if end and "]" not in end and (_MARK.startswith(end) or end.startswith(_MARK)) else text


def _definition(
    value: dict[str, Any] | None, call: Call, context: GatherContext
) -> tuple[DefinitionFacts | None, tuple[Named, ...]]:
    """The facts of a definition, and what does not fit it: everything if it cannot be read, or is of another tool."""
    if value is None:
        return None, ()
    try:
        definition = definition_of(value)
        found, schema = definition.digest(), definition.input_schema
    except UnreadableDefinitionError:
        unread = digest(repr(value).encode("utf-8", "replace"))
        return DefinitionFacts(digest=unread, schema_valid=False, hidden=0, instructions=0), (Named(id="arguments"),)
    hidden, instructions = steering_in(definition.document(), context.lookups.markers)
    facts = DefinitionFacts(digest=found, schema_valid=schema_valid(schema), hidden=hidden, instructions=instructions)
    named = misfits(schema, call.arguments) if definition.name == call.tool and call.arguments is not None else None
    plain = [
        f"arguments/{name}" if _NAME.fullmatch(name) and not is_secret(name, context.lookups.forms) else "arguments"
        for name in (("",) if named is None else named[:_ITEMS])
    ]
    return facts, tuple(Named(id=one) for one in dict.fromkeys(plain))


def _known(cwd: str | None, store: Store, caller: Caller) -> FactsFromState:
    """The agent that the caller is, and the prefixes approved for it in this working directory, if it has commands."""
    agents = calling_agent(store, caller)
    if caller.principal is None or cwd is None:
        return {"agents": agents}
    return {
        "agents": agents,
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
            for row in store.prefixes(caller.principal, cwd, PREFIXES)
        ],
    }


POINT = Point("tool_call", ToolCallRequest, ToolCallInput, ToolCallLimits, gather, pace=Pace.SHORT)
