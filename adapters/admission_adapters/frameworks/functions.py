"""Python functions behind the gate, for every framework that takes functions as tools.

    tools = gated(gate, [search, send], person=ask)

Each keeps its name, docstring, signature and type hints: the framework makes the definition for the model from them. A
refusal, the failure of a function and the id of a call that waits are returned as text.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import suppress
from functools import update_wrapper
from typing import Any, get_type_hints

from pydantic import PydanticUserError, TypeAdapter

from admission_adapters.frameworks.gate import AgentGate
from admission_adapters.tools.forms import whole
from admission_adapters.tools.result import NOT_APPROVED
from admission_adapters.tools.thread import fit
from engine.errors import WorkError

Function = Callable[..., Any]
Person = Callable[[str, dict[str, Any]], Any]
"""Asks a person about the name and the arguments of a call; for async functions it may be async."""


def gated(
    gate: AgentGate, functions: Sequence[Function], *, person: Person | None = None, injected: Collection[str] = ()
) -> list[Function]:
    """Those of these functions that may be shown, behind the gate. Raises WorkError for one without a JSON Schema.

    `person` is the `approver` of the gate. `injected` are parameters that the framework fills in and not the model;
    nothing is decided on them.
    """
    definitions = [_definition(one, injected) for one in functions]
    visible = gate.visible_tools(definitions)
    return [
        _gated(gate, one, definition, person, injected)
        for one, definition in zip(functions, definitions, strict=True)
        if definition["name"] in visible
    ]


def _gated(
    gate: AgentGate,
    function: Function,
    definition: dict[str, Any],
    person: Person | None,
    injected: Collection[str],
) -> Function:
    signature = inspect.signature(function)
    optional = {name for name, one in signature.parameters.items() if one.default is None}
    types = get_type_hints(function, include_extras=True)

    def call_of(positional: tuple[Any, ...], named: dict[str, Any]) -> tuple[dict[str, Any], Function]:
        """The call, and what makes it, from the JSON that was decided on."""
        given = signature.bind_partial(*positional).arguments | named
        more = {name: given.pop(name) for name in injected if name in given}
        given = {name: one for name, one in given.items() if one is not None or name not in optional}
        plain = given
        with suppress(ValueError):  # what has no JSON form: then the call is refused
            plain = TypeAdapter(dict[str, Any]).dump_python(given, mode="json")

        def make(decided: dict[str, Any]) -> Any:
            typed = {
                name: TypeAdapter(types.get(name, Any)).validate_json(json.dumps(one))
                for name, one in decided.items()
                if one != given[name]
            }
            arguments = decided | typed | more
            fit(function, arguments)
            value = function(**arguments)
            return value if inspect.isawaitable(value) or isinstance(value, AsyncIterator) else whole(value)

        return {"name": definition["name"], "arguments": plain}, make

    def blocking(*positional: Any, **named: Any) -> Any:
        call, make = call_of(positional, named)
        reply = gate.call(call, make, definition)
        if reply.waits and person is not None:
            if not person(call["name"], call["arguments"]):
                return NOT_APPROVED
            reply = gate.call(call, make, definition, approved=True)
        return reply.value

    async def on_loop(*positional: Any, **named: Any) -> Any:
        call, make = call_of(positional, named)
        reply = await gate.call_async(call, make, definition=definition)
        if reply.waits and person is not None:
            answer = person(call["name"], call["arguments"])
            if not (await answer if inspect.isawaitable(answer) else answer):
                return NOT_APPROVED
            reply = await gate.call_async(call, make, definition=definition, approved=True)
        return reply.value

    return _stating(function, on_loop if inspect.iscoroutinefunction(function) else blocking)


def _stating(function: Function, call: Function) -> Function:
    """`call`, with what `function` states of itself; but who unwraps or stores it gets no function without a gate."""
    signature, hints = inspect.signature(function), get_type_hints(function, include_extras=True)
    parameters = [one.replace(annotation=hints.get(name, one.annotation)) for name, one in signature.parameters.items()]
    update_wrapper(call, function, ("__module__", "__name__", "__doc__"))
    del call.__wrapped__  # type: ignore[attr-defined]
    call.__annotations__ = hints
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=parameters, return_annotation=hints.get("return", signature.return_annotation)
    )
    return call


def _definition(function: Function, injected: Collection[str]) -> dict[str, Any]:
    def of_model() -> Any:
        """Has the parameters that the model fills in."""

    try:
        stated = inspect.signature(_stating(function, of_model))
        parameters = [one for name, one in stated.parameters.items() if name not in injected]
        of_model.__signature__ = stated.replace(parameters=parameters)  # type: ignore[attr-defined]
        schema = TypeAdapter[Any](of_model).json_schema()  # type: ignore[arg-type]
    except (PydanticUserError, NameError) as error:
        raise WorkError(
            f"the parameters of `{function.__name__}` have no JSON Schema",
            remedy="annotate them with types of JSON, or name those that the framework fills in as `injected`",
            code="engine.tool_not_registered",
        ) from error
    return {"name": function.__name__, "description": inspect.getdoc(function) or "", "input_schema": schema}
